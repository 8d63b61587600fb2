"""Generated C -> a shared object, kept under the user's cache folder.

A file there is loaded into this process, so it is trusted only if nobody else can have written it:
the folder and the file belong to this user and no one else may write to them. Files are named by
the hash of source, compiler and flags, made under another name and renamed, one compiler at a time.
"""

import fcntl
import logging
import os
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from softswitch.native.errors import NotNativeError
from softswitch.native.source import NativeSource

LOG = logging.getLogger("softswitch")

FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-fno-strict-aliasing", "-fwrapv",
         "-fvisibility=hidden", "-Werror=frame-larger-than=262144")  # fmt: skip
"""The last one refuses a program whose packets need so much of the stack that it may end."""

MORE_FLAGS = "SOFTSWITCH_CFLAGS"
"""Names the environment variable with further flags, for sanitizers."""

_COMPILERS = ("cc", "gcc", "clang")
_DEADLINE_S = 180.0
_DIGEST = 32
_KEPT = 512
"""Shared objects in the folder; the oldest go first."""


def compiler() -> str | None:
    """The C compiler: that of ``CC``, or the first of cc, gcc, clang; None without one."""
    for name in (os.environ.get("CC", ""), *_COMPILERS):
        found = shutil.which(name) if name else None
        if found is not None:
            return found
    return None


def shared_object(source: NativeSource) -> Path:
    """The file of compiled `source`, made now or before; NotNativeError says why there is none."""
    command = compiler()
    if command is None:
        raise NotNativeError("no C compiler is installed (looked for $CC, cc, gcc, clang)")
    flags = (*FLAGS, *shlex.split(os.environ.get(MORE_FLAGS, "")))
    known = os.stat(command)
    identity = f"{os.path.realpath(command)} {known.st_size} {known.st_mtime_ns} {flags}"
    name = sha256(f"{source.key} {identity}".encode()).hexdigest()[:40] + ".so"
    folder = _folder()
    path = folder / name
    if _is_ours(path):
        return path
    with _locked(folder):
        if not _is_ours(path):
            _compile(command, flags, source, path)
            _prune(folder, path)
    return path


def discard(path: Path) -> None:
    """Remove a file that turned out not to be usable."""
    path.unlink(missing_ok=True)


def _cache_home() -> Path:
    given = os.environ.get("XDG_CACHE_HOME", "")
    return Path(given) if given.startswith("/") else Path.home() / ".cache"


def _folder() -> Path:
    """The folder for shared objects, this user's alone; NotNativeError if it cannot be had."""
    try:
        folder = _cache_home() / "bluetree" / "softswitch"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except (OSError, RuntimeError) as error:
        raise NotNativeError(f"no cache folder can be made ({error}): set XDG_CACHE_HOME") from None
    if not stat.S_ISDIR(found.st_mode) or not _is_private(found):
        raise NotNativeError(
            f"{folder} is not a folder that only this user can write to: `chmod 700` it, or set "
            "XDG_CACHE_HOME"
        )
    return folder


def _is_private(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _is_ours(path: Path) -> bool:
    """True if a file is there that only this user can have written, and that is whole."""
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or not _is_private(found):
            return False
        data = path.read_bytes()
    except OSError:
        return False
    return sha256(data[:-_DIGEST]).digest() == data[-_DIGEST:]


def _seal(path: Path) -> None:
    """Put the hash of a file at its end, which loading ignores: a file cut short is found out."""
    data = path.read_bytes()
    path.write_bytes(data + sha256(data).digest())


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process compiles at a time: many switches that start together share the result."""
    descriptor = os.open(
        folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
    )
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _compile(command: str, flags: tuple[str, ...], source: NativeSource, path: Path) -> None:
    try:
        with tempfile.TemporaryDirectory(prefix="making-", dir=path.parent) as scratch:
            text, made = Path(scratch, "pipeline.c"), Path(scratch, "pipeline.so")
            text.write_text(source.text)
            done = subprocess.run(
                [command, *flags, "-o", str(made), str(text)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_DEADLINE_S,
                check=False,
            )
            if done.returncode:
                lines = [line for line in done.stderr.splitlines() if "error: " in line]
                told = (lines or [done.stderr])[0].strip()
                raise NotNativeError(f"{command} fails: {told[:300]}")
            _seal(made)
            made.chmod(0o700)
            made.replace(path)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotNativeError(f"{command} fails: {error}") from error


def _prune(folder: Path, newest: Path) -> None:
    ages: list[tuple[float, Path]] = []
    for path in folder.glob("*.so"):
        try:
            ages.append((path.lstat().st_mtime, path))
        except OSError:
            continue  # another process removed it
    for left in folder.glob("making-*"):  # of a process that was killed; the lock is ours
        shutil.rmtree(left, ignore_errors=True)
    for _, path in sorted(ages)[:-_KEPT]:
        if path != newest:
            path.unlink(missing_ok=True)
