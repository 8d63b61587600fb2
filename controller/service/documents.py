"""Messages of the API as the JSON documents of the command line."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message


def document(message: Message) -> dict[str, Any]:
    """Every field by its name in the proto; an optional one that is not set is null."""
    return {field.name: _value(message, field) for field in message.DESCRIPTOR.fields}


def _value(message: Message, field: FieldDescriptor) -> Any:
    value = getattr(message, field.name)
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        return {key: value[key] for key in sorted(value)}
    if field.is_repeated:
        return [document(one) if isinstance(one, Message) else one for one in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return document(value) if isinstance(value, Message) else value
