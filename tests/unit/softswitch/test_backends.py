"""Which back end runs a program, where its code is kept, and that both do the same."""

import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from softswitch import Device, Switch
from softswitch.errors import InvalidArgument
from softswitch.loader import load_program
from softswitch.native import VARIABLE, NativeUnavailable, build, why_not
from softswitch.native.errors import NotNativeError
from softswitch.native.module import generate
from softswitch.native.source import NativeSource
from tests.differential import backends
from tests.fuzz.inputs import pipeline, program_names
from tests.unit.softswitch.programs import PROGRAMS, SHIPPED

needs_compiler = pytest.mark.skipif(
    why_not() is not None, reason=f"ABSENT: native code: {why_not()}"
)
PACKETS = 400
METERS = "state"
REASON = "meter IngressPipe.pace in IngressPipe.measure"
NOT_NATIVE = {
    METERS: REASON,
    "control": "meter ControlIngress.rates in ControlIngress.measure",
    "profiles": "action profile IngressPipe.ways of table IngressPipe.balanced",
}
"""Programs that C is not made for, and why."""


@pytest.fixture
def backend() -> str:
    """Tests here name the back end themselves."""
    return ""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder; the folder in it that shared objects go to."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "bluetree" / "softswitch"


def source(name: str = "version") -> NativeSource:
    return generate(load_program((PROGRAMS / f"{name}.json").read_bytes()))


def fresh(name: str, padding: int) -> bytes:
    """A program that this process has not met: the same with blanks at the end."""
    return (PROGRAMS / f"{name}.json").read_bytes() + b" " * padding


# --- both do the same ---------------------------------------------------------------------------


@needs_compiler
@pytest.mark.parametrize("name", sorted({*program_names()} - NOT_NATIVE.keys()))
def test_both_back_ends_do_the_same(name: str) -> None:
    backends.compare(name, PACKETS, seed=11)


@needs_compiler
@pytest.mark.parametrize(("name", "reason"), NOT_NATIVE.items())
def test_what_c_is_not_made_for_is_named(name: str, reason: str) -> None:
    with pytest.raises(NativeUnavailable, match=f"cannot run this program: {reason}"):
        backends.Pair(name, seed=1)


@needs_compiler
def test_packets_of_every_length_leave_alike() -> None:
    """Also those that end in the middle of a header."""
    devices = [Device(1, backend=name) for name in ("native", "python")]
    whole = bytes.fromhex(
        "020000000001020000000002080045000070000100003f1100000a0000010aff00013039257600"
    ).ljust(200, b"\1")
    for device in devices:
        device.load_pipeline(SHIPPED.read_bytes())
        for length in range(len(whole)):
            device.process(1, whole[:length])
    counters = [d.counters("BluetreeIngress.outcomes") for d in devices]
    assert counters[0] == counters[1]
    assert sum(c.packets for c in counters[0]) == len(whole)


# --- which one runs -----------------------------------------------------------------------------


@needs_compiler
def test_auto_takes_native_code_and_python_does_not() -> None:
    assert Switch.load(SHIPPED, backend="native").device.native is not None
    assert Switch.load(SHIPPED, backend="auto").device.native is not None
    assert Switch.load(SHIPPED, backend="python").device.native is None


@needs_compiler
def test_what_c_is_not_made_for_runs_in_python_and_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "softswitch"):
        switch = Switch.load(fresh(METERS, 3), backend="auto")
    assert switch.device.native is None
    assert [r.getMessage().partition(" runs in Python: ")[2] for r in caplog.records] == [REASON]
    with pytest.raises(NativeUnavailable, match=rf"cannot run this program: {REASON}; choose "):
        Switch.load(PROGRAMS / f"{METERS}.json", backend="native")


@needs_compiler
def test_a_refused_push_leaves_the_old_pipeline() -> None:
    device = Device(backend="native")
    device.load_pipeline(SHIPPED.read_bytes())
    program = device.program
    with pytest.raises(NativeUnavailable):
        device.load_pipeline((PROGRAMS / f"{METERS}.json").read_bytes())
    with pytest.raises(NativeUnavailable):
        device.check_pipeline((PROGRAMS / f"{METERS}.json").read_bytes())
    assert device.program is program


def test_the_environment_stands_in_for_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "python")
    assert Switch.load(SHIPPED).device.native is None
    monkeypatch.setenv(VARIABLE, "jit")
    with pytest.raises(InvalidArgument, match=r"named 'jit' \(from SOFTSWITCH_BACKEND\): auto, "):
        Device()
    with pytest.raises(InvalidArgument, match=r"named 'fast': auto, python, native"):
        Device(backend="fast")


def test_without_a_compiler_python_runs_all(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    with caplog.at_level(logging.INFO, "softswitch"):
        assert Switch.load(fresh("version", 1), backend="auto").device.native is None
    assert "no C compiler is installed" in caplog.text
    with pytest.raises(NativeUnavailable, match="no C compiler is installed"):
        Switch.load(fresh("version", 2), backend="native")


@needs_compiler
def test_a_push_does_not_wait_for_a_slow_compiler(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("softswitch.native.PATIENCE_S", 0.0)
    with caplog.at_level(logging.INFO, "softswitch"):
        assert Switch.load(fresh("version", 4), backend="auto").device.native is None
    assert "runs in Python: it is not compiled within 0 s" in caplog.text
    assert Switch.load(fresh("version", 4), backend="native").device.native is not None
    assert Switch.load(fresh("version", 4), backend="auto").device.native is not None


# --- the cache ----------------------------------------------------------------------------------


@needs_compiler
def test_code_is_compiled_once_and_kept_privately(cache: Path) -> None:
    path = build.shared_object(source())
    assert path.parent == cache
    assert [p.stat().st_mode & 0o777 for p in (cache, path)] == [0o700, 0o700]
    made = path.stat().st_mtime_ns
    assert build.shared_object(source()) == path
    assert path.stat().st_mtime_ns == made
    assert sorted(p.name for p in cache.iterdir()) == sorted([path.name, "lock"])


@needs_compiler
def test_a_file_that_others_could_have_written_is_not_loaded(cache: Path) -> None:
    path = build.shared_object(source())
    inode = path.stat().st_ino
    path.chmod(0o777)
    assert build.shared_object(source()) == path
    assert path.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_ino != inode
    path.unlink()
    path.symlink_to("/bin/true")
    assert build.shared_object(source()) == path
    assert not path.is_symlink()
    if os.geteuid() == 0:
        os.chown(path, 12345, 12345)
        build.shared_object(source())
        assert path.stat().st_uid == 0


@needs_compiler
def test_a_folder_that_others_may_write_to_is_not_used(cache: Path) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    with pytest.raises(NotNativeError, match=r"is not a folder that only this user can write to"):
        build.shared_object(source())


@needs_compiler
def test_a_damaged_file_is_made_anew(cache: Path) -> None:
    path = build.shared_object(source())
    path.write_bytes(path.read_bytes()[:1000])
    code = (
        "from pathlib import Path; from softswitch import Switch; import sys;"
        "print(Switch.load(Path(sys.argv[1]), backend='native').process(0, bytes(15)))"
    )
    command = [sys.executable, "-c", code, str(PROGRAMS / "version.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert path.stat().st_size > 1000


@needs_compiler
def test_many_processes_share_one_compilation(cache: Path) -> None:
    code = (
        "from pathlib import Path; from softswitch import Switch; import sys;"
        "Switch.load(Path(sys.argv[1]), backend='native')"
    )
    command = [sys.executable, "-c", code, str(PROGRAMS / "version.json")]
    with ThreadPoolExecutor(4) as pool:
        codes = list(pool.map(lambda _: subprocess.run(command, check=False).returncode, range(4)))
    assert codes == [0] * 4
    assert len(list(cache.glob("*.so"))) == 1
    assert not list(cache.glob("making-*"))


@needs_compiler
def test_an_error_of_the_compiler_is_told(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(build.MORE_FLAGS, "-DPIPELINE_KEY=1")
    broken = NativeSource("0" * 64, "int f(void) { return missing; }", (), (), False)
    with pytest.raises(NotNativeError, match=r"fails: .*error: .*missing"):
        build.shared_object(broken)


# --- memory -------------------------------------------------------------------------------------


@needs_compiler
def test_a_switch_gives_its_memory_back() -> None:
    """Its registers hold 2 MiB; a thousand of them would show."""
    text = pipeline("bluetree")
    for _ in range(20):
        Device(backend="native").load_pipeline(text)
    before = _resident()
    for _ in range(1000):
        device = Device(backend="native")
        device.load_pipeline(text)
        for name in device.program.registers:
            device.set_register(name, 0, 1)
    assert _resident() - before < 64 << 20


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
