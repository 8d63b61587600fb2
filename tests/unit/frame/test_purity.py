"""Who may import what.

Planning and compiling are pure: what they import, directly or not, cannot do I/O, so that the same
input gives the same output. And packages depend on each other in one direction. Imports are read
from the syntax trees, and for purity followed through the project's own modules.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.frame.repository import PACKAGES, ROOT

FORBIDDEN = frozenset(
    {"grpc", "scapy", "mininet", "os", "time", "random", "logging", "socket", "subprocess", "finsy"}
)
PURE = (
    *sorted(
        path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        for path in (ROOT / "controller" / "placement").glob("*.py")
        if path.name != "__init__.py"
    ),
    "controller.placement",
    "controller.compile",
    "controller.program",
    "controller.routes",
    "controller.watchdog",
)

MAY_IMPORT = {
    "p4src": (),
    "softswitch": (),
    "controller.placement": (),
    "traffic": ("p4src",),
    "topologies": ("controller.placement", "p4src", "softswitch.ports"),
}
"""By package: the other packages of the project that it may know of."""


def _file_of(module: str) -> Path | None:
    """The file of a module of the project, or None for one from elsewhere."""
    if module.partition(".")[0] not in PACKAGES:
        return None
    base = ROOT / module.replace(".", "/")
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.exists():
            return path
    return None


def _imports(source: str, package: str) -> Iterator[str]:
    """Names that a module imports, wherever in it: `a.b` for both `a.b` and `from a import b`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")
            above = above[: len(above) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _reached(module: str) -> dict[str, str]:
    """Every module that importing `module` by name reaches, and who imports it."""
    importer = {module: "the test"}
    pending = [module]
    while pending:
        at = pending.pop()
        path = _file_of(at)
        if path is None:
            continue
        package = at if path.name == "__init__.py" else at.rpartition(".")[0]
        for name in _imports(path.read_text(encoding="utf-8"), package):
            if name not in importer:
                importer[name] = at
                pending.append(name)
    return importer


@pytest.mark.parametrize("module", PURE)
def test_reaches_nothing_impure(module: str) -> None:
    assert _file_of(module) is not None
    impure = {
        f"{importer} imports {name}"
        for name, importer in _reached(module).items()
        if name.partition(".")[0] in FORBIDDEN
    }
    assert not impure


def test_follows_imports_through_the_project() -> None:
    assert "controller.placement.tree" in _reached("controller.placement")
    assert "topologies.network" in _reached("controller.compile")


@pytest.mark.parametrize(
    ("source", "package", "expected"),
    [
        ("import os.path", "a", {"os.path"}),
        ("from time import sleep", "a", {"time", "time.sleep"}),
        ("def f():\n    import random", "a", {"random"}),
        ("from . import b", "a", {"a", "a.b"}),
        ("from .b import c", "a", {"a.b", "a.b.c"}),
        ("from ..b import c", "a.d", {"a.b", "a.b.c"}),
    ],
)
def test_sees_every_form_of_import(source: str, package: str, expected: set[str]) -> None:
    assert set(_imports(source, package)) == expected


def _is_in(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_knows_only_what_lies_below(package: str) -> None:
    allowed = (package, *MAY_IMPORT[package])
    strangers = set()
    for path in (ROOT / package.replace(".", "/")).rglob("*.py"):
        own = path.relative_to(ROOT).parent.as_posix().replace("/", ".")
        for name in _imports(path.read_text(encoding="utf-8"), own):
            # Contents of a module, such as `a.b.Class`, are no file of their own.
            if _is_in(name, PACKAGES) and not _is_in(name, allowed) and _file_of(name):
                strangers.add(f"{path.relative_to(ROOT).as_posix()} imports {name}")
    assert not strangers
