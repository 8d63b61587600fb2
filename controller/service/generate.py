"""Python for the controller's API, made from `bluetree.proto` by protoc: `make proto`.

The output is committed, so that a user needs no protoc; a test says whether it is fresh.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROTO = HERE / "bluetree.proto"
OUTPUTS = ("bluetree_pb2.py", "bluetree_pb2.pyi")
COMPILER = "grpcio-tools"


def generate(folder: Path) -> None:
    """Write the output below `folder`, which stands for the root of the project.

    Raises CalledProcessError with protoc's words where the proto is wrong.
    """
    subprocess.run(
        [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            f"--proto_path={ROOT}",
            f"--python_out={folder}",
            f"--pyi_out={folder}",
            str(PROTO),
        ],
        check=True,
        capture_output=True,
        text=True,
    )


def stale() -> list[str]:
    """Names of committed outputs that differ from what protoc makes now."""
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        made = Path(folder) / HERE.relative_to(ROOT)
        return [
            name for name in OUTPUTS if (made / name).read_bytes() != (HERE / name).read_bytes()
        ]


def compiler_version() -> str:
    """The version of the installed protoc, as grpcio-tools counts; PackageNotFoundError."""
    return metadata.version(COMPILER)


if __name__ == "__main__":
    generate(ROOT)
