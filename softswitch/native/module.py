"""A whole program -> one C file: `ingress`, `egress`, the tables' shapes, and the runtime around.

The passes are those of `softswitch.codegen.module`; the state of a packet is one ``P``, and a copy
of the packet is a copy of it.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path

from softswitch import ir
from softswitch.ir import walk
from softswitch.native.calculations import Calculations
from softswitch.native.controls import ControlCode
from softswitch.native.errors import NotNativeError
from softswitch.native.frame import Frame
from softswitch.native.parser import ParserCode
from softswitch.native.ranges import limbs
from softswitch.native.shapes import check_size, shapes
from softswitch.native.source import NativeSource
from softswitch.native.statements import DIGEST, NO_QUEUE, Statements
from softswitch.native.values import Value, literal
from softswitch.native.writer import Writer

_TIMESTAMP = (1 << 48) - 1

_QUEUE = (
    ("enq_timestamp", "S->since", "p->now"),
    ("enq_qdepth", "S->enq_qdepth", "0"),
    ("deq_timedelta", "p->now - S->since", "0"),
    ("deq_qdepth", "S->deq_qdepth", "0"),
)
"""Metadata of the wait: of a packet that has waited in a queue, and of one that has not."""


@cache
def _runtime(name: str) -> str:
    return (Path(__file__).parent / name).read_text()


class ModuleCode:
    """Generates the source of one program."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.frame = Frame(program)
        self.layout = self.frame.layout
        self.kept = self._kept()

    def source(self) -> NativeSource:
        """All of it; NotNativeError names what keeps the program from being compiled."""
        check_size(self.program)
        egress = self._egress()
        ingress = self._ingress()
        head = "\n".join(
            [
                _runtime("head.c"),
                _runtime("tables.c"),
                shapes(self.program),
                self.frame.constant_lines(),
                self._types(),
                _runtime("jobs.c"),
            ]
        )
        body = f"{head}\n{egress}\n{ingress}\n"
        tail = f"{_runtime('tail.c')}\n{_runtime('border.c')}"
        key = sha256((body + tail).encode()).hexdigest()
        text = f'#define PIPELINE_KEY "{key}"\n{body}{tail}'
        return NativeSource(
            key,
            text,
            tuple(self.frame.failures),
            tuple(self.frame.templates),
            bool(self.program.learn_lists or self._priority()),
        )

    def _kept(self) -> list[ir.FieldRef]:
        fields: dict[ir.FieldRef, None] = {}
        for listed in self.program.field_lists.values():
            fields.update(dict.fromkeys(listed.fields))
        return [f for f in fields if f in self.layout.read]

    def _uses(self, pipeline: ir.Pipeline, kind: type) -> bool:
        """True if some action of a pipeline has a statement of `kind`."""
        numbers: list[int] = []
        for node in pipeline.nodes.values():
            if isinstance(node, ir.Table):
                numbers += node.actions
            elif isinstance(node, ir.ActionNode):
                numbers.append(node.action)
        return any(isinstance(n, kind) for a in numbers for n in walk(self.program.actions[a]))

    # --- data -----------------------------------------------------------------------------------

    def _types(self) -> str:
        kept = [f"    {self._declared(ref)}" for ref in self.kept]
        return "\n".join(
            [
                "typedef struct {",
                "    u8 none;",
                *kept,
                "} K;",
                "typedef struct {",
                "    const u8 *data; u64 port, now; u32 n, o, rid, itype, cutoff, digest;",
                "    u64 q, perr; i64 plen, clone, clone_kept, again;",
                self.frame.declarations(),
                "} P;",
                f"#define PRIORITY(p) {self._priority() or 0}",
                f"enum {{ NO_QUEUE = {NO_QUEUE} }};",
            ]
        )

    def _declared(self, ref: ir.FieldRef) -> str:
        self.frame.field(ref)
        return self.frame.members[self.layout.field(ref)]

    # --- metadata -------------------------------------------------------------------------------

    def _set(self, out: Writer, name: str, value: str) -> None:
        member = self.frame.standard(name)
        if member is not None:
            out.line(f"{member} = {value};")

    def _copy(self, out: Writer, ref: ir.FieldRef, left: str, right: str) -> None:
        """One metadata field between ``p`` and a ``K``."""
        name = self.layout.field(ref)
        self.frame.field(ref)
        if limbs(self.frame.field_range(ref)) == 1:
            out.line(f"{left}->{name} = {right}->{name};")
        else:
            out.line(f"memcpy({left}->{name}, {right}->{name}, sizeof {left}->{name});")

    def _restore(self, out: Writer, to: str, kept: str) -> None:
        for ref in self.kept:
            self._copy(out, ref, to, kept)

    def _keep(self, out: Writer, number: str, to: str) -> None:
        """Fill ``K to`` with what field list `number` keeps; the others are 0."""
        out.line(f"K {to}; memset(&{to}, 0, sizeof {to});")
        for listed in self.program.field_lists.values():
            fields = [f for f in dict.fromkeys(listed.fields) if f in self.kept]
            if not fields:
                continue
            with out.block(f"if ({number} == {listed.id})"):
                for ref in fields:
                    self._copy(out, ref, f"(&{to})", "p")

    def _clear_metadata(self, out: Writer, to: str) -> None:
        for header in self.program.headers.values():
            if not header.metadata:
                continue
            for decl in header.type.fields:
                ref = ir.FieldRef(header.name, decl.name)
                if ref not in self.layout.read:
                    continue
                _ = self.frame.varbit(ref) if decl.varbit else self.frame.field(ref)
                name = self.layout.field(ref)
                out.line(f"memset(&{to}->{name}, 0, sizeof {to}->{name});")

    # --- checksums ------------------------------------------------------------------------------

    def _checksum(self, out: Writer, checksum: ir.Checksum, update: bool) -> None:
        calculation = self.program.calculations[checksum.calculation]
        body = Statements(self.frame, out, f"checksum {checksum.name}")
        condition = "1" if checksum.cond is None else body.expr.condition(checksum.cond)
        target = self.frame.field(checksum.target)
        width = self.frame.width(checksum.target)
        if width > 64:
            raise NotNativeError(f"checksum {checksum.name} of {width} bits")
        with out.block(f"if ({condition})"):
            whole: set[str] = set()
            if calculation.algorithm in ("csum16", "cksum16"):
                whole = self.layout.whole_headers(calculation, checksum.target)
            text = Calculations(self.frame, out).value(calculation, whole, checksum.target)
            field = self.frame.field_range(checksum.target)
            if field[0] < 0:
                raise NotNativeError(f"checksum {checksum.name} in a signed field")
            value = body.expr.trim(Value(text, (0, (1 << 64) - 1), 1), width, field)
            with out.block(f"if ({target} != {value.text})"):
                if not update:
                    self._set(out, "checksum_error", "1")
                    return
                out.line(f"{target} = {value.text};")
                body.touch(checksum.target.header)

    # --- egress ---------------------------------------------------------------------------------

    def _writes_spec(self) -> bool:
        spec = self.program.standard["egress_spec"]
        return any(
            isinstance(n, ir.Assign) and n.target == spec
            for node in self.program.egress.nodes.values()
            if isinstance(node, ir.Table)
            for a in node.actions
            for n in self.program.actions[a].body
        )

    def _egress(self) -> str:
        out = Writer()
        clones = self._uses(self.program.egress, ir.Clone)
        drops = self._uses(self.program.egress, ir.MarkToDrop) or self._writes_spec()
        again = self._uses(self.program.egress, ir.Recirculate)
        control = ControlCode(self.frame, out, self.program.egress, tracks_length=clones)
        with out.block("static void egress(Switch *S, P *p)"):
            self._check_queue(out)
            self._set(out, "egress_port", "p->q")
            self._set(out, "egress_rid", "p->rid")
            self._set(out, "instance_type", "p->itype")
            self._set(out, "packet_length", "(u64)p->plen")
            self._set(out, "egress_global_timestamp", f"p->now & {_TIMESTAMP}ull")
            for name, waited, at_once in _QUEUE:
                text = f"(S->waited ? {waited} : {at_once})"
                self._set(out, name, self._masked(name, text))
            self._set(out, "qid", self._masked("qid", self._priority() or "0"))
            if drops:
                # what bmv2 sets it to: the port after the drop port, in 9 bits
                self._set(out, "egress_spec", str((self.program.drop_port + 1) & 511))
            out.line("p->clone = -1; p->clone_kept = 0; p->again = 0;")
            control.write()
            if clones:
                self._clone_egress(out)
            if drops:
                out.line(
                    f"if ({self.frame.standard('egress_spec')} == {self.program.drop_port}) return;"
                )
            for checksum in self.program.checksums:
                if checksum.update:
                    self._checksum(out, checksum, update=True)
            self._deparse(out, again)
        return "\n".join([*control.functions.values(), out.text()])

    def _priority(self) -> str | None:
        """The priority, or None if the program never sets one."""
        ref = self.program.standard.get("priority")
        return self.frame.field(ref) if ref is not None and ref in self.layout.written else None

    def _check_queue(self, out: Writer) -> None:
        """Drop a packet at the start of its egress if there is no queue of its priority."""
        priority = self._priority()
        if priority is not None:
            with out.block(f"if ({priority} >= S->queues)"):
                out.line(f"event(S, {NO_QUEUE}, 0, 1);")
                out.line(f"event_limbs(S, &{priority}, 1);")
                out.line("return;")

    def _masked(self, name: str, text: str) -> str:
        ref = self.program.standard.get(name)
        return f"{text} & {literal((1 << self.frame.width(ref)) - 1)}" if ref else text

    def _clone_egress(self, out: Writer) -> None:
        session = "copies_of(&S->sessions, (u64)p->clone)"
        out.line(f"const Copies *session = p->clone >= 0 ? {session} : NULL;")
        with out.block("if (session)"):
            self._keep(out, "p->clone_kept", "kept")
            with out.block("for (u32 i = 0; i < session->count; i++)"):
                out.line("P *c = later_egress(S, p);")
                self._clear_metadata(out, "c")
                self._restore(out, "c", "(&kept)")
                out.line("c->q = session->copies[i].port; c->rid = session->copies[i].instance;")
                out.line("c->itype = 2; c->cutoff = session->max_length;")

    def _deparse(self, out: Writer, again: bool) -> None:
        calc = Calculations(self.frame, out)
        most = 64 + sum(calc.most_bytes(h) for h in self.program.deparser)
        out.line(f"u8 *start = room_for(S, {most} + (size_t)p->n), *to = start;")
        for header in self.program.deparser:
            with out.block(f"if ({self.frame.valid(header)})"):
                size = calc.header_bytes(header, "to")
                out.line(f"to += {size};")
        out.line("memcpy(to, p->data + p->o, p->n - p->o); to += p->n - p->o;")
        out.line("size_t length = (size_t)(to - start);")
        out.line("if (p->cutoff && length > p->cutoff) length = p->cutoff;")
        if again:
            with out.block("if (p->again)"):
                self._keep(out, "p->again", "kept")
                out.line("u8 *data = keep(S, length + 1);")
                out.line("memcpy(data, start, length);")
                out.line("later_ingress(S, p, data, length, 4, &kept);")
                out.line("return;")
        out.line("leaves(S, (u32)p->q, length);")

    # --- ingress --------------------------------------------------------------------------------

    def _ingress(self) -> str:
        program = self.program
        out = Writer()
        passes = self._uses(program.ingress, ir.Resubmit) or self._uses(
            program.egress, ir.Recirculate
        )
        clones = self._uses(program.ingress, ir.Clone)
        parser, verify, control = Writer(), Writer(), Writer()
        with parser.block("static void parse(Switch *S, P *p)"):
            parser.line("(void)S;")
            ParserCode(self.frame, parser).write()
        if self.frame.standard("checksum_error") is not None:
            for checksum in program.checksums:
                if checksum.verify:
                    self._checksum(verify, checksum, update=False)
        tracks = self.frame.standard("packet_length") is not None
        code = ControlCode(self.frame, control, program.ingress, tracks_length=tracks)
        with control.block("static void control(Switch *S, P *p)"):
            control.line("(void)S;")
            code.write()
        head = (
            "static void ingress(Switch *S, u64 port, const u8 *data, u32 n, u64 now, u32 mode, "
            "const K *kept, const Copies *targets)"
        )
        with out.block(head):
            out.line("P here, *p = &here;")
            out.line("memset(p, 0, sizeof here); (void)kept; (void)targets;")
            out.line("p->data = data; p->n = n; p->port = port; p->now = now; p->plen = n;")
            self._enter(out, passes)
            out.line("parse(S, p);")
            if clones:
                self._clones(out)
            self._set(out, "parser_error", "p->perr")
            out.lines += verify.lines
            out.line("p->clone = -1; p->clone_kept = 0; p->again = 0;")
            out.line("control(S, p);")
            self._replicate(out, clones)
        return "\n".join([parser.text(), *code.functions.values(), control.text(), out.text()])

    def _enter(self, out: Writer, passes: bool) -> None:
        self._set(out, "ingress_port", "mode < 2 ? port : 0" if passes else "port")
        self._set(out, "packet_length", "n")
        self._set(out, "instance_type", "mode")
        stamp = f"now & {_TIMESTAMP}ull"
        self._set(out, "ingress_global_timestamp", f"mode < 2 ? {stamp} : 0" if passes else stamp)
        if passes and self.kept:
            with out.block("if (mode > 1)"):
                self._restore(out, "p", "kept")

    def _clones(self, out: Writer) -> None:
        """A clone of ingress: parsed, then straight to egress."""
        with out.block("if (mode == 1)"):
            self._clear_metadata(out, "p")
            self._restore(out, "p", "kept")
            with out.block("for (u32 i = 0; i < targets->count; i++)"):
                out.line("P c = *p;")
                out.line("c.q = targets->copies[i].port; c.rid = targets->copies[i].instance;")
                out.line("c.itype = 1; c.cutoff = targets->max_length; c.plen = n;")
                out.line("send_on(S, &c);")
            out.line("return;")

    def _replicate(self, out: Writer, clones: bool) -> None:
        program, frame = self.program, self.frame
        if clones:
            session = "copies_of(&S->sessions, (u64)p->clone)"
            out.line(f"const Copies *session = p->clone >= 0 ? {session} : NULL;")
            with out.block("if (session)"):
                self._keep(out, "p->clone_kept", "own")
                out.line("ingress(S, port, data, n, now, 1, &own, session);")
        if self._uses(program.ingress, ir.SendDigest):
            self._digests(out)
        if self._uses(program.ingress, ir.Resubmit):
            with out.block("if (p->again)"):
                self._keep(out, "p->again", "own")
                out.line("later_ingress(S, p, data, n, 6, &own);")
                out.line("return;")
        if frame.standard("packet_length") is None:
            out.line("p->plen = n;")
        group = frame.standard("mcast_grp")
        if group is not None:
            with out.block(f"if ({group})"):
                out.line(f"const Copies *copies = copies_of(&S->groups, {group});")
                with out.block("for (u32 i = 0; copies && i < copies->count; i++)"):
                    out.line("P c = *p;")
                    out.line("c.q = copies->copies[i].port; c.rid = copies->copies[i].instance;")
                    out.line("c.itype = 5;")
                    out.line("send_on(S, &c);")
                out.line("return;")
        out.line(f"p->q = {frame.standard('egress_spec')};")
        out.line(f"if (p->q == {self.program.drop_port}) return;")
        out.line(f"p->rid = (u32){frame.standard('egress_rid') or '0'}; p->itype = 0;")
        out.line("send_on(S, p);")

    def _digests(self, out: Writer) -> None:
        body = Statements(self.frame, out, "digest")
        for listed in self.program.learn_lists.values():
            values = [
                body.expr.cut(member, width, signed=False)
                for member, width in zip(listed.members, listed.widths, strict=True)
                if isinstance(member, ir.FieldRef)
            ]
            with out.block(f"if (p->digest == {listed.id})"):
                out.line(f"event(S, {DIGEST}, {listed.id}, {sum(v.n for v in values)});")
                for value in values:
                    body.push(value)


def generate(program: ir.Program) -> NativeSource:
    """C source of a program; NotNativeError if there is something in it that has none."""
    return ModuleCode(program).source()
