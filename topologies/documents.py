"""JSON and YAML text as plain values that still show what the ordinary parsers hide.

Duplicate keys stay visible (a mapping is a list of pairs), and a number that is not an integer
stays the text that was written, so that rates remain exact.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import yaml

from topologies.errors import TopologyError

__all__ = [
    "Number",
    "Record",
    "Value",
    "parse_json",
    "parse_yaml",
    "read_document",
    "read_text",
    "shown",
]

FILE_LIMIT = 256 * 1024 * 1024
_LONGEST_INTEGER = 60
_DEEPEST_YAML = 8


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written, where that is not an integer of ordinary length (1.5, NaN, 1e3)."""

    text: str


@dataclass(frozen=True, slots=True)
class Record:
    """A mapping as written: keys may repeat, and in YAML need not be strings."""

    pairs: tuple[tuple["Value", "Value"], ...]

    def get(self, key: str) -> "Value":
        """The last value of a key, None where it is absent."""
        return next((value for found, value in reversed(self.pairs) if found == key), None)

    def has(self, key: str) -> bool:
        """Whether the key occurs."""
        return any(found == key for found, _ in self.pairs)


Value: TypeAlias = bool | int | str | Number | Record | list["Value"] | None


def read_text(path: Path) -> str:
    """The text of a UTF-8 file.

    Raises:
        TopologyError: it cannot be read, is larger than FILE_LIMIT, or is not UTF-8.
    """
    try:
        if path.stat().st_size > FILE_LIMIT:
            raise TopologyError(str(path), [f"larger than {FILE_LIMIT >> 20} MiB, the limit"])
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        reason = error.strerror or str(error)
        raise TopologyError(str(path), [f"cannot be read: {reason}"]) from None
    except UnicodeDecodeError as error:
        raise TopologyError(
            str(path), [f"is not UTF-8 text (byte {error.start}): save it as UTF-8"]
        ) from None


def read_document(path: Path) -> Value:
    """The value in a .json, .yaml or .yml file; TopologyError where it is not well-formed."""
    text = read_text(path)
    return (
        parse_json(text, str(path))
        if path.suffix.lower() == ".json"
        else parse_yaml(text, str(path))
    )


def parse_json(text: str, source: str) -> Value:
    """JSON text as a value; TopologyError names the line and column of a syntax error."""
    try:
        value: Value = json.loads(
            text,
            object_pairs_hook=lambda pairs: Record(tuple(pairs)),
            parse_float=Number,
            parse_constant=Number,
            parse_int=_integer,
        )
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise TopologyError(source, [f"{place}: not JSON: {error.msg}"]) from None
    except RecursionError:
        raise TopologyError(source, ["nested too deeply to be a tree file"]) from None
    return value


def parse_yaml(text: str, source: str) -> Value:
    """YAML text as a value; TopologyError names the line and column of a syntax error."""
    try:
        node = _composed(text)
        return None if node is None else _from_yaml(node, source, 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise TopologyError(source, [f"{place}not YAML: {error.problem}"]) from None
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise TopologyError(source, [f"not YAML: {reason}"]) from None
    except RecursionError:
        raise TopologyError(source, ["nested too deeply to be a tree file"]) from None


def _composed(text: str) -> yaml.Node | None:
    """The document's nodes, by libyaml where PyYAML has it: several times as fast."""
    fast = getattr(yaml, "CSafeLoader", None)
    if fast is not None:
        try:
            return _node(yaml.compose(text, Loader=fast))
        except yaml.YAMLError:
            pass  # the other loader says more precisely where and why
    return _node(yaml.compose(text, Loader=yaml.SafeLoader))


def _node(composed: object) -> yaml.Node | None:
    return composed if isinstance(composed, yaml.Node) else None


def _from_yaml(node: yaml.Node, source: str, depth: int) -> Value:
    if depth > _DEEPEST_YAML:
        line = node.start_mark.line + 1
        raise TopologyError(source, [f"line {line}: nested too deeply to be a tree file"])
    if isinstance(node, yaml.MappingNode):
        return Record(
            tuple(
                (_from_yaml(key, source, depth + 1), _from_yaml(value, source, depth + 1))
                for key, value in node.value
            )
        )
    if isinstance(node, yaml.SequenceNode):
        return [_from_yaml(item, source, depth + 1) for item in node.value]
    return _yaml_scalar(str(node.tag), str(node.value))


def _yaml_scalar(tag: str, text: str) -> Value:
    """Plain scalars by JSON's rules; YAML 1.1's octal, base-60 and date forms stay text."""
    match tag.rpartition(":")[2]:
        case "null":
            return None
        case "bool":
            # "yes", "on" and their like count as text, so that a switch may be called "on".
            return text.lower() == "true" if text.lower() in ("true", "false") else text
        case "int":
            digits = text.removeprefix("-")
            plain = digits.isdecimal() and (digits == "0" or not digits.startswith("0"))
            return _integer(text) if plain else Number(text)
        case "float":
            return Number(text)
        case _:
            return text


def _integer(text: str) -> int | Number:
    return int(text) if len(text) <= _LONGEST_INTEGER else Number(text)


def shown(value: Value) -> str:
    """A value as it was written, short enough for an error message."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case Number(text):
            return text
        case Record() | list():
            return "a list or mapping"
        case _:
            text = repr(value)
            return text if len(text) <= 60 else text[:57] + "..."
