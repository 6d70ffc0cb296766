"""``python -m tests.bench FOLDER…``: the table of ratios that the design promises, measured in one run.

The folders hold what is linted, the installed distributions of ``newton`` and ``warp`` for the figures of the design.
Nothing is downloaded. Rows about running programs come from further functions of :data:`SOURCES`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tests.bench.builds_overhead import build_rows
from tests.bench.rows import Row, show
from tests.bench.static_rows import static_rows
from tests.bench.verify_rows import verify_rows

SOURCES: tuple[Callable[[Sequence[Path], int], Iterable[Row]], ...] = (static_rows, build_rows, verify_rows)
"""What measures rows: from the folders given, and from how often to repeat a measurement."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="folders (or files) to lint")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each measurement, of which the least counts")
    options = parser.parse_args()
    folders = [folder.absolute() for folder in options.folders]
    print(show(row for source in SOURCES for row in source(folders, options.repeat)))


if __name__ == "__main__":
    main()
