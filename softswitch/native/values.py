"""Values of generated C: how they are held, cut, widened, and what is known of them.

A value of one limb is a C expression of type u64; a wider one is a pointer to its limbs, computed
by a statement of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass

from softswitch import ir
from softswitch.ir import walk
from softswitch.native.frame import Frame
from softswitch.native.ranges import Range, Ranges, limbs
from softswitch.native.writer import Writer

_UNSHARED = (ir.Lookahead, ir.LastFieldRef, ir.ElementFieldRef, ir.LastIndex, ir.StackSize,
             ir.SameHeader, ir.SameUnion, ir.UnionValid, ir.ValidRef)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Value:
    """C text of a value, held modulo 2^(64 n); what lies above follows from its range."""

    text: str
    range: Range
    n: int

    @property
    def sign(self) -> int:
        """1 if the value may be below 0."""
        return int(self.range[0] < 0)


def whole(n: int) -> Range:
    """All values of n limbs, without sign."""
    return 0, (1 << (64 * n)) - 1


def literal(value: int) -> str:
    """A constant of one limb."""
    return f"{value}ull" if 0 <= value < 10_000 else f"{hex(value & 0xFFFF_FFFF_FFFF_FFFF)}ull"


Known = dict[ir.Expr, Value]


class Values:
    """Values at one place of a function.

    `known` has what was computed before and still holds; `peek` is set by the parser.
    """

    def __init__(self, frame: Frame, out: Writer) -> None:
        self.frame = frame
        self.layout = frame.layout
        self.out = out
        self.ranges = Ranges(frame.layout)
        self.params: list[Value] = []
        self.known: Known = {}
        self.sharing = False
        self.peek: Callable[[ir.Lookahead], Value] | None = None
        self._inputs: dict[ir.Expr, frozenset[ir.FieldRef] | None] = {}

    def _inputs_of(self, expr: ir.Expr) -> frozenset[ir.FieldRef] | None:
        if expr not in self._inputs:
            nodes = list(walk(expr))
            shared = not any(isinstance(n, _UNSHARED) for n in nodes)
            refs = frozenset(n for n in nodes if isinstance(n, ir.FieldRef))
            self._inputs[expr] = refs if shared else None
        return self._inputs[expr]

    def wrote(self, ref: ir.FieldRef | None) -> None:
        """A field has a new value; None: any field may have."""
        if ref is None:
            self.known = {}
            return
        self.known = {e: v for e, v in self.known.items() if ref not in (self._inputs_of(e) or ())}

    def trim(self, value: Value, width: int, field: Range) -> Value:
        """The low `width` bits of a value, as a field with range `field`."""
        n = limbs(field)
        text = self.fit(value, n)
        if width == 64 * n:
            return Value(text, field, n)
        if n > 1:
            name = self._array(n)
            self.out.line(f"w_cut({name}, {text}, {n}, {width}, {int(field[0] < 0)});")
            return Value(name, field, n)
        if field[0] < 0:
            return Value(f"s_cut({text}, {width})", field, 1)
        return Value(f"({text} & {literal((1 << width) - 1)})", field, 1)

    def fit(self, value: Value, n: int) -> str:
        """The text of a value in n limbs: cut, or with its sign going on."""
        if n == value.n:
            return value.text
        if n < value.n:
            return f"{value.text}[0]" if n == 1 else value.text
        name = self._array(n)
        if value.n == 1:
            self.out.line(f"w_set({name}, {n}, {value.text}, {value.sign});")
        else:
            self.out.line(f"w_fit({name}, {n}, {value.text}, {value.n}, {value.sign});")
        return name

    def _array(self, n: int) -> str:
        name = self.out.temp()
        self.out.line(f"u64 {name}[{n}];")
        return name
