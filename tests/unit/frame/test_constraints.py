"""constraints.txt pins everything that gets installed, from wherever pip is set up to look."""

import re
import sys
import tomllib
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.unit.frame.repository import ROOT

PINS = {
    canonicalize_name(name): version
    for name, _, version in (
        line.partition("==")
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    )
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _closure(names: list[str]) -> set[str]:
    """The distributions that installing the named requirements installs."""
    seen: set[str] = set()
    pending = [Requirement(name) for name in names]
    while pending:
        requirement = pending.pop()
        name = canonicalize_name(requirement.name)
        if name in seen:
            continue
        seen.add(name)
        for text in metadata.requires(name) or []:
            needed = Requirement(text)
            extras = requirement.extras or {""}
            if needed.marker is None or any(
                needed.marker.evaluate({"extra": extra}) for extra in extras
            ):
                pending.append(needed)
    return seen


def _declared() -> list[str]:
    return [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]


def test_names_no_place() -> None:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert not re.search(r"https?:|@|^-", text, flags=re.MULTILINE)


def test_every_pin_is_one_version() -> None:
    assert all(re.fullmatch(r"\d[\w.+!]*", version) for version in PINS.values())


def test_pins_every_declared_dependency_within_its_range() -> None:
    for text in _declared():
        requirement = Requirement(text)
        assert requirement.specifier.contains(PINS[canonicalize_name(requirement.name)]), text


def test_pins_everything_that_gets_installed() -> None:
    # Markers differ by interpreter; the pins are those of the one that the project supports first.
    assert sys.version_info >= (3, 11)
    assert _closure(_declared()) - PINS.keys() == set()
