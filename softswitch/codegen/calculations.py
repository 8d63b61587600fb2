"""Hashes and checksums -> Python.

csum16 (RFC 1071) uses that 2**16 is 1 modulo 65535: a field that ends at bit e of the input adds
``field << (-e % 16)``, and the sum of all, modulo 65535, is the one's complement sum. So no input
is ever joined, and a header that is covered from end to end is one term.
"""

from softswitch import ir
from softswitch.codegen.layout import Layout
from softswitch.codegen.writer import Writer
from softswitch.hashes import STATEFUL

_HELPERS = {
    "crc16": "crc16",
    "crcCCITT": "crc_ccitt",
    "crc32": "crc32",
    "xor16": "xor16",
    "xor32": "xor32",
    "identity": "identity",
}


class Calculations:
    """Translates calculations at one place of a function."""

    def __init__(self, layout: Layout, out: Writer) -> None:
        self.layout = layout
        self.program = layout.program
        self.out = out

    # --- headers as integers --------------------------------------------------------------------

    def fixed(self, header: str) -> str:
        """The fixed part of a header as one integer, with all that was written to it."""
        plan = self.layout.plans[header]
        terms: list[str] = []
        if plan.keep:
            whole = (1 << plan.bits) - 1
            raw = f"r_{plan.ident}"
            terms.append(raw if plan.keep == whole else f"{raw} & {hex(plan.keep)}")
        for decl, name, shift in plan.patched:
            text = f"({name} & {hex((1 << decl.width) - 1)})" if decl.signed else name
            terms.append(f"{text} << {shift}" if shift else text)
        return f"({' | '.join(terms)})" if terms else "0"

    def whole(self, header: str) -> tuple[str, str]:
        """A whole header as one integer, and its width in bits, as sources."""
        plan = self.layout.plans[header]
        fixed = self.fixed(header)
        if plan.header.type.varbit is None:
            return fixed, str(plan.bits)
        after = 0
        for decl in reversed(plan.header.type.fields):
            if decl.varbit:
                break
            after += decl.width
        length = f"n_{plan.ident}"
        text = f"({fixed} >> {after} << {length} | {plan.varbit})"
        if after:
            text = f"({text} << {after} | {fixed} & {hex((1 << after) - 1)})"
        return text, f"({plan.bits} + {length})"

    def emitted(self, header: str) -> str:
        """The bytes of a valid header."""
        plan = self.layout.plans[header]
        text, bits = self.whole(header)
        size = str(plan.bits // 8) if bits.isdigit() else f"{bits} // 8"
        rebuilt = f"{text}.to_bytes({size})"
        taken = f"data[o_{plan.ident}:o_{plan.ident} + {size}]"
        if not plan.mutable:
            return taken
        return f"({rebuilt} if w_{plan.ident} else {taken})"

    # --- joined inputs --------------------------------------------------------------------------

    def value(self, calculation: ir.Calculation) -> str:
        """Source of the result; may write lines first."""
        if calculation.algorithm in ("csum16", "cksum16"):
            return self.checksum(calculation, set(), None)
        if calculation.algorithm == "random":
            return "getrandbits(32)"
        whole, bits = self._join(calculation)
        data = f"({whole} << (-{bits} & 7)).to_bytes(({bits} + 7) // 8)"
        if calculation.algorithm in STATEFUL:
            return f"S.hashes[{calculation.name!r}]({data})"
        return f"{_HELPERS[calculation.algorithm]}({data})"

    def _join(self, calculation: ir.Calculation) -> tuple[str, str]:
        acc, bits = self.out.temp(), self.out.temp()
        self.out.line(f"{acc} = {bits} = 0")
        for item in calculation.inputs:
            if isinstance(item, ir.CalcPayload):
                for value, width, valid in self._rest(calculation):
                    self._append(acc, bits, value, width, valid)
                continue
            self._append(acc, bits, *self._input(item))
        return acc, bits

    def _append(self, acc: str, bits: str, value: str, width: str, valid: str | None) -> None:
        line = f"{acc} = {acc} << {width} | {value}; {bits} += {width}"
        self.out.line(line if valid is None else f"if {valid}: {line}")

    def _input(self, item: ir.CalcInput) -> tuple[str, str, str | None]:
        match item:
            case ir.CalcConst(value=value, width=width):
                return hex(value), str(width), None
            case ir.CalcHeader(header=header):
                value_text, bits = self.whole(header)
                return value_text, bits, self.layout.valid(header)
            case ir.CalcField(ref=ref):
                metadata = self.program.headers[ref.header].metadata
                valid = None if metadata else self.layout.valid(ref.header)
                decl = self.program.field_decl(ref)
                name = self.layout.field(ref)
                if decl.varbit:
                    return name, self.layout.length(ref), valid
                if decl.signed:
                    name = f"({name} & {hex((1 << decl.width) - 1)})"
                return name, str(decl.width), valid
        raise TypeError(type(item).__name__)

    def _rest(self, calculation: ir.Calculation) -> list[tuple[str, str, str | None]]:
        """Headers after the last one of the calculation, then what follows the headers."""
        named = {
            i.ref.header if isinstance(i, ir.CalcField) else i.header
            for i in calculation.inputs
            if isinstance(i, ir.CalcField | ir.CalcHeader)
        }
        order = self.program.deparser
        last = max((i for i, h in enumerate(order) if h in named), default=len(order))
        rest: list[tuple[str, str, str | None]] = []
        for header in order[last + 1 :]:
            value, bits = self.whole(header)
            rest.append((value, bits, self.layout.valid(header)))
        rest.append(("from_bytes(data[o:])", "(8 * (n - o))", None))
        return rest

    # --- one's complement sum -------------------------------------------------------------------

    def checksum(
        self, calculation: ir.Calculation, whole: set[str], target: ir.FieldRef | None
    ) -> str:
        """The csum16 of the inputs; headers in `whole` are summed as one, without `target`."""
        total = self.out.temp()
        terms = _Terms(self, whole, target)
        inputs = list(calculation.inputs)
        while inputs:
            item = inputs.pop(0)
            group = [item]
            if isinstance(item, ir.CalcField):
                while inputs and _same_header(inputs[0], item.ref.header):
                    group.append(inputs.pop(0))
            terms.add(group, calculation)
        self.out.line(f"{total} = {' + '.join(terms.texts) or '0'}")
        return f"(65535 - ({total} % 65535 or (65535 if {total} else 0)))"

    def payload_terms(self, calculation: ir.Calculation) -> list[tuple[str, str, str | None]]:
        return self._rest(calculation)

    def term(self, item: ir.CalcInput) -> tuple[str, str, str | None]:
        return self._input(item)


def _same_header(item: ir.CalcInput, header: str) -> bool:
    return isinstance(item, ir.CalcField) and item.ref.header == header


class _Terms:
    """Terms of a one's complement sum, and the bit position that the next one starts at."""

    def __init__(self, calc: Calculations, whole: set[str], target: ir.FieldRef | None) -> None:
        self.calc = calc
        self.whole = whole
        self.target = target
        self.texts: list[str] = []
        self.at = 0
        self.moving: list[str] = []

    def _shift(self, at: int, extra: str | None = None) -> str:
        """Source of the left shift of a term that ends at `at` + moving parts."""
        parts = [*self.moving, *([extra] if extra else [])]
        if not parts:
            return f" << {-at % 16}" if at % 16 else ""
        return f" << (-({' + '.join([str(at % 16), *parts])}) & 15)"

    def add(self, group: list[ir.CalcInput], calculation: ir.Calculation) -> None:
        first = group[0]
        if isinstance(first, ir.CalcPayload):
            for value, width, valid in self.calc.payload_terms(calculation):
                self._one(value, width, valid)
            return
        if not isinstance(first, ir.CalcField):
            self._one(*self.calc.term(first))
            return
        header = first.ref.header
        valid = self.calc.term(first)[2]
        texts: list[str] = []
        at, length = self.at, None
        if header in self.whole:
            at += self.calc.layout.plans[header].bits
            text = self.calc.fixed(header)
            if self.target is not None and self.target.header == header:
                name, shift = (
                    self.calc.layout.field(self.target),
                    self.calc.layout.shift(self.target),
                )
                text = f"({text} - ({name} << {shift}))" if shift else f"({text} - {name})"
                at -= 16
            texts.append(f"({text}{self._shift(at)})")
            group = [i for i in group if self._is_varbit(i)]
        for item in group:
            value, width, _ = self.calc.term(item)
            if width.isdigit():
                at += int(width)
            else:
                length = width
            texts.append(f"({value}{self._shift(at, length)})")
        self._advance(at - self.at, length, valid)
        joined = " + ".join(texts)
        self.texts.append(joined if valid is None else f"({joined} if {valid} else 0)")

    def _is_varbit(self, item: ir.CalcInput) -> bool:
        return isinstance(item, ir.CalcField) and self.calc.program.field_decl(item.ref).varbit

    def _one(self, value: str, width: str, valid: str | None) -> None:
        fixed = int(width) if width.isdigit() else 0
        length = None if width.isdigit() else width
        text = f"({value}{self._shift(self.at + fixed, length)})"
        self.texts.append(text if valid is None else f"({text} if {valid} else 0)")
        self._advance(fixed, length, valid)

    def _advance(self, fixed: int, length: str | None, valid: str | None) -> None:
        if length is None and (fixed % 16 == 0 or valid is None):
            self.at += fixed
            return
        moved = self.calc.out.temp()
        size = f"{fixed} + {length}" if length else str(fixed)
        self.calc.out.line(f"{moved} = {size}{f' if {valid} else 0' if valid else ''}")
        self.moving.append(moved)
