"""Bounds of expressions, from which follows how many limbs their values need."""

from softswitch import ir
from softswitch.codegen.layout import Layout
from softswitch.native.errors import NotNativeError

Range = tuple[int, int]

_WIDEST = 1 << 13
"""Bits of the widest intermediate value; wider ones have no bounds here."""
_BOOLEAN = frozenset(["==", "!=", "<", "<=", ">", ">=", "and", "or"])


def field_range(decl: ir.FieldDecl) -> Range:
    """Smallest and largest value of a field."""
    if decl.signed:
        return -(1 << (decl.width - 1)), (1 << (decl.width - 1)) - 1
    return 0, (1 << decl.width) - 1


def limbs(found: Range) -> int:
    """64-bit limbs that hold every value of a range: signed if some value is below 0."""
    low, high = found
    if low >= 0:
        return max(1, -(-high.bit_length() // 64))
    return -(-(max((-low - 1).bit_length(), high.bit_length() if high > 0 else 0) + 1) // 64)


def hull(first: Range, second: Range) -> Range:
    """The smallest range with both in it."""
    return min(first[0], second[0]), max(first[1], second[1])


class Ranges:
    """Bounds of expressions; None where a value has none below `_WIDEST` bits."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.params: list[int] = []

    def of(self, expr: ir.Expr) -> Range | None:
        """Bounds of `expr`."""
        found = self._of(expr)
        if found is None or max(abs(found[0]), abs(found[1])).bit_length() > _WIDEST:
            return None
        return found

    def _of(self, expr: ir.Expr) -> Range | None:
        match expr:
            case ir.Const(value=value):
                return value, value
            case ir.BoolConst(value=truth):
                return int(truth), int(truth)
            case ir.FieldRef():
                decl = self.layout.program.field_decl(expr)
                if decl.varbit:
                    raise NotNativeError(f"variable-length field {expr.header}.{expr.field}")
                return field_range(decl)
            case ir.LastFieldRef() | ir.ElementFieldRef():
                refs = self.layout.instances(expr)
                return hull((0, 0), field_range(self.layout.program.field_decl(refs[0])))
            case ir.ParamRef(index=index):
                return 0, (1 << self.params[index]) - 1
            case ir.LastIndex(stack=stack):
                return -1, len(self.layout.program.stacks[stack].elements) - 1
            case ir.StackSize(stack=stack):
                return 0, len(self.layout.program.stacks[stack].elements)
            case ir.Lookahead(width=width):
                return 0, (1 << width) - 1
            case ir.Unary():
                return self._unary(expr)
            case ir.Binary():
                return self._binary(expr)
            case ir.Cast(kind="usat_cast", width=width):
                return 0, (1 << width) - 1
            case ir.Cast(width=width):
                inner = self.of(expr.operand)
                whole = -(1 << (width - 1)), (1 << (width - 1)) - 1
                fits = inner is not None and hull(inner, whole) == whole
                return inner if fits else whole
            case ir.Mux(left=left, right=right):
                first, second = self.of(left), self.of(right)
                return None if first is None or second is None else hull(first, second)
        return 0, 1

    def _unary(self, expr: ir.Unary) -> Range | None:
        if expr.op in ("d2b", "not"):
            return 0, 1
        inner = self.of(expr.operand)
        if inner is None or expr.op == "b2d":
            return inner
        shift = 1 if expr.op == "~" else 0
        return -inner[1] - shift, -inner[0] - shift

    def _binary(self, expr: ir.Binary) -> Range | None:
        op = expr.op
        if op in _BOOLEAN:
            return 0, 1
        left, right = self.of(expr.left), self.of(expr.right)
        if op == "&":
            tops = [r[1] for r in (left, right) if r is not None and r[0] >= 0]
            if tops:
                return 0, min(tops)
        if left is None:
            return None
        if op == ">>":
            return min(left[0], 0) if left[0] < 0 else 0, max(left[1], -1 if left[1] < 0 else 0)
        if right is None:
            return None
        if op == "<<":
            if right[1] > _WIDEST:
                return None
            by = max(right[1], 0)
            return min(left[0] << by, left[0]), max(left[1] << by, left[1])
        return _arithmetic(op, left, right)


def _arithmetic(op: str, left: Range, right: Range) -> Range | None:
    (a, b), (c, d) = left, right
    match op:
        case "+":
            return a + c, b + d
        case "-":
            return a - d, b - c
        case "*":
            products = (a * c, a * d, b * c, b * d)
            return min(products), max(products)
        case "/" | "%":
            return (0, b) if a >= 0 and c >= 0 else None
    bits = max(_bits(v) for v in (a, b, c, d))
    return (0 if a >= 0 and c >= 0 else -(1 << bits)), (1 << bits) - 1


def _bits(value: int) -> int:
    return value.bit_length() if value >= 0 else (-value - 1).bit_length()
