"""What warplint reports: plain, frozen data that every other room may use.

A :class:`Finding` is a claim about one place in the user's source. Its labels are the other places of the fault, its
verdict (only after ``--verify``) is what a measurement said about the claim. Renderers, suppressions, caches and the
verifier read these classes; none of them adds a field of its own.

Lines and columns are 1-based, columns count characters. flake8's 0-based columns are made in ``flake8_plugin.py``.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field


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


class Experiment(str, enum.Enum):
    """The measurement that proves or refutes a rule's findings (rules name it; ``verify`` carries it out)."""

    FINITE_DIFFERENCE = "finite-difference"
    KERNEL_CHECK = "kernel-check"
    FLAT_GRADIENT = "flat-gradient"
    NONSMOOTH_POINT = "nonsmooth-point"
    ADJOINT_CHECK = "adjoint-check"
    RUN_ON = "run-on"
    BUILD_COUNT = "build-count"
    OPTION_VALUE = "option-value"
    NONE = "none"


class Repair(str, enum.Enum):
    """What-if repairs of a replayed adjoint: the one that makes a gradient right tells what was wrong with it."""

    MEMORY = "memory"
    """Perfect memory: each entry's inputs are restored to their bytes at forward time before its adjoint runs."""
    GRADIENT = "gradient"
    """Arrays without a gradient on the path get one."""
    RETAIN = "retain"
    """`retain_grad` off: every store consumes the destination's adjoint."""
    CHAIN = "chain"
    """The adjoints of the group's tapes are chained backwards through time, across tapes."""
    FRESH = "fresh"
    """Gradients start from zero: what the program consumed held something of before."""
    ONCE = "once"
    """Recorded operations that repeat an earlier one (re-entered tape, launch doubled) run their adjoint once."""
    CUT = "cut"
    """Writes that no tape records (``zero_``, ``fill_``, uploads) consume the destination's adjoint."""
    ARGUMENTS = "arguments"
    """Each launch's adjoint is given the arguments of the launch, not what its list and structs hold now."""
    KERNEL = "kernel"
    """Kernels whose own adjoint is wrong get one by finite differences."""
    TAPED = "taped"
    """Launches and copies that no tape recorded (outside the block, ``record_tape=False``) run their adjoint too."""


class TapeClaim(str, enum.Enum):
    """What a run shows, beside what-if repairs, if a claim about a tape is true."""

    BROKEN_CHAIN = "broken-chain"
    """Finite differences see an influence of the leaf that passes where no adjoint can."""
    PARTED_ALIAS = "parted-alias"
    """As a broken chain, where the claim names no value that was read and then destroyed."""
    SEVERED_COPY = "severed-copy"
    """The memory that is updated is read by nothing."""
    UNSEEDED = "unseeded"
    """The backward began, and no gradient on its tape held anything."""
    LEFT_OVER = "left-over"
    """One recording was walked several times from one loss."""
    STALE_READING = "stale-reading"
    """The gradient is another when it is read than when the backward has made it."""
    OTHER_SEED = "other-seed"
    """The gradient is right for what was seeded, and a multiple of that of the loss that is reported."""
    WITHIN_LAUNCH = "within-launch"
    """The adjoint of the launch alone is wrong: its threads do it to each other, and no memory put back helps."""


class BuildHarm(str, enum.Enum):
    """What the counted builds of a run show, if a claim about builds is true."""

    BUILT_AGAIN = "built-again"
    """One module was built with several contents in one run."""
    OPTION_UNHEARD = "option-unheard"
    """A module was built with another value than the one asked for, or built once more for it."""
    SECOND_RUN = "second-run"
    """The same program builds again when it is started a second time on its own cache."""
    NEEDLESS_ADJOINT = "needless-adjoint"
    """Modules hold adjoints, and no backward pass ran."""
    SMALL_MODULES = "small-modules"
    """Several modules of one kernel each were built with equal options."""
    HEADER_AGAIN = "header-again"
    """Several modules were built without a precompiled header."""
    LARGE_SOURCE = "large-source"
    """The module's generated source is large."""
    THREADS_ON_CPU = "threads-on-cpu"
    """Modules were built for the CPU by several threads at the same time."""
    UNUSED_MODULES = "unused-modules"
    """Modules were built of which no kernel was launched."""
    LINKS = "links"
    """Link-time artifacts took most of the module's build."""
    ONE_BY_ONE = "one-by-one"
    """Several modules were built for CUDA, and no two builds overlapped."""
    BLOCK_SIZES = "block-sizes"
    """One module was built for several block sizes in one run."""
    FEWER_WITH_FIX = "fewer-with-fix"
    """The same run with the finding's fix applied to a copy of the project builds less often."""


class Draw(str, enum.Enum):
    """A kind of values for the floating-point inputs of a kernel that is checked alone.

    The first three are what every kernel is checked on: away from zeros, ties and singular points. The others a rule
    asks for, where its claim is about what happens there.
    """

    ANY_SIGN = "values of both signs"
    POSITIVE = "positive values"
    SMALL = "values between 0 and 1"
    NEGATIVE = "negative values"
    ZEROS = "zeros among the values"
    TIES = "equal values"
    LARGE = "large values"


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


@dataclass(frozen=True, order=True)
class Span:
    """A place in a file. ``path`` is as the user gave it (or relative to the working directory), with ``/``.

    ``end_line`` 0 means "the same line", ``end_column`` 0 means "to the end of that line".
    """

    path: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0


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
        """Path, then position, then code: the order in which every renderer shows findings."""
        return (self.span.path, self.span.line, self.span.column, self.code)
