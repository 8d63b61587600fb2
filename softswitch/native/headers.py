"""Statements on whole headers: validity, copies, unions, stacks -> C."""

from collections.abc import Callable

from softswitch import ir
from softswitch.native.expressions import Expressions
from softswitch.native.frame import Frame
from softswitch.native.ranges import limbs
from softswitch.native.writer import Writer


class HeaderStatements:
    """What `Statements` knows of headers; `tracks_length` keeps ``plen``, the packet's length."""

    def __init__(self, frame: Frame, out: Writer, where: str) -> None:
        self.frame = frame
        self.layout = frame.layout
        self.program = frame.program
        self.out = out
        self.where = where
        self.expr = Expressions(frame, out)
        self.tracks_length = False

    def touch(self, header: str) -> None:
        """A header no longer equals its bytes in the packet."""
        if not self.program.headers[header].metadata:
            self.out.line(f"{self.frame.touched(header)} = 1;")

    def each(self, operand: ir.HeaderOperand, emit: Callable[[str], None]) -> None:
        """`emit` for the header that an operand stands for; out of range does nothing."""
        if isinstance(operand, ir.HeaderRef):
            emit(operand.name)
            return
        index = self.out.temp()
        value = self.expr.single(operand.index, "a stack index")
        self.out.line(f"u64 {index} = {value.text};")
        for i, element in enumerate(self.program.stacks[operand.stack].elements):
            with self.out.block(f"{'else ' if i else ''}if ({index} == {i})"):
                emit(element)

    def validity(self, name: str, valid: bool) -> None:
        if self.program.headers[name].metadata:
            return
        plan = self.frame.plan(name)
        test = self.frame.valid(name)
        with self.out.block(f"if ({'!' if valid else ''}{test})"):
            self.out.line(f"{test} = {int(valid)};")
            if valid:
                self._zero(name)
            if self.tracks_length:
                length = f" + {self.frame.length(name)}" if plan.varbit else ""
                sign = "+" if valid else "-"
                self.out.line(f"p->plen {sign}= ({plan.bits}{length}) / 8;")
        if valid:
            self.leave_union(name)

    def _zero(self, name: str) -> None:
        plan = self.frame.plan(name)
        for decl, _, _ in plan.locals:
            ref = ir.FieldRef(name, decl.name)
            member = self.frame.field(ref)
            if limbs(self.frame.field_range(ref)) == 1:
                self.out.line(f"{member} = 0;")
            else:
                self.out.line(f"memset({member}, 0, sizeof {member});")
        if plan.raw:
            member = self.frame.raw(name)
            self.out.line(f"memset({member}, 0, sizeof {member});")
        if plan.varbit:
            self.out.line(f"{self.frame.length(name)} = 0;")
        self.touch(name)

    def leave_union(self, name: str) -> None:
        """A header that becomes valid makes the other members of its union invalid."""
        for other in self.program.headers[name].union:
            if other != name:
                self.out.line(f"{self.frame.valid(other)} = 0;")

    def assign_header(self, step: ir.AssignHeader) -> None:
        source = step.source
        self.each(step.target, lambda left: self.each(source, lambda right: self.copy(left, right)))

    def _copy_field(self, target: ir.FieldRef, source: ir.FieldRef) -> None:
        left, right = self.frame.field(target), self.frame.field(source)
        if limbs(self.frame.field_range(target)) == 1:
            self.out.line(f"{left} = {right};")
        else:
            self.out.line(f"memcpy({left}, {right}, sizeof {left});")

    def copy(self, target: str, source: str) -> None:
        """A header copied: its validity, and what it has if it is valid."""
        if target == source:
            return
        if self.program.headers[target].metadata:
            for decl in self.program.headers[target].type.fields:
                left, right = ir.FieldRef(target, decl.name), ir.FieldRef(source, decl.name)
                if left not in self.layout.read:
                    continue
                if decl.varbit:
                    self._copy_varbit(left, right)
                else:
                    self._copy_field(left, right)
            return
        plan = self.frame.plan(target)
        self.out.line(f"{self.frame.valid(target)} = {self.frame.valid(source)};")
        with self.out.block(f"if ({self.frame.valid(source)})"):
            for decl, _, _ in plan.locals:
                self._copy_field(ir.FieldRef(target, decl.name), ir.FieldRef(source, decl.name))
            if plan.raw:
                raw, given = self.frame.raw(target), self.frame.raw(source)
                self.out.line(f"memcpy({raw}, {given}, sizeof {raw});")
            varbit = plan.header.type.varbit
            if varbit is not None and plan.varbit and self.frame.plan(source).varbit:
                self._copy_varbit(
                    ir.FieldRef(target, varbit.name), ir.FieldRef(source, varbit.name)
                )
            self.touch(target)
            self.leave_union(target)

    def _copy_varbit(self, target: ir.FieldRef, source: ir.FieldRef) -> None:
        left, right = self.frame.varbit(target), self.frame.varbit(source)
        bits, length = self.frame.length(target.header), self.frame.length(source.header)
        self.out.line(f"{bits} = {length};")
        most = min(self.frame.width(target), self.frame.width(source)) // 8
        self.out.line(f"memmove({left}, {right}, {most});")

    def assign_varbit(self, step: ir.AssignVarbit) -> None:
        self._copy_varbit(step.target, step.value)
        self.touch(step.target.header)

    def shift_stack(self, step: ir.ShiftStack) -> None:
        size = len(self.program.stacks[step.stack].elements)
        count = min(step.count, size)
        index = self.frame.next_index(step.stack)
        if step.push:
            moves = [(i, i - count) for i in range(size - 1, count - 1, -1)]
            fresh = range(count)
            self.out.line(f"{index} = {index} + {count} < {size} ? {index} + {count} : {size};")
        else:
            moves = [(i, i + count) for i in range(size - count)]
            fresh = range(size - count, size)
            self.out.line(f"{index} = {index} > {count} ? {index} - {count} : 0;")
        stacks = self.layout.fellows(step.stack)
        # element by element: a member that becomes valid ends the others of its union
        for left, right in moves:
            for stack in stacks:
                self.copy(stack.elements[left], stack.elements[right])
        for i in fresh:
            for stack in stacks:
                self.out.line(f"{self.frame.valid(stack.elements[i])} = 0;")

    def assign_stack(self, step: ir.AssignStack) -> None:
        stacks = zip(
            self.layout.fellows(step.target), self.layout.fellows(step.source), strict=True
        )
        for target, source in stacks:
            self.copy_all(target.elements, source.elements)
        left, right = (self.frame.next_index(s) for s in (step.target, step.source))
        self.out.line(f"{left} = {right};")

    def copy_all(self, targets: tuple[str, ...], sources: tuple[str, ...]) -> None:
        for left, right in zip(targets, sources, strict=True):
            self.copy(left, right)
