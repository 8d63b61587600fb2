"""What of a switch's state the code of a function uses, bound to locals."""

import re

from softswitch import ir
from softswitch.codegen.writer import Writer


def bind_state(program: ir.Program, out: Writer, text: str) -> str:
    """Write locals for the state that `text` uses; return it, with what it uses once inline.

    So a packet does not pay for tables and counters of a way that it does not go.
    """
    wanted = [(f"t{i}", f"S.lookups[{i}]") for i, _ in enumerate(program.tables)]
    wanted += [(f"reg{i}", f"S.registers[{i}]") for i, _ in enumerate(program.registers)]
    for i, _ in enumerate(program.counters):
        wanted += [(f"cnp{i}", f"S.packets[{i}]"), (f"cnb{i}", f"S.bytes[{i}]")]
    for name, source in wanted:
        uses = re.compile(rf"\b{name}(?=[(\[])")
        count = len(uses.findall(text))
        if count == 1:
            text = uses.sub(source, text)
        elif count:
            out.line(f"{name} = {source}")
    if "D[" in text:
        out.line("D = S.defaults")
    return text
