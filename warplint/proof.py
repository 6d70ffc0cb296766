"""How a claim is proved: what a rule may ask of a run, and what a run may answer.

A rule declares these; ``verify`` carries them out. The engine knows no rule's code: everything that it needs to know
of a claim is said in these words.
"""

from __future__ import annotations

import enum


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
    HOST = "host"
    """What the host wrote on a tape's array gets an adjoint, where the tape lets the gradient pass it over."""
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
    BY_HOST = "by-host"
    """Data that hang on the leaf went to the host and came back, and the program run again sees more than the tape."""
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
