"""Control flow of a pipeline -> one label a node, one function an action."""

from softswitch import ir
from softswitch.codegen.controls import ControlCode as Flow
from softswitch.codegen.writer import Writer as PythonWriter
from softswitch.native.errors import NotNativeError
from softswitch.native.frame import Frame, words
from softswitch.native.statements import Statements
from softswitch.native.values import Value
from softswitch.native.writer import Writer

KINDS = {"exact": "EXACT", "lpm": "LPM", "ternary": "ORDERED", "range": "ORDERED"}
_FIND = {"exact": "t_exact", "lpm": "t_lpm", "ternary": "t_ordered", "range": "t_ordered"}


def key_limbs(table: ir.Table) -> list[int]:
    """Limbs of every key of a table."""
    return [max(1, -(-key.width // 64)) for key in table.keys]


def param_limbs(action: ir.Action) -> list[int]:
    """Limbs of every parameter of an action."""
    return [max(1, -(-width // 64)) for width in action.param_widths]


class ControlCode:
    """Writes one pipeline; the functions of its actions go to `functions`."""

    def __init__(
        self, frame: Frame, out: Writer, pipeline: ir.Pipeline, tracks_length: bool
    ) -> None:
        self.frame = frame
        self.program = frame.program
        self.out = out
        self.pipeline = pipeline
        self.tracks_length = tracks_length
        self.body = Statements(frame, out, pipeline.name)
        self.functions: dict[int, str] = {}
        self.numbers = {name: i for i, name in enumerate(pipeline.nodes)}
        # where branches meet is the same for both back ends
        self.after = Flow(frame.layout, PythonWriter(), pipeline).after

    def write(self) -> None:
        """The pipeline; all ways lead to label ``over``."""
        if self.pipeline.init is not None:
            self._go(self.pipeline.init)
            for name in self._reached(self.pipeline.init):
                self.out.line(f"N{self.numbers[name]}:;")
                with self.out.block(""):
                    self._node(self.pipeline.nodes[name])
        self.out.line("over: __attribute__((unused));")

    def _reached(self, start: str) -> list[str]:
        # in `after`, every node stands after its successors
        return list(reversed(self.after)) if start in self.after else []

    def _go(self, name: str | None) -> None:
        self.out.line(f"goto N{self.numbers[name]};" if name else "goto over;")

    def _node(self, node: ir.ControlNode) -> None:
        match node:
            case ir.Conditional():
                with self.out.block(f"if ({self.body.expr.condition(node.cond)})"):
                    self._go(node.next_true)
                self._go(node.next_false)
            case ir.ActionNode():
                self._run(self.program.actions[node.action], "NULL")
                self._go(node.next_node)
            case ir.Table():
                self._table(node)

    # --- actions --------------------------------------------------------------------------------

    def _run(self, action: ir.Action, params: str) -> None:
        if not action.body:
            return
        call = f"{self._function(action)}(S, p, {params})"
        leaves = any(isinstance(s, ir.Exit) for s in action.body)
        self.out.line(f"if ({call}) goto over;" if leaves else f"{call};")

    def _function(self, action: ir.Action) -> str:
        name = f"{self.pipeline.name}_{action.id}"
        if action.id not in self.functions:
            out = Writer()
            body = Statements(self.frame, out, action.name)
            body.tracks_length = self.tracks_length
            at = 0
            params: list[Value] = []
            for width, count in zip(action.param_widths, param_limbs(action), strict=True):
                text = f"a[{at}]" if count == 1 else f"(a + {at})"
                params.append(Value(text, (0, (1 << width) - 1), count))
                at += count
            with out.block(f"HELPER int {name}(Switch *S, P *p, const u64 *a)"):
                out.line("int left = 0; (void)S; (void)p; (void)a;")
                body.action(action, params)
                out.line("over: __attribute__((unused));")
                out.line("return left;")
            self.functions[action.id] = out.text()
        return name

    # --- tables ---------------------------------------------------------------------------------

    def _constant(self, table: ir.Table) -> bool:
        """True if a miss is known when the code is made."""
        return not table.has_counter and (
            table.default is None or (table.default.const_entry and table.default.const_action)
        )

    def _miss(self, table: ir.Table) -> None:
        if table.default is None:
            return
        action = self.program.actions[table.default.action]
        texts: list[str] = []
        for value, width, count in zip(
            table.default.params, action.param_widths, param_limbs(action), strict=True
        ):
            texts += words(value & ((1 << width) - 1), count)
        if not texts:
            self._run(action, "NULL")
            return
        with self.out.block(""):
            self.out.line(f"static const u64 given[] = {{{', '.join(texts)}}};")
            self._run(action, "given")

    def _after_miss(self, table: ir.Table) -> str | None:
        if table.by_hit:
            return table.next_miss
        if table.default is None:
            return self.after[table.name]
        return table.next_by_action.get(table.default.action)

    def _table(self, table: ir.Table) -> None:
        if table.profile is not None:
            raise NotNativeError(f"action profile {table.profile} of table {table.name}")
        if table.meter is not None:
            raise NotNativeError(f"direct meter of table {table.name}")
        number = list(self.program.tables).index(table.name)
        constant = self._constant(table)
        if not table.keys and constant:
            self._miss(table)
            self._go(self._after_miss(table))
            return
        if not table.keys:
            self.out.line(f"Entry *e = S->defaults[{number}];")
            self._dispatch(table, *self._onward(table, table.next_miss))
            return
        key = self._key(table)
        count = sum(key_limbs(table))
        find = f"{_FIND[table.kind]}(&S->tables[{number}], S->seed, {key}, {count})"
        self.out.line(f"Entry *e = {find};")
        if constant or table.by_hit:
            with self.out.block("if (!e)"):
                if constant:
                    self._miss(table)
                    self._go(self._after_miss(table))
                else:
                    self.out.line(f"e = S->defaults[{number}];")
                    self._dispatch(table, True, table.next_miss)
            self._dispatch(table, *self._onward(table, table.next_hit))
            return
        self.out.line(f"if (!e) e = S->defaults[{number}];")
        self._dispatch(table, False, None)

    @staticmethod
    def _onward(table: ir.Table, following: str | None) -> tuple[bool, str | None]:
        return (True, following) if table.by_hit else (False, None)

    def _key(self, table: ir.Table) -> str:
        """The variable with the limbs of all keys, one key after the other."""
        name = self.out.temp()
        self.out.line(f"u64 {name}[{sum(key_limbs(table))}];")
        at = 0
        for key, count in zip(table.keys, key_limbs(table), strict=True):
            whole = (0, (1 << key.width) - 1)
            value = self.body.expr.exact(key.expr)
            if value.sign:
                value = self.body.expr.trim(value, key.width, whole)
            text = self.body.expr.fit(value, count)
            if count == 1:
                self.out.line(f"{name}[{at}] = {text};")
                if key.mask is not None:
                    self.out.line(f"{name}[{at}] &= {words(key.mask, 1)[0]};")
            elif key.mask is not None:
                constant = self.frame.constant(key.mask, count)
                self.out.line(f"w_and({name} + {at}, {text}, {constant}, {count});")
            else:
                self.out.line(f"memcpy({name} + {at}, {text}, {8 * count});")
            at += count
        return name

    def _dispatch(self, table: ir.Table, given: bool, following: str | None) -> None:
        """Run entry ``e``; go on at `following` if it is `given`, or where its action leads."""
        if table.has_counter:
            self.out.line("e->cell->packets++; e->cell->bytes += p->n;")
        if table.supports_timeout:
            self.out.line("e->cell->since = p->now;")
        split = not given and len(set(table.next_by_action.values())) > 1
        with self.out.block("switch (e->action)"):
            for position, number in enumerate(table.actions):
                action = self.program.actions[number]
                if not action.body and not split:
                    continue
                with self.out.block(f"case {position}:"):
                    self._run(action, "e->params")
                    if split:
                        self._go(table.next_by_action.get(number))
                    else:
                        self.out.line("break;")
        if split:
            self._go(self.after[table.name])
            return
        if not given:
            values = list(table.next_by_action.values())
            following = values[0] if values else None
        self._go(following)


def range_parts(table: ir.Table) -> list[tuple[int, int]]:
    """Where the range keys of a table stand among the limbs of its keys, and how many they have."""
    parts: list[tuple[int, int]] = []
    at = 0
    for key, count in zip(table.keys, key_limbs(table), strict=True):
        if key.kind == "range":
            parts.append((at, count))
        at += count
    return parts
