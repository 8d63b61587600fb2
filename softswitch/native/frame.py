"""What of a packet's state lives where in C: members of ``P``, named as the Python locals are.

``f_`` fields (u64, or so many limbs; variable-length fields are bytes), ``v_`` validity, ``r_`` the
bytes of a header's fixed part as extracted, ``o_`` its offset in the packet, ``w_`` 1 once it
differs from the packet, ``n_`` bits of its variable-length field, ``s_`` next index of a stack.
"""

from softswitch import ir
from softswitch.codegen.layout import HeaderPlan, Layout
from softswitch.native.errors import NotNativeError
from softswitch.native.ranges import Range, field_range, limbs


class Frame:
    """Members of ``P`` as they are asked for, constants, and texts that events name by number."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.layout = Layout(program)
        self.members: dict[str, str] = {}
        self.constants: dict[tuple[int, int], str] = {}
        self.failures: list[tuple[str, str]] = []
        self.templates: list[str] = []

    # --- members --------------------------------------------------------------------------------

    def _member(self, name: str, declaration: str) -> str:
        self.members[name] = declaration
        return f"p->{name}"

    def width(self, ref: ir.FieldRef) -> int:
        return self.program.field_decl(ref).width

    def field_range(self, ref: ir.FieldRef) -> Range:
        return field_range(self.program.field_decl(ref))

    def field(self, ref: ir.FieldRef) -> str:
        """The member that holds a field: a u64, or an array of its limbs."""
        if self.program.field_decl(ref).varbit:
            raise NotNativeError(f"a use of the variable-length field {ref.header}.{ref.field}")
        name = self.layout.field(ref)
        count = limbs(self.field_range(ref))
        return self._member(name, f"u64 {name}" + (f"[{count}];" if count > 1 else ";"))

    def varbit(self, ref: ir.FieldRef) -> str:
        """The member with the bytes of a variable-length field."""
        name = self.layout.field(ref)
        return self._member(name, f"u8 {name}[{self.width(ref) // 8 + 1}];")

    def standard(self, name: str) -> str | None:
        """The member of a standard metadata field, or None if nothing reads it."""
        if self.layout.standard(name) is None:
            return None
        return self.field(self.program.standard[name])

    def valid(self, header: str) -> str:
        name = self.layout.valid(header)
        return "1" if name == "True" else self._member(name, f"u8 {name};")

    def plan(self, header: str) -> HeaderPlan:
        return self.layout.plans[header]

    def offset(self, header: str) -> str:
        name = f"o_{self.plan(header).ident}"
        return self._member(name, f"u32 {name};")

    def touched(self, header: str) -> str:
        name = f"w_{self.plan(header).ident}"
        return self._member(name, f"u8 {name};")

    def raw(self, header: str) -> str:
        plan = self.plan(header)
        name = f"r_{plan.ident}"
        return self._member(name, f"u8 {name}[{plan.bits // 8 + 1}];")

    def length(self, header: str) -> str:
        """Bits of the header's variable-length field."""
        name = self.layout.length(ir.FieldRef(header, ""))
        return self._member(name, f"u32 {name};")

    def next_index(self, stack: str) -> str:
        name = self.layout.next_index(stack)
        return self._member(name, f"u32 {name};")

    def declarations(self) -> str:
        """Members of ``P``, those of many bytes last."""
        order = sorted(self.members.values(), key=lambda text: ("[" in text, text))
        return "\n".join(f"    {text}" for text in order)

    # --- constants ------------------------------------------------------------------------------

    def constant(self, value: int, count: int) -> str:
        """A constant as an array of `count` limbs."""
        known = self.constants.get((value, count))
        if known is None:
            known = f"c{len(self.constants)}"
            self.constants[value, count] = known
        return known

    def constant_lines(self) -> str:
        return "\n".join(
            f"static const u64 {name}[{count}] = {{{', '.join(words(value, count))}}};"
            for (value, count), name in self.constants.items()
        )


def words(value: int, count: int) -> list[str]:
    """The limbs of a value, of any sign, as C literals."""
    value &= (1 << (64 * count)) - 1
    return [f"{hex(value >> (64 * i) & 0xFFFF_FFFF_FFFF_FFFF)}ull" for i in range(count)]
