"""House rules that hold for every file."""

import ast
import re
from pathlib import Path

import pytest

from tests.unit.frame.repository import ROOT, p4_files, python_files, text_files

MAX_LINES = 400
MAX_FUNCTION_LINES = 60
KNOWN_HOSTS = frozenset({"keepachangelog.com", "semver.org", "www.apache.org", "www.w3.org"})
"""Web addresses that the project may name; package registries are none of them."""


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", [*python_files(), *p4_files()], ids=_name)
def test_file_is_short(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_LINES


@pytest.mark.parametrize("path", python_files(), ids=_name)
def test_functions_fit_a_screen(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= MAX_FUNCTION_LINES
    ]
    assert not long


def test_names_only_known_hosts() -> None:
    strange = [
        f"{_name(path)}: {host}"
        for path in text_files()
        for host in re.findall(r"https?://([\w.-]+\w)", path.read_text(encoding="utf-8"))
        if host not in KNOWN_HOSTS
    ]
    assert not strange


def test_setup_names_no_package_index() -> None:
    for name in ("Makefile", "docker/Dockerfile", ".ci/run", "pyproject.toml"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"index-url|find-links|trusted-host|https?://", text), name
