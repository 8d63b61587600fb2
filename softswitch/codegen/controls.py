"""Control flow of a pipeline -> nested ifs.

A branch is written up to the node where all paths meet again (its immediate post-dominator), which
then follows once. P4's controls are structured, so nothing is written twice except code after
``exit``-free early joins that p4c itself shares between branches.
"""

from softswitch import ir
from softswitch.codegen.code import Code
from softswitch.codegen.expressions import literal
from softswitch.codegen.layout import Layout
from softswitch.codegen.statements import Statements
from softswitch.codegen.writer import Writer
from softswitch.loader.controls import successors

END = ""


class ControlCode:
    """Writes one pipeline into `out`; the caller provides the locals."""

    def __init__(self, layout: Layout, out: Writer, pipeline: ir.Pipeline) -> None:
        self.layout = layout
        self.program = layout.program
        self.out = out
        self.pipeline = pipeline
        self.body = Statements(layout, out, pipeline.name)
        self.after = self._post_dominators()
        self.exits = any(
            isinstance(step, ir.Exit)
            for node in pipeline.nodes.values()
            for action in self._actions(node)
            for step in action.body
        )

    def _actions(self, node: ir.ControlNode) -> list[ir.Action]:
        if isinstance(node, ir.Table):
            return [self.program.actions[a] for a in node.actions]
        if isinstance(node, ir.ActionNode):
            return [self.program.actions[node.action]]
        return []

    def write(self) -> None:
        """The pipeline; ``exit`` leaves it by ``break`` of a loop that runs once."""
        if self.pipeline.init is None:
            return
        if not self.exits:
            self._flow(self.pipeline.init, END)
            return
        self.out.line("x_exit = False")
        with self.out.block("while True:"):
            self._flow(self.pipeline.init, END)
            self.out.line("break")

    # --- where branches meet --------------------------------------------------------------------

    def _next(self, name: str) -> list[str]:
        return [END if s is None else s for s in successors(self.pipeline.nodes[name])]

    def _post_dominators(self) -> dict[str, str]:
        order: list[str] = []
        seen: set[str] = {END}
        stack: list[tuple[str, int]] = []
        if self.pipeline.init is not None:
            stack.append((self.pipeline.init, 0))
            seen.add(self.pipeline.init)
        while stack:
            name, step = stack.pop()
            following = self._next(name)
            if step == len(following):
                order.append(name)
                continue
            stack.append((name, step + 1))
            if following[step] not in seen:
                seen.add(following[step])
                stack.append((following[step], 0))
        # in `order` every node stands after its successors
        depth: dict[str, int] = {END: 0}
        after: dict[str, str] = {}
        for name in order:
            meets = self._next(name)
            meet = meets[0]
            for other in meets[1:]:
                while meet != other:
                    if depth[meet] >= depth[other]:
                        meet = after[meet]
                    else:
                        other = after[other]
            after[name] = meet
            depth[name] = depth[meet] + 1
        return after

    # --- nodes ----------------------------------------------------------------------------------

    def _flow(self, name: str, stop: str) -> None:
        while name not in (stop, END):
            node = self.pipeline.nodes[name]
            meet = self.after[name]
            match node:
                case ir.Conditional():
                    self._branch(node, meet, "if")
                case ir.ActionNode():
                    self._run(self.program.actions[node.action], [])
                case ir.Table():
                    self._table(node, meet)
            name = meet

    def _branch(self, node: ir.Conditional, meet: str, word: str) -> None:
        yes, no = node.next_true or END, node.next_false or END
        condition = self.body.expr.condition(node.cond)
        if yes == meet:
            with self.out.block(f"{word} not {condition}:"):
                self._flow(no, meet)
            return
        with self.out.block(f"{word} {condition}:"):
            self._flow(yes, meet)
        if no == meet:
            return
        other = self.pipeline.nodes[no]
        if isinstance(other, ir.Conditional) and self.after[no] == meet:
            self._branch(other, meet, "elif")
            return
        with self.out.block("else:"):
            self._flow(no, meet)

    def _run(self, action: ir.Action, params: list[Code]) -> None:
        self.body.where = action.name
        if self.body.action(action, params):
            self.out.line("if x_exit: break")

    def _constant(self, table: ir.Table) -> bool:
        """True if a miss is known when the code is made."""
        return not table.has_counter and (
            table.default is None or (table.default.const_entry and table.default.const_action)
        )

    def _miss(self, table: ir.Table) -> None:
        if table.default is None:
            return
        action = self.program.actions[table.default.action]
        params = [
            Code(literal(v), v, v)
            for v in (
                value & ((1 << width) - 1)
                for value, width in zip(table.default.params, action.param_widths, strict=True)
            )
        ]
        self._run(action, params)

    def _table(self, table: ir.Table, meet: str) -> None:
        number = list(self.program.tables).index(table.name)
        constant = self._constant(table)
        if not table.keys and constant:
            self._miss(table)
            self._flow(self._after_miss(table), meet)
            return
        if not table.keys:
            self.out.line(f"e = D[{number}]")
            self._dispatch(table, meet, self._after_miss(table) if table.by_hit else None)
            return
        self.out.line(f"e = t{number}({self._key(table)})")
        if constant or table.by_hit:
            with self.out.block("if e is None:"):
                if constant:
                    self._miss(table)
                    self._flow(self._after_miss(table), meet)
                else:
                    self.out.line(f"e = D[{number}]")
                    self._dispatch(table, meet, table.next_miss or END)
            with self.out.block("else:"):
                self._dispatch(table, meet, (table.next_hit or END) if table.by_hit else None)
            return
        self.out.line(f"if e is None: e = D[{number}]")
        self._dispatch(table, meet, None)

    def _after_miss(self, table: ir.Table) -> str:
        if table.by_hit:
            return table.next_miss or END
        if table.default is None:
            return self.after[table.name]
        return table.next_by_action.get(table.default.action) or END

    def _key(self, table: ir.Table) -> str:
        """Source of the lookup key: a tuple for exact tables, else all fields joined."""
        parts: list[tuple[str, int]] = []
        for key in table.keys:
            code = self.body.expr.code(key.expr)
            text = code.text
            if code.low is None or code.low < 0:
                text = f"({text} & {literal((1 << key.width) - 1)})"
            if key.mask is not None:
                text = f"({text} & {literal(key.mask)})"
            parts.append((text, key.width))
        if len(parts) == 1:
            return parts[0][0]
        if table.kind == "exact":
            return f"({', '.join(text for text, _ in parts)})"
        shift = sum(width for _, width in parts)
        terms: list[str] = []
        for text, width in parts:
            shift -= width
            terms.append(f"{text} << {shift}" if shift else text)
        return " | ".join(terms)

    def _dispatch(self, table: ir.Table, meet: str, following: str | None) -> None:
        """Run entry ``e``; go on at `following`, or where its action leads."""
        self.out.line("a, p, c = e")
        if table.has_counter:
            self.out.line("c[0] += 1; c[1] += n")
        if table.supports_timeout:
            self.out.line("c[3] = now")
        if table.profile is not None:
            self._choose(table, table.profile)
        if table.meter is not None:
            self._direct_meter(table)
        split = following is None and len(set(table.next_by_action.values())) > 1
        word = "if"
        for position, number in enumerate(table.actions):
            action = self.program.actions[number]
            onward = table.next_by_action.get(number) or END
            if not action.body and (not split or onward == meet):
                continue
            with self.out.block(f"{word} a == {position}:"):
                self._run(action, self._unpack(action))
                if split:
                    self._flow(onward, meet)
            word = "elif"
        if not split:
            if following is None:
                values = list(table.next_by_action.values())
                following = (values[0] if values else None) or END
            self._flow(following, meet)

    def _choose(self, table: ir.Table, profile: str) -> None:
        """Replace the choice that an entry refers to by the action and parameters of a member."""
        number = list(self.program.tables).index(table.name)
        selector = self.program.profiles[profile].selector
        with self.out.block("if p is None:"):
            self.out.line("a = a.members")
            if selector is None:
                self.out.line("a, p = a[0].call")
                self.out.line(f"a = S.positions[{number}].get(a, -1)")
                return
            with self.out.block("if len(a) > 1:"):
                value = self.body.calc.value(selector)
                self.out.line(f"a = a[{value} % len(a)],")
            with self.out.block("if a:"):
                self.out.line("a, p = a[0].call")
                self.out.line(f"a = S.positions[{number}].get(a, -1)")
            self.out.line("else: a = -1")

    def _direct_meter(self, table: ir.Table) -> None:
        meter = self.program.meters[table.meter or ""]
        if meter.target is not None:
            with self.out.block("if c[2] is not None:"):
                self.body.store(meter.target, Code("c[2].colour(0, n, now)", 0, 2))

    def _unpack(self, action: ir.Action) -> list[Code]:
        names = [f"p{i}" for i in range(len(action.param_widths))]
        if names:
            self.out.line(f"{', '.join(names)}{',' if len(names) == 1 else ''} = p")
        return [
            Code(name, 0, (1 << width) - 1)
            for name, width in zip(names, action.param_widths, strict=True)
        ]
