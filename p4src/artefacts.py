"""The compiled P4 program: where it is, how it is rebuilt, whether it is fresh.

`build/` holds what p4c made of the sources: the bmv2 JSON and the P4Info of the default build, in
folders those of the others (`p4src.builds`), and a manifest with the digest of every file on either
side; `constants.py` holds the numbers of the program. Sources and output that disagree are found
with or without p4c at hand.

    python -m p4src.artefacts build    compile and write build/ (needs p4c-bm2-ss on PATH)
    python -m p4src.artefacts check    say what is stale
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p4src.builds import BUILDS, NARROW, Build
from p4src.extract import extract, python_module

COMPILER = "p4c-bm2-ss"
SOURCE_DIR = Path(__file__).resolve().parent
BUILD_DIR = SOURCE_DIR / "build"
PROGRAM = "bluetree.p4"
JSON_NAME = "bluetree.json"
P4INFO_NAME = "bluetree.p4info.txtpb"
MANIFEST_NAME = "manifest.json"
CONSTANTS_NAME = "constants.py"
COMPILE_DEADLINE_S = 300


class ArtefactError(Exception):
    """The compiled program is absent, stale or cannot be rebuilt; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Artefacts:
    """The compiled program as bytes, and the cookie that names it in P4Runtime."""

    json: bytes
    p4info: str

    @property
    def cookie(self) -> int:
        """A 64-bit digest of both parts: equal cookies mean the same program."""
        digest = hashlib.sha256(self.json + self.p4info.encode()).digest()
        return int.from_bytes(digest[:8], "big")


def folder_of(build: Build, build_dir: Path = BUILD_DIR) -> Path:
    """Where the output of a committed build is."""
    return build_dir if build == NARROW else build_dir / f"lanes-{build.lanes}"


def load(build_dir: Path = BUILD_DIR) -> Artefacts:
    """Return the compiled program in a folder; raises ArtefactError where it is absent."""
    try:
        return Artefacts(
            json=(build_dir / JSON_NAME).read_bytes(),
            p4info=(build_dir / P4INFO_NAME).read_text(encoding="utf-8"),
        )
    except OSError as error:
        raise ArtefactError(f"compiled P4 program: {error}; rebuild it with `make p4`") from None


def sources(source_dir: Path = SOURCE_DIR) -> list[Path]:
    """Every P4 file that the program is made of, in a fixed order."""
    return [source_dir / PROGRAM, *sorted((source_dir / "include").rglob("*.p4"))]


def compiler_version() -> str | None:
    """The version of p4c on PATH, such as "1.2.5.16", or None where there is none."""
    if shutil.which(COMPILER) is None:
        return None
    result = subprocess.run(
        [COMPILER, "--version"], capture_output=True, text=True, timeout=60, check=False
    )
    # Some releases print it to stderr.
    found = re.search(r"\d+(?:\.\d+)+", result.stdout + result.stderr)
    if found is None:
        raise ArtefactError(f"{COMPILER} --version does not say a version")
    return found.group()


def compile_program(
    build_dir: Path, source_dir: Path = SOURCE_DIR, defines: tuple[str, ...] = ()
) -> None:
    """Compile the program into `build_dir` (JSON and P4Info); `defines` such as "LANES=64".

    Raises ArtefactError with p4c's own words if it refuses the program, warnings included.
    """
    if shutil.which(COMPILER) is None:
        raise ArtefactError(
            f"{COMPILER} is not on PATH; the committed output in p4src/build works without it"
        )
    result = subprocess.run(
        [
            COMPILER,
            "--std=p4-16",
            "--Werror",
            *(f"-D{define}" for define in defines),
            "--p4runtime-files",
            str(build_dir / P4INFO_NAME),
            "-o",
            str(build_dir / JSON_NAME),
            PROGRAM,
        ],
        cwd=source_dir,
        capture_output=True,
        text=True,
        timeout=COMPILE_DEADLINE_S,
        check=False,
    )
    if result.returncode != 0:
        raise ArtefactError(f"{COMPILER} refused {PROGRAM}:\n{result.stderr}")
    compiled = json.loads((build_dir / JSON_NAME).read_text(encoding="utf-8"))
    (build_dir / JSON_NAME).write_text(
        json.dumps(_without_foreign_source_info(compiled), indent=1) + "\n", encoding="utf-8"
    )


def build() -> None:
    """Compile the program and write everything that is generated from its sources."""
    build_dir = BUILD_DIR
    build_dir.mkdir(exist_ok=True)
    for one in BUILDS.values():
        folder = folder_of(one, build_dir)
        folder.mkdir(exist_ok=True)
        compile_program(folder, defines=_defines(one))
    (SOURCE_DIR / CONSTANTS_NAME).write_text(
        python_module(extract(path.read_text() for path in sources()))
    )
    manifest = {
        "compiler": COMPILER,
        "version": compiler_version(),
        "sources": _digests(sources(), SOURCE_DIR),
        "output": _digests(_outputs(build_dir), SOURCE_DIR),
    }
    (build_dir / MANIFEST_NAME).write_text(json.dumps(manifest, indent=1) + "\n")


def stale(source_dir: Path = SOURCE_DIR) -> list[str]:
    """Say what disagrees between sources, output and manifest; an empty list means fresh."""
    build_dir = source_dir / BUILD_DIR.name
    try:
        manifest = json.loads((build_dir / MANIFEST_NAME).read_text())
        recorded = {kind: dict(manifest[kind]) for kind in ("sources", "output")}
    except (OSError, ValueError, TypeError, KeyError) as error:
        return [f"{MANIFEST_NAME}: cannot be used ({type(error).__name__}: {error})"]
    problems = []
    for kind, now in (
        ("sources", _digests(sources(source_dir), source_dir)),
        ("output", _digests(_outputs(build_dir), build_dir.parent)),
    ):
        then = recorded[kind]
        for name in sorted(then.keys() | now.keys()):
            if name not in now:
                problems.append(f"{name}: in the manifest, but absent")
            elif name not in then:
                problems.append(f"{name}: not in the manifest")
            elif then[name] != now[name]:
                problems.append(f"{name}: changed since p4c ran")
    return problems


def _defines(build: Build) -> tuple[str, ...]:
    # The sources say the sizes of the default build, also when they have just been changed.
    return () if build == NARROW else build.defines


def _outputs(build_dir: Path) -> list[Path]:
    compiled = [
        folder_of(build, build_dir) / name
        for build in BUILDS.values()
        for name in (JSON_NAME, P4INFO_NAME)
    ]
    paths = (*compiled, build_dir.parent / CONSTANTS_NAME)
    return [path for path in paths if path.exists()]


def _digests(paths: list[Path], base: Path) -> dict[str, str]:
    return {
        path.relative_to(base).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
    }


def _without_foreign_source_info(node: Any) -> Any:
    """Drop positions in p4c's own include files: they name the machine that compiled."""
    if isinstance(node, dict):
        return {
            key: _without_foreign_source_info(value)
            for key, value in node.items()
            if not (key == "source_info" and Path(value.get("filename", "")).is_absolute())
        }
    if isinstance(node, list):
        return [_without_foreign_source_info(value) for value in node]
    return node


def recompiled_differences() -> list[str]:
    """Compile afresh and name the committed files that differ (needs p4c on PATH)."""
    differing = []
    for build in BUILDS.values():
        committed = folder_of(build)
        with tempfile.TemporaryDirectory() as scratch:
            compile_program(Path(scratch), defines=_defines(build))
            differing += [
                (committed / name).relative_to(BUILD_DIR).as_posix()
                for name in (JSON_NAME, P4INFO_NAME)
                if (Path(scratch) / name).read_bytes() != (committed / name).read_bytes()
            ]
    return differing


def main(arguments: list[str]) -> int:
    """Run `build` or `check`; returns the exit code."""
    if arguments == ["build"]:
        try:
            build()
        except ArtefactError as error:
            print(error, file=sys.stderr)
            return 3
        return 0
    if arguments == ["check"]:
        problems = stale()
        for problem in problems:
            print(f"{problem}; run `make p4`", file=sys.stderr)
        return 1 if problems else 0
    print(
        "usage: python -m p4src.artefacts build|check, not " + " ".join(arguments), file=sys.stderr
    )
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
