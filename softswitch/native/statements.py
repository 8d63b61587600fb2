"""Statements -> C; jumps of an action are jumps there."""

from softswitch import ir
from softswitch.codegen.layout import target_of
from softswitch.ir import walk
from softswitch.native.calculations import Calculations
from softswitch.native.errors import NotNativeError
from softswitch.native.frame import Frame
from softswitch.native.headers import HeaderStatements
from softswitch.native.ranges import limbs
from softswitch.native.values import Known, Value
from softswitch.native.writer import Writer

# a loop of an action that goes on longer than this does not end
_ROUNDS = 1 << 16
_WRITES_NO_FIELD = (ir.RegisterWrite, ir.Count, ir.SendDigest, ir.Clone, ir.Resubmit,
                    ir.Recirculate, ir.Truncate, ir.Exit, ir.Check, ir.LogMessage)  # fmt: skip

DIGEST, FAILED, LOG, NO_QUEUE = 1, 2, 3, 4
"""Kinds of events."""


class Statements(HeaderStatements):
    """Translates statements; the state is ``p``, the switch ``S``."""

    def __init__(self, frame: Frame, out: Writer, where: str) -> None:
        super().__init__(frame, out, where)
        self.calc = Calculations(frame, out)

    # --- actions --------------------------------------------------------------------------------

    def action(self, action: ir.Action, params: list[Value]) -> None:
        """The body of an action; `where` must be its name."""
        self.expr.params = params
        self.expr.ranges.params = list(action.param_widths)
        self.expr.known = {}
        self.expr.sharing = True
        targets = {s.target for s in action.body if isinstance(s, ir.Jump | ir.JumpIfZero)}
        back = {
            s.target
            for at, s in enumerate(action.body)
            if isinstance(s, ir.Jump | ir.JumpIfZero) and s.target <= at
        }
        if back:
            self.out.line("u32 rounds = 0;")
        arriving: dict[int, list[Known]] = {}
        for at, step in enumerate((*action.body, None)):
            if at in targets:
                self._label(at, back, arriving)
            if isinstance(step, ir.Jump):
                arriving.setdefault(step.target, []).append(self.expr.known)
                self.out.line(f"goto L{step.target};")
                self.expr.known = {}
                if at + 1 in targets:
                    arriving.setdefault(at + 1, [])
                    self._unreachable = True
            elif isinstance(step, ir.JumpIfZero):
                self.out.line(f"if (!{self.expr.condition(step.cond)}) goto L{step.target};")
                arriving.setdefault(step.target, []).append(self.expr.known)
            elif step is not None:
                self.statement(step)
        self.expr.sharing = False
        self.expr.known = {}

    _unreachable = False

    def _label(self, at: int, back: set[int], arriving: dict[int, list[Known]]) -> None:
        """Only what every way here has computed is known after it."""
        ways = arriving.get(at, [])
        if not self._unreachable:
            ways = [*ways, self.expr.known]
        self._unreachable = False
        known: Known = {}
        if at not in back and ways:
            known = {e: v for e, v in ways[0].items() if all(w.get(e) is v for w in ways)}
        self.expr.known = known
        self.out.line(f"L{at}:;")
        if at in back:
            with self.out.block(f"if (rounds++ == {_ROUNDS})"):
                self._failed("loop")
                self.out.line("goto over;")

    # --- one statement --------------------------------------------------------------------------

    def statement(self, step: ir.Statement) -> None:
        """Write one statement that is no jump."""
        self._statement(step)
        target = target_of(step)
        if isinstance(target, ir.FieldRef):
            self.expr.wrote(target)
        elif not isinstance(step, _WRITES_NO_FIELD):
            self.expr.wrote(None)

    def _statement(self, step: ir.Statement) -> None:
        match step:
            case ir.Assign():
                # reading ahead has an effect even if nothing reads the result: it may be too short
                if self._is_live(step.target) or _reads_ahead(step.value):
                    self.store(step.target, step.value)
            case ir.RegisterRead():
                self._register_read(step)
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
                self.out.line("left = 1;")
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
            case ir.Hash():
                self._hash(step)
            case ir.Random():
                self._random(step)
            case ir.SendDigest(list_id=number):
                out.line(f"p->digest = {number};")
            case ir.Clone():
                session = self.expr.modular(step.session, 15)
                out.line(f"p->clone = (i64)({self.expr.fit(session, 1)} & 0x7fff);")
                out.line(f"p->clone_kept = {step.list_id};")
            case ir.Resubmit(list_id=number) | ir.Recirculate(list_id=number):
                out.line(f"p->again = {number};")
            case ir.Truncate():
                out.line(f"p->cutoff = (u32){self.expr.natural(step.length, 'a length')};")
            case ir.Check():
                with out.block(f"if (!{self.expr.condition(step.cond)})"):
                    self._failed(step.kind)
            case ir.LogMessage():
                self._log(step)
            case ir.ExecuteMeter():
                raise NotNativeError(f"meter {step.meter} in {self.where}")
            case _:
                raise NotNativeError(f"{type(step).__name__} in {self.where}")

    def _is_live(self, target: ir.LValue) -> bool:
        refs = self.layout.instances(target)
        metadata = self.program.headers[refs[0].header].metadata
        return not metadata or any(r in self.layout.read for r in refs)

    def store(self, target: ir.LValue, expr: ir.Expr) -> None:
        """Write an expression to a field, cut to its width."""
        decl = self.program.field_decl(self.layout.instances(target)[0])
        self._store(target, self.expr.cut(expr, decl.width, decl.signed))

    def _store(self, target: ir.LValue, value: Value) -> None:
        if isinstance(target, ir.FieldRef):
            self._put(target, value)
            return
        stack = self.program.stacks[target.stack]
        index = self.out.temp()
        if isinstance(target, ir.LastFieldRef):
            text = f"(u64){self.frame.next_index(target.stack)} - 1"
        else:
            text = self.expr.single(target.index, "a stack index").text
        self.out.line(f"u64 {index} = {text};")
        if value.n == 1:
            kept = self.out.temp()
            self.out.line(f"u64 {kept} = {value.text};")
            value = Value(kept, value.range, 1)
        for i, element in enumerate(stack.elements):
            with self.out.block(f"if ({index} == {i})"):
                self._put(ir.FieldRef(element, target.field), value)

    def _put(self, ref: ir.FieldRef, value: Value) -> None:
        name = self.frame.field(ref)
        if value.text != name:
            if value.n == 1:
                self.out.line(f"{name} = {value.text};")
            else:
                self.out.line(f"memmove({name}, {value.text}, {8 * value.n});")
        self.touch(ref.header)

    def put_text(self, target: ir.LValue, text: str, bits: int) -> None:
        """Write a C text of type u64, with at most `bits` bits set, to a field."""
        decl = self.program.field_decl(self.layout.instances(target)[0])
        field = self.expr.ranges.of(target)
        assert field is not None
        value = Value(text, (0, (1 << bits) - 1), 1)
        if not decl.signed and bits <= decl.width:
            self._store(target, Value(self.expr.fit(value, limbs(field)), field, limbs(field)))
        else:
            self._store(target, self.expr.trim(value, decl.width, field))

    # --- externs --------------------------------------------------------------------------------

    def _guard(self, index: ir.Expr, size: int) -> tuple[str, str]:
        """A variable with an index, and the test that it is in range."""
        value = self.expr.single(index, "an index")
        name = self.out.temp()
        self.out.line(f"u64 {name} = {value.text};")
        return name, f"{name} < {size}"

    def _register_read(self, step: ir.RegisterRead) -> None:
        register = self.program.registers[step.register]
        number = list(self.program.registers).index(step.register)
        index, test = self._guard(step.index, register.size)
        refs = self.layout.instances(step.target)
        if all(self.program.headers[r.header].metadata for r in refs) and not self._is_live(
            step.target
        ):
            return
        decl = self.program.field_decl(refs[0])
        n = max(1, -(-register.width // 64))
        cell = f"S->registers[{number}][{index}]" if n == 1 else (
            f"(S->registers[{number}] + {n} * {index})"
        )  # fmt: skip
        value = Value(cell, (0, (1 << register.width) - 1), n)
        field = self.expr.ranges.of(step.target)
        assert field is not None
        with self.out.block(f"if ({test})"):
            if not decl.signed and register.width <= decl.width:
                text = self.expr.fit(value, limbs(field))
                self._store(step.target, Value(text, field, limbs(field)))
            else:
                self._store(step.target, self.expr.trim(value, decl.width, field))

    def _register_write(self, step: ir.RegisterWrite) -> None:
        register = self.program.registers[step.register]
        number = list(self.program.registers).index(step.register)
        index, test = self._guard(step.index, register.size)
        value = self.expr.cut(step.value, register.width, signed=False)
        if value.n == 1:
            self.out.line(f"if ({test}) S->registers[{number}][{index}] = {value.text};")
        else:
            cell = f"S->registers[{number}] + {value.n} * {index}"
            self.out.line(f"if ({test}) memmove({cell}, {value.text}, {8 * value.n});")

    def _count_packet(self, step: ir.Count) -> None:
        counter = self.program.counters[step.counter]
        number = list(self.program.counters).index(step.counter)
        index, test = self._guard(step.index, counter.size)
        with self.out.block(f"if ({test})"):
            self.out.line(f"S->packets[{number}][{index}]++;")
            self.out.line(f"S->bytes[{number}][{index}] += p->n;")

    def _hash(self, step: ir.Hash) -> None:
        value = self.calc.value(self.program.calculations[step.calculation], set())
        limit = self.expr.single(step.limit, "the limit of a hash")
        base = self.expr.single(step.base, "the base of a hash")
        name = self.out.temp()
        self.out.line(f"u64 {name} = {limit.text};")
        text = f"({value} % ({name} ? {name} : 1) + {base.text})"
        decl = self.program.field_decl(self.layout.instances(step.target)[0])
        if base.range[1].bit_length() + 1 > 64 and decl.width > 64:
            raise NotNativeError(f"hash {step.calculation} with a base of 64 bits")
        self.put_text(step.target, text, 64)

    def _random(self, step: ir.Random) -> None:
        low = self.expr.single(step.low, "a bound of random()")
        high = self.expr.single(step.high, "a bound of random()")
        if low.sign or high.sign:
            raise NotNativeError("random() with a signed bound")
        a, b = self.out.temp(), self.out.temp()
        self.out.line(f"u64 {a} = {low.text}, {b} = {high.text};")
        with self.out.block(f"if ({a} <= {b})"):
            self.put_text(step.target, f"any_of(S, {a}, {b})", 64)

    def _drop(self) -> None:
        self.out.line(f"{self.frame.standard('egress_spec')} = {self.program.drop_port};")
        group = self.frame.standard("mcast_grp")
        if group is not None:
            self.out.line(f"{group} = 0;")

    # --- what the control plane hears of --------------------------------------------------------

    def _failed(self, kind: str) -> None:
        self.out.line(f"event(S, {FAILED}, {len(self.frame.failures)}, 0);")
        self.frame.failures.append((kind, self.where))

    def _log(self, step: ir.LogMessage) -> None:
        if not step.template:
            return
        values = [self.expr.exact(a) for a in step.args]
        total = sum(2 + v.n for v in values)
        self.out.line(f"event(S, {LOG}, {len(self.frame.templates)}, {total});")
        self.frame.templates.append(step.template)
        for value in values:
            head = self.frame.constant(value.n | value.sign << 64, 2)
            self.out.line(f"event_limbs(S, {head}, 2);")
            self.push(value)

    def push(self, value: Value) -> None:
        """Add the limbs of a value to the event."""
        text = value.text
        if value.n == 1:
            name = self.out.temp()
            self.out.line(f"u64 {name} = {text};")
            text = f"&{name}"
        self.out.line(f"event_limbs(S, {text}, {value.n});")


def _reads_ahead(value: ir.Expr) -> bool:
    return any(isinstance(node, ir.Lookahead) for node in walk(value))


__all__ = ["DIGEST", "FAILED", "NO_QUEUE", "Statements"]
