"""Statements -> Python."""

from collections.abc import Callable
from itertools import pairwise

from softswitch import ir
from softswitch.codegen.calculations import Calculations
from softswitch.codegen.expressions import Code, Expressions
from softswitch.codegen.layout import Layout, walk
from softswitch.codegen.writer import Writer

DROP_PORT = 511


class UnstructuredError(Exception):
    """Jumps of an action that are no nested ifs (a loop)."""


class Statements:
    """Translates statement lists in place: locals of the caller are the state.

    Locals of the surrounding function: ``n`` length of the packet as it came, ``x_exit`` set by
    ``exit``, and the requests ``clone``/``kept``, ``again``, ``digest``, ``cutoff``.
    """

    def __init__(self, layout: Layout, out: Writer, where: str) -> None:
        self.layout = layout
        self.program = layout.program
        self.out = out
        self.where = where
        self.expr = Expressions(layout, out)
        self.calc = Calculations(layout, out)
        self.tracks_length = False

    # --- actions --------------------------------------------------------------------------------

    def action(self, action: ir.Action, params: list[Code]) -> bool:
        """The body of an action; True if it may set ``x_exit``."""
        self.expr.params = params
        mark = len(self.out.lines)
        try:
            self._span(action.body, 0, len(action.body))
        except UnstructuredError:
            del self.out.lines[mark:]
            self._machine(action.body)
        return any(isinstance(s, ir.Exit) for s in action.body)

    def _span(self, body: tuple[ir.Statement, ...], start: int, stop: int) -> None:
        at = start
        while at < stop:
            step = body[at]
            if isinstance(step, ir.JumpIfZero):
                at = self._branch(body, at, step, stop)
                continue
            if isinstance(step, ir.Jump):
                if step.target != at + 1 and not (step.target == stop == at + 1):
                    raise UnstructuredError
            else:
                self.statement(step)
            at += 1

    def _branch(
        self, body: tuple[ir.Statement, ...], at: int, step: ir.JumpIfZero, stop: int
    ) -> int:
        other = step.target
        if not at < other <= stop:
            raise UnstructuredError
        then_stop = end = other
        last = body[other - 1]
        if other - 1 > at and isinstance(last, ir.Jump):
            then_stop, end = other - 1, last.target
            if not other <= end <= stop:
                raise UnstructuredError
        with self.out.block(f"if {self.expr.condition(step.cond)}:"):
            self._span(body, at + 1, then_stop)
        if end > other:
            with self.out.block("else:"):
                self._span(body, other, end)
        return end

    def _machine(self, body: tuple[ir.Statement, ...]) -> None:
        """Loops: run from block to block, as the JSON's jumps say."""
        heads = {0, len(body)}
        for i, step in enumerate(body):
            if isinstance(step, ir.Jump | ir.JumpIfZero):
                heads.update((i + 1, step.target))
        order = sorted(heads)
        self.out.line("pc = 0")
        with self.out.block(f"while pc < {len(body)}:"):
            for start, stop in pairwise(order):
                with self.out.block(f"if pc == {start}:"):
                    self.out.line(f"pc = {stop}")
                    for step in body[start:stop]:
                        if isinstance(step, ir.Jump):
                            self.out.line(f"pc = {step.target}")
                        elif isinstance(step, ir.JumpIfZero):
                            with self.out.block(f"if not {self.expr.condition(step.cond)}:"):
                                self.out.line(f"pc = {step.target}")
                        else:
                            self.statement(step)

    # --- one statement --------------------------------------------------------------------------

    def statement(self, step: ir.Statement) -> None:
        match step:
            case ir.Assign():
                # reading ahead has an effect even if nothing reads the result: it may be too short
                if self._is_live(step.target) or _reads_ahead(step.value):
                    self.store(step.target, self.expr.code(step.value))
            case ir.RegisterRead():
                self._register_read(step)
            case ir.RegisterWrite():
                self._register_write(step)
            case ir.Count():
                self._count(step)
            case ir.MarkToDrop():
                self._drop()
            case ir.SetValidity():
                self.each(step.header, lambda name: self._validity(name, step.valid))
            case ir.AssignHeader():
                self._assign_header(step)
            case ir.Exit():
                self.out.line("x_exit = True")
            case _:
                self._rare(step)

    def _rare(self, step: ir.Statement) -> None:
        out = self.out
        match step:
            case ir.AssignVarbit():
                self._assign_varbit(step)
            case ir.AssignStack():
                target, source = (self.program.stacks[s] for s in (step.target, step.source))
                for left, right in zip(target.elements, source.elements, strict=True):
                    self._copy(left, right)
                left, right = (self.layout.next_index(s) for s in (step.target, step.source))
                out.line(f"{left} = {right}")
            case ir.ShiftStack():
                self._shift_stack(step)
            case ir.ExecuteMeter():
                self._meter(step)
            case ir.Hash():
                self._hash(step)
            case ir.Random():
                low, high = self.expr.value(step.low), self.expr.value(step.high)
                with out.block(f"if (x_lo := {low}) <= (x_hi := {high}):"):
                    self.store(step.target, Code("randint(x_lo, x_hi)", None, None))
            case ir.SendDigest(list_id=number):
                out.line(f"digest = {number}")
            case ir.Clone():
                session = self.expr.value(step.session)
                out.line(f"clone = {session} & 0x7fff; kept = {step.list_id}")
            case ir.Resubmit(list_id=number) | ir.Recirculate(list_id=number):
                out.line(f"again = {number}")
            case ir.Truncate():
                out.line(f"cutoff = {self.expr.value(step.length)}")
            case ir.Check():
                with out.block(f"if not {self.expr.condition(step.cond)}:"):
                    out.line(f"S.failed({step.kind!r}, {self.where!r})")
            case ir.LogMessage():
                if step.template:
                    values = "".join(f"{self.expr.value(a)}, " for a in step.args)
                    out.line(f"S.log({step.template!r}, ({values}))")
            case _:
                raise TypeError(type(step).__name__)

    def _is_live(self, target: ir.LValue) -> bool:
        refs = self.layout.instances(target)
        metadata = self.program.headers[refs[0].header].metadata
        return not metadata or any(r in self.layout.read for r in refs)

    def store(self, target: ir.LValue, code: Code) -> None:
        """Write `code` to a field, cut to its width."""
        if isinstance(target, ir.FieldRef):
            decl = self.program.field_decl(target)
            self._put(target, self.expr.cut(code, decl.width, decl.signed))
            return
        stack = self.program.stacks[target.stack]
        decl = self.program.field_decl(ir.FieldRef(stack.elements[0], target.field))
        if isinstance(target, ir.LastFieldRef):
            index = f"{self.layout.next_index(target.stack)} - 1"
        else:
            index = self.expr.value(target.index)
        self.out.line(f"x_v = {self.expr.cut(code, decl.width, decl.signed)}; x_i = {index}")
        for i, element in enumerate(stack.elements):
            with self.out.block(f"{'el' if i else ''}if x_i == {i}:"):
                self._put(ir.FieldRef(element, target.field), "x_v")

    def _put(self, ref: ir.FieldRef, text: str) -> None:
        name = self.layout.field(ref)
        if text != name:
            self.out.line(f"{name} = {text}")
        self.touch(ref.header)

    def touch(self, header: str) -> None:
        """A header no longer equals its bytes in the packet."""
        if not self.program.headers[header].metadata:
            self.out.line(f"w_{self.layout.plans[header].ident} = True")

    def _guard(self, index: Code, size: int) -> tuple[str, str | None]:
        """A source of the index, and the test that it is in range (None: it always is)."""
        if index.within(0, size - 1):
            return index.text, None
        text = index.text
        if not text.isidentifier():
            text = self.out.temp()
            self.out.line(f"{text} = {index.text}")
        if index.low is not None and index.low >= 0:
            return text, f"{text} < {size}"
        return text, f"0 <= {text} < {size}"

    def _register_read(self, step: ir.RegisterRead) -> None:
        register = self.program.registers[step.register]
        number = list(self.program.registers).index(step.register)
        index, test = self._guard(self.expr.code(step.index), register.size)
        code = Code(f"reg{number}[{index}]", 0, (1 << register.width) - 1)
        if test is None:
            self.store(step.target, code)
            return
        with self.out.block(f"if {test}:"):
            self.store(step.target, code)

    def _register_write(self, step: ir.RegisterWrite) -> None:
        register = self.program.registers[step.register]
        number = list(self.program.registers).index(step.register)
        index, test = self._guard(self.expr.code(step.index), register.size)
        value = self.expr.cut(self.expr.code(step.value), register.width)
        line = f"reg{number}[{index}] = {value}"
        self.out.line(line if test is None else f"if {test}: {line}")

    def _count(self, step: ir.Count) -> None:
        counter = self.program.counters[step.counter]
        number = list(self.program.counters).index(step.counter)
        index, test = self._guard(self.expr.code(step.index), counter.size)
        line = f"cnp{number}[{index}] += 1; cnb{number}[{index}] += n"
        self.out.line(line if test is None else f"if {test}: {line}")

    def _meter(self, step: ir.ExecuteMeter) -> None:
        meter = self.program.meters[step.meter]
        number = list(self.program.meters).index(step.meter)
        index, test = self._guard(self.expr.code(step.index), meter.size)
        with self.out.block(f"if {test or 'True'}:"):
            self.store(step.target, Code(f"S.meters[{number}].colour({index}, n, now)", 0, 2))

    def _hash(self, step: ir.Hash) -> None:
        value = self.calc.value(self.program.calculations[step.calculation])
        base, limit = self.expr.value(step.base), self.expr.value(step.limit)
        code = Code(f"({value} % ({limit} or 1) + {base})", None, None)
        self.store(step.target, code)

    def _drop(self) -> None:
        spec = self.layout.standard("egress_spec")
        group = self.layout.standard("mcast_grp")
        self.out.line(f"{spec} = {DROP_PORT}")
        if group is not None:
            self.out.line(f"{group} = 0")

    # --- whole headers --------------------------------------------------------------------------

    def each(self, operand: ir.HeaderOperand, emit: Callable[[str], None]) -> None:
        """`emit` for the header that an operand stands for; out of range does nothing."""
        if isinstance(operand, ir.HeaderRef):
            emit(operand.name)
            return
        index = self.out.temp()
        self.out.line(f"{index} = {self.expr.value(operand.index)}")
        for i, element in enumerate(self.program.stacks[operand.stack].elements):
            with self.out.block(f"{'el' if i else ''}if {index} == {i}:"):
                emit(element)

    def _validity(self, name: str, valid: bool) -> None:
        header = self.program.headers[name]
        if header.metadata:
            return
        plan = self.layout.plans[name]
        test = f"v_{plan.ident}"
        with self.out.block(f"if not {test}:" if valid else f"if {test}:"):
            self.out.line(f"{test} = {valid}")
            if valid:
                self._zero(name)
            if self.tracks_length:
                size = f"({plan.bits} + n_{plan.ident}) // 8" if plan.varbit else plan.bits // 8
                self.out.line(f"plen {'+' if valid else '-'}= {size}")
        if valid:
            self.leave_union(name)

    def _zero(self, name: str) -> None:
        plan = self.layout.plans[name]
        names = [text for _, text, _ in plan.locals]
        if plan.raw:
            names.append(f"r_{plan.ident}")
        if plan.varbit:
            names += [plan.varbit, f"n_{plan.ident}"]
        if names:
            self.out.line(" = ".join(names) + " = 0")
        self.touch(name)

    def leave_union(self, name: str) -> None:
        """A header that becomes valid makes the other members of its union invalid."""
        others = [m for m in self.program.headers[name].union if m != name]
        if others:
            self.out.line(" = ".join(self.layout.valid(m) for m in others) + " = False")

    def _assign_header(self, step: ir.AssignHeader) -> None:
        source = step.source
        self.each(
            step.target, lambda left: self.each(source, lambda right: self._copy(left, right))
        )

    def _copy(self, target: str, source: str) -> None:
        if target == source:
            return
        if self.program.headers[target].metadata:
            for decl in self.program.headers[target].type.fields:
                left, right = ir.FieldRef(target, decl.name), ir.FieldRef(source, decl.name)
                if left in self.layout.read:
                    self.out.line(f"{self.layout.field(left)} = {self.layout.field(right)}")
            return
        left_plan, right_plan = self.layout.plans[target], self.layout.plans[source]
        self.out.line(f"v_{left_plan.ident} = v_{right_plan.ident}")
        with self.out.block(f"if v_{right_plan.ident}:"):
            pairs = [
                (a, b)
                for (_, a, _), (_, b, _) in zip(left_plan.locals, right_plan.locals, strict=True)
            ]
            if left_plan.raw:
                pairs.append((f"r_{left_plan.ident}", f"r_{right_plan.ident}"))
            if left_plan.varbit and right_plan.varbit:
                pairs.append((left_plan.varbit, right_plan.varbit))
                pairs.append((f"n_{left_plan.ident}", f"n_{right_plan.ident}"))
            for a, b in pairs:
                self.out.line(f"{a} = {b}")
            self.touch(target)
            self.leave_union(target)

    def _assign_varbit(self, step: ir.AssignVarbit) -> None:
        self.out.line(f"{self.layout.field(step.target)} = {self.layout.field(step.value)}")
        left, right = (self.layout.length(r) for r in (step.target, step.value))
        self.out.line(f"{left} = {right}")
        self.touch(step.target.header)

    def _shift_stack(self, step: ir.ShiftStack) -> None:
        elements = self.program.stacks[step.stack].elements
        size, count = len(elements), min(step.count, len(elements))
        index = self.layout.next_index(step.stack)
        if step.push:
            moves = [(i, i - count) for i in range(size - 1, count - 1, -1)]
            fresh = range(count)
            self.out.line(f"{index} = min({index} + {count}, {size})")
        else:
            moves = [(i, i + count) for i in range(size - count)]
            fresh = range(size - count, size)
            self.out.line(f"{index} = max({index} - {count}, 0)")
        for left, right in moves:
            self._copy(elements[left], elements[right])
        for i in fresh:
            self.out.line(f"{self.layout.valid(elements[i])} = False")


def _reads_ahead(value: ir.Expr) -> bool:
    return any(isinstance(node, ir.Lookahead) for node in walk(value))


__all__ = ["DROP_PORT", "Statements"]
