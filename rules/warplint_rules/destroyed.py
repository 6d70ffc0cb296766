"""What the rules about overwritten arrays share: who speaks of which write, what belongs together, how it is told.

One fault is one finding: the first write that destroys a needed value decides which rule speaks of it, and several
arrays, rounds or launches that one statement or one exchange destroys are told together.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from warplint.dataclass import dataclass
from warplint.finding import Finding, Role, Severity, Span
from warplint.kernels.summary import KernelFaultKind, StoreKind
from warplint.rule import Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.events import Copy, Launch
from warplint.trace.flow.overwrites import Overwrite, Writer
from warplint.trace.flow.stale_fills import StaleFill
from warplint_rules import wording

Overwrites = list[Overwrite]


class Fault(enum.Enum):
    """The ways of destroying a value, one for each rule."""

    TURNS = "buffers take turns"
    COPY = "a copy"
    FILL = "a fill that no tape holds"
    IN_PLACE = "a kernel that works in place"
    STRUCT = "a kernel that works in place, through a struct"
    ALIAS = "a write under another name"
    AFTER = "a write after the tape was closed"


def fault_of(overwrite: Overwrite) -> Fault | None:
    """Which rule speaks of this write; None: none of these (a launch that the tape should have recorded)."""
    by_writer = {Writer.AFTER_TAPE: Fault.AFTER, Writer.NUMPY: Fault.ALIAS, Writer.COPY: Fault.COPY}
    if overwrite.writer in by_writer:
        return by_writer[overwrite.writer]
    if overwrite.writer is Writer.FILL:
        return Fault.FILL
    if overwrite.writer is Writer.UNRECORDED_LAUNCH:
        return None
    if overwrite.moved is not None and overwrite.writer is not Writer.SAME_LAUNCH:
        return Fault.TURNS
    if overwrite.through_alias:
        return Fault.ALIAS
    if overwrite.writer is Writer.LAUNCH:
        return Fault.TURNS
    return Fault.STRUCT if overwrite.through_struct else Fault.IN_PLACE


def _told_as(overwrite: Overwrite, broken: set[int]) -> Fault | None:
    """As :func:`fault_of`; a launch that the tape does not hold fills the array, unless it breaks the chain as well."""
    is_launch = overwrite.writer is Writer.UNRECORDED_LAUNCH and isinstance(overwrite.write.event, Launch)
    if is_launch and overwrite.write.seq not in broken:
        return Fault.FILL
    return fault_of(overwrite)


@dataclass(frozen=True)
class Told:
    """How a rule tells it: ``` `a` <is_one> ``` or ``` `a` and `b` <are_several> ```, and what to do instead."""

    is_one: str
    are_several: str
    instead: str


def findings(
    rule: Rule, fault: Fault, flow: Dataflow, told: Told, place: Callable[[Overwrite], Span]
) -> tuple[Finding, ...]:
    """The findings of one rule: those overwrites that are its, told by statement or exchange."""
    scaled = {
        found.fault.span
        for found in flow.launched_faults
        if found.established and found.fault.kind is not KernelFaultKind.READ_THEN_OVERWRITTEN
    }
    broken = {link.event.seq for link in flow.broken_links}
    its = [o for o in flow.overwrites if _told_as(o, broken) is fault and not _is_told_as_scaling(o, scaled)]
    return wording.strongest([_finding(rule, group, flow, told, place) for group in _groups(its)])


def _is_told_as_scaling(overwrite: Overwrite, scaled: set[Span]) -> bool:
    """`y[i] *= z[i]` destroys what the kernel read of y before, and is one fault with the wrong gradient of z."""
    store = overwrite.write.store
    return store is not None and store.kind is StoreKind.MULTIPLY and store.span in scaled


def _groups(overwrites: Sequence[Overwrite]) -> Iterable[Overwrites]:
    """Overwrites that share the writing statement, the exchange, or kernel and arrays on one tape belong together."""
    parents: dict[Hashable, Hashable] = {}

    def root(key: Hashable) -> Hashable:
        while (parent := parents.setdefault(key, key)) != key:
            parents[key] = parents[parent]
            key = parent
        return key

    statements = [_statement(overwrite) for overwrite in overwrites]
    for overwrite, statement in zip(overwrites, statements, strict=True):
        for key in _shared(overwrite):
            parents[root(key)] = root(statement)
    groups: dict[Hashable, Overwrites] = {}
    for overwrite, statement in zip(overwrites, statements, strict=True):
        groups.setdefault(root(statement), []).append(overwrite)
    return groups.values()


def _statement(overwrite: Overwrite) -> Hashable:
    return "statement", overwrite.write.event.span


def _shared(overwrite: Overwrite) -> Iterator[Hashable]:
    """What other statements may have in common with this one: the exchange; a loop written out, launch by launch."""
    if overwrite.moved is not None:
        yield "moved", overwrite.moved.stack[-1].span
    launch = overwrite.write.event
    if isinstance(launch, Launch) and launch.kernel is not None:
        arrays = frozenset(each.array.memory for each in launch.bindings if each.array is not None)
        yield "launches", overwrite.recording.period.tape, launch.kernel.key, arrays


def _finding(rule: Rule, group: Overwrites, flow: Dataflow, told: Told, place: Callable[[Overwrite], Span]) -> Finding:
    established = [overwrite for overwrite in group if overwrite.established]
    shown = established or group
    first = min(shown, key=lambda overwrite: (overwrite.moved is None, overwrite.write.seq))
    writer = wording.round_of(first.write.event, first.recording, flow)
    when = wording.later_pass(first.write.event, first.reader.event, flow)
    return wording.finding(
        rule,
        Severity.WARNING if established else Severity.INFO,
        place(first),
        _message(first, shown, flow, told),
        [
            *wording.label(first.reader.event.span, Role.READ, _read_text(first, flow)),
            *wording.label(first.write.event.span, Role.WRITE, f"overwritten here by {writer}{when}"),
            *(label for member in shown for label in wording.allocation_label(member.array.memory, flow)),
            *wording.tape_labels(first.recording),
        ],
        flow.trace.source,
        wording.anchor(flow, memory=first.array.memory, write=first.write.event, read=first.reader.event),
    )


def _message(first: Overwrite, shown: Overwrites, flow: Dataflow, told: Told) -> str:
    names = list(dict.fromkeys(wording.array_name(overwrite.array, flow) for overwrite in shown))
    reader = wording.operation_name(first.reader.event)
    if first.read is None:
        version, what = ("1.17", "copy") if isinstance(first.write.event, Copy) else ("1.13", "second store")
        why = f"before Warp {version} the {what}'s adjoint leaves the array's gradient, which is counted twice"
    else:
        why = f"the adjoint of {reader} needs it ({_need_text(first)})"
    events = wording.sequence(first.write.event, first.reader.event, first.recording, flow)
    verb = told.are_several if len(names) > 1 else told.is_one
    more = len({overwrite.write.event.span for overwrite in shown}) - 1
    again = f" (and {more} more like it)" if more else ""
    return f"{wording.listing(names)} {verb}: {events}{again}, and {why}; {told.instead}"


def _need_text(overwrite: Overwrite) -> str:
    assert overwrite.read is not None
    need = overwrite.read.need
    return f"`{need.read.path}` in `{need.operation}`"


def _read_text(overwrite: Overwrite, flow: Dataflow) -> str:
    reader = wording.operation_name(overwrite.reader.event)
    name = wording.array_name(overwrite.array, flow)
    if overwrite.read is None:
        return f"{name} read here by {reader}"
    return f"{name} read here by {reader}, because its adjoint needs {_need_text(overwrite)}"


def stale(rule: Rule, found: StaleFill, flow: Dataflow) -> Finding:
    """A finding of ``rule``: a write on no tape, through which the gradient goes on to what it threw away."""
    name = wording.array_name(found.fill.dest, flow)
    fill, writer = wording.operation_name(found.fill.event), wording.operation_name(found.writer.event)
    return wording.finding(
        rule,
        Severity.WARNING,
        found.fill.event.span,
        f"{fill} on {name} is on no tape, so the gradient that arrives for {name} goes on to what {writer} computed "
        "before, which has no influence any more; use another array, or clear it by a kernel on the tape",
        [
            *wording.label(found.writer.event.span, Role.WRITE, f"{name} was computed here by {writer}"),
            *wording.label(found.reader.event.span, Role.READ, "read on here"),
            *wording.allocation_label(found.fill.dest.memory, flow),
            *wording.tape_labels(found.recording),
        ],
        flow.trace.source,
        wording.anchor(flow, memory=found.fill.dest.memory, write=found.fill.event, read=found.reader.event),
    )
