"""What fixtures show under older versions of Warp besides what they say on their own lines, and why it is true there.

Each was measured by running the program plainly under that version, its parameter moved to both sides (AD is what it
prints, FD the central difference of what it prints), on 1.13, 1.15, 1.17, 1.18 and 1.19.
"""

from __future__ import annotations

from dataclasses import dataclass

Version = tuple[int, ...]
Told = tuple[int, str, str]
"""Line, code, verdict."""


@dataclass(frozen=True)
class Difference:
    """Up to version ``until`` a fixture shows ``more`` and lacks ``less``; from ``since`` on it is as it says.

    ``wrong`` are the leaves of a good program whose gradient is wrong there.
    """

    program: str
    until: Version
    since: Version
    why: str
    more: tuple[Told, ...] = ()
    less: tuple[Told, ...] = ()
    wrong: tuple[str, ...] = ()


COPIES = "the adjoint of a copy assigns its source's gradient and leaves that of its destination"
CAPTURED = "a tape cannot be run backward while a graph is captured: the program raises"
DIFFERENCES = (
    Difference(
        "component-reassign/good_array_components.py",
        (1, 13),
        (1, 15),
        "stores to components of array elements have no adjoint: AD 0, FD 4.520",
        more=((14, "NVW202", "confirmed"), (15, "NVW202", "confirmed")),
        wrong=("p",),
    ),
    Difference(
        "missing-tape-zero/bad_captured_once.py",
        (1, 13),
        (1, 15),
        CAPTURED,
        more=((30, "NVW121", "not-reached"),),
        less=((30, "NVW121", "confirmed"),),
    ),
    Difference(
        "missing-tape-zero/bad_captured_trainer.py",
        (1, 13),
        (1, 15),
        CAPTURED,
        more=((37, "NVW121", "not-reached"),),
        less=((37, "NVW121", "confirmed"),),
    ),
    Difference(
        "missing-requires-grad/good_inherited_flags.py",
        (1, 16),
        (1, 17),
        f"{COPIES}: AD 4.415, FD 4.241",
        more=((31, "NVW102", "inconclusive"),),
        wrong=("c",),
    ),
    Difference(
        "overwrite-copy/good_history_kept.py",
        (1, 16),
        (1, 17),
        f"{COPIES}: AD 0, FD 0.0893",
        more=((28, "NVW102", "inconclusive"),),
        wrong=("start",),
    ),
    Difference(
        "overwrite-copy/good_linear_stage.py",
        (1, 16),
        (1, 17),
        f"{COPIES}: AD 8.859, FD 0.942",
        more=((27, "NVW102", "inconclusive"),),
        wrong=("start",),
    ),
    Difference(
        "overwrite-copy/good_put_back_unchanged.py",
        (1, 16),
        (1, 17),
        COPIES,
        more=((28, "NVW102", "confirmed"),),
        wrong=("u",),
    ),
    Difference(
        "unrecorded-write/good_copy_with_gradients.py",
        (1, 16),
        (1, 17),
        f"{COPIES}: the part of `y` that was copied over keeps a gradient; that of `x` is right",
        wrong=("y",),
    ),
    Difference(
        "dynamic-loop/good_unrolled.py",
        (1, 18),
        (1, 19),
        "a `continue` keeps a loop from being unrolled: AD 0.903, FD 1.090",
        more=((24, "NVW203", "confirmed"),),
        wrong=("gain",),
    ),
    Difference(
        "func-grad-assign/bad_shared_element.py",
        (1, 17),
        (1, 19),
        "the adjoint is wrong by itself as well (AD 4.8, FD 9.6 under every version)",
        more=((13, "NVW210", "confirmed"),),
    ),
    Difference(
        "inplace-mul/bad_inside_function.py",
        (1, 17),
        (1, 19),
        "told of the function that runs again as well (AD -0.0867, FD -0.3335 under every version)",
        more=((9, "NVW209", "confirmed"),),
    ),
    Difference(
        "backward-disabled/bad_config_at_the_top.py",
        (1, 17),
        (1, 19),
        "no leaf is seen where no kernel has backward code (AD 0, FD -0.493 under every version)",
        more=((4, "NVW114", "inconclusive"),),
        less=((4, "NVW114", "confirmed"),),
    ),
)


def difference_of(program: str, version: Version) -> Difference | None:
    """What is known to differ there; None: nothing."""
    return next((each for each in DIFFERENCES if each.program == program and version < each.since), None)


def is_measured(difference: Difference, version: Version) -> bool:
    """Whether the version lies on one of the sides that were measured."""
    return version <= difference.until or version >= difference.since
