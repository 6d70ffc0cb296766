"""What the rules look at: a trace and its kernels, whether source was interpreted or a run recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from warplint.dataclass import dataclass
from warplint.trace.events import Trace
from warplint.trace.flow.operations import SourceOf, SummaryOf


@dataclass(frozen=True)
class Interpretation:
    """One trace of a program, the summaries of its kernels, and figures for ``--statistics``."""

    trace: Trace
    summary_of: SummaryOf
    statistics: Mapping[str, float] = field(default_factory=dict)
    source_of: SourceOf = lambda kernel: None
