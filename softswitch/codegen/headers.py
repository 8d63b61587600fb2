"""Statements on whole headers: validity, copies, unions, stacks -> Python."""

from collections.abc import Callable

from softswitch import ir
from softswitch.codegen.calculations import Calculations
from softswitch.codegen.expressions import Expressions
from softswitch.codegen.layout import Layout
from softswitch.codegen.writer import Writer


class HeaderStatements:
    """What `Statements` knows of headers; `tracks_length` keeps ``plen``, the packet's length."""

    def __init__(self, layout: Layout, out: Writer, where: str) -> None:
        self.layout = layout
        self.program = layout.program
        self.out = out
        self.where = where
        self.expr = Expressions(layout, out)
        self.calc = Calculations(layout, out)
        self.tracks_length = False

    def touch(self, header: str) -> None:
        """A header no longer equals its bytes in the packet."""
        if not self.program.headers[header].metadata:
            self.out.line(f"w_{self.layout.plans[header].ident} = True")

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

    def validity(self, name: str, valid: bool) -> None:
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

    def assign_header(self, step: ir.AssignHeader) -> None:
        source = step.source
        self.each(step.target, lambda left: self.each(source, lambda right: self.copy(left, right)))

    def copy(self, target: str, source: str) -> None:
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

    def assign_varbit(self, step: ir.AssignVarbit) -> None:
        self.out.line(f"{self.layout.field(step.target)} = {self.layout.field(step.value)}")
        left, right = (self.layout.length(r) for r in (step.target, step.value))
        self.out.line(f"{left} = {right}")
        self.touch(step.target.header)

    def shift_stack(self, step: ir.ShiftStack) -> None:
        size = len(self.program.stacks[step.stack].elements)
        count = min(step.count, size)
        index = self.layout.next_index(step.stack)
        if step.push:
            moves = [(i, i - count) for i in range(size - 1, count - 1, -1)]
            fresh = range(count)
            self.out.line(f"{index} = min({index} + {count}, {size})")
        else:
            moves = [(i, i + count) for i in range(size - count)]
            fresh = range(size - count, size)
            self.out.line(f"{index} = max({index} - {count}, 0)")
        stacks = self.layout.fellows(step.stack)
        # element by element: a member that becomes valid ends the others of its union
        for left, right in moves:
            for stack in stacks:
                self.copy(stack.elements[left], stack.elements[right])
        for i in fresh:
            for stack in stacks:
                self.out.line(f"{self.layout.valid(stack.elements[i])} = False")

    def assign_stack(self, step: ir.AssignStack) -> None:
        stacks = zip(
            self.layout.fellows(step.target), self.layout.fellows(step.source), strict=True
        )
        for target, source in stacks:
            self.copy_all(target.elements, source.elements)
        left, right = (self.layout.next_index(s) for s in (step.target, step.source))
        self.out.line(f"{left} = {right}")

    def copy_all(self, targets: tuple[str, ...], sources: tuple[str, ...]) -> None:
        for left, right in zip(targets, sources, strict=True):
            self.copy(left, right)
