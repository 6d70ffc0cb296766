"""What the renderers show: findings, and what the programs that were run told. Plain data, as findings are.

``warplint.verify.session`` returns a :class:`Verification`; the command line puts it with the findings into a
:class:`Report`, which a renderer turns into text.
"""

from __future__ import annotations

from collections.abc import Mapping

from warplint.dataclass import dataclass
from warplint.finding import Applicability, Finding, Severity, Span
from warplint.rule import Rule


@dataclass(frozen=True)
class SignatureShown:
    """The class of a wrong gradient: its ``name`` (``zero``, ``factor`` …) and the measurement that tells it, in words.

    ``factor`` is the multiple where it is one; ``operation`` at ``path``, ``line`` (in a notebook, of ``cell``) what it
    begins with, if anything.
    ``right``: it is said of a gradient that is right, and worth a line all the same.
    """

    name: str
    text: str
    factor: float | None = None
    operation: str = ""
    path: str = ""
    line: int = 0
    right: bool = False
    cell: int = 0


@dataclass(frozen=True)
class GradientCheck:
    """One leaf's gradient against finite differences. ``status``: ``pass``, ``fail``, ``flat`` or ``inconclusive``.

    ``backward`` counts the backward calls that gave this leaf a gradient, from 1, and ``backward_line`` is where this
    one stands (in ``backward_path``); 0 where nothing is known of it. ``repeated``: there are several. ``cell`` and
    ``backward_cell``: in a notebook, the cells in which the lines are counted.
    ``unexplained``: it is wrong, and no confirmed finding says by what; then it is something to report by itself.
    """

    leaf: str
    path: str
    line: int
    status: str
    ad: float | None
    fd: float | None
    relative_error: float | None = None
    reason: str = ""
    program: str = ""
    unexplained: bool = False
    backward: int = 0
    backward_path: str = ""
    backward_line: int = 0
    repeated: bool = False
    signature: SignatureShown | None = None
    cell: int = 0
    backward_cell: int = 0

    @property
    def span(self) -> Span:
        """Where the leaf was made."""
        return Span(self.path, self.line, cell=self.cell)


@dataclass(frozen=True)
class BuildCount:
    """How often a module was built by a program in a fresh cache, and again by a second run on the same cache.

    ``why``: what made it be built more often than once, each reason with its line.
    """

    module: str
    cold: int
    warm: int
    program: str = ""
    seconds: float | None = None
    why: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProgramRun:
    """One program that was run. ``problem``: why it could not be judged, or not to its end; empty where it was.

    ``stopped``: where it was stopped because enough was seen (``after 2 iterations``); empty where it ran to its end.
    """

    command: str
    seconds: float
    backward_calls: int
    launches: int
    warp: str = ""
    device: str = ""
    problem: str = ""
    notes: tuple[str, ...] = ()
    stopped: str = ""
    more: str = ""
    """The option that would have it see more."""


@dataclass(frozen=True)
class Verification:
    """What running the programs told. ``findings`` are those asked about, with verdicts, and those only a run showed.

    ``errors`` are problems that belong to no program that was run: a command that cannot be started, no Warp in the
    interpreter. Where one of them or a program's ``problem`` is not empty, the exit status is not 0.
    """

    findings: tuple[Finding, ...] = ()
    gradients: tuple[GradientCheck, ...] = ()
    builds: tuple[BuildCount, ...] = ()
    programs: tuple[ProgramRun, ...] = ()
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What the reader must know of all of it: a file that was named, but not run."""

    @property
    def unexplained(self) -> tuple[GradientCheck, ...]:
        """The gradients that are wrong without a finding that says by what."""
        return tuple(check for check in self.gradients if check.unexplained)

    @property
    def judged(self) -> bool:
        """Whether every program could be judged."""
        return not self.errors and not any(program.problem for program in self.programs)


@dataclass(frozen=True)
class Report:
    """All that is shown. ``findings`` are what ``severity`` admits; ``hidden`` counts those it does not, of
    those that were looked for all the same.

    ``known`` counts those that the baseline holds, ``gone`` what it holds and is no longer found.
    ``verification`` is None without ``--verify``. ``statistics`` are the lines of ``--statistics`` by name.
    ``applicable`` are the fixes that ``--fix`` would make with these options; ``fixed`` counts those that it made.
    """

    findings: tuple[Finding, ...]
    files: int
    warp: str
    severity: Severity = Severity.WARNING
    hidden: int = 0
    suppressed: int = 0
    known: int = 0
    gone: int = 0
    rules: tuple[Rule, ...] = ()
    verification: Verification | None = None
    errors: tuple[str, ...] = ()
    statistics: Mapping[str, int] | None = None
    applicable: frozenset[Applicability] = frozenset({Applicability.SAFE})
    fixed: int = 0
