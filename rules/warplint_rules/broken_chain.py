"""What the rules about broken chains share: how a link that passes on a value and no gradient is told."""

from __future__ import annotations

from collections.abc import Callable

from warplint.finding import Finding, Label, Role, Severity, Span
from warplint.rule import Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.flow.breaks import Break, BrokenLink
from warplint_rules import destroyed, wording


def findings(
    rule: Rule,
    why: Break,
    flow: Dataflow,
    message: Callable[[BrokenLink, Dataflow], str],
    place: Callable[[BrokenLink, Dataflow], Span],
    severity: Callable[[BrokenLink], Severity] = lambda link: Severity.WARNING,
) -> tuple[Finding, ...]:
    """One finding for each place: the links that are broken for this reason.

    A write that also destroys a value that an adjoint needs is told by the rule about that.
    """
    destroying = {o.write.seq for o in flow.overwrites if o.established and destroyed.fault_of(o) is not None}
    links = [link for link in flow.broken_links if link.why is why and link.event.seq not in destroying]
    return wording.strongest([_finding(rule, link, flow, message, place, severity(link)) for link in links])


def leaves_of(link: BrokenLink, flow: Dataflow) -> str:
    """The leaves whose gradient stops, by name."""
    return wording.listing(wording.memory_name(leaf, flow) for leaf in sorted(link.leaves))


def sources_of(link: BrokenLink, flow: Dataflow) -> str:
    """The arrays that the link takes its value from, by name."""
    return wording.listing(wording.memory_name(memory, flow) for memory in sorted(link.sources))


def _finding(
    rule: Rule,
    link: BrokenLink,
    flow: Dataflow,
    message: Callable[[BrokenLink, Dataflow], str],
    place: Callable[[BrokenLink, Dataflow], Span],
    severity: Severity,
) -> Finding:
    operation = wording.operation_name(link.event)
    source = min(link.sources)
    return wording.finding(
        rule,
        severity,
        place(link, flow),
        message(link, flow),
        [
            *wording.label(link.event.span, Role.WRITE, f"{operation} passes the value on, and no gradient back"),
            *_leaf_labels(link, flow),
            *wording.tape_labels(link.recording),
        ],
        flow.trace.source,
        wording.anchor(flow, memory=source, write=link.event),
    )


def _leaf_labels(link: BrokenLink, flow: Dataflow) -> list[Label]:
    return [
        label for leaf in sorted(link.leaves) for label in wording.allocation_label(leaf, flow, "gradient wanted here")
    ]
