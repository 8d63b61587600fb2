"""Generated C with what is needed to understand its events."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NativeSource:
    """`key` is the SHA-256 of the source; `failures` and `templates` are what events name."""

    key: str
    text: str
    failures: tuple[tuple[str, str], ...]
    templates: tuple[str, ...]
    tells: bool
    """Whether packets may make events that are in neither."""
