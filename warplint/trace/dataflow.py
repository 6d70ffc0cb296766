"""What follows from the order of a trace's events: recordings, reachability, overwritten needs, gradient life."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warplint.kernels.summary import KernelSummary
from warplint.trace.events import Kernel, Trace

SummaryOf = Callable[[Kernel], "KernelSummary | None"]
"""The adjoint-need summary of a kernel of this trace; None where its source could not be read."""


@dataclass(frozen=True)
class Dataflow:
    """A trace and the summaries of its kernels; every derived fact is computed once, when first asked for."""

    trace: Trace
    summary_of: SummaryOf
