"""Headers as bytes, hashes and checksums -> C.

The inputs of a calculation are written one after the other, bit by bit, into scratch memory;
checksums and hashes read that.
"""

from softswitch import ir
from softswitch.hashes import STATEFUL
from softswitch.native.errors import NotNativeError
from softswitch.native.frame import Frame
from softswitch.native.ranges import limbs
from softswitch.native.writer import Writer

_HELPERS = {
    "csum16": "csum16",
    "cksum16": "csum16",
    "crc16": "crc16",
    "crcCCITT": "crc_ccitt",
    "crc32": "crc32",
    "xor16": "xor16",
    "xor32": "xor32",
    "identity": "identity",
}
_SLACK = 32
"""Bytes beyond the end that writing bits may clear."""


class Calculations:
    """Translates calculations at one place of a function."""

    def __init__(self, frame: Frame, out: Writer) -> None:
        self.frame = frame
        self.program = frame.program
        self.layout = frame.layout
        self.out = out

    # --- headers --------------------------------------------------------------------------------

    def _fixed(self, header: str, to: str) -> None:
        """Write the fixed part of a header, with all that was written to it, to bytes `to`."""
        plan = self.layout.plans[header]
        size = (plan.bits + 7) // 8
        if plan.raw:
            self.out.line(f"memcpy({to}, {self.frame.raw(header)}, {size});")
        else:
            self.out.line(f"memset({to}, 0, {size});")
        for decl, _, shift in plan.patched:
            ref = ir.FieldRef(header, decl.name)
            at = plan.bits - shift - decl.width
            value, n = self.frame.field(ref), limbs(self.frame.field_range(ref))
            call = "wr" if n == 1 else "wr_w"
            self.out.line(f"{call}({to}, {at}, {decl.width}, {value});")

    def header_bytes(self, header: str, to: str) -> str:
        """Write a valid header to bytes `to`; C text of its size in bytes."""
        plan = self.layout.plans[header]
        varbit = plan.header.type.varbit
        size = str(plan.bits // 8)
        if varbit is not None:
            size = f"({plan.bits} + {self.frame.length(header)}) / 8"
        slice_ = f"memcpy({to}, p->data + {self.frame.offset(header)}, {size});"
        if not plan.mutable:
            self.out.line(slice_)
            return size
        with self.out.block(f"if (!{self.frame.touched(header)})"):
            self.out.line(slice_)
        with self.out.block("else"):
            if varbit is None:
                self._fixed(header, to)
            else:
                self._rebuilt(header, to)
        return size

    def _rebuilt(self, header: str, to: str) -> None:
        """A header with a variable-length field: what is before, the field, what is after."""
        plan = self.layout.plans[header]
        before = 0
        for decl in plan.header.type.fields:
            if decl.varbit:
                break
            before += decl.width
        fixed = self.out.temp()
        self.out.line(f"u8 {fixed}[{plan.bits // 8 + 1}];")
        if plan.bits:
            self._fixed(header, fixed)
        bits = self.out.temp()
        self.out.line(f"Bits {bits} = {{{to}, 0}};")
        varbit = plan.header.type.varbit
        assert varbit is not None
        self.out.line(f"bits_bytes(&{bits}, {fixed}, 0, {before});")
        source = self.frame.varbit(ir.FieldRef(header, varbit.name))
        self.out.line(f"bits_bytes(&{bits}, {source}, 0, {self.frame.length(header)});")
        self.out.line(f"bits_bytes(&{bits}, {fixed}, {before}, {plan.bits - before});")

    def most_bytes(self, header: str) -> int:
        """Bytes of a header at its longest."""
        found = self.program.headers[header].type
        return sum(f.width for f in found.fields) // 8 + 1

    # --- inputs ---------------------------------------------------------------------------------

    def value(
        self, calculation: ir.Calculation, whole: set[str], target: ir.FieldRef | None = None
    ) -> str:
        """C text of the result; headers in `whole` are taken as bytes, with 0 as `target`."""
        algorithm = calculation.algorithm
        if algorithm == "random":
            return "(any64(S) >> 32)"
        if algorithm in STATEFUL or algorithm not in _HELPERS:
            raise NotNativeError(f"hash algorithm '{algorithm}' of {calculation.name}")
        bits, scratch = self.out.temp(), self.out.temp()
        most = _SLACK + sum(self._most(item) for item in calculation.inputs)
        payload = any(isinstance(i, ir.CalcPayload) for i in calculation.inputs)
        if payload:
            most += sum(self.most_bytes(h) for h in self.program.deparser)
            self.out.line(f"u8 *{scratch} = scratch_for(S, {most} + p->n);")
        else:
            self.out.line(f"u8 {scratch}[{most}];")
        self.out.line(f"Bits {bits} = {{{scratch}, 0}};")
        done: set[str] = set()
        for item in calculation.inputs:
            header = item.ref.header if isinstance(item, ir.CalcField) else None
            if header in whole and not self._is_varbit(item):
                if header not in done and header is not None:
                    done.add(header)
                    self._whole(header, bits, target)
            else:
                self._input(item, calculation, bits)
        self.out.line(f"u64 {bits}v = {_HELPERS[algorithm]}({scratch}, bits_end(&{bits}));")
        return f"{bits}v"

    def _is_varbit(self, item: ir.CalcInput) -> bool:
        return isinstance(item, ir.CalcField) and self.program.field_decl(item.ref).varbit

    def _most(self, item: ir.CalcInput) -> int:
        match item:
            case ir.CalcField(ref=ref):
                return self.frame.width(ref) // 8 + 2 + self.most_bytes(ref.header)
            case ir.CalcConst(width=width):
                return width // 8 + 2
            case ir.CalcHeader(header=header):
                return self.most_bytes(header) + 2
        return 0

    def _whole(self, header: str, bits: str, target: ir.FieldRef | None) -> None:
        """The fixed part of a header that is summed as one, with 0 in place of the checksum."""
        plan = self.layout.plans[header]
        part = self.out.temp()
        with self.out.block(f"if ({self.frame.valid(header)})"):
            self.out.line(f"u8 {part}[{plan.bits // 8 + 1}];")
            self._fixed(header, part)
            if target is not None and target.header == header:
                at = plan.bits - self.layout.shift(target) - 16
                self.out.line(f"wr({part}, {at}, 16, 0);")
            self.out.line(f"bits_bytes(&{bits}, {part}, 0, {plan.bits});")

    def _input(self, item: ir.CalcInput, calculation: ir.Calculation, bits: str) -> None:
        match item:
            case ir.CalcConst(value=value, width=width):
                n = max(1, -(-width // 64))
                constant = self.frame.constant(value, n)
                if width:
                    self.out.line(f"bits_w(&{bits}, {constant}, {width});")
            case ir.CalcHeader(header=header):
                self._header(header, bits)
            case ir.CalcField(ref=ref):
                self._field(ref, bits)
            case ir.CalcPayload():
                self._payload(calculation, bits)

    def _field(self, ref: ir.FieldRef, bits: str) -> None:
        header, width = self.program.headers[ref.header], self.frame.width(ref)
        valid = "1" if header.metadata else self.frame.valid(ref.header)
        decl = self.program.field_decl(ref)
        if decl.varbit:
            call = f"bits_bytes(&{bits}, {self.frame.varbit(ref)}, 0, "
            self.out.line(f"if ({valid}) {call}{self.frame.length(ref.header)});")
            return
        n = limbs(self.frame.field_range(ref))
        call = "bits_u" if n == 1 else "bits_w"
        self.out.line(f"if ({valid}) {call}(&{bits}, {self.frame.field(ref)}, {width});")

    def _header(self, header: str, bits: str) -> None:
        part = self.out.temp()
        with self.out.block(f"if ({self.frame.valid(header)})"):
            self.out.line(f"u8 {part}[{self.most_bytes(header) + _SLACK}];")
            size = self.header_bytes(header, part)
            self.out.line(f"bits_bytes(&{bits}, {part}, 0, 8 * (size_t)({size}));")

    def _payload(self, calculation: ir.Calculation, bits: str) -> None:
        """Headers after the last one of the calculation, then what follows the headers."""
        named = {
            i.ref.header if isinstance(i, ir.CalcField) else i.header
            for i in calculation.inputs
            if isinstance(i, ir.CalcField | ir.CalcHeader)
        }
        order = self.program.deparser
        last = max((i for i, h in enumerate(order) if h in named), default=len(order))
        for header in order[last + 1 :]:
            self._header(header, bits)
        self.out.line(f"bits_bytes(&{bits}, p->data + p->o, 0, 8 * (size_t)(p->n - p->o));")
