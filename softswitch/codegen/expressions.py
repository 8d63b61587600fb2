"""Expressions -> Python, with bounds, so that masks that change nothing are left out."""

from collections.abc import Callable

from softswitch import ir
from softswitch.codegen.code import Code
from softswitch.codegen.layout import Layout
from softswitch.codegen.sharing import Sharing
from softswitch.codegen.writer import Writer

_COMPARE = frozenset(["==", "!=", "<", "<=", ">", ">="])
# no field is wider: bits beyond cannot reach a result
_WIDEST = 1 << 16


def literal(value: int) -> str:
    """A literal: decimal while short, so that sources are readable."""
    if -9999 <= value <= 9999:
        return str(value) if value >= 0 else f"({value})"
    return hex(value) if value >= 0 else f"({hex(value)})"


def bounds(decl: ir.FieldDecl) -> tuple[int, int]:
    """Smallest and largest value of a field."""
    if decl.signed:
        return -(1 << (decl.width - 1)), (1 << (decl.width - 1)) - 1
    return 0, (1 << decl.width) - 1


class Expressions:
    """Translates expressions; `params` gives source and width of each action parameter."""

    def __init__(self, layout: Layout, out: Writer) -> None:
        self.layout = layout
        self.out = out
        self.params: list[Code] = []
        # values of the action that is being translated, while there is one
        self.sharing: Sharing | None = None
        # set by the parser: writes what reads the packet, and gives the variable that holds it
        self.peek: Callable[[ir.Lookahead], str] | None = None

    def condition(self, expr: ir.Expr) -> str:
        """Source that is true or false."""
        code = self.code(expr)
        return code.text

    def value(self, expr: ir.Expr) -> str:
        return self.code(expr).text

    def cut(self, code: Code, width: int, signed: bool = False) -> str:
        """`code` brought into a field of `width` bits, in two's complement."""
        if signed:
            half = 1 << (width - 1)
            if code.within(-half, half - 1):
                return code.text
            mask = (1 << width) - 1
            return f"(({code.text} + {literal(half)} & {literal(mask)}) - {literal(half)})"
        mask = (1 << width) - 1
        if code.within(0, mask):
            return code.text
        return f"({code.text} & {literal(mask)})"

    def code(self, expr: ir.Expr) -> Code:
        if self.sharing is not None and isinstance(expr, ir.Unary | ir.Binary | ir.Cast | ir.Mux):
            return self.sharing.code(expr, self._plain, self.out)
        return self._plain(expr)

    def _plain(self, expr: ir.Expr) -> Code:
        match expr:
            case ir.Const(value=value):
                return Code(literal(value), value, value)
            case ir.BoolConst(value=truth):
                return Code(str(truth), int(truth), int(truth))
            case ir.FieldRef():
                return Code(self.layout.field(expr), *bounds(self._decl(expr)))
            case ir.ValidRef(header=header):
                return Code(self.layout.valid(header), 0, 1)
            case ir.ParamRef(index=index):
                return self.params[index]
            case ir.Unary():
                return self._unary(expr)
            case ir.Binary():
                return self._binary(expr)
            case ir.Cast():
                return self._cast(expr)
            case ir.Mux():
                return self._mux(expr)
            case _:
                return self._structural(expr)

    def _decl(self, ref: ir.FieldRef) -> ir.FieldDecl:
        return self.layout.program.field_decl(ref)

    def _structural(self, expr: ir.Expr) -> Code:
        layout = self.layout
        match expr:
            case ir.UnionValid(members=members):
                return Code("(" + " or ".join(layout.valid(m) for m in members) + ")", 0, 1)
            case ir.LastIndex(stack=stack):
                return Code(f"({layout.next_index(stack)} - 1)", -1, None)
            case ir.StackSize(stack=stack):
                return Code(layout.next_index(stack), 0, None)
            case ir.LastFieldRef(stack=stack):
                names = [layout.field(r) for r in layout.instances(expr)]
                low, high = bounds(self._decl(layout.instances(expr)[0]))
                index = f"{layout.next_index(stack)} - 1"
                return Code(f"({', '.join(names)},)[{index}]", low, high)
            case ir.ElementFieldRef():
                refs = layout.instances(expr)
                low, high = bounds(self._decl(refs[0]))
                temp = self.out.temp()
                joined = ", ".join(layout.field(r) for r in refs)
                test = f"0 <= ({temp} := {self.value(expr.index)}) < {len(refs)}"
                return Code(f"(({joined},)[{temp}] if {test} else 0)", min(low, 0), high)
            case ir.SameHeader(left=one, right=other):
                return Code(self._same(self._whole(one), self._whole(other)), 0, 1)
            case ir.SameUnion(left=members, right=others):
                tests = [
                    self._same(self._instance(a), self._instance(b))
                    for a, b in zip(members, others, strict=True)
                ]
                return Code(f"({' or '.join(tests)})", 0, 1)
            case ir.Lookahead(width=width) if self.peek is not None:
                return Code(self.peek(expr), 0, (1 << width) - 1)
        raise TypeError(f"{type(expr).__name__} outside a parser")

    def _instance(self, header: str) -> str:
        """A tuple of the validity of a header and all its fields."""
        parts = [self.layout.valid(header)]
        for decl in self.layout.program.headers[header].type.fields:
            ref = ir.FieldRef(header, decl.name)
            parts.append(self.layout.field(ref))
            if decl.varbit:
                parts.append(self.layout.length(ref))
        return f"({', '.join(parts)},)"

    def _whole(self, operand: ir.HeaderOperand) -> str:
        if isinstance(operand, ir.HeaderRef):
            return self._instance(operand.name)
        elements = self.layout.operands(operand)
        temp = self.out.temp()
        test = f"0 <= ({temp} := {self.value(operand.index)}) < {len(elements)}"
        joined = ", ".join(self._instance(e) for e in elements)
        return f"(({joined},)[{temp}] if {test} else (False,))"

    def _same(self, left: str, right: str) -> str:
        temp = self.out.temp()
        return f"(({temp} := {left})[0] and {temp} == {right})"

    def _unary(self, expr: ir.Unary) -> Code:
        inner = self.code(expr.operand)
        match expr.op:
            case "b2d":
                return inner
            case "d2b":
                return inner if inner.is_bit else Code(f"({inner.text} != 0)", 0, 1)
            case "not":
                return Code(f"(not {inner.text})", 0, 1)
            case "~":
                low = None if inner.high is None else ~inner.high
                return Code(f"(~{inner.text})", low, None if inner.low is None else ~inner.low)
            case _:
                low = None if inner.high is None else -inner.high
                return Code(f"(-{inner.text})", low, None if inner.low is None else -inner.low)

    def _binary(self, expr: ir.Binary) -> Code:
        op = expr.op
        left, right = self.code(expr.left), self.code(expr.right)
        if op in _COMPARE or op in ("and", "or"):
            return Code(f"({left.text} {op} {right.text})", 0, 1)
        if op in ("/", "%"):
            return self._division(op, left, right)
        if op in ("<<", ">>"):
            return self._shift(op, left, right)
        if op == "&":
            return self._and(left, right)
        text = f"({left.text} {op} {right.text})"
        if None in (left.low, left.high, right.low, right.high):
            return Code(text, None, None)
        return Code(text, *_range(op, left, right))

    def _and(self, left: Code, right: Code) -> Code:
        for value, mask in ((left, right), (right, left)):
            constant = mask.low if mask.low == mask.high else None
            if constant is not None and constant >= 0:
                ones = constant & (constant + 1) == 0
                if ones and value.within(0, constant):
                    return value
                high = constant
                if value.low is not None and value.low >= 0 and value.high is not None:
                    high = min(high, value.high)
                return Code(f"({value.text} & {mask.text})", 0, high)
        text = f"({left.text} & {right.text})"
        tops = [c.high for c in (left, right) if c.low is not None and c.low >= 0]
        known = [t for t in tops if t is not None]
        return Code(text, 0 if tops else None, min(known) if known else None)

    def _shift(self, op: str, left: Code, right: Code) -> Code:
        text = f"({left.text} {op} {right.text})"
        if right.low is None or right.low < 0 or right.high is None:
            count = f"min(max({right.text}, 0), {_WIDEST})"
            return Code(f"({left.text} {op} {count})", None, None)
        if right.high > _WIDEST:
            temp = self.out.temp()
            far = "0" if op == "<<" else f"({left.text} >> {_WIDEST})"
            test = f"({temp} := {right.text}) <= {_WIDEST}"
            low = 0 if left.low is not None and left.low >= 0 else None
            high = left.high if op == ">>" and low == 0 else None
            return Code(f"({left.text} {op} {temp} if {test} else {far})", low, high)
        if left.low is None or left.high is None or left.low < 0:
            return Code(text, None, None)
        if op == ">>":
            return Code(text, 0, left.high >> right.low)
        if right.high + left.high.bit_length() > 2 * _WIDEST:
            return Code(text, 0, None)
        return Code(text, 0, left.high << right.high)

    def _division(self, op: str, left: Code, right: Code) -> Code:
        python = "//" if op == "/" else "%"
        high = left.high if left.low is not None and left.low >= 0 else None
        low = 0 if high is not None else None
        if right.low is not None and right.low > 0:
            return Code(f"({left.text} {python} {right.text})", low, high)
        temp = self.out.temp()
        text = f"({left.text} {python} {temp} if ({temp} := {right.text}) else 0)"
        return Code(text, low, high)

    def _cast(self, expr: ir.Cast) -> Code:
        inner = self.code(expr.operand)
        width = expr.width
        if expr.kind == "usat_cast":
            low, high = 0, (1 << width) - 1
        else:
            low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
        if inner.within(low, high):
            return inner
        if expr.kind == "two_comp_mod":
            return Code(self.cut(inner, width, signed=True), low, high)
        temp = self.out.temp()
        text = (
            f"({literal(high)} if ({temp} := {inner.text}) > {literal(high)}"
            f" else {temp} if {temp} > {literal(low)} else {literal(low)})"
        )
        return Code(text, low, high)

    def _mux(self, expr: ir.Mux) -> Code:
        cond = self.condition(expr.cond)
        left, right = self.code(expr.left), self.code(expr.right)
        text = f"({left.text} if {cond} else {right.text})"
        lows, highs = (left.low, right.low), (left.high, right.high)
        low = None if None in lows else min(v for v in lows if v is not None)
        high = None if None in highs else max(v for v in highs if v is not None)
        return Code(text, low, high)


def _range(op: str, left: Code, right: Code) -> tuple[int | None, int | None]:
    a, b, c, d = left.low, left.high, right.low, right.high
    if a is None or b is None or c is None or d is None:
        return None, None
    if op == "+":
        return a + c, b + d
    if op == "-":
        return a - d, b - c
    if op == "*":
        if max(abs(v) for v in (a, b, c, d)).bit_length() > _WIDEST:
            return None, None
        products = (a * c, a * d, b * c, b * d)
        return min(products), max(products)
    if a >= 0 and c >= 0:
        top = (1 << max(b.bit_length(), d.bit_length())) - 1
        return 0, top
    return None, None
