"""Which local variable holds what, and which fields need one at all.

Names: ``f_`` value of a field, ``v_`` validity of a header, ``r_`` its fixed part as one integer
as extracted, ``o_`` its offset in the packet, ``w_`` True once it differs from the packet, ``n_``
length in bits of its varbit field, ``s_`` next index of a stack.

A field that nothing reads or writes has no local: it stays in ``r_``, or in the packet.
"""

from dataclasses import dataclass

from softswitch import ir
from softswitch.codegen.writer import identifier
from softswitch.ir import walk


@dataclass(frozen=True, slots=True)
class HeaderPlan:
    """How one header instance lives in locals.

    `locals` lists fields with a local as (declaration, name, shift in the fixed part), `patched`
    those of them that something writes; `keep` masks the rest of the fixed part, which is as in
    ``r_``; `mutable` tells whether anything may change the header after its extraction; `raw`
    whether ``r_`` is kept at all.
    """

    header: ir.Header
    ident: str
    locals: tuple[tuple[ir.FieldDecl, str, int], ...]
    patched: tuple[tuple[ir.FieldDecl, str, int], ...]
    varbit: str | None
    keep: int
    mutable: bool
    raw: bool

    @property
    def bits(self) -> int:
        return self.header.type.fixed_bits


def target_of(node: object) -> ir.LValue | None:
    """The field that a statement writes, if it writes one."""
    if isinstance(
        node,
        ir.Assign | ir.AssignVarbit | ir.RegisterRead | ir.ExecuteMeter | ir.Hash | ir.Random,
    ):
        return node.target
    return None


class Layout:
    """Decides locals for one program; the names are the same in every generated function."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.read: set[ir.FieldRef] = set()
        self.written: set[ir.FieldRef] = set()
        self._groups: dict[str, str] = {name: name for name in program.headers}
        self._changed: set[str] = set()
        self._summed: set[str] = set()
        self._idents: dict[str, str] = {}
        self._taken: set[str] = set()
        indexes = dict.fromkeys(stack.index for stack in program.stacks.values())
        for name in (*program.headers, *indexes):
            self._idents[name] = self._unique(identifier(name))
        self._names: dict[ir.FieldRef, str] = {}
        self._taken = set()
        self._scan()
        self._used_fields = self._by_group(self.read | self.written)
        self._written_fields = self._by_group(self.written)
        self._changed_groups = {self._find(name) for name in self._changed}
        self.plans = {name: self._plan(h) for name, h in program.headers.items() if not h.metadata}

    def _unique(self, text: str) -> str:
        while text in self._taken:
            text += "_"
        self._taken.add(text)
        return text

    # --- what is used ---------------------------------------------------------------------------

    def _scan(self) -> None:
        program = self.program
        roots: list[object] = [
            *program.parser.states.values(),
            *program.actions.values(),
            *program.ingress.nodes.values(),
            *program.egress.nodes.values(),
            *program.learn_lists.values(),
            *program.field_lists.values(),
            *(p.selector for p in program.profiles.values()),
        ]
        for root in roots:
            self._use(root)
        for hashed in [n for root in roots for n in walk(root) if isinstance(n, ir.Hash)]:
            self._use(program.calculations[hashed.calculation])
        for checksum in program.checksums:
            self._use_checksum(checksum)
        for meter in program.meters.values():
            if meter.target is not None:
                self.written.add(meter.target)
        for name in ("egress_spec", "mcast_grp", "priority"):
            if name in program.standard:
                self.read.add(program.standard[name])

    def _use(self, root: object) -> None:
        targets: set[int] = set()
        for node in walk(root):
            target = target_of(node)
            if target is not None:
                targets.add(id(target))
                self.written.update(self.instances(target))
                if isinstance(target, ir.ElementFieldRef):
                    self._use(target.index)
            if isinstance(node, ir.FieldRef | ir.LastFieldRef | ir.ElementFieldRef):
                if id(node) not in targets:
                    self.read.update(self.instances(node))
            elif isinstance(node, ir.CalcHeader):
                self.read.update(self._all_fields(node.header))
            elif isinstance(node, ir.SameHeader):
                for header in (*self.operands(node.left), *self.operands(node.right)):
                    self.read.update(self._all_fields(header))
            elif isinstance(node, ir.SameUnion):
                for header in (*node.left, *node.right):
                    self.read.update(self._all_fields(header))
            else:
                self._couple(node)

    def _all_fields(self, header: str) -> list[ir.FieldRef]:
        return [ir.FieldRef(header, f.name) for f in self.program.headers[header].type.fields]

    def _use_checksum(self, checksum: ir.Checksum) -> None:
        self.read.add(checksum.target)
        if checksum.update:
            self.written.add(checksum.target)
        if checksum.cond is not None:
            self._use(checksum.cond)
        calculation = self.program.calculations[checksum.calculation]
        whole = self.whole_headers(calculation, checksum.target)
        self._summed |= whole
        for item in calculation.inputs:
            if isinstance(item, ir.CalcField) and item.ref.header in whole:
                if self.program.field_decl(item.ref).varbit:
                    self.read.add(item.ref)
                continue
            self._use(item)

    def whole_headers(self, calculation: ir.Calculation, target: ir.FieldRef) -> set[str]:
        """Headers that a csum16 covers from end to end, but for the checksum itself.

        Such a header can be summed as one integer: its width must be a multiple of 16 bits, and
        the checksum must lie on a 16-bit border.
        """
        if calculation.algorithm != "csum16":
            return set()
        found: set[str] = set()
        for name, header in self.program.headers.items():
            listed = [
                i.ref.field
                for i in calculation.inputs
                if isinstance(i, ir.CalcField) and i.ref.header == name
            ]
            if not listed or header.metadata or header.type.fixed_bits % 16:
                continue
            wanted = [f.name for f in header.type.fields]
            if target.header == name:
                shift = self.shift(target)
                if shift % 16 or self.program.field_decl(target).width != 16:
                    continue
                wanted.remove(target.field)
            varbit = header.type.varbit
            at_end = varbit is None or header.type.fields[-1] is varbit
            together = [i for i, c in enumerate(calculation.inputs) if self._of(c, name)]
            contiguous = together == list(range(together[0], together[0] + len(together)))
            if listed == wanted and at_end and contiguous:
                found.add(name)
        return found

    @staticmethod
    def _of(item: ir.CalcInput, header: str) -> bool:
        return isinstance(item, ir.CalcField) and item.ref.header == header

    def _couple(self, node: object) -> None:
        match node:
            case ir.AssignHeader():
                target, source = self.operands(node.target), self.operands(node.source)
                self._changed.update(target)
                self._join([*target, *source])
            case ir.SetValidity(valid=True):
                self._changed.update(self.operands(node.header))
            case ir.ShiftStack():
                for stack in self.fellows(node.stack):
                    self._changed.update(stack.elements)
                    self._join(list(stack.elements))
            case ir.AssignStack():
                stacks = zip(self.fellows(node.target), self.fellows(node.source), strict=True)
                for to, source_stack in stacks:
                    self._pair(to.elements, source_stack.elements)
            case ir.AssignUnion():
                self._pair(node.target, node.source)

    def _pair(self, targets: tuple[str, ...], sources: tuple[str, ...]) -> None:
        self._changed.update(targets)
        for left, right in zip(targets, sources, strict=True):
            self._join([left, right])

    def fellows(self, stack: str) -> list[ir.Stack]:
        """The stacks that share the next index of `stack`: it alone, or all members of a union."""
        index = self.program.stacks[stack].index
        return [s for s in self.program.stacks.values() if s.index == index]

    def _join(self, names: list[str]) -> None:
        root = self._find(names[0])
        for name in names[1:]:
            self._groups[self._find(name)] = root

    def _by_group(self, refs: set[ir.FieldRef]) -> dict[str, set[str]]:
        """Names of fields by the group of headers that are assigned to each other."""
        found: dict[str, set[str]] = {}
        for ref in refs:
            found.setdefault(self._find(ref.header), set()).add(ref.field)
        return found

    def _find(self, name: str) -> str:
        while self._groups[name] != name:
            name = self._groups[name]
        return name

    # --- plans ----------------------------------------------------------------------------------

    def _plan(self, header: ir.Header) -> HeaderPlan:
        group = self._find(header.name)
        used = self._used_fields.get(group, set())
        written = self._written_fields.get(group, set())
        mutable = group in self._changed_groups or bool(written)
        shift = header.type.fixed_bits
        locals_: list[tuple[ir.FieldDecl, str, int]] = []
        varbit: str | None = None
        keep = 0
        for decl in header.type.fields:
            ref = ir.FieldRef(header.name, decl.name)
            if decl.varbit:
                if decl.name in used or mutable:
                    varbit = self.field(ref)
                continue
            shift -= decl.width
            if decl.name in used:
                locals_.append((decl, self.field(ref), shift))
            if decl.name not in written:
                keep |= ((1 << decl.width) - 1) << shift
        ident = self._idents[header.name]
        raw = (keep != 0 and mutable) or header.name in self._summed
        patched = tuple(item for item in locals_ if item[0].name in written)
        return HeaderPlan(header, ident, tuple(locals_), patched, varbit, keep, mutable, raw)

    # --- names ----------------------------------------------------------------------------------

    def field(self, ref: ir.FieldRef) -> str:
        """The local that holds a field."""
        if ref not in self._names:
            text = f"f_{self._idents[ref.header]}_{identifier(ref.field)}"
            self._names[ref] = self._unique(text)
        return self._names[ref]

    def standard(self, name: str) -> str | None:
        """The local of a standard metadata field, or None if nothing reads it."""
        ref = self.program.standard.get(name)
        return self.field(ref) if ref is not None and ref in self.read else None

    def valid(self, header: str) -> str:
        if self.program.headers[header].metadata:
            return "True"
        return f"v_{self._idents[header]}"

    def length(self, ref: ir.FieldRef) -> str:
        """The local with the length, in bits, of a varbit field."""
        return f"n_{self._idents[ref.header]}"

    def next_index(self, stack: str) -> str:
        return f"s_{self._idents[self.program.stacks[stack].index]}"

    def shift(self, ref: ir.FieldRef) -> int:
        """Bits to the right of a fixed field in its header, varbit left out."""
        rest = 0
        for decl in reversed(self.program.headers[ref.header].type.fields):
            if decl.name == ref.field:
                return rest
            rest += 0 if decl.varbit else decl.width
        raise KeyError(ref)

    def operands(self, operand: ir.HeaderOperand) -> list[str]:
        """Header instances that an operand may stand for."""
        if isinstance(operand, ir.HeaderRef):
            return [operand.name]
        return list(self.program.stacks[operand.stack].elements)

    def instances(self, ref: ir.LValue) -> list[ir.FieldRef]:
        """Fields that a reference may stand for."""
        if isinstance(ref, ir.FieldRef):
            return [ref]
        return [ir.FieldRef(e, ref.field) for e in self.program.stacks[ref.stack].elements]

    def initial(self, name: str) -> str:
        """Value of a state variable before the packet is parsed."""
        return "False" if name[:2] in ("v_", "w_") else "0"
