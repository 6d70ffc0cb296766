"""What one run shows about findings: where it came, which gradients it measured, which measurement names a finding.

Places of findings come from source, places of measurements from the call stack; both are compared as (real path, line
on which the call begins).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from functools import cached_property

from warplint.dataclass import dataclass
from warplint.finding import Finding, Role, Span
from warplint.proof import Repair
from warplint.runner.result import RunResult
from warplint.trace import events
from warplint.verify.declared import draws_of, repairs_of
from warplint.verify.places import Places
from warplint.verify.records import BackwardSeen, Culprit, Gradient, KernelCheck, MemorySeen, Place
from warplint.verify.trace_of import Recorded

Spot = tuple[str, int]


def _real(path: str) -> str:
    return _resolved(os.path.join(os.getcwd(), path))


@functools.lru_cache(maxsize=4096)
def _resolved(absolute: str) -> str:
    return os.path.realpath(absolute)


def spot(span: Span) -> Spot:
    """Where a span begins, comparable across spellings of a path."""
    return _real(span.path), span.line


def spot_of(place: Place) -> Spot:
    """A place that a child told, made comparable with those of spans."""
    return _real(place[0]), place[1]


def spots(spans: Iterable[Span | None]) -> frozenset[Spot]:
    """The places of those spans that are there."""
    return frozenset(spot(span) for span in spans if span is not None)


@dataclass(frozen=True)
class Touch:
    """An event of the trace in the terms of this room: the places it happened at, the tape, the memories' places."""

    stack: frozenset[Spot]
    allocations: frozenset[Spot]
    tape: int | None


@dataclass(frozen=True, eq=False)
class Evidence:
    """One run: what its child answered, the trace of it, and what the rules say of that trace."""

    result: RunResult
    recorded: Recorded
    findings: tuple[Finding, ...]

    @property
    def places(self) -> Places:
        """Turns the child's places into spans."""
        return self.recorded.places

    @cached_property
    def gradients(self) -> tuple[Gradient, ...]:
        """Every leaf's judgement."""
        return self.result.of(Gradient)

    @cached_property
    def kernel_checks(self) -> tuple[KernelCheck, ...]:
        """The local checks of single launches."""
        return self.result.of(KernelCheck)

    @cached_property
    def touches(self) -> tuple[Touch, ...]:
        """Every event of the trace."""
        memories = self.recorded.trace.memories
        return tuple(
            Touch(
                spots(frame.span for frame in event.stack),
                spots(memories[number].span for number in _memories(event) if number in memories),
                _tape(event),
            )
            for event in self.recorded.trace.events
        )

    @cached_property
    def lines(self) -> frozenset[Spot]:
        """Every place that the trace has a frame at, allocations and kernels among them."""
        found: set[Spot] = set()
        for touch in self.touches:
            found |= touch.stack | touch.allocations
        return frozenset(found | self.kernels)

    @cached_property
    def kernels(self) -> frozenset[Spot]:
        """The kernels that were launched, by their ``def`` and by their decorator."""
        launched = [event.kernel for event in self.recorded.trace.events if isinstance(event, events.Launch)]
        return spots(span for kernel in launched if kernel is not None for span in (kernel.span, kernel.decorator))

    def counterpart(self, finding: Finding) -> Finding | None:
        """The finding that the same rule makes of this run's trace at the same fault."""
        same_rule = [other for other in self.findings if other.code == finding.code]
        at_line = [other for other in same_rule if spot(other.span) == spot(finding.span)]
        return next(iter([*at_line, *(other for other in same_rule if same_fault(finding, other))]), None)

    def came_to(self, finding: Finding) -> bool:
        """Whether the run passed the places that the finding rests on."""
        anchored = spots((finding.anchor.write, finding.anchor.allocation))
        if anchored:
            return anchored <= self.lines
        kernel = spots((finding.anchor.kernel,))
        return bool(kernel & self.kernels) if kernel else spot(finding.span) in self.lines

    def launched(self, finding: Finding) -> bool:
        """Whether the run launched the kernel that the finding stands in."""
        return bool(spots((finding.anchor.kernel,)) & self.kernels)

    def gradients_about(self, finding: Finding) -> tuple[Gradient, ...]:
        """The gradients of the backward calls whose tapes recorded something at the finding's places; else all."""
        about = spots(
            (finding.span, finding.anchor.write, finding.anchor.read, finding.anchor.allocation, finding.anchor.kernel)
        )
        tapes = {touch.tape for touch in self.touches if about & (touch.stack | touch.allocations)} - {None}
        stacks = {seen.stack for seen in self.result.of(BackwardSeen) if seen.tape in tapes}
        chosen = tuple(gradient for gradient in self.gradients if stacks.intersection(gradient.backward))
        return chosen or self.gradients

    def gradients_of(self, finding: Finding) -> tuple[Gradient, ...]:
        """The gradients of the leaf that the finding speaks of, by where it was allocated."""
        made = spots((finding.anchor.allocation,))
        return tuple(gradient for gradient in self.gradients if made & self.spots_of(gradient.allocated))

    def names(self, culprit: Culprit, finding: Finding) -> bool:
        """Whether what a successful repair points to is what the finding claims."""
        proving = repairs_of(finding)
        if proving is not None and culprit.repair not in proving:
            return False
        if not (culprit.alone or (culprit.effect or 0.0) > 0.01):
            return False
        allocated, writer = self.spots_of(culprit.allocated), self.spots_of(culprit.writer)
        if culprit.writer_kernel == "numpy" and culprit.writer:
            writer |= spots(frame.span for frame in self.places.host_store(culprit.writer))
        if culprit.repair is Repair.GRADIENT:
            return bool(allocated & spots((finding.span, finding.anchor.allocation)))
        if culprit.repair is Repair.CHAIN:
            tapes = frozenset().union(*(self.spots_of(stack) for stack in culprit.tapes))
            return bool(tapes & spots((finding.span, *_labelled(finding, Role.TAPE))))
        if culprit.repair is Repair.ARGUMENTS:
            return bool(self.spots_of(culprit.reader) & spots((finding.anchor.read, *_labelled(finding, Role.READ))))
        written = spots((finding.span, finding.anchor.write, *_labelled(finding, Role.WRITE, Role.LAUNCH, Role.TAPE)))
        if culprit.repair is Repair.FRESH and Repair.FRESH in (proving or ()):
            return self._is_about_use(culprit, finding)
        if culprit.repair is Repair.TAPED:
            return bool(
                writer & spots((finding.span, finding.anchor.write, *_labelled(finding, Role.WRITE, Role.LAUNCH)))
            )
        if culprit.repair is not Repair.MEMORY:
            tapes = frozenset().union(*(self.spots_of(stack) for stack in culprit.tapes))
            return bool((writer | tapes) & written)
        made = spots((finding.anchor.allocation, *_labelled(finding, Role.ALLOCATION)))
        same = bool(made & allocated) or not made or not allocated or self._is_hosts(culprit.memory)
        return bool(writer & written) and same

    def _is_hosts(self, memory: int | None) -> bool:
        """Whether the memory is the host's (numpy's): where that was made is not what the run saw being made."""
        return any(seen.memory == memory and seen.foreign for seen in self.result.of(MemorySeen))

    def _is_about_use(self, culprit: Culprit, finding: Finding) -> bool:
        """Whether a gradient that is right only when taken afresh is the finding's: its use, or what was left in it."""
        at = spots((finding.span, *_labelled(finding, Role.WRITE, Role.LAUNCH, Role.TAPE, Role.BACKWARD, Role.READ)))
        return bool((self.spots_of(culprit.reader) | self.spots_of(culprit.writer)) & at)

    def checks_of(self, finding: Finding) -> tuple[KernelCheck, ...]:
        """The local checks of the kernel that the finding stands in, at the arguments that it speaks of."""
        return checks_of(finding, self.kernel_checks)

    def spots_of(self, stack: tuple[Place, ...]) -> frozenset[Spot]:
        """The places of a child's stack, comparable with those of spans."""
        return spots(frame.span for frame in self.places.stack(stack))


def checks_of(finding: Finding, checks: Iterable[KernelCheck]) -> tuple[KernelCheck, ...]:
    """Those checks of the finding's kernel that are about its claim: the arguments it speaks of, inputs it is about."""
    kernel = finding.anchor.kernel
    if kernel is None:
        return ()
    draws = (None, *draws_of(finding))
    return tuple(
        check
        for check in checks
        if spot_of(check.defined) == spot(kernel)
        and check.draw in draws
        and _speaks_of(finding.anchor.arguments, check.argument)
    )


def _speaks_of(arguments: Iterable[str], checked: str) -> bool:
    """Whether a claim about these arguments is about the one that was checked; no name means all of them.

    An array of structs is one argument, whose fields are checked one by one.
    """
    named = tuple(arguments)
    return not named or not checked or any(_is_part(checked, name) or _is_part(name, checked) for name in named)


def _is_part(inner: str, outer: str) -> bool:
    return inner == outer or inner.startswith(f"{outer}.")


def same_fault(one: Finding, other: Finding) -> bool:
    """Whether two findings of a rule agree on where the memory was made and where it was written."""
    here, there = one.anchor, other.anchor
    if here.kernel is not None and there.kernel is not None and here.allocation is None:
        return spot(here.kernel) == spot(there.kernel) and one.span.line == other.span.line
    if here.allocation is None or there.allocation is None or spot(here.allocation) != spot(there.allocation):
        return False
    return spots((here.write,)) == spots((there.write,))


def destruction(finding: Finding) -> tuple[Spot, Spot, Spot] | None:
    """Where the memory was made, read and written of which a finding says that a needed value is lost in it."""
    anchor = finding.anchor
    if anchor.allocation is None or anchor.read is None or anchor.write is None:
        return None
    return spot(anchor.allocation), spot(anchor.read), spot(anchor.write)


def _labelled(finding: Finding, *roles: Role) -> tuple[Span, ...]:
    return tuple(label.span for label in finding.labels if label.role in roles)


def _tape(event: events.Event) -> int | None:
    tape = getattr(event, "tape", None)
    return tape if tape is not None else getattr(event, "active_tape", None)


def _memories(event: events.Event) -> tuple[int, ...]:
    if isinstance(event, events.Launch):
        return tuple(binding.array.memory for binding in event.bindings if binding.array is not None)
    if isinstance(event, events.Copy):
        return event.source.memory, event.dest.memory
    if isinstance(event, events.HostWrite):
        return (event.dest.memory,)
    if isinstance(event, (events.HostRead, events.GradRead, events.GradWrite)):
        return (event.array.memory,)
    return ()
