"""States and actions of the model in words."""

from __future__ import annotations

from tests.model import layout as at

NODES = ("s0", "s1", "w0", "w1", "w2", "destination")
SOURCES = ("w0", "w1", "w2", "s1", "s0")
KINDS = {at.CONTRIBUTE: "CONTRIBUTE", at.RESULT: "RESULT", at.REQUEST: "REQUEST"}
STEPS = ("idle", "holding", "moving", "draining", "removing", "releasing", "following")
CONTROLS = (
    "hold",
    "choose the chunk to move at",
    "move",
    "remove old entries",
    "roll back",
    "release",
    "go on without",
    "follow",
    "start",
)


def message_text(message: int) -> str:
    """One message in flight."""
    kind, source = message >> 3 & 3, message >> 5 & 7
    chunk, epoch, flags = message >> 8 & 3, message >> 10 & 1, message >> 11 & 3
    value = message >> 13
    text = f"{KINDS[kind]} chunk {chunk} epoch {epoch}"
    if kind == at.CONTRIBUTE:
        text += f" of {SOURCES[source]}"
    if kind == at.REQUEST:
        text += " for " + "+".join(f"w{i}" for i in range(3) if value >> i & 1)
    else:
        text += f" [{value_text(value)}]"
    text += " DIRECT" * (flags & at.DIRECT) + " LATE" * (flags >> 1)
    return f"{text} -> {NODES[message & 7]}"


def value_text(value: int) -> str:
    """What a sum is made of."""
    counts = [value >> 2 * worker & 3 for worker in range(3)]
    parts = [f"{n if n > 1 else ''}w{i}" for i, n in enumerate(counts) if n]
    return f"{'+'.join(parts) or 'nothing'} of chunk {value >> 6 & 3}"


def action_text(label: int) -> str:
    """One action."""
    kind, argument = label >> at.ARGUMENT_BITS, label & (1 << at.ARGUMENT_BITS) - 1
    chunk, who = argument & 15, argument >> 4 & 15
    direct = " DIRECT" * (argument >> 8)
    if kind <= at.DUPLICATE:
        what = ("deliver", "deliver, in vain,", "lose", "double")[kind]
        return f"{what} {message_text(argument)}"
    if kind == at.DIE:
        return f"w{argument} dies"
    if kind == at.RESTART_DESTINATION:
        return "the destination starts anew from its journal"
    if kind == at.KILL_BUSY:
        return f"the destination starts anew, killed with {message_text(argument)}"
    if kind == at.RESTART_SWITCH:
        return f"restart {NODES[argument]} with empty registers"
    if kind == at.WORKER_TIMEOUT:
        return f"timeout: w{who} repeats chunk {chunk}{direct}"
    if kind == at.REQUEST_TIMEOUT:
        return f"timeout: the destination asks for chunk {chunk}{direct}"
    step = CONTROLS[chunk]
    target = {
        at.HOLD: f" w{who}",
        at.MOVE: f" w{who}",
        at.RELEASE: f" w{who}",
        at.EXCLUDE: f" w{who}",
        at.FOLLOW: f" w{who}",
        at.START: f" w{who}",
        at.REMOVE: f" at {NODES[who]}",
    }
    return f"controller: {step}{target.get(chunk, '')}"


def state_lines(t: tuple[int, ...]) -> list[str]:
    """A state in full."""
    lines = []
    for i in range(4):
        word = t[i]
        if word:
            tag, answer = word & 15, word >> 15 & 15
            sources = "+".join(f"w{k}" for k in range(3) if word >> 4 + k & 1)
            lines.append(
                f"s{i // 2} slot {i % 2}: tag {_tag(tag)}, sources of {sources or 'nobody'}, "
                f"[{value_text(word >> 7 & 255)}]; answer {_tag(answer)}"
            )
    for worker in range(3):
        bits = t[at.WORKERS] >> 10 * worker
        sent = [c for c in range(4) if bits >> c & 1]
        answered = [c for c in range(4) if bits >> 4 + c & 1]
        marks = " held" * (bits >> 8 & 1) + " moved" * (bits >> 9 & 1)
        lines.append(f"w{worker}: sent {sent}, answered {answered}{marks}")
    done = t[at.DONE]
    gathered = {}
    for chunk in range(4):
        bits = t[at.GATHERED + chunk // 2] >> 10 * (chunk & 1) & 1023
        if bits:
            gathered[chunk] = [SOURCES[s] for s in range(5) if bits >> s & 1]
    lines.append(
        f"destination: complete {[c for c in range(4) if done >> c & 1]}, gathers {gathered}; "
        f"reallocation {STEPS[done >> 5 & 7]}, from chunk {done >> 8 & 7}"
    )
    members = t[at.MEMBERS]
    for what, shift in (("the old epoch is without", 0), ("the new one", 3), ("dead:", 6)):
        names = [f"w{i}" for i in range(3) if members >> shift + i & 1]
        if names:
            lines.append(f"{what} {'+'.join(names)}")
    if members >> 9:
        kept = [c for c in range(4) if members >> 9 + c & 1]
        lines.append(f"of the old epoch all the same: {kept}")
    lines += [f"in flight: {message_text(m)}" for m in t[at.FLIGHT :] if m]
    if t[at.FAULT]:
        lines.append(f"WRONG: {at.FAULTS[t[at.FAULT]]}")
    return lines


def _tag(tag: int) -> str:
    return f"(epoch {tag - 1 >> 2}, chunk {tag - 1 & 3})" if tag else "none"
