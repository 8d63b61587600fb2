"""Expressions -> C, exact or modulo a power of two, whichever the place needs.

p4c copies expressions forward, so that one sum of 1024 bits may stand in an action many times:
within straight-line code each value is computed once.
"""

from softswitch import ir
from softswitch.native.errors import NotNativeError
from softswitch.native.ranges import Range, hull, limbs
from softswitch.native.values import Value, Values, literal, whole

_COMPARE = frozenset(["==", "!=", "<", "<=", ">", ">="])
_RING = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
_LONG = 48
"""Texts that are longer get a variable where they may come again."""


class Expressions(Values):
    """Translates expressions at one place of a function."""

    def condition(self, expr: ir.Expr) -> str:
        """C text that is true or false."""
        value = self.exact(expr)
        return value.text if value.n == 1 else f"w_nz({value.text}, {value.n})"

    def single(self, expr: ir.Expr, what: str) -> Value:
        """A value of one limb, `what` it is for; NotNativeError for a wider one."""
        value = self.exact(expr)
        if value.n > 1:
            raise NotNativeError(f"{what} of more than 64 bits")
        return value

    def natural(self, expr: ir.Expr, what: str) -> str:
        """A value in 0..2^63-1, for sizes; NotNativeError where the program allows others."""
        value = self.exact(expr)
        if value.n > 1 or value.sign or value.range[1] >> 63:
            raise NotNativeError(f"{what} without a bound")
        return value.text

    def cut(self, expr: ir.Expr, width: int, signed: bool) -> Value:
        """`expr` brought into a field of `width` bits, in two's complement."""
        field = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
        found = self.ranges.of(expr)
        n = limbs(field)
        if found is not None and hull(found, field) == field:
            return Value(self.fit(self.exact(expr), n), field, n)
        return self.trim(self.modular(expr, width), width, field)

    # --- exact ----------------------------------------------------------------------------------

    def exact(self, expr: ir.Expr) -> Value:
        """The value of `expr`; NotNativeError if it has no bounds."""
        shared = (
            self.sharing
            and isinstance(expr, ir.Unary | ir.Binary | ir.Cast | ir.Mux)
            and self._inputs_of(expr) is not None
        )
        if not shared:
            return self._plain(expr)
        found = self.known.get(expr)
        if found is None:
            found = self._plain(expr)
            if found.n == 1 and len(found.text) > _LONG:
                name = self.out.temp()
                self.out.line(f"u64 {name} = {found.text};")
                found = Value(name, found.range, 1)
            self.known[expr] = found
        return found

    def _range(self, expr: ir.Expr) -> Range:
        found = self.ranges.of(expr)
        if found is None:
            raise NotNativeError("a value without a bound (a shift by a wide field, a division)")
        return found

    def _plain(self, expr: ir.Expr) -> Value:
        found = self._range(expr)
        n = limbs(found)
        match expr:
            case ir.Const(value=value):
                return Value(literal(value) if n == 1 else self.frame.constant(value, n), found, n)
            case ir.BoolConst(value=truth):
                return Value(literal(int(truth)), found, 1)
            case ir.FieldRef():
                return Value(self.frame.field(expr), found, n)
            case ir.ValidRef(header=header):
                return Value(f"(u64){self.frame.valid(header)}", found, 1)
            case ir.ParamRef(index=index):
                return self.params[index]
            case ir.Unary():
                return self._unary(expr, found, n)
            case ir.Binary():
                return self._binary(expr, found, n)
            case ir.Cast():
                return self._cast(expr, found, n)
            case ir.Mux():
                return self._mux(expr, found, n)
            case _:
                return self._structural(expr, found, n)

    def _unary(self, expr: ir.Unary, found: Range, n: int) -> Value:
        if expr.op == "b2d":
            return self.exact(expr.operand)
        if expr.op == "d2b":
            inner = self.exact(expr.operand)
            if inner.range in ((0, 1), (0, 0), (1, 1)):
                return inner
            return Value(f"(u64)({self.condition(expr.operand)} != 0)", found, 1)
        if expr.op == "not":
            return Value(f"(u64)(!{self.condition(expr.operand)})", found, 1)
        return Value(self._ring_unary(expr.op, self.exact(expr.operand), n), found, n)

    def _ring_unary(self, op: str, inner: Value, n: int) -> str:
        text = self.fit(inner, n)
        if n == 1:
            return f"(~{text})" if op == "~" else f"(0 - {text})"
        name = self._array(n)
        if op == "~":
            self.out.line(f"w_not({name}, {text}, {n});")
        else:
            self.out.line(f"w_sub({name}, {self.frame.constant(0, n)}, {text}, {n});")
        return name

    def _ring(self, op: str, left: Value, right: Value, n: int) -> str:
        first, second = self.fit(left, n), self.fit(right, n)
        if n == 1:
            return f"({first} {op} {second})"
        name = self._array(n)
        self.out.line(f"w_{_RING[op]}({name}, {first}, {second}, {n});")
        return name

    def _binary(self, expr: ir.Binary, found: Range, n: int) -> Value:
        op = expr.op
        if op in ("and", "or"):
            word = "&&" if op == "and" else "||"
            left, right = self.condition(expr.left), self.condition(expr.right)
            return Value(f"(u64)({left} {word} {right})", found, 1)
        if op in _COMPARE:
            return self._compare(op, self.exact(expr.left), self.exact(expr.right))
        if op in ("<<", ">>"):
            return self._shift(expr, found, n)
        if op in ("/", "%"):
            first, second = self.exact(expr.left), self.exact(expr.right)
            if first.n > 1 or second.n > 1:
                raise NotNativeError(f"'{op}' of more than 64 bits")
            name = self.out.temp()
            self.out.line(f"u64 {name} = {second.text};")
            return Value(f"({name} ? {first.text} {op} {name} : 0)", found, 1)
        if op == "&" and found[0] >= 0:
            bits = max(found[1].bit_length(), 1)
            one, other = self.modular(expr.left, bits), self.modular(expr.right, bits)
            return Value(self._ring(op, one, other, n), found, n)
        return Value(self._ring(op, self.exact(expr.left), self.exact(expr.right), n), found, n)

    def _compare(self, op: str, left: Value, right: Value) -> Value:
        both = hull(left.range, right.range)
        n = limbs(both)
        first, second = self.fit(left, n), self.fit(right, n)
        if n == 1:
            cast = "(i64)" if both[0] < 0 and op not in ("==", "!=") else ""
            return Value(f"(u64)({cast}{first} {op} {cast}{second})", (0, 1), 1)
        if op in ("==", "!="):
            no = "!" if op == "!=" else ""
            return Value(f"(u64)({no}w_eq({first}, {second}, {n}))", (0, 1), 1)
        test = f"w_cmp({first}, {second}, {n}, {int(both[0] < 0)}) {op} 0"
        return Value(f"(u64)({test})", (0, 1), 1)

    def _count(self, expr: ir.Expr) -> str:
        """How far to shift; below 0 is 0, and beyond 2^16 is as good as that."""
        value = self.exact(expr)
        if value.n > 1:
            name = self.out.temp()
            self.out.line(f"u64 {name} = w_nz({value.text} + 1, {value.n - 1}) ? 1 << 16 : "
                          f"{value.text}[0];")  # fmt: skip
            if value.sign:
                raise NotNativeError("a shift by a signed value of more than 64 bits")
            return name
        return f"((i64){value.text} < 0 ? 0 : {value.text})" if value.sign else value.text

    def _shift(self, expr: ir.Binary, found: Range, n: int) -> Value:
        if expr.op == "<<":
            return self._shift_left(self.exact(expr.left), self._count(expr.right), found, n)
        left, count = self.exact(expr.left), self._count(expr.right)
        if left.n == 1:
            return Value(f"{'s' if left.sign else 'u'}_shr({left.text}, {count})", found, 1)
        name = self._array(left.n)
        self.out.line(f"w_shr({name}, {left.text}, {count}, {left.n}, {left.sign});")
        return Value(name, left.range, left.n)

    def _shift_left(self, left: Value, count: str, found: Range, n: int) -> Value:
        text = self.fit(left, n)
        if n == 1:
            return Value(f"u_shl({text}, {count})", found, 1)
        name = self._array(n)
        self.out.line(f"w_shl({name}, {text}, {count}, {n});")
        return Value(name, found, n)

    def _cast(self, expr: ir.Cast, found: Range, n: int) -> Value:
        if expr.kind == "two_comp_mod":
            inner = self.ranges.of(expr.operand)
            if inner == found:
                return self.exact(expr.operand)
            return self.trim(self.modular(expr.operand, expr.width), expr.width, found)
        inner_value = self.exact(expr.operand)
        wide = limbs(hull(inner_value.range, found))
        text = self.fit(inner_value, wide)
        low, high = found
        name = self.out.temp()
        if wide == 1:
            cast = "(i64)" if inner_value.sign else ""
            self.out.line(f"u64 {name} = {text};")
            result = name
            if inner_value.range[0] < low:
                result = f"({cast}{name} < {cast}{literal(low)} ? {literal(low)} : {result})"
            if inner_value.range[1] > high:
                result = f"({cast}{name} > {cast}{literal(high)} ? {literal(high)} : {result})"
            return Value(result, found, 1)
        sign = inner_value.sign
        least, most = self.frame.constant(low, wide), self.frame.constant(high, wide)
        self.out.line(
            f"const u64 *{name} = w_cmp({text}, {most}, {wide}, {sign}) > 0 ? {most} : "
            f"w_cmp({text}, {least}, {wide}, {sign}) < 0 ? {least} : {text};"
        )
        return Value(name if n > 1 else f"{name}[0]", found, n)

    def _mux(self, expr: ir.Mux, found: Range, n: int) -> Value:
        condition = self.condition(expr.cond)
        left, right = self.fit(self.exact(expr.left), n), self.fit(self.exact(expr.right), n)
        return Value(f"({condition} ? {left} : {right})", found, n)

    # --- modulo 2^bits --------------------------------------------------------------------------

    def modular(self, expr: ir.Expr, bits: int) -> Value:
        """A value whose low `bits` bits are those of `expr`."""
        n = -(-bits // 64)
        found = self.ranges.of(expr)
        if found is not None and limbs(found) <= n:
            return self.exact(expr)
        match expr:
            case ir.Const(value=value):
                cut = value & ((1 << (64 * n)) - 1)
                text = literal(cut) if n == 1 else self.frame.constant(cut, n)
                return Value(text, whole(n), n)
            case ir.Unary(op="-" | "~", operand=operand):
                text = self._ring_unary(expr.op, self.modular(operand, bits), n)
                return Value(text, whole(n), n)
            case ir.Binary(op=op) if op in _RING:
                left, right = self.modular(expr.left, bits), self.modular(expr.right, bits)
                return Value(self._ring(op, left, right, n), whole(n), n)
            case ir.Binary(op="<<"):
                left = self.modular(expr.left, bits)
                return self._shift_left(left, self._count(expr.right), whole(n), n)
            case ir.Cast(kind="two_comp_mod", width=width) if width >= bits:
                return self.modular(expr.operand, bits)
            case ir.Mux():
                condition = self.condition(expr.cond)
                first = self.fit(self.modular(expr.left, bits), n)
                second = self.fit(self.modular(expr.right, bits), n)
                return Value(f"({condition} ? {first} : {second})", whole(n), n)
        return self.exact(expr)

    # --- headers and stacks ---------------------------------------------------------------------

    def _structural(self, expr: ir.Expr, found: Range, n: int) -> Value:
        frame = self.frame
        match expr:
            case ir.UnionValid(members=members):
                return Value(f"(u64)({' || '.join(map(frame.valid, members))})", found, 1)
            case ir.LastIndex(stack=stack):
                return Value(f"((u64){frame.next_index(stack)} - 1)", found, 1)
            case ir.StackSize(stack=stack):
                return Value(f"(u64){frame.next_index(stack)}", found, 1)
            case ir.LastFieldRef(stack=stack):
                return self._choose(expr, f"(u64){frame.next_index(stack)} - 1", True, n)
            case ir.ElementFieldRef(index=index):
                return self._choose(expr, self.single(index, "a stack index").text, False, n)
            case ir.SameHeader(left=one, right=other):
                return Value(f"(u64)({self._same_operands(one, other)})", found, 1)
            case ir.SameUnion(left=members, right=others):
                pairs = zip(members, others, strict=True)
                return Value(f"(u64)({' || '.join(self.same(a, b) for a, b in pairs)})", found, 1)
            case ir.Lookahead() if self.peek is not None:
                return self.peek(expr)
        raise NotNativeError(f"{type(expr).__name__} outside a parser")

    def _choose(
        self, expr: ir.LastFieldRef | ir.ElementFieldRef, index: str, last: bool, n: int
    ) -> Value:
        """A field of one of the elements; before the first stands the last, others are 0."""
        refs = self.layout.instances(expr)
        found = self._range(expr)
        name = self.out.temp()
        self.out.line(f"u64 {name} = {index};")
        values = [Value(self.frame.field(r), self.frame.field_range(r), n) for r in refs]
        text = values[-1].text if last else (literal(0) if n == 1 else self.frame.constant(0, n))
        for i, value in reversed(list(enumerate(values))):
            text = f"({name} == {i} ? {value.text} : {text})"
        return Value(text, found, n)

    def _same_operands(self, one: ir.HeaderOperand, other: ir.HeaderOperand) -> str:
        tests: list[str] = []
        for left, at_left in self._operands(one):
            for right, at_right in self._operands(other):
                parts = [*at_left, *at_right, self.same(left, right)]
                tests.append(f"({' && '.join(parts)})")
        return " || ".join(tests)

    def _operands(self, operand: ir.HeaderOperand) -> list[tuple[str, list[str]]]:
        if isinstance(operand, ir.HeaderRef):
            return [(operand.name, [])]
        name = self.out.temp()
        self.out.line(f"u64 {name} = {self.single(operand.index, 'a stack index').text};")
        elements = self.layout.operands(operand)
        return [(element, [f"{name} == {i}"]) for i, element in enumerate(elements)]

    def same(self, left: str, right: str) -> str:
        """True when two header instances are valid and equal field by field."""
        tests = [self.frame.valid(left), self.frame.valid(right)]
        for decl in self.frame.program.headers[left].type.fields:
            one, other = ir.FieldRef(left, decl.name), ir.FieldRef(right, decl.name)
            if decl.varbit:
                a, b = self.frame.length(left), self.frame.length(right)
                tests.append(f"{a} == {b}")
                first, second = self.frame.varbit(one), self.frame.varbit(other)
                tests.append(f"!memcmp({first}, {second}, {a} / 8)")
                continue
            first, second = self.frame.field(one), self.frame.field(other)
            n = limbs(self.frame.field_range(one))
            tests.append(f"{first} == {second}" if n == 1 else f"w_eq({first}, {second}, {n})")
        return f"({' && '.join(tests)})"
