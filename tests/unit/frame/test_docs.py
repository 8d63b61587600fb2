"""The documentation names things that exist."""

import re
import tomllib
from pathlib import Path

import pytest

from controller.cli import COMMANDS
from tests.unit.frame.repository import PACKAGES, ROOT, markdown_files

DOCUMENTS = markdown_files()
ADRS = sorted((ROOT / "docs" / "adr").glob("*.md"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z0-9-]+):.*## ", MAKEFILE, flags=re.MULTILINE))


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _anchors(text: str) -> set[str]:
    """Anchors of a document's headings, as code hosts make them."""
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_links_lead_somewhere(document: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", document.read_text(encoding="utf-8")):
        if re.match(r"https?:", link):
            continue
        file, _, anchor = link.partition("#")
        target = document.parent / file if file else document
        if not target.exists() or (anchor and anchor not in _anchors(target.read_text("utf-8"))):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_commands_exist(document: Path) -> None:
    code = re.findall(r"`[^`\n]+`|^```.*?^```", document.read_text(encoding="utf-8"), re.M | re.S)
    named = "\n".join(code)
    assert set(re.findall(r"\bmake ([a-z0-9]+(?:-[a-z0-9]+)*)", named)) <= TARGETS
    assert set(re.findall(r"(?:\$ |/|`)bluetree ([a-z]+)\b", named)) <= set(COMMANDS)


@pytest.mark.parametrize("adr", ADRS, ids=_name)
def test_adr_has_its_number_and_parts(adr: Path) -> None:
    text = adr.read_text(encoding="utf-8")
    assert text.startswith(f"# {int(adr.name[:4])}. ")
    assert {"context", "decision", "consequences", "alternatives"} <= _anchors(text)


def test_adrs_are_numbered_without_gaps() -> None:
    assert [int(adr.name[:4]) for adr in ADRS] == list(range(1, len(ADRS) + 1))


def test_readme_maps_every_folder() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for folder in (*PACKAGES, "tests", "docker", "docs"):
        assert f"`{folder}/`" in readme or f"{folder}/ " in readme, folder


def test_version_is_in_the_changelog() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"## [{project['version']}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_makefile_documents_every_target() -> None:
    phony = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, flags=re.MULTILINE)
    assert set(" ".join(phony).split()) == TARGETS
