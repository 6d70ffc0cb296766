"""What the rules about faults inside kernels share: which launches decide, what a kernel alone is worth, the labels.

A launch that a tape recorded and a backward walks makes a warning, if gradient flows through the operand in question
and the result matters to the loss. A kernel that nobody differentiates so is information.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from warplint.dataclass import dataclass
from warplint.finding import Anchor, Finding, Label, Role, Severity, Span
from warplint.kernels.summary import KernelFault, KernelFaultKind
from warplint.rule import Context, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.events import Kernel, Launch
from warplint.trace.flow.gradients import LaunchedFault
from warplint_rules import wording


def _operation(fault: KernelFault) -> Hashable:
    return (fault.span.path, fault.span.line, fault.span.column)


def _established(found: LaunchedFault, flow: Dataflow) -> bool:
    return found.established and found.fault.certain


def _at_itself(fault: KernelFault, flow: Dataflow) -> Span:
    return fault.span


def _never(fault: KernelFault, kernel: Kernel | None, launch: Launch | None, flow: Dataflow) -> bool:
    return False


@dataclass(frozen=True)
class Told:
    """How a rule tells its faults.

    ``what``: the fault and its harm. ``instead``: what to write. ``together``: faults of one key are one finding, the
    first of the established ones speaks. ``established``: whether a launch makes it a warning.
    ``moot``: whether the kernel as built, or as launched, does not have the fault at all. ``place``: where it stands.
    """

    kinds: frozenset[KernelFaultKind]
    what: Callable[[KernelFault], str]
    instead: Callable[[KernelFault], str]
    condition: str = ", should it be differentiated with respect to that"
    together: Callable[[KernelFault], Hashable] = _operation
    established: Callable[[LaunchedFault, Dataflow], bool] = _established
    moot: Callable[[KernelFault, Kernel | None, Launch | None, Dataflow], bool] = _never
    place: Callable[[KernelFault, Dataflow], Span] = _at_itself
    met: frozenset[KernelFaultKind] = frozenset()
    """The kinds that many right programs have: told only where gradient flows through the operand."""


@dataclass(frozen=True)
class _Candidate:
    fault: KernelFault
    finding: Finding

    @property
    def rank(self) -> tuple[int, bool, int]:
        """Gravest first; then what an operation reads before what steers it; then the order of the body."""
        return (-self.finding.severity.rank, bool(self.fault.steers), self.fault.order)


def findings(rule: Rule, told: Told, context: Context) -> tuple[Finding, ...]:
    """One finding for each fault: the launches that are differentiated decide, others only inform."""
    flow = context.dataflow
    candidates = [
        _Candidate(found.fault, _launched(rule, told, found, flow))
        for found in flow.launched_faults
        if found.fault.kind in told.kinds and (found.established or found.fault.kind not in told.met)
        if not told.moot(found.fault, found.launch.kernel, found.launch, flow)
    ]
    candidates += [
        _Candidate(fault, _declared(rule, told, kernel, fault, flow))
        for kernel, fault in (flow.kernel_faults if context.asks_for(Severity.INFO) else ())
        if fault.kind in told.kinds - told.met and not told.moot(fault, kernel, None, flow)
    ]
    told_once = _first_of_each(_first_of_each(candidates, told.together), _operation)
    return wording.strongest([one.finding for one in told_once])


def _first_of_each(
    candidates: Iterable[_Candidate], together: Callable[[KernelFault], Hashable]
) -> Iterable[_Candidate]:
    best: dict[Hashable, _Candidate] = {}
    for candidate in candidates:
        key = together(candidate.fault)
        if key not in best or candidate.rank < best[key].rank:
            best[key] = candidate
    return best.values()


def _launched(rule: Rule, told: Told, found: LaunchedFault, flow: Dataflow) -> Finding:
    kernel, fault = found.launch.kernel, found.fault
    name = wording.operation_name(found.launch)
    matters = f"; {name} is launched on a tape and this reaches the loss: {told.instead(fault)}"
    established, place = told.established(found, flow), told.place(fault, flow)
    return wording.finding(
        rule,
        Severity.WARNING if established else Severity.INFO,
        place,
        f"{told.what(fault)}{matters if established else told.condition}",
        [
            *_labels(fault, place),
            *wording.label(_span(kernel), Role.KERNEL, f"in {name}"),
            *wording.label(found.launch.span, Role.LAUNCH, "launched here"),
            *wording.tape_labels(found.recording),
        ],
        flow.trace.source,
        Anchor(write=found.launch.span, kernel=_span(kernel), arguments=_arguments(fault)),
    )


def _declared(rule: Rule, told: Told, kernel: Kernel, fault: KernelFault, flow: Dataflow) -> Finding:
    place = told.place(fault, flow)
    return wording.finding(
        rule,
        Severity.INFO,
        place,
        f"{told.what(fault)}{told.condition}",
        [*_labels(fault, place), *wording.label(kernel.span, Role.KERNEL, f"in `{kernel.name}`")],
        flow.trace.source,
        Anchor(kernel=kernel.span, arguments=_arguments(fault)),
    )


def _arguments(fault: KernelFault) -> tuple[str, ...]:
    """The parameters whose adjoint the claim is about; none where the fault is there whatever is differentiated."""
    return tuple(sorted(fault.given))


def _labels(fault: KernelFault, place: Span) -> Sequence[Label]:
    """Those of a fault that is told at ``place``."""
    needed = wording.label(fault.span if fault.span != place else None, Role.READ, "needed here")
    return (*wording.label(fault.loop, Role.NOTE, "a loop that stays a loop at run time"), *needed)


def _span(kernel: Kernel | None) -> Span | None:
    return kernel.span if kernel is not None else None
