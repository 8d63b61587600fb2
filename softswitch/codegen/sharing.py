"""Common subexpressions of an action, computed once.

p4c copies expressions forward, so that one sum of 1024 bits may stand in an action many times. An
action is translated twice: the first time counts how often each value is used where it was
computed before, the second keeps those that are used again in a variable. Two expressions have
the same value if they are equal and no field in them was written in between; every write gives
its field a new version. Expressions are pure and total, so computing one early is safe.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from softswitch import ir
from softswitch.codegen.code import Code
from softswitch.codegen.writer import Writer
from softswitch.ir import walk

_Key = tuple[ir.Expr, tuple[int, ...]]
_UNSHARED = (
    ir.Lookahead,
    ir.LastFieldRef,
    ir.ElementFieldRef,
    ir.LastIndex,
    ir.StackSize,
    ir.SameHeader,
    ir.SameUnion,
    ir.UnionValid,
    ir.ValidRef,
)


class Sharing:
    """Values computed so far, in one of the two translations."""

    def __init__(self, uses: list[int] | None) -> None:
        self.uses: list[int] = [] if uses is None else uses
        self._counting = uses is None
        self._site = 0
        self._known: dict[_Key, tuple[int, Code]] = {}
        self._versions: dict[ir.FieldRef, int] = {}
        self._all = 0
        self._clock = 0
        self._inputs: dict[ir.Expr, tuple[ir.FieldRef, ...] | None] = {}

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    def wrote(self, ref: ir.FieldRef) -> None:
        """A field has a new value."""
        self._versions[ref] = self._tick()

    def wrote_unknown(self) -> None:
        """Any field may have a new value."""
        self._all = self._tick()

    @contextmanager
    def branch(self) -> Iterator[None]:
        """What is computed inside is not known afterwards; what is written is new afterwards."""
        known, versions, everything = dict(self._known), dict(self._versions), self._all
        try:
            yield
        finally:
            changed = [r for r, v in self._versions.items() if versions.get(r) != v]
            self._known, self._versions = known, versions
            for ref in changed:
                self._versions[ref] = self._tick()
            if self._all != everything:
                self.wrote_unknown()

    def _key(self, expr: ir.Expr) -> _Key | None:
        if expr not in self._inputs:
            nodes = list(walk(expr))
            shared = not any(isinstance(n, _UNSHARED) for n in nodes)
            refs = dict.fromkeys(n for n in nodes if isinstance(n, ir.FieldRef))
            self._inputs[expr] = tuple(refs) if shared else None
        refs_of = self._inputs[expr]
        if refs_of is None:
            return None
        return expr, (self._all, *(self._versions.get(r, 0) for r in refs_of))

    def code(self, expr: ir.Expr, plain: Callable[[ir.Expr], Code], out: Writer) -> Code:
        """Source of `expr`: a variable if its value is used again, else what `plain` gives."""
        key = self._key(expr)
        if key is None:
            return plain(expr)
        known = self._known.get(key)
        if known is not None:
            site, code = known
            if self._counting:
                self.uses[site] += 1
            return code
        site = self._site
        self._site += 1
        if self._counting:
            self.uses.append(1)
        code = plain(expr)
        if not self._counting:
            if self.uses[site] < 2:
                return code
            if not code.text.isidentifier():
                name = out.temp()
                out.line(f"{name} = {code.text}")
                code = Code(name, code.low, code.high)
        self._known[key] = (site, code)
        return code
