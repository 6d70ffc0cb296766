"""How findings speak of arrays, kernels, launches and places: in the user's own words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warplint.finding import Anchor, Finding, Label, Role, Severity, Source, Span
from warplint.rule import Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.events import Array, Copy, Event, Frame, HostWrite, Launch, Stack
from warplint.trace.flow.recordings import Recording

MOST_NAMES = 4
PLACES = 6
"""Labels beyond this many hide more than they show."""


def array_name(array: Array, flow: Dataflow) -> str:
    """`` `a.q` ``: the handle's own text, else the allocation's, else where it was made."""
    memory = flow.trace.memories.get(array.memory)
    text = array.name or (memory.name if memory is not None else "")
    if text:
        return f"`{text}`"
    made = memory.span if memory is not None else None
    return f"the array made at line {made.line}" if made is not None else "an array"


def memory_name(number: int, flow: Dataflow) -> str:
    """The user's text for an allocation."""
    return array_name(Array(number), flow)


_COPIES = {
    "copy": "wp.copy",
    "clone": "wp.clone",
    "array": "wp.array",
    **{name: f"wp.utils.{name}" for name in ("array_sum", "array_inner", "array_scan", "array_cast")},
}


def operation_name(event: Event) -> str:
    """`` `advance` `` for a launch, else the method's name."""
    if isinstance(event, Launch):
        return f"`{event.kernel.name}`" if event.kernel is not None else "a kernel"
    if isinstance(event, Copy):
        return f"`{_COPIES.get(event.how, event.how)}`"
    if isinstance(event, HostWrite):
        return "a store to the numpy view" if event.how == "numpy-store" else f"`{event.how}`"
    return "an operation"


def listing(words: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and 7 more``; each word once."""
    distinct = list(dict.fromkeys(words))
    if len(distinct) > MOST_NAMES:
        distinct = [*distinct[: MOST_NAMES - 1], f"{len(distinct) - MOST_NAMES + 1} more"]
    return " and ".join([", ".join(distinct[:-1]), distinct[-1]] if len(distinct) > 1 else distinct)


def ordinal(number: int) -> str:
    """``1st``, ``2nd``, ``3rd``, ``11th`` …."""
    suffix = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def round_of(event: Event, recording: Recording, flow: Dataflow) -> str:
    """``the 3rd launch of `advance` `` where one statement launches several times on the tape, else ```advance```."""
    start = min(recording.window.recorded, default=event.seq)
    alike = [
        operation.seq
        for operation in flow.operations
        if start <= operation.seq < recording.backward.seq and operation.event.stack == event.stack
    ]
    if len(alike) < 2 or not isinstance(event, Launch):
        return operation_name(event)
    return f"the {ordinal(alike.index(event.seq) + 1)} launch of {operation_name(event)}"


def sequence(write: Event, read: Event, recording: Recording, flow: Dataflow) -> str:
    """``the 3rd launch of `step` overwrites what the 2nd one read``."""
    if write.seq == read.seq:
        return f"{round_of(write, recording, flow)} overwrites what it reads"
    later, earlier = round_of(write, recording, flow), round_of(read, recording, flow)
    name = operation_name(read)
    if operation_name(write) == name and earlier.endswith(f"launch of {name}"):
        earlier = earlier.replace(f"launch of {name}", "one")
    return f"{later} overwrites what {earlier} read"


def later_pass(write: Event, read: Event, flow: Dataflow) -> str:
    """``, in the next pass of the loop at line 31``, where a loop comes round between the read and the write."""
    enclosing = flow.trace.enclosing
    if enclosing is None or write.seq <= read.seq:
        return ""
    again = sum(1 for each in flow.operations if read.seq < each.seq < write.seq and each.event.stack == read.stack)
    frames = _common_frames(read.stack, write.stack)
    passes = again + (frames[-1][1].span.line <= frames[-1][0].span.line)
    for one, other in reversed(frames):
        outer = enclosing.loops(one.span) if one.span.path == other.span.path else ()
        loops = [line for line in enclosing.loops(other.span) if line in outer]
        if loops and passes:
            return f", in {'the next pass' if passes == 1 else 'a later pass'} of the loop at line {loops[-1]}"
    return ""


def _common_frames(first: Stack, second: Stack) -> list[tuple[Frame, Frame]]:
    """The frames of two stacks, outermost first, down to where their ways part."""
    found: list[tuple[Frame, Frame]] = []
    for one, other in zip(first, second, strict=False):
        found.append((one, other))
        if one.span != other.span:
            break
    return found


def label(span: Span | None, role: Role, text: str) -> tuple[Label, ...]:
    """One label, or none where the place is not known."""
    return (Label(span, role, text),) if span is not None else ()


def allocation_label(number: int, flow: Dataflow, text: str = "allocated here") -> tuple[Label, ...]:
    """Where a memory was made."""
    memory = flow.trace.memories.get(number)
    return label(memory.span if memory is not None else None, Role.ALLOCATION, text)


def tape_labels(recording: Recording) -> tuple[Label, ...]:
    """Where the tape is made and where it is differentiated."""
    opened = recording.period.opened
    return (
        *label(opened.span if opened is not None else None, Role.TAPE, "the tape"),
        *label(recording.backward.span, Role.BACKWARD, "its backward"),
    )


def places(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Each place once for each role, and not too many."""
    distinct = {(one.span, one.role): one for one in labels}
    return tuple(distinct.values())[:PLACES]


def parting(first: Stack, second: Stack) -> Frame:
    """The frame of ``second`` where it can be repaired: the outermost one in which it parts from ``first``."""
    one, other = _common_frames(first, second)[-1]
    return other if one.span != other.span else second[-1]


def anchor(
    flow: Dataflow,
    *,
    memory: int | None = None,
    write: Event | None = None,
    read: Event | None = None,
    factor: float | None = None,
) -> Anchor:
    """What ties a finding to a measurement: where the memory was made, written and read, and by which kernel."""
    made = flow.trace.memories.get(memory) if memory is not None else None
    kernel = next((e.kernel for e in (write, read) if isinstance(e, Launch) and e.kernel is not None), None)
    return Anchor(
        allocation=made.span if made is not None else None,
        write=write.span if write is not None else None,
        read=read.span if read is not None else None,
        kernel=kernel.span if kernel is not None else None,
        factor=factor,
    )


def finding(
    rule: Rule,
    severity: Severity,
    span: Span,
    message: str,
    labels: Iterable[Label],
    source: Source,
    ties: Anchor,
) -> Finding:
    """A finding of ``rule``, its labels without repetition."""
    return Finding(rule.code, rule.name, severity, span, message, places(labels), source=source, anchor=ties)


def strongest(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Each place, and option assigned there, once: the gravest finding that stands there, the first of equals."""
    best: dict[tuple[str, int, int, str | None], Finding] = {}
    for one in findings:
        key = (one.span.path, one.span.line, one.span.column, one.anchor.option)
        if key not in best or best[key].severity.rank < one.severity.rank:
            best[key] = one
    return tuple(sorted(best.values(), key=lambda one: one.sort_key))
