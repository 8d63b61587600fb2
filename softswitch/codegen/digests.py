"""Digests at the end of ingress: which list a program asked for, and the values that go into it."""

from softswitch import ir
from softswitch.codegen.layout import Layout
from softswitch.codegen.writer import Writer


def write_digests(layout: Layout, out: Writer) -> None:
    """Hand the members of the list that the variable ``digest`` names to the switch."""
    for listed in layout.program.learn_lists.values():
        values: list[str] = []
        for member, width in zip(listed.members, listed.widths, strict=True):
            if isinstance(member, ir.FieldRef):
                values.append(f"int({layout.field(member)}) & {(1 << width) - 1}, ")
        with out.block(f"if digest == {listed.id}:"):
            out.line(f"S.digest({listed.id}, ({''.join(values)}))")
