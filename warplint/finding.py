"""What warplint reports: plain, frozen data that every other room may use.

A :class:`Finding` is a claim about one place in the user's source. Its labels are the other places of the fault, its
verdict (only after ``--verify``) is what a measurement said about the claim. Renderers, suppressions, caches and the
verifier read these classes; none of them adds a field of its own.

Lines and columns are 1-based, columns count characters. flake8's 0-based columns are made in ``flake8_plugin.py``.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import field

from warplint.dataclass import dataclass
from warplint.proof import Experiment


class Severity(str, enum.Enum):
    """How sure and how grave a finding is: ``info`` is hidden by default, ``error`` is a claim that a run confirmed."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """0 for info, 1 for warning, 2 for error."""
        return ("info", "warning", "error").index(self.value)


class Source(str, enum.Enum):
    """Where a finding came from: read from the source text, or seen only while the program ran."""

    STATIC = "static"
    RUNTIME = "runtime"


class Role(str, enum.Enum):
    """What a label's place does in the fault."""

    READ = "read"
    WRITE = "write"
    ALLOCATION = "allocation"
    KERNEL = "kernel"
    LAUNCH = "launch"
    TAPE = "tape"
    BACKWARD = "backward"
    OPTION = "option"
    NOTE = "note"


class Status(str, enum.Enum):
    """What a run said about a finding. Never guessed: each carries figures or a reason."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    NOT_REACHED = "not-reached"
    INCONCLUSIVE = "inconclusive"


CELL = ":cell "
"""Between a notebook and the number of its cell, as other linters write it."""


@dataclass(frozen=True, order=True)
class Span:
    """A place in a file. ``path`` is as the user gave it (or relative to the working directory), with ``/``.

    ``end_line`` 0 means "the same line", ``end_column`` 0 means "to the end of that line". ``cell``: of a report on a
    notebook, the cell that the lines are counted in, from 1; 0 in all other files, and as long as rules are at work.
    """

    path: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0
    cell: int = 0

    @property
    def file(self) -> str:
        """The file, and its cell where it is a notebook, as it is shown: ``train.py``, ``train.ipynb:cell 3``."""
        return f"{self.path}{CELL}{self.cell}" if self.cell else self.path


@dataclass(frozen=True)
class Label:
    """Another place of the fault: "read here by `step`"."""

    span: Span
    role: Role
    text: str


@dataclass(frozen=True)
class Edit:
    """Replace the text from (line, column) up to (end_line, end_column), exclusive, by ``content``."""

    span: Span
    content: str


@dataclass(frozen=True)
class KeywordChange:
    """What a fix asks of the call at ``call``: ``keyword=value`` in it; without ``keyword`` where ``value`` is None.

    Where a bare name stands at that place (a decorator with a name of its own), the call that made it is meant. A
    decorator that is left without arguments loses its parentheses too. ``position``: that of the parameter among
    positional arguments; a call that gives it so, or may (``*``, ``**``), is left alone, and so is a value that is
    no constant.
    """

    call: Span
    keyword: str
    value: str | None
    position: int | None = None


class Applicability(str, enum.Enum):
    """Whether a fix keeps the program's meaning (safe), may change it (unsafe), or is only shown (display)."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


@dataclass(frozen=True)
class Fix:
    """A repair as text edits in one or several files; the edits of one fix are applied together or not at all.

    A rule, which knows the place but not the text, says ``changes``; ``warplint.fix`` makes the edits when wanted.
    """

    applicability: Applicability
    title: str
    edits: tuple[Edit, ...] = ()
    changes: tuple[KeywordChange, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """A measurement's answer. ``figures`` are JSON values: ``ad``, ``fd``, ``relative_error``, ``builds_cold`` …"""

    status: Status
    reason: str
    experiment: Experiment
    figures: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Anchor:
    """What ties a finding to a measurement besides its line: the memory, the writer, the kernel, the module or option.

    A static and a recorded finding that name one fault may stand on different lines (the swap against the launch), but
    they agree on where the memory was allocated and where it was written.
    """

    allocation: Span | None = None
    write: Span | None = None
    read: Span | None = None
    kernel: Span | None = None
    module: str | None = None
    option: str | None = None
    arguments: tuple[str, ...] = ()
    """Parameters of the kernel whose adjoint the claim is about; empty: any of them."""
    factor: float | None = None
    """How many times the right gradient the program computes, where the claim says so."""


@dataclass(frozen=True)
class Finding:
    """One claim about one place, with its explanation, its repair and, after a run, its verdict.

    ``noqa_line`` is the line on which flake8 looks for a ``noqa`` comment (the first line of the logical string or
    expression); 0 means the finding's own line.
    """

    code: str
    name: str
    severity: Severity
    span: Span
    message: str
    labels: tuple[Label, ...] = ()
    source: Source = Source.STATIC
    fix: Fix | None = None
    noqa_line: int = 0
    anchor: Anchor = Anchor()
    verdict: Verdict | None = None

    def is_fixable(self, applicable: Collection[Applicability]) -> bool:
        """Whether there is something to edit, and fixes of its kind are admitted."""
        return self.fix is not None and bool(self.fix.edits) and self.fix.applicability in applicable

    @property
    def sort_key(self) -> tuple[str, int, int, str]:
        """Path, then position, then code: the order in which every renderer shows findings (before cells are told)."""
        return (self.span.path, self.span.line, self.span.column, self.code)
