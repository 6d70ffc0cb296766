"""What a rule is: one declaration and one detector over a trace. Third parties write packs with these classes."""

from __future__ import annotations

import enum
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from warplint.dataclass import dataclass
from warplint.finding import Finding, Severity, Source
from warplint.proof import BuildHarm, Draw, Experiment, Repair, TapeClaim

if TYPE_CHECKING:  # a rule's declaration is read far more often than its detector runs
    from warplint.trace.dataflow import Dataflow
    from warplint.trace.events import Trace
    from warplint.trace.flow.operations import SourceOf


class Group(str, enum.Enum):
    """What a rule protects: gradients through the tape, gradients in a kernel, builds, or the linter itself."""

    TAPE = "tape"
    KERNEL = "kernel"
    BUILD = "build"
    LINTER = "linter"


@dataclass(frozen=True)
class Context:
    """What a detector may ask for: the trace, and what follows from it (computed once per trace, lazily)."""

    trace: Trace
    dataflow: Dataflow
    warp: tuple[int, int] = (1, 19)
    """The Warp version the finding speaks of: `warp-version` of the settings, else the newest known; or the one run."""
    source_of: SourceOf = lambda kernel: None
    """The text of a kernel and the meaning of its names; None where it is not there to be read."""
    lowest: Severity = Severity.INFO
    """The lowest severity that anybody reads."""

    def asks_for(self, severity: Severity) -> bool:
        """Whether findings of this severity are read; what takes long and tells no more than that may be left out."""
        return severity.rank >= self.lowest.rank


Detector = Callable[[Context], Iterable[Finding]]


@dataclass(frozen=True)
class Rule:
    """A rule's only declaration; the README's table, ``warplint rule``, SARIF and the docs are made from it.

    The documentation page is the docstring of the module that declares the rule.
    """

    code: str
    name: str
    summary: str
    group: Group
    severity: Severity
    experiment: Experiment
    since: str
    detect: Detector
    repairs: frozenset[Repair] | None = None
    """The what-if repairs that make the gradient right if the claim is true; None: any, at the place of the claim."""
    claim: TapeClaim | None = None
    """What a run shows beside them if a claim about a tape is true; None: nothing else."""
    harm: BuildHarm = BuildHarm.FEWER_WITH_FIX
    """What counted builds show if a claim about builds is true."""
    source: Source = Source.STATIC
    """The first source that can show the fault: the text, or nothing but a run."""
    draws: tuple[Draw, ...] = ()
    """Inputs on which a kernel alone shows the fault, where ordinary ones do not come to it (zeros, equal values …)."""

    @property
    def documentation(self) -> str:
        """The rule's page, in Markdown."""
        module = sys.modules.get(self.detect.__module__)
        return inspect.cleandoc(module.__doc__ or "") if module else ""
