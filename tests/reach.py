"""``python -m tests.reach FOLDER…``: how much of what is taped the interpreter follows, and why it gives up the rest.

A *tape region* is a ``with`` statement over a tape, as it stands in the text. It is *entered* where some trace comes
there, and *followed* where one trace leaves it again with the kernel and the arrays of all its launches known; *stood
in* where that needs arrays that stand for what the caller of a function gives, which nobody in these files is. A
*taped launch* is the place of a launch that some trace has on a tape. A file counts for the longest of the folders
given that it lies in, so that tests can be told from the library around them.
"""

from __future__ import annotations

import argparse
import ast
import gc
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from warplint.lint import import_root, project_of
from warplint.project import Project
from warplint.source import Unreadable
from warplint.trace.events import Launch, TapeEntered, TapeLeft, Trace
from warplint.trace.interpreter import interpret

Site = tuple[str, int]
"""Path and line."""

_TEXT = 60


@dataclass
class Count:
    """What was seen of the files of one folder."""

    regions: set[Site] = field(default_factory=set)
    entered: set[Site] = field(default_factory=set)
    followed: set[Site] = field(default_factory=set)
    known_to_the_end: set[Site] = field(default_factory=set)
    """Those of ``followed`` in which no array stands for one of the caller's."""
    launches: set[Site] = field(default_factory=set)
    known: set[Site] = field(default_factory=set)
    roots: int = 0
    cut: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """Why launches on tapes, losses and seeds were given up: places, by reason."""

    @property
    def row(self) -> str:
        """The line of the table."""
        share = f"{len(self.followed) / len(self.regions):.0%}" if self.regions else "-"
        stood_in = len(self.followed) - len(self.known_to_the_end)
        parts = [len(self.regions), len(self.entered), len(self.followed), share, stood_in]
        return " | ".join(map(str, [*parts, len(self.launches), len(self.known), self.roots, self.cut]))


def regions(tree: ast.Module, path: str) -> Iterator[Site]:
    """The ``with`` statements over tapes, by the line of the tape's expression."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                expression = item.context_expr
                named = expression.func if isinstance(expression, ast.Call) else expression
                name = named.attr if isinstance(named, ast.Attribute) else getattr(named, "id", "")
                if name == "Tape" if isinstance(expression, ast.Call) else name.lower().endswith("tape"):
                    yield path, expression.lineno


@dataclass(frozen=True)
class Visit:
    """One stay in a tape region: where it is, whether it was left with all its launches known, without stand-ins."""

    site: Site
    followed: bool
    known: bool


def visits(trace: Trace) -> Iterator[Visit]:
    """The stays in tape regions of one trace."""
    inside: dict[int, Visit] = {}
    for event in trace.events:
        if isinstance(event, TapeEntered):
            inside[event.tape] = Visit(_site(event.span), True, True)
        elif isinstance(event, TapeLeft) and event.tape in inside:
            yield inside.pop(event.tape)
        elif isinstance(event, Launch) and event.active_tape in inside and not event.complete:
            before = inside[event.active_tape]
            inside[event.active_tape] = Visit(before.site, before.followed and event.stood_in, False)
    yield from (Visit(each.site, False, False) for each in inside.values())


def _site(span: object) -> Site:
    return (os.path.realpath(getattr(span, "path", "")), getattr(span, "line", 0))


def measure(folders: Sequence[Path], verbose: bool) -> dict[Path, Count]:
    """Interpret every file below the folders that can have to do with Warp."""
    files = sorted({file for folder in folders for file in folder.rglob("*.py")})
    owner = {file: max((f for f in folders if f in file.parents), key=lambda f: len(f.parts)) for file in files}
    counts = {folder: Count() for folder in folders}
    roots = tuple(dict.fromkeys(import_root(str(file.parent)) for file in files))
    project = project_of(roots, ())
    for file in files:
        _count(file, project, counts[owner[file]], verbose)
    _spread(counts)
    return counts


def _count(file: Path, project: Project, count: Count, verbose: bool) -> None:
    try:
        module = project.module(str(file))
        if not module.source.mentions_warp:
            return
        count.regions |= set(regions(module.tree, os.path.realpath(file)))
        found = interpret(str(file), project)
    except Unreadable:
        return
    for interpretation in found:
        trace = interpretation.trace
        count.roots += 1
        count.cut += trace.cut
        for visit in visits(trace):
            count.entered.add(visit.site)
            count.followed |= {visit.site} if visit.followed else set()
            count.known_to_the_end |= {visit.site} if visit.known else set()
        for event in trace.events:
            if isinstance(event, Launch) and event.active_tape is not None:
                count.launches.add(_site(event.span))
                count.known |= {_site(event.span)} if event.complete or event.stood_in else set()
        count.reasons.update({f"{unknown.why}: {unknown.text[:_TEXT]!r}" for unknown in trace.unknowns})
        if verbose and (trace.cut or trace.unknowns):
            print(f"{file}: {dict(interpretation.statistics)}")
            for unknown in trace.unknowns[:6]:
                print(f"    {unknown.span.path}:{unknown.span.line}: {unknown.text[:_TEXT]!r}: {unknown.why}")


def _spread(counts: dict[Path, Count]) -> None:
    """What was entered from another folder's file counts where it stands."""
    entered = set().union(*(count.entered for count in counts.values()))
    followed = set().union(*(count.followed for count in counts.values()))
    known = set().union(*(count.known_to_the_end for count in counts.values()))
    for count in counts.values():
        count.entered, count.followed = count.regions & entered, count.regions & followed
        count.known_to_the_end = count.regions & known


def table(counts: dict[Path, Count]) -> Iterable[str]:
    """The table in Markdown."""
    yield "| folder | tape regions | entered | followed | share | stood in | taped launches | known | traces | cut |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for folder, count in counts.items():
        yield f"| {folder.name} | {count.row} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.reach", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--reasons", type=int, default=0, metavar="N", help="the N most frequent reasons by folder")
    parser.add_argument("--missed", action="store_true", help="the regions that were not followed")
    parser.add_argument("--verbose", action="store_true", help="each root that was cut or met something unknown")
    options = parser.parse_args()
    gc.disable()
    counts = measure([folder.absolute() for folder in options.folders], options.verbose)
    print("\n".join(table(counts)))
    for folder, count in counts.items():
        for reason, times in count.reasons.most_common(options.reasons):
            print(f"{folder.name}: {times} times {reason}")
        for path, line in sorted(count.regions - count.followed) if options.missed else ():
            state = "entered" if (path, line) in count.entered else "never entered"
            print(f"{path}:{line}: {state}")


if __name__ == "__main__":
    main()
