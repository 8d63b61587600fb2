"""Statements -> Python."""

from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise

from softswitch import ir
from softswitch.codegen.code import Code
from softswitch.codegen.headers import HeaderStatements
from softswitch.codegen.layout import target_of
from softswitch.codegen.sharing import Sharing
from softswitch.codegen.writer import Writer
from softswitch.ir import walk

# a loop of an action that goes on longer than this does not end
_ROUNDS = 1 << 16
_WRITES_NO_FIELD = (
    ir.RegisterWrite,
    ir.Count,
    ir.SendDigest,
    ir.Clone,
    ir.Resubmit,
    ir.Recirculate,
    ir.Truncate,
    ir.Exit,
    ir.Check,
    ir.LogMessage,
)


class UnstructuredError(Exception):
    """Jumps of an action that are no nested ifs (a loop)."""


class Statements(HeaderStatements):
    """Translates statement lists in place: locals of the caller are the state.

    Locals of the surrounding function: ``n`` length of the packet as it came, ``x_exit`` set by
    ``exit``, and the requests ``clone``/``kept``, ``again``, ``digest``, ``cutoff``.
    """

    # --- actions --------------------------------------------------------------------------------

    def action(self, action: ir.Action, params: list[Code]) -> bool:
        """The body of an action; True if it may set ``x_exit``."""
        self.expr.params = params
        try:
            uses = self._count(action.body)
        except UnstructuredError:
            self._machine(action.body)
        else:
            self.expr.sharing = Sharing(uses)
            self._span(action.body, 0, len(action.body))
            self.expr.sharing = None
        return any(isinstance(s, ir.Exit) for s in action.body)

    def _count(self, body: tuple[ir.Statement, ...]) -> list[int]:
        """How often each value of an action is used; UnstructuredError if it has a loop."""
        out = self.out
        self.out = self.expr.out = self.calc.out = Writer()
        self.expr.sharing = Sharing(None)
        try:
            self._span(body, 0, len(body))
            return self.expr.sharing.uses
        finally:
            self.expr.sharing = None
            self.out = self.expr.out = self.calc.out = out

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
            elif isinstance(step, ir.RegisterRead):
                at = self._register_reads(body, at, stop)
                continue
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
        with self.out.block(f"if {self.expr.condition(step.cond)}:"), self._scope():
            self._span(body, at + 1, then_stop)
        if end > other:
            with self.out.block("else:"), self._scope():
                self._span(body, other, end)
        return end

    def _scope(self) -> AbstractContextManager[None]:
        return self.expr.sharing.branch() if self.expr.sharing is not None else nullcontext()

    def _machine(self, body: tuple[ir.Statement, ...]) -> None:
        """Loops: run from block to block, as the JSON's jumps say."""
        heads = {0, len(body)}
        for i, step in enumerate(body):
            if isinstance(step, ir.Jump | ir.JumpIfZero):
                heads.update((i + 1, step.target))
        order = sorted(heads)
        self.out.line("pc = rounds = 0")
        with self.out.block(f"while pc < {len(body)}:"):
            with self.out.block(f"if rounds == {_ROUNDS}:"):
                self.out.line(f"S.failed('loop', {self.where!r})")
                self.out.line("break")
            self.out.line("rounds += 1")
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
        """Write one statement that is no jump."""
        self._statement(step)
        if self.expr.sharing is not None:
            target = target_of(step)
            if isinstance(target, ir.FieldRef):
                self.expr.sharing.wrote(target)
            elif not isinstance(step, _WRITES_NO_FIELD):
                self.expr.sharing.wrote_unknown()

    def _statement(self, step: ir.Statement) -> None:
        match step:
            case ir.Assign():
                # reading ahead has an effect even if nothing reads the result: it may be too short
                if self._is_live(step.target) or _reads_ahead(step.value):
                    self.store(step.target, self.expr.code(step.value))
            case ir.RegisterRead():
                self._register_reads((step,), 0, 1)
            case ir.RegisterWrite():
                self._register_write(step)
            case ir.Count():
                self._count_packet(step)
            case ir.MarkToDrop():
                self._drop()
            case ir.SetValidity():
                self.each(step.header, lambda name: self.validity(name, step.valid))
            case ir.AssignHeader():
                self.assign_header(step)
            case ir.Exit():
                self.out.line("x_exit = True")
            case _:
                self._rare(step)

    def _rare(self, step: ir.Statement) -> None:
        out = self.out
        match step:
            case ir.AssignVarbit():
                self.assign_varbit(step)
            case ir.AssignStack():
                self.assign_stack(step)
            case ir.AssignUnion():
                self.copy_all(step.target, step.source)
            case ir.ShiftStack():
                self.shift_stack(step)
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

    def _register_reads(self, body: tuple[ir.Statement, ...], at: int, stop: int) -> int:
        """Reads that follow each other at the same index, under one test of it."""
        first = body[at]
        assert isinstance(first, ir.RegisterRead)
        index, test = self._guard(
            self.expr.code(first.index), self.program.registers[first.register].size
        )
        reads = [first]
        inputs = set(walk(first.index))
        while at + len(reads) < stop and first.target not in inputs:
            step = body[at + len(reads)]
            if not self._reads_alike(first, step) or reads[-1].target in inputs:
                break
            assert isinstance(step, ir.RegisterRead)
            reads.append(step)
        with self.out.block(f"if {test}:") if test is not None else nullcontext():
            for step in reads:
                number = list(self.program.registers).index(step.register)
                high = (1 << self.program.registers[step.register].width) - 1
                self.store(step.target, Code(f"reg{number}[{index}]", 0, high))
        if self.expr.sharing is not None:
            for step in reads:
                if isinstance(step.target, ir.FieldRef):
                    self.expr.sharing.wrote(step.target)
                else:
                    self.expr.sharing.wrote_unknown()
        return at + len(reads)

    def _reads_alike(self, first: ir.RegisterRead, step: ir.Statement) -> bool:
        registers = self.program.registers
        return (
            isinstance(step, ir.RegisterRead)
            and isinstance(step.target, ir.FieldRef)
            and step.index == first.index
            and registers[step.register].size == registers[first.register].size
        )

    def _register_write(self, step: ir.RegisterWrite) -> None:
        register = self.program.registers[step.register]
        number = list(self.program.registers).index(step.register)
        index, test = self._guard(self.expr.code(step.index), register.size)
        value = self.expr.cut(self.expr.code(step.value), register.width)
        line = f"reg{number}[{index}] = {value}"
        self.out.line(line if test is None else f"if {test}: {line}")

    def _count_packet(self, step: ir.Count) -> None:
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
        self.out.line(f"{spec} = {self.layout.program.drop_port}")
        if group is not None:
            self.out.line(f"{group} = 0")


def _reads_ahead(value: ir.Expr) -> bool:
    return any(isinstance(node, ir.Lookahead) for node in walk(value))


__all__ = ["Statements"]
