"""What generated code knows of queues: the priority that picks one, and the metadata of the wait.

Between ingress and egress a packet waits in a queue of its port (v1model's traffic manager). Code
that is run in one step never waits: ``S.waited`` is None then. Otherwise it holds (time at
enqueue, depth at enqueue, time waited, depth at dequeue, queue), times in microseconds.
"""

from softswitch import ir
from softswitch.codegen.layout import Layout
from softswitch.codegen.writer import Writer

_METADATA = ("enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth", "qid")


def priority(layout: Layout) -> str | None:
    """The local of the priority, or None if the program never sets one."""
    ref = layout.program.standard.get("priority")
    return layout.field(ref) if ref is not None and ref in layout.written else None


def write_check(layout: Layout, out: Writer) -> None:
    """Drop a packet at the start of its egress if there is no queue of its priority."""
    local = priority(layout)
    if local is not None:
        with out.block(f"if {local} >= S.queues:"):
            out.line(f"S.no_queue({local})")
            out.line("return")


def write_metadata(layout: Layout, out: Writer) -> None:
    """Set the queue metadata that something reads, cut to their widths."""
    wanted = [
        (at, ref, layout.field(ref))
        for at, name in enumerate(_METADATA)
        for ref in [layout.program.standard.get(name)]
        if ref is not None and ref in layout.read
    ]
    if wanted:
        out.line(f"x_waited = S.waited or (now, 0, 0, 0, {priority(layout) or 0})")
    for at, ref, local in wanted:
        out.line(f"{local} = x_waited[{at}] & {_mask(layout.program, ref)}")


def _mask(program: ir.Program, ref: ir.FieldRef) -> int:
    return (1 << program.field_decl(ref).width) - 1
