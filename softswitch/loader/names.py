"""What names of a program stand for, while it is being loaded."""

from dataclasses import dataclass, field

from softswitch.ir import FieldDecl, FieldRef, Header, Stack
from softswitch.loader.node import Node

VALID = "$valid$"
# the widest field or parameter, in bits
WIDEST = 1 << 16
# the most cells of an array
LARGEST = 1 << 32


@dataclass(slots=True)
class Names:
    """Objects declared so far, by name."""

    headers: dict[str, Header] = field(default_factory=dict)
    stacks: dict[str, Stack] = field(default_factory=dict)
    # a stack of header unions by name -> the stack of each member, by member
    union_stacks: dict[str, dict[str, str]] = field(default_factory=dict)
    unions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    registers: set[str] = field(default_factory=set)
    counters: set[str] = field(default_factory=set)
    meters: set[str] = field(default_factory=set)
    profiles: set[str] = field(default_factory=set)
    calculations: set[str] = field(default_factory=set)
    field_lists: set[int] = field(default_factory=set)
    learn_lists: set[int] = field(default_factory=set)

    def header(self, node: Node) -> str:
        """Name of a declared header instance."""
        name = node.text()
        if name not in self.headers:
            raise node.fail("the name of a header")
        return name

    def packet_header(self, node: Node) -> str:
        """Name of a declared header instance that is no metadata."""
        name = self.header(node)
        if self.headers[name].metadata:
            raise node.fail("the name of a packet header")
        return name

    def stack(self, node: Node) -> Stack:
        """A declared header stack; for a stack of unions, that of their first member."""
        name = node.text()
        if name in self.union_stacks:
            return self.stacks[next(iter(self.union_stacks[name].values()))]
        if name not in self.stacks:
            raise node.fail("the name of a header stack")
        return self.stacks[name]

    def member_stack(self, union_stack: Node, member: Node) -> Stack:
        """The stack of one member of a stack of header unions."""
        name = self.declared(union_stack, "header union stack", set(self.union_stacks))
        members = self.union_stacks[name]
        return self.stacks[members[self.declared(member, "union member", set(members))]]

    def union(self, node: Node) -> tuple[str, ...]:
        """The members of a declared header union."""
        return self.unions[self.declared(node, "header union", set(self.unions))]

    def field(self, node: Node) -> FieldRef:
        """A declared field, from its pair of names."""
        header, member = node.pair()
        ref = FieldRef(self.header(header), member.text())
        self.declaration(ref, node)
        return ref

    def declaration(self, ref: FieldRef, node: Node) -> FieldDecl:
        """How a field is declared."""
        try:
            return self.headers[ref.header].field(ref.field)
        except KeyError:
            raise node.fail(f"a field of header '{ref.header}'") from None

    def declared(self, node: Node, kind: str, among: set[str]) -> str:
        """A name that is in `among`."""
        name = node.text()
        if name not in among:
            raise node.fail(f"the name of a {kind}")
        return name
