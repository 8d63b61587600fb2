"""The parser -> one loop over states.

A state that is entered from one place is written where it is entered, at an offset known when the
code is made. States on cycles, and joins that would multiply the code, get a number; entering them
is ``st = number; continue``. Leaving the parser is ``break``; ``o`` is then what was parsed.
"""

from dataclasses import dataclass

from softswitch import ir
from softswitch.codegen.expressions import literal
from softswitch.codegen.layout import HeaderPlan, Layout
from softswitch.codegen.statements import Statements
from softswitch.codegen.writer import Writer

_DEPTH = 12
_COPIES = 64
# a parser whose states go round may read nothing on the way: after so many rounds it times out
_ROUNDS = 4096


@dataclass(frozen=True, slots=True)
class Position:
    """Offset in the packet: `base` (a variable, or none) plus `plus` bytes."""

    base: str | None
    plus: int

    def moved(self, count: int) -> "Position":
        return Position(self.base, self.plus + count)

    @property
    def text(self) -> str:
        if self.base is None:
            return str(self.plus)
        return f"{self.base} + {self.plus}" if self.plus else self.base


class ParserCode:
    """Writes the parser loop into `out`."""

    def __init__(self, layout: Layout, out: Writer) -> None:
        self.layout = layout
        self.program = layout.program
        self.out = out
        self.body = Statements(layout, out, "parser")
        self.body.expr.peek = self._peek
        self.states = self.program.parser.states
        self.numbered: dict[str, int] = {}
        self.at = Position(None, 0)
        self.cyclic = False
        self.heads: list[str] = []

    def write(self) -> None:
        """The whole parser; sets ``perr`` and ``o``."""
        init = self.program.parser.init
        self.out.line(f"perr = {self.program.errors['NoError']}; o = 0")
        if init is None:
            return
        self._number(init)
        self.heads = self._joins(init)
        for name in self.heads:
            self._number(name)
        if self.cyclic:
            self.out.line("rounds = 0")
        if len(self.numbered) > 1 or self._deep(init):
            self.out.line("st = 0")
            with self.out.block("while True:"):
                done = 0
                while done < len(self.numbered):
                    name = list(self.numbered)[done]
                    # Entered once, the first state reads from the first byte.
                    at = Position("o" if done or init in self.heads else None, 0)
                    with self.out.block(f"if st == {done}:"):
                        self._state(name, at, 0)
                    done += 1
            return
        with self.out.block("while True:"):
            self._state(init, Position(None, 0), 0)

    def _number(self, name: str) -> int:
        return self.numbered.setdefault(name, len(self.numbered))

    def _targets(self, name: str) -> list[str]:
        state = self.states[name]
        found = [c.next_state for c in state.cases] + [state.default]
        return [t for t in found if t is not None]

    def _joins(self, init: str) -> list[str]:
        """States that need a number: cycle heads, and all joins if copying them costs too much."""
        entries: dict[str, int] = {init: 1}
        reach: list[str] = [init]
        for name in reach:
            for target in self._targets(name):
                entries[target] = entries.get(target, 0) + 1
                if target not in reach:
                    reach.append(target)
        joins = [n for n in reach if entries[n] > 1]
        heads = [n for n in joins if n in self._reachable(n)]
        self.cyclic = bool(heads)
        # Written once; what is not on a cycle keeps known offsets, on the way to one or past it.
        once = dict.fromkeys(heads, 1)
        if sum(self._paths(name, once.copy()) for name in (init, *self._after(heads))) > _COPIES:
            return joins
        return heads

    def _after(self, heads: list[str]) -> list[str]:
        """The states entered from the numbered ones."""
        return [target for name in heads for target in self._targets(name)]

    def _reachable(self, start: str) -> set[str]:
        seen: set[str] = set()
        work = self._targets(start)
        while work:
            name = work.pop()
            if name not in seen:
                seen.add(name)
                work += self._targets(name)
        return seen

    def _paths(self, name: str, known: dict[str, int]) -> int:
        if name not in known:
            known[name] = 1 + sum(self._paths(t, known) for t in self._targets(name))
        return known[name]

    def _deep(self, name: str) -> bool:
        """True if the longest chain of states is deeper than code is nested."""
        depth, frontier = 0, {name}
        while frontier and depth <= _DEPTH:
            frontier = {t for s in frontier for t in self._targets(s) if t not in self.numbered}
            depth += 1
        return depth > _DEPTH

    # --- states ---------------------------------------------------------------------------------

    def _go(self, name: str | None, at: Position, depth: int) -> None:
        if name is None:
            self._leave(at)
            return
        if name in self.numbered or depth >= _DEPTH:
            if at.text != "o":
                self.out.line(f"o = {at.text}")
            if self.cyclic:
                with self.out.block(f"if rounds == {_ROUNDS}:"):
                    self.out.line(f"perr = {self._core('ParserTimeout')}")
                    self.out.line("break")
                self.out.line("rounds += 1")
            self.out.line(f"st = {self._number(name)}")
            self.out.line("continue")
            return
        self._state(name, at, depth)

    def _leave(self, at: Position) -> None:
        if at.text != "o":
            self.out.line(f"o = {at.text}")
        self.out.line("break")

    def _state(self, name: str, at: Position, depth: int) -> None:
        state = self.states[name]
        self.at = at
        for op in state.ops:
            self._op(op)
        at = self.at
        if not state.cases:
            self._go(state.default, at, depth)
            return
        keys = [self._key(part) for part in state.key]
        at = self.at
        for number, case in enumerate(state.cases):
            with self.out.block(f"{'el' if number else ''}if {self._test(case, keys, state)}:"):
                self._go(case.next_state, at, depth + 1)
        with self.out.block("else:"):
            self._go(state.default, at, depth + 1)

    def _key(self, part: ir.Expr) -> str:
        code = self.body.expr.code(part)
        if isinstance(part, ir.FieldRef | ir.LastFieldRef):
            decl = self.program.field_decl(self.layout.instances(part)[0])
            if decl.signed:
                return f"({code.text} & {literal((1 << decl.width) - 1)})"
        return code.text

    def _test(self, case: ir.Case | ir.ValueSetCase, keys: list[str], state: ir.State) -> str:
        if isinstance(case, ir.ValueSetCase):
            number = list(self.program.value_sets).index(case.value_set)
            joined = "0"
            masks = case.masks or (-1,) * len(keys)
            for key, width, mask in zip(keys, state.widths, masks, strict=True):
                part = key if mask == -1 else f"{key} & {literal(mask)}"
                joined = f"({joined} << {width} | {part})"
            return f"{joined} in S.value_sets[{number}]"
        parts: list[str] = []
        for key, width, value, mask in zip(
            keys, state.widths, case.values, case.masks, strict=True
        ):
            if mask == (1 << width) - 1:
                parts.append(f"{key} == {literal(value)}")
            elif mask:
                parts.append(f"{key} & {literal(mask)} == {literal(value)}")
        return " and ".join(parts) or "True"

    # --- operations -----------------------------------------------------------------------------

    def _fail(self, error: str) -> None:
        self.out.line(f"perr = {error}")
        self._leave(self.at)

    def _core(self, name: str) -> str:
        return str(self.program.errors[name])

    def _need(self, count: int) -> None:
        with self.out.block(f"if n < {self.at.moved(count).text}:"):
            self._fail(self._core("PacketTooShort"))

    def _op(self, op: ir.ParserOp) -> None:
        match op:
            case ir.Extract(header=header, varbit_bits=None):
                self._need(self.layout.plans[header].bits // 8)
                self._extract(header)
                self.at = self.at.moved(self.layout.plans[header].bits // 8)
            case ir.Extract(header=header, varbit_bits=length) if length is not None:
                size = self._varbit_size(length, self.layout.plans[header])
                self._extract_varbit(header, size)
                self._advance_by(size)
            case ir.ExtractNext():
                self._extract_next(op)
            case ir.Advance():
                self._advance(op)
            case ir.Verify():
                with self.out.block(f"if not {self.body.expr.condition(op.cond)}:"):
                    self._fail(self.body.expr.value(op.error))
            case ir.Extract():
                raise TypeError("extract")
            case _:
                self.body.statement(op)

    def _peek(self, peek: ir.Lookahead) -> str:
        """A variable with the bits ahead; writes the test that the packet has them."""
        name = self.out.temp()
        first, last = peek.offset // 8, (peek.offset + peek.width + 7) // 8
        self._need(last)
        start, stop = self.at.moved(first).text, self.at.moved(last).text
        text = f"from_bytes(data[{start}:{stop}])"
        spare = 8 * last - peek.offset - peek.width
        if spare:
            text = f"({text} >> {spare})"
        if 8 * (last - first) - spare != peek.width:
            text = f"({text} & {literal((1 << peek.width) - 1)})"
        self.out.line(f"{name} = {text}")
        return name

    def _enter(self, header: str) -> HeaderPlan:
        plan = self.layout.plans[header]
        self.out.line(f"v_{plan.ident} = True")
        self.out.line(f"o_{plan.ident} = {self.at.text}")
        if plan.mutable:
            self.out.line(f"w_{plan.ident} = False")
        self.body.leave_union(header)
        return plan

    def _fields(self, plan: HeaderPlan, raw: str) -> None:
        for decl, name, shift in plan.locals:
            text = f"{raw} >> {shift}" if shift else raw
            if shift + decl.width != plan.bits:
                text = f"({text}) & {literal((1 << decl.width) - 1)}"
            if decl.signed:
                half = literal(1 << (decl.width - 1))
                text = f"(({text}) ^ {half}) - {half}"
            self.out.line(f"{name} = {text}")

    def _extract(self, header: str) -> None:
        plan = self._enter(header)
        if not plan.locals and not plan.raw:
            return
        stop = self.at.moved(plan.bits // 8).text
        source = f"from_bytes(data[{self.at.text}:{stop}])"
        if not plan.raw and len(plan.locals) == 1:
            self._fields(plan, source)
            return
        raw = f"r_{plan.ident}" if plan.raw else "x_raw"
        self.out.line(f"{raw} = {source}")
        self._fields(plan, raw)

    def _varbit_size(self, length: ir.Expr, plan: HeaderPlan) -> str:
        """Tests a varbit length; the variable that holds the header's size in bytes."""
        bits, size = self.out.temp(), self.out.temp()
        self.out.line(f"{bits} = {self.body.expr.value(length)}")
        with self.out.block(f"if {bits} & 7:"):
            self._fail(self._core("ParserInvalidArgument"))
        self.out.line(f"{size} = {plan.bits // 8} + ({bits} >> 3)")
        with self.out.block(f"if n < {self.at.text} + {size}:"):
            self._fail(self._core("PacketTooShort"))
        varbit = plan.header.type.varbit
        most = plan.bits + (varbit.width if varbit else 0)
        with self.out.block(f"if {size} > {most // 8}:"):
            self._fail(self._core("HeaderTooShort"))
        return size

    def _extract_varbit(self, header: str, size: str) -> None:
        plan = self._enter(header)
        self.out.line(f"n_{plan.ident} = 8 * {size} - {plan.bits}")
        if not plan.locals and not plan.raw and plan.varbit is None:
            return
        self.out.line(f"x_all = from_bytes(data[{self.at.text}:{self.at.text} + {size}])")
        after = 0
        for decl in reversed(plan.header.type.fields):
            if decl.varbit:
                break
            after += decl.width
        length = f"n_{plan.ident}"
        if plan.varbit is not None:
            shifted = f"(x_all >> {after})" if after else "x_all"
            mask = f" & ((1 << {length}) - 1)" if plan.bits > after else ""
            self.out.line(f"{plan.varbit} = {shifted}{mask}")
        raw = f"r_{plan.ident}" if plan.raw else "x_raw"
        text = f"x_all >> ({after} + {length})"
        if after:
            text = f"({text}) << {after} | x_all & {hex((1 << after) - 1)}"
        if plan.bits:
            self.out.line(f"{raw} = {text}")
            self._fields(plan, raw)

    def _advance_by(self, size: str) -> None:
        self.out.line(f"o = {self.at.text} + {size}")
        self.at = Position("o", 0)

    def _extract_next(self, op: ir.ExtractNext) -> None:
        stack = self.program.stacks[op.stack]
        index = self.layout.next_index(op.stack)
        plan = self.layout.plans[stack.elements[0]]
        with self.out.block(f"if {index} >= {len(stack.elements)}:"):
            self._fail(self._core("StackOutOfBounds"))
        size = None
        if op.varbit_bits is None:
            self._need(plan.bits // 8)
        else:
            size = self._varbit_size(op.varbit_bits, plan)
        for i, element in enumerate(stack.elements):
            with self.out.block(f"{'el' if i else ''}if {index} == {i}:"):
                if size is None:
                    self._extract(element)
                else:
                    self._extract_varbit(element, size)
        self.out.line(f"{index} += 1")
        if size is None:
            self.at = self.at.moved(plan.bits // 8)
        else:
            self._advance_by(size)

    def _advance(self, op: ir.Advance) -> None:
        if isinstance(op.bits, ir.Const):
            if op.bits.value % 8:
                self.out.line("if True:")
                self.out.line(f" perr = {self._core('ParserInvalidArgument')}")
                self.out.line(f" o = {self.at.text}")
                self.out.line(" break")
                return
            self._need(op.bits.value // 8)
            self.at = self.at.moved(op.bits.value // 8)
            return
        bits = self.out.temp()
        self.out.line(f"{bits} = {self.body.expr.value(op.bits)}")
        with self.out.block(f"if {bits} & 7:"):
            self._fail(self._core("ParserInvalidArgument"))
        with self.out.block(f"if n - ({self.at.text}) < {bits} >> 3:"):
            self._fail(self._core("PacketTooShort"))
        self._advance_by(f"({bits} >> 3)")
