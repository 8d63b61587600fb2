"""Typed access to the pushed JSON; every mistake names its place."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from softswitch.errors import InvalidPipeline, UnsupportedConstruct

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


MAX_BYTES = 16 * 1024 * 1024
"""Of a pipeline; p4c's largest test programs come to 1 MiB."""

_SHOWN = 60
"""Characters of a wrong value in an error."""


@dataclass(frozen=True, slots=True)
class Node:
    """A JSON value and where it stands."""

    value: Json
    where: str

    def at(self, where: str) -> "Node":
        """The same value under a better name of its place."""
        return Node(self.value, where)

    def fail(self, expected: str) -> InvalidPipeline:
        """The error to raise when this value is not what `expected` says."""
        return InvalidPipeline(f"{self.where}: expected {expected}, found {_shown(self.value)}")

    def unsupported(self, construct: str) -> UnsupportedConstruct:
        """The error to raise when this value is a construct that the switch does not run."""
        return UnsupportedConstruct(construct, self.where)

    def _dict(self) -> dict[str, Json]:
        if not isinstance(self.value, dict):
            raise self.fail("an object")
        return self.value

    def member_names(self) -> list[str]:
        return list(self._dict())

    def has(self, key: str) -> bool:
        """True if `key` is there and not null."""
        return self._dict().get(key) is not None

    def get(self, key: str) -> "Node":
        """The member `key`; InvalidPipeline if it is missing."""
        members = self._dict()
        if key not in members:
            raise InvalidPipeline(f"{self.where}: member '{key}' is missing")
        return Node(members[key], f"{self.where}.{key}")

    def items(self, key: str) -> Iterator["Node"]:
        """Elements of the array `key`; nothing if it is missing."""
        if self.has(key):
            yield from self.get(key).elements()

    def elements(self) -> list["Node"]:
        if not isinstance(self.value, list):
            raise self.fail("an array")
        return [Node(v, f"{self.where}[{i}]") for i, v in enumerate(self.value)]

    def pair(self) -> tuple["Node", "Node"]:
        both = self.elements()
        if len(both) != 2:
            raise self.fail("an array of 2")
        return both[0], both[1]

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.fail("a string")
        return self.value

    def optional_text(self) -> str | None:
        return None if self.value is None else self.text()

    def number(self) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.fail("an integer")
        return self.value

    def truth(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.fail("true or false")
        return self.value

    def hex(self) -> int:
        """A hexstr of any sign."""
        try:
            return int(self.text(), 16)
        except ValueError:
            raise self.fail("a hexadecimal number") from None

    def flag(self, key: str, default: bool) -> bool:
        return self.get(key).truth() if self.has(key) else default

    def name(self) -> str:
        return self.get("name").text()


def _shown(value: Json) -> str:
    """A value in an error: it may be as large as the whole pipeline."""
    match value:
        case list():
            return f"an array of {len(value)}"
        case dict():
            return f"an object of {len(value)} members"
        case str() if len(value) > _SHOWN:
            return json.dumps(value[:_SHOWN])[:-1] + "..."
    return json.dumps(value)


def parse(text: bytes) -> Node:
    """Read the JSON of a pipeline; InvalidPipeline says where it is not JSON."""
    if len(text) > MAX_BYTES:
        raise InvalidPipeline(f"the pipeline has {len(text)} bytes: at most {MAX_BYTES}")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidPipeline(f"the pipeline is not JSON: {error}") from None
    node = Node(value, "program")
    node.member_names()
    return node
