"""A whole program -> the source of two functions, `ingress` and `egress`.

``ingress(S, out, port, data, now, mode, kept)`` parses a packet, runs the ingress control, and
calls ``send`` for every copy: ``egress``, or what queues its arguments (`softswitch.queued`).
`mode` is v1model's instance_type of the pass: 0 as received, 1 a clone of ingress (parsed, then
straight to ``send``), 4 recirculated, 6 resubmitted; `kept` is the metadata that survives, for a
clone a pair (targets, metadata).

``egress(S, out, port, now, q, rid, itype, cutoff, n, plen, data, o, ...)`` runs one copy; what
follows `o` are the state variables that it uses. It appends (port, bytes) to `out`; packets for
another pass go to ``S.later``.
"""

from dataclasses import dataclass

from softswitch import ir
from softswitch.codegen.bindings import bind_state
from softswitch.codegen.calculations import Calculations
from softswitch.codegen.controls import ControlCode
from softswitch.codegen.digests import write_digests
from softswitch.codegen.layout import Layout
from softswitch.codegen.parser import ParserCode
from softswitch.codegen.queueing import priority, write_check, write_metadata
from softswitch.codegen.writer import Writer
from softswitch.ir import walk

_INGRESS = "S, out, port, data, now, mode, kept"
_EGRESS = "S, out, port, now, q, rid, itype, cutoff, n, plen, data, o"
_TIMESTAMP = (1 << 48) - 1


@dataclass(frozen=True, slots=True)
class Generated:
    """Source, and where the arguments of ``egress`` have the priority (None: always 0)."""

    source: str
    priority_at: int | None


class ModuleCode:
    """Generates the source of one program."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.layout = Layout(program)
        self.kept = self._kept()
        self.state = self._state()

    def generated(self) -> Generated:
        """Both functions."""
        egress, live = self._egress()
        local = priority(self.layout)
        at = None if local is None else _EGRESS.count(",") + 1 + live.index(local)
        return Generated(self._ingress(live) + "\n\n" + egress, at)

    def _kept(self) -> list[ir.FieldRef]:
        fields: dict[ir.FieldRef, None] = {}
        for listed in self.program.field_lists.values():
            fields.update(dict.fromkeys(listed.fields))
        return [f for f in fields if f in self.layout.read]

    def _state(self) -> set[str]:
        layout = self.layout
        names: set[str] = set()
        for header in self.program.headers.values():
            for decl in header.type.fields:
                ref = ir.FieldRef(header.name, decl.name)
                names.add(layout.field(ref))
                if decl.varbit:
                    names.add(layout.length(ref))
        for plan in layout.plans.values():
            names.update(f"{kind}_{plan.ident}" for kind in "vrow")
        names.update(layout.next_index(s) for s in self.program.stacks)
        return names

    def _uses(self, pipeline: ir.Pipeline, kind: type) -> bool:
        """True if some action of a pipeline has a statement of `kind`."""
        actions = [
            self.program.actions[a]
            for node in pipeline.nodes.values()
            for a in (
                node.actions
                if isinstance(node, ir.Table)
                else [node.action]
                if isinstance(node, ir.ActionNode)
                else []
            )
        ]
        return any(isinstance(n, kind) for a in actions for n in walk(a))

    # --- egress ---------------------------------------------------------------------------------

    def _egress(self) -> tuple[str, list[str]]:
        body = Writer()
        with body.block("if True:"):
            self._egress_body(body)
        preset = {
            self.layout.standard(name)
            for name in ("egress_port", "egress_spec", "egress_rid", "instance_type")
        } | {self.layout.standard("packet_length")}
        live = sorted((body.names() & self.state) - {p for p in preset if p})
        text = body.text().replace("@LIVE@", "".join(f", {self._reset(n)}" for n in live))
        out = Writer()
        with out.block(f"def egress({', '.join([_EGRESS, *live])}):"):
            text = bind_state(self.program, out, text)
            for line in text.splitlines()[1:]:
                out.line(line[1:])
        return out.text(), live

    def _reset(self, name: str) -> str:
        """Value of a state variable in an egress clone: metadata restarts, headers stay."""
        for ref in self._metadata():
            if self.layout.field(ref) == name:
                return f"k_{name}" if ref in self.kept else "0"
        return name

    def _metadata(self) -> list[ir.FieldRef]:
        return [
            ir.FieldRef(h.name, f.name)
            for h in self.program.headers.values()
            if h.metadata
            for f in h.type.fields
        ]

    def _set(self, out: Writer, name: str, value: str) -> None:
        local = self.layout.standard(name)
        if local is not None:
            out.line(f"{local} = {value}")

    def _egress_body(self, out: Writer) -> None:
        write_check(self.layout, out)
        self._set(out, "egress_port", "q")
        self._set(out, "egress_rid", "rid")
        self._set(out, "instance_type", "itype")
        self._set(out, "packet_length", "plen")
        self._set(out, "egress_global_timestamp", f"now & {_TIMESTAMP}")
        write_metadata(self.layout, out)
        drops = self._uses(self.program.egress, ir.MarkToDrop) or self._writes_spec()
        clones = self._uses(self.program.egress, ir.Clone)
        again = self._uses(self.program.egress, ir.Recirculate)
        if drops:
            # what bmv2 sets it to: the port after the drop port, in 9 bits
            self._set(out, "egress_spec", str((self.program.drop_port + 1) & 511))
        if clones:
            out.line("clone = None; kept = 0")
        if again:
            out.line("again = 0")
        control = ControlCode(self.layout, out, self.program.egress)
        control.body.tracks_length = clones
        control.write()
        if clones:
            self._clone_egress(out)
        if drops:
            spec = self.layout.standard("egress_spec")
            out.line(f"if {spec} == {self.program.drop_port}: return")
        self._update_checksums(out)
        self._deparse(out, again)

    def _writes_spec(self) -> bool:
        spec = self.program.standard["egress_spec"]
        return any(
            isinstance(n, ir.Assign) and n.target == spec
            for node in self.program.egress.nodes.values()
            if isinstance(node, ir.Table)
            for a in node.actions
            for n in self.program.actions[a].body
        )

    def _clone_egress(self, out: Writer) -> None:
        with out.block("if clone is not None:"):
            out.line("session = S.sessions.get(clone)")
            with out.block("if session is not None:"):
                self._keep(out, "kept")
                for ref, name in zip(self.kept, self._kept_names(), strict=True):
                    out.line(f"k_{self.layout.field(ref)} = {name}")
                with out.block("for q2, rid2 in session[0]:"):
                    out.line(
                        "S.later.append((send, (S, out, port, now, q2, rid2, 2, session[1],"
                        " n, plen, data, o@LIVE@)))"
                    )

    def _kept_names(self) -> list[str]:
        return [f"kv{i}" for i in range(len(self.kept))]

    def _keep(self, out: Writer, number: str) -> None:
        """Set the values that field list `number` (a variable) keeps; the others are 0."""
        names = self._kept_names()
        if names:
            out.line(f"{' = '.join(names)} = 0")
        for listed in self.program.field_lists.values():
            fields = [f for f in listed.fields if f in self.kept]
            if not fields:
                continue
            with out.block(f"if {number} == {listed.id}:"):
                for ref in dict.fromkeys(fields):
                    out.line(f"{names[self.kept.index(ref)]} = {self.layout.field(ref)}")

    def _kept_tuple(self) -> str:
        return f"({''.join(f'{n}, ' for n in self._kept_names())})"

    def _update_checksums(self, out: Writer) -> None:
        for checksum in self.program.checksums:
            if checksum.update:
                self._checksum(out, checksum, update=True)

    def _checksum(self, out: Writer, checksum: ir.Checksum, update: bool) -> None:
        calc = Calculations(self.layout, out)
        calculation = self.program.calculations[checksum.calculation]
        condition = "True"
        if checksum.cond is not None:
            condition = ControlCode(self.layout, out, self.program.egress).body.expr.condition(
                checksum.cond
            )
        target = self.layout.field(checksum.target)
        with out.block(f"if {condition}:"):
            if calculation.algorithm in ("csum16", "cksum16"):
                whole = self.layout.whole_headers(calculation, checksum.target)
                value = calc.checksum(calculation, whole, checksum.target)
            else:
                value = calc.value(calculation)
            width = self.program.field_decl(checksum.target).width
            out.line(f"x_sum = {value} & {(1 << width) - 1}")
            with out.block(f"if {target} != x_sum:"):
                if not update:
                    out.line(f"{self.layout.standard('checksum_error') or 'x_bad'} = 1")
                    return
                out.line(f"{target} = x_sum")
                header = checksum.target.header
                if not self.program.headers[header].metadata:
                    out.line(f"w_{self.layout.plans[header].ident} = True")

    def _deparse(self, out: Writer, again: bool) -> None:
        calc = Calculations(self.layout, out)
        parts = [
            f"({calc.emitted(h)} if {self.layout.valid(h)} else b'')" for h in self.program.deparser
        ]
        out.line(f"x_out = b''.join(({', '.join([*parts, 'data[o:]'])},))")
        out.line("if cutoff: x_out = x_out[:cutoff]")
        if again:
            with out.block("if again:"):
                self._keep(out, "again")
                out.line(
                    "S.later.append((ingress, (S, out, port, x_out, now, 4,"
                    f" {self._kept_tuple()})))"
                )
                out.line("return")
        out.line("out.append((q, x_out))")

    # --- ingress --------------------------------------------------------------------------------

    def _ingress(self, live: list[str]) -> str:
        body = Writer()
        with body.block("if True:"):
            self._ingress_body(body, live)
        text = body.text()
        used = sorted((body.names() & self.state) | (set(live) & self.state))
        out = Writer()
        with out.block(f"def ingress({_INGRESS}):"):
            text = bind_state(self.program, out, text)
            for value in ("0", "False"):
                names = [n for n in used if self.layout.initial(n) == value]
                if names:
                    out.line(f"{' = '.join(names)} = {value}")
            for line in text.splitlines()[1:]:
                out.line(line[1:])
        return out.text()

    def _ingress_body(self, out: Writer, live: list[str]) -> None:
        passes = self._uses(self.program.ingress, ir.Resubmit) or self._uses(
            self.program.egress, ir.Recirculate
        )
        clones = self._uses(self.program.ingress, ir.Clone)
        out.line("n = len(data)")
        first = "port" if not passes else "(port if mode < 2 else 0)"
        self._set(out, "ingress_port", first)
        self._set(out, "packet_length", "n")
        self._set(out, "instance_type", "mode")
        stamp = f"now & {_TIMESTAMP}" if not passes else f"(now & {_TIMESTAMP} if mode < 2 else 0)"
        self._set(out, "ingress_global_timestamp", stamp)
        if passes and self.kept:
            with out.block("if mode > 1:"):
                self._restore(out, "kept")
        ParserCode(self.layout, out).write()
        self._call_for_clone(out, live, clones)
        self._set(out, "parser_error", "perr")
        if self.layout.standard("checksum_error") is not None:
            for checksum in self.program.checksums:
                if checksum.verify:
                    self._checksum(out, checksum, update=False)
        self._requests(out)
        control = ControlCode(self.layout, out, self.program.ingress)
        control.body.tracks_length = self.layout.standard("packet_length") is not None
        if control.body.tracks_length:
            out.line("plen = n")
        control.write()
        self._replicate(out, live, clones)

    def _restore(self, out: Writer, source: str) -> None:
        names = [self.layout.field(ref) for ref in self.kept]
        if names:
            out.line(f"{', '.join(names)}, = {source}")

    def _requests(self, out: Writer) -> None:
        ingress = self.program.ingress
        if self._uses(ingress, ir.Clone):
            out.line("clone = None; kept = 0")
        if self._uses(ingress, ir.SendDigest):
            out.line("digest = 0")
        if self._uses(ingress, ir.Resubmit):
            out.line("again = 0")
        if self._uses(ingress, ir.Truncate):
            out.line("cutoff = 0")

    def _call(self, live: list[str], **given: str) -> str:
        length = "plen" if self.layout.standard("packet_length") is not None else "n"
        values = {"q": "q", "rid": "0", "itype": "0", "cutoff": "0", "plen": length} | given
        fixed = [
            "S, out, port, now",
            values["q"],
            values["rid"],
            values["itype"],
            values["cutoff"],
            "n",
            values["plen"],
            "data, o",
        ]
        return f"send({', '.join([*fixed, *live])})"

    def _call_for_clone(self, out: Writer, live: list[str], clones: bool) -> None:
        if not clones:
            return
        with out.block("if mode == 1:"):
            names = [self.layout.field(r) for r in self._metadata() if r in self.layout.read]
            if names:
                out.line(f"{' = '.join(names)} = 0")
            out.line("targets, cutoff, kept = kept")
            self._restore(out, "kept")
            with out.block("for q, rid in targets:"):
                call = self._call(live, rid="rid", itype="1", cutoff="cutoff", plen="n")
                out.line(call)
            out.line("return")

    def _replicate(self, out: Writer, live: list[str], clones: bool) -> None:
        program, layout = self.program, self.layout
        cutoff = "cutoff" if self._uses(program.ingress, ir.Truncate) else "0"
        if clones:
            with out.block("if clone is not None:"):
                out.line("session = S.sessions.get(clone)")
                with out.block("if session is not None:"):
                    self._keep(out, "kept")
                    out.line(
                        "ingress(S, out, port, data, now, 1,"
                        f" (session[0], session[1], {self._kept_tuple()}))"
                    )
        if self._uses(program.ingress, ir.SendDigest):
            write_digests(self.layout, out)
        if self._uses(program.ingress, ir.Resubmit):
            with out.block("if again:"):
                self._keep(out, "again")
                out.line(
                    f"S.later.append((ingress, (S, out, port, data, now, 6, {self._kept_tuple()})))"
                )
                out.line("return")
        group = layout.standard("mcast_grp")
        if group is not None:
            with out.block(f"if {group}:"):
                with out.block(f"for q, rid in S.groups.get({group}, ()):"):
                    out.line(self._call(live, rid="rid", itype="5", cutoff=cutoff))
                out.line("return")
        out.line(f"q = {layout.standard('egress_spec')}")
        out.line(f"if q == {program.drop_port}: return")
        rid = layout.standard("egress_rid")
        out.line(self._call(live, cutoff=cutoff, rid=rid or "0"))


def generate(program: ir.Program) -> Generated:
    """The code of a program; see the module's docstring for the functions in it."""
    return ModuleCode(program).generated()
