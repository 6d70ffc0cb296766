"""What bounds the interpretation of one file, and which Warp it is judged by."""

from __future__ import annotations

import dataclasses

from warplint.dataclass import dataclass


@dataclass(frozen=True)
class TraceSettings:
    """Limits of one run of one root, and the version of Warp that the rules speak of.

    ``steps`` counts statements, calls and items of comprehensions, ``steps_before_tape`` those of a run that has not
    taped anything yet, ``steps_ahead`` those that a loop may have ahead of it where the program can be run in small
    instead, ``launches`` kernel launches, ``depth`` the nesting of calls. ``rounds`` bounds a loop of known
    count, ``items`` a comprehension; ``unknown_rounds`` is how often a loop of unknown count runs. There is no limit of
    time: what is found in a file must not depend on how busy the machine is.
    """

    warp: tuple[int, int] = (1, 19)
    steps: int = 120_000
    steps_before_tape: int = 50_000
    steps_ahead: int = 8_000
    launches: int = 3_000
    depth: int = 24
    rounds: int = 600
    items: int = 2048
    unknown_rounds: int = 3

    def for_functions(self) -> TraceSettings:
        """For functions that are started on their own and open no tape themselves: theirs comes soon, or never."""
        return dataclasses.replace(self, steps_before_tape=self.steps_before_tape // 2)

    def brief(self) -> TraceSettings:
        """For a file in which nothing can be taped: options, modules and kernels show early in a run."""
        steps, launches = min(self.steps, 1_500), min(self.launches, 300)
        return dataclasses.replace(self, steps=steps, steps_before_tape=steps, launches=launches)


DEFAULT = TraceSettings()
