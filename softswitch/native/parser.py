"""The parser -> one label a state.

``at`` is the offset in the packet. Every read is behind a test that the packet is long enough, so
that no packet of any length has one beyond its end. Leaving the parser is ``goto parsed``.
"""

from softswitch import ir
from softswitch.codegen.layout import HeaderPlan
from softswitch.native.frame import Frame
from softswitch.native.ranges import limbs
from softswitch.native.statements import Statements
from softswitch.native.values import Value, literal
from softswitch.native.writer import Writer

# a parser whose states go round may read nothing on the way: after so many rounds it times out
_ROUNDS = 4096


class ParserCode:
    """Writes the parser into `out`; sets ``p->perr`` and ``p->o``."""

    def __init__(self, frame: Frame, out: Writer) -> None:
        self.frame = frame
        self.layout = frame.layout
        self.program = frame.program
        self.out = out
        self.body = Statements(frame, out, "parser")
        self.body.expr.peek = self._peek
        self.states = self.program.parser.states
        self.names = {name: i for i, name in enumerate(self.states)}
        self.counted = self._counted()

    def write(self) -> None:
        """The whole parser."""
        init = self.program.parser.init
        self.out.line(f"u32 at = 0; p->perr = {self._core('NoError')};")
        if init is None:
            self.out.line("p->o = 0;")
            return
        self.out.line("u32 rounds = 0; (void)rounds;")
        self.out.line(f"goto S{self.names[init]};")
        for name in self._reached(init):
            self.out.line(f"S{self.names[name]}:;")
            with self.out.block(""):
                self._state(self.states[name])
        self.out.line("parsed: p->o = at;")

    def _targets(self, name: str) -> list[str]:
        state = self.states[name]
        found = [c.next_state for c in state.cases] + [state.default]
        return [t for t in found if t is not None]

    def _reached(self, start: str) -> list[str]:
        found = [start]
        for name in found:
            found += [t for t in dict.fromkeys(self._targets(name)) if t not in found]
        return found

    def _counted(self) -> set[str]:
        """States that count as rounds: all that several ways lead to, if the states go round."""
        init = self.program.parser.init
        if init is None:
            return set()
        entries = {init: 1}
        for name in self._reached(init):
            for target in self._targets(name):
                entries[target] = entries.get(target, 0) + 1
        joins = {name for name, count in entries.items() if count > 1}
        round_ = any(n in self._reached(t) for n in joins for t in self._targets(n))
        return joins if round_ else set()

    # --- states ---------------------------------------------------------------------------------

    def _go(self, name: str | None) -> None:
        if name is None:
            self.out.line("goto parsed;")
            return
        if name in self.counted:
            with self.out.block(f"if (rounds++ == {_ROUNDS})"):
                self._fail(self._core("ParserTimeout"))
        self.out.line(f"goto S{self.names[name]};")

    def _state(self, state: ir.State) -> None:
        for op in state.ops:
            self._op(op)
        if not state.cases:
            self._go(state.default)
            return
        keys = [self._key(p, w) for p, w in zip(state.key, state.widths, strict=True)]
        for case in state.cases:
            with self.out.block(f"if ({self._test(case, keys, state)})"):
                self._go(case.next_state)
        self._go(state.default)

    def _key(self, part: ir.Expr, width: int) -> Value:
        """A part of the key in a variable, without sign."""
        value = self.body.expr.exact(part)
        if isinstance(part, ir.FieldRef | ir.LastFieldRef) and value.sign:
            value = self.body.expr.trim(value, width, (0, (1 << width) - 1))
        name = self.out.temp()
        star = "*" if value.n > 1 else ""
        self.out.line(f"{'const ' if star else ''}u64 {star}{name} = {value.text};")
        return Value(name, value.range, value.n)

    def _test(self, case: ir.Case | ir.ValueSetCase, keys: list[Value], state: ir.State) -> str:
        if isinstance(case, ir.ValueSetCase):
            return self._in_set(case, keys, state)
        parts: list[str] = []
        for key, width, value, mask in zip(
            keys, state.widths, case.values, case.masks, strict=True
        ):
            if not mask:
                continue
            if key.n == 1:
                masked = "" if mask == (1 << width) - 1 else f" & {literal(mask)}"
                parts.append(f"({key.text}{masked}) == {literal(value)}")
                continue
            text = key.text
            if mask != (1 << width) - 1:
                text = self.out.temp()
                constant = self.frame.constant(mask, key.n)
                self.out.line(f"u64 {text}[{key.n}];")
                self.out.line(f"w_and({text}, {key.text}, {constant}, {key.n});")
            parts.append(f"w_eq({text}, {self.frame.constant(value, key.n)}, {key.n})")
        return " && ".join(parts) or "1"

    def _in_set(self, case: ir.ValueSetCase, keys: list[Value], state: ir.State) -> str:
        """Members are the parts of the key joined, in so many limbs."""
        number = list(self.program.value_sets).index(case.value_set)
        count = max(1, -(-self.program.value_sets[case.value_set].width // 64))
        joined = self.out.temp()
        self.out.line(f"u64 {joined}[{count}];")
        self.out.line(f"memset({joined}, 0, sizeof {joined});")
        masks = case.masks or (-1,) * len(keys)
        for key, width, mask in zip(keys, state.widths, masks, strict=True):
            part = self.body.expr.fit(key, count)
            if count == 1:
                masked = part if mask == -1 else f"({part} & {literal(mask)})"
                self.out.line(f"{joined}[0] = u_shl({joined}[0], {width}) | {masked};")
                continue
            moved, cut = self.out.temp(), self.out.temp()
            self.out.line(f"u64 {moved}[{count}], {cut}[{count}];")
            constant = self.frame.constant(mask, count)
            self.out.line(f"w_and({cut}, {part}, {constant}, {count});")
            self.out.line(f"w_shl({moved}, {joined}, {width}, {count});")
            self.out.line(f"w_or({joined}, {moved}, {cut}, {count});")
        found = f"hash_of(S->seed, {joined}, {count}), {joined}, {count}"
        return f"map_find(&S->value_sets[{number}], {found})"

    # --- operations -----------------------------------------------------------------------------

    def _fail(self, error: str) -> None:
        self.out.line(f"p->perr = {error};")
        self.out.line("goto parsed;")

    def _core(self, name: str) -> str:
        return str(self.program.errors[name])

    def _need(self, count: int) -> None:
        with self.out.block(f"if (p->n - at < {count})"):
            self._fail(self._core("PacketTooShort"))

    def _op(self, op: ir.ParserOp) -> None:
        match op:
            case ir.Extract(header=header, varbit_bits=None):
                size = self.frame.plan(header).bits // 8
                self._need(size)
                self._extract(header)
                self.out.line(f"at += {size};")
            case ir.Extract(header=header, varbit_bits=length) if length is not None:
                name = self._varbit_size(length, self.frame.plan(header))
                self._extract_varbit(header, name)
                self.out.line(f"at += (u32){name};")
            case ir.ExtractNext():
                self._extract_next(op)
            case ir.Advance():
                self._advance(op)
            case ir.Verify():
                with self.out.block(f"if (!{self.body.expr.condition(op.cond)})"):
                    self._fail(self.body.expr.single(op.error, "an error").text)
            case ir.Extract():
                raise TypeError("extract")
            case _:
                self.body.statement(op)

    def _peek(self, peek: ir.Lookahead) -> Value:
        """The bits ahead; writes the test that the packet has them."""
        self._need((peek.offset + peek.width + 7) // 8)
        name = self.out.temp()
        found = (0, (1 << peek.width) - 1)
        n = limbs(found)
        if not peek.width:
            return Value(literal(0), found, 1)
        if n == 1:
            self.out.line(f"u64 {name} = rd(p->data + at, {peek.offset}, {peek.width});")
        else:
            self.out.line(f"u64 {name}[{n}];")
            self.out.line(f"rd_w({name}, {n}, p->data + at, {peek.offset}, {peek.width});")
        return Value(name, found, n)

    def _enter(self, header: str) -> HeaderPlan:
        plan = self.frame.plan(header)
        self.out.line(f"{self.frame.valid(header)} = 1;")
        self.out.line(f"{self.frame.offset(header)} = at;")
        if plan.mutable:
            self.out.line(f"{self.frame.touched(header)} = 0;")
        self.body.leave_union(header)
        return plan

    def _fields(self, header: str, plan: HeaderPlan, source: str, moved: str = "") -> None:
        """Fields of the fixed part; those after a variable-length field are `moved` bits on."""
        after = False
        at = 0
        used = {decl.name for decl, _, _ in plan.locals}
        for decl in plan.header.type.fields:
            if decl.varbit:
                after = True
                continue
            if decl.name in used:
                ref = ir.FieldRef(header, decl.name)
                place = f"{at} + {moved}" if after and moved else str(at)
                self._load(ref, decl, source, place)
            at += decl.width

    def _load(self, ref: ir.FieldRef, decl: ir.FieldDecl, source: str, at: str) -> None:
        member, n = self.frame.field(ref), limbs(self.frame.field_range(ref))
        if not decl.width:
            return
        if n > 1:
            self.out.line(f"rd_w({member}, {n}, {source}, {at}, {decl.width});")
            if decl.signed:
                self.out.line(f"w_cut({member}, {member}, {n}, {decl.width}, 1);")
            return
        text = f"rd({source}, {at}, {decl.width})"
        self.out.line(f"{member} = {f's_cut({text}, {decl.width})' if decl.signed else text};")

    def _extract(self, header: str) -> None:
        plan = self._enter(header)
        if plan.raw:
            self.out.line(f"memcpy({self.frame.raw(header)}, p->data + at, {plan.bits // 8});")
        self._fields(header, plan, "(p->data + at)")

    def _varbit_size(self, length: ir.Expr, plan: HeaderPlan) -> str:
        """Tests a varbit length; the variable that holds the header's size in bytes."""
        bits, size = self.out.temp(), self.out.temp()
        self.out.line(f"u64 {bits} = {self.body.expr.natural(length, 'a varbit length')};")
        with self.out.block(f"if ({bits} & 7)"):
            self._fail(self._core("ParserInvalidArgument"))
        self.out.line(f"u64 {size} = {plan.bits // 8} + ({bits} >> 3);")
        with self.out.block(f"if (p->n - at < {size})"):
            self._fail(self._core("PacketTooShort"))
        varbit = plan.header.type.varbit
        most = plan.bits + (varbit.width if varbit else 0)
        with self.out.block(f"if ({size} > {most // 8})"):
            self._fail(self._core("HeaderTooShort"))
        return size

    def _extract_varbit(self, header: str, size: str) -> None:
        plan = self._enter(header)
        length = self.frame.length(header)
        self.out.line(f"{length} = 8 * (u32){size} - {plan.bits};")
        before = 0
        for decl in plan.header.type.fields:
            if decl.varbit:
                break
            before += decl.width
        source = "(p->data + at)"
        varbit = plan.header.type.varbit
        if plan.varbit is not None and varbit is not None:
            member = self.frame.varbit(ir.FieldRef(header, varbit.name))
            if before % 8:
                bits, whole = self.out.temp(), self.out.temp()
                # writing bit by bit clears some bytes beyond the last bit
                self.out.line(f"u8 {whole}[{varbit.width // 8 + 32}];")
                self.out.line(f"Bits {bits} = {{{whole}, 0}};")
                self.out.line(f"bits_bytes(&{bits}, {source}, {before}, {length});")
                self.out.line(f"memcpy({member}, {whole}, {length} / 8);")
            else:
                self.out.line(f"memcpy({member}, {source} + {before // 8}, {length} / 8);")
        if plan.raw:
            bits, whole = self.out.temp(), self.out.temp()
            self.out.line(f"u8 {whole}[{plan.bits // 8 + 32}];")
            self.out.line(f"Bits {bits} = {{{whole}, 0}};")
            self.out.line(f"bits_bytes(&{bits}, {source}, 0, {before});")
            self.out.line(f"bits_bytes(&{bits}, {source}, {before} + {length}, "
                          f"{plan.bits - before});")  # fmt: skip
            self.out.line(f"memcpy({self.frame.raw(header)}, {whole}, {plan.bits // 8});")
        self._fields(header, plan, source, moved=length)

    def _extract_next(self, op: ir.ExtractNext) -> None:
        stack = self.program.stacks[op.stack]
        index = self.frame.next_index(op.stack)
        plan = self.frame.plan(stack.elements[0])
        with self.out.block(f"if ({index} >= {len(stack.elements)})"):
            self._fail(self._core("StackOutOfBounds"))
        size = None
        if op.varbit_bits is None:
            self._need(plan.bits // 8)
        else:
            size = self._varbit_size(op.varbit_bits, plan)
        for i, element in enumerate(stack.elements):
            with self.out.block(f"{'else ' if i else ''}if ({index} == {i})"):
                if size is None:
                    self._extract(element)
                else:
                    self._extract_varbit(element, size)
        self.out.line(f"{index} += 1;")
        self.out.line(f"at += {plan.bits // 8 if size is None else f'(u32){size}'};")

    def _advance(self, op: ir.Advance) -> None:
        bits = self.out.temp()
        self.out.line(f"u64 {bits} = {self.body.expr.natural(op.bits, 'advance()')};")
        with self.out.block(f"if ({bits} & 7)"):
            self._fail(self._core("ParserInvalidArgument"))
        with self.out.block(f"if (p->n - at < {bits} >> 3)"):
            self._fail(self._core("PacketTooShort"))
        self.out.line(f"at += (u32)({bits} >> 3);")
