"""Files in, findings out: each file is interpreted, the rules look at its traces, and the results are put together.

Whatever fails on one file is one finding NVW900 at that file; the other files are checked all the same.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from warplint.cache import Cache
from warplint.config import Settings
from warplint.dataclass import dataclass
from warplint.finding import Finding, Severity
from warplint.hygiene.unreadable import UNREADABLE, failed, unreadable
from warplint.imports import ImportClosure, closure_of
from warplint.lookups import Beyond, beyond, holds
from warplint.rule import Context, Rule
from warplint.screen import TOP_LEVEL, Reached, Screen, Spelling, merged
from warplint.source import SourceFile, Unreadable
from warplint.trace.dataflow import Dataflow
from warplint.trace.events import Launch, Trace
from warplint.trace.settings import TraceSettings

if TYPE_CHECKING:
    from warplint.project import Module, Project
    from warplint.trace.interpreter import Interpretation

FEWEST_FOR_POOL = 8
"""Files. Below, starting processes costs more than they save."""


class Interpret(Protocol):
    """What makes the traces of one file (``warplint.trace.interpreter.interpret``)."""

    def __call__(self, path: str, project: Project, settings: TraceSettings) -> tuple[Interpretation, ...]:
        """The possible runs of the program whose entry is ``path``, and of its roots."""
        ...


ProjectOf = Callable[[tuple[str, ...], tuple[SourceFile, ...]], "Project"]
"""Makes the project of some folders, with some files (editors' buffers) standing for those on the disk."""


@dataclass(frozen=True)
class Engine:
    """What looks at a file: the rules, and how its traces and its project are made."""

    rules: tuple[Rule, ...]
    interpret: Interpret
    project_of: ProjectOf


@dataclass(frozen=True)
class FileReport:
    """All that one entry file told, whatever is selected, down to a severity: this is what the cache keeps.

    ``traces`` and the numbers after it are for ``--statistics``: runs interpreted, those that the budget cut short,
    their events, and the places that the interpreter gave up. ``beyond`` is what else the file rests on.
    """

    path: str
    findings: tuple[Finding, ...] = ()
    reached: Reached = frozenset()
    traces: int = 0
    cut: int = 0
    events: int = 0
    unknowns: int = 0
    beyond: Beyond = field(default_factory=Beyond)


@dataclass(frozen=True)
class Reported:
    """Findings of every severity that no comment silences, and how many comments silenced."""

    findings: tuple[Finding, ...]
    suppressed: int


@dataclass(frozen=True)
class LintResult:
    """What was found. ``selected``: findings of rules that are on; a run is asked about these, silenced or not."""

    selected: tuple[Finding, ...]
    reports: tuple[FileReport, ...]
    screen: Screen = field(repr=False)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is reported where nothing is run."""
        return self.reported(self.selected).findings

    def reported(self, findings: Iterable[Finding]) -> Reported:
        """What is reported of these findings (with their verdicts, perhaps), the unused comments with them."""
        selected = self.screen.selected(findings)
        kept = self.screen.unsuppressed(selected)
        reached = frozenset().union(*(report.reached for report in self.reports))
        unused = self.screen.unused_comments([report.path for report in self.reports], reached)
        ordered = sorted([*kept, *unused], key=lambda finding: finding.sort_key)
        return Reported(tuple(ordered), len(selected) - len(kept))


def standard_engine() -> Engine:
    """The rules that are installed, and the interpreter."""
    from warplint.catalogue import catalogue
    from warplint.trace.interpreter import interpret

    return Engine(catalogue(), interpret, project_of)


def project_of(folders: tuple[str, ...], texts: tuple[SourceFile, ...]) -> Project:
    """The files below ``folders`` and what they import, ``texts`` in the place of files on the disk."""
    from warplint.project import Project

    project = Project.for_paths(folders)
    for text in texts:
        project.add(text)
    return project


def lint(
    paths: Sequence[str],
    settings: Settings,
    *,
    engine: Engine | None = None,
    cache: Cache | None = None,
    jobs: int = 1,
    texts: Sequence[SourceFile] = (),
    lowest: Severity = Severity.INFO,
) -> LintResult:
    """Check the files ``paths``, as ``discovery`` found them, and ``texts``, which do not come from the disk.

    ``jobs`` > 1 spreads the files over processes. ``lowest``: findings below this severity nobody reads, so that some
    may be left out; but not where comments name rules, since what these silence must be known.
    """
    engine = engine or standard_engine()
    entries = tuple(dict.fromkeys([*paths, *(text.path for text in texts)]))
    folders = tuple(dict.fromkeys(import_root(folder) for folder in {os.path.dirname(path): None for path in entries}))
    task = Task(folders, tuple(texts), settings, engine, lowest)
    project = task.project()
    reports = tuple(_reports(entries, project, task, cache, jobs))
    spelling = Spelling(entries)
    screen = Screen(settings, engine.rules, project, entries)
    found = merged(spelling.finding(finding) for report in reports for finding in report.findings)
    return LintResult(screen.selected(found), reports, screen)


def import_root(folder: str) -> str:
    """The folder that the imports of files in ``folder`` start from: above the packages it lies in.

    Every folder given to a project is searched for every import, so that they must be few.
    """
    folder = folder or os.curdir
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(os.path.abspath(folder))
    return folder


def examine(path: str, project: Project, closure: ImportClosure, task: Task) -> FileReport:
    """Interpret one file and let every rule look at each of its traces. Never raises."""
    try:
        module = project.module(path)
        concerned = concerns_warp(module, closure)
        if concerned or not module.source.is_too_large:  # generated data without Warp in it need not be checked
            _ = module.tree
        if not concerned:
            return FileReport(path, reached=_top_level(path, project))
        interpretations = task.engine.interpret(path, project, TraceSettings(warp=task.settings.warp_version))
    except Unreadable as error:
        return FileReport(path, (unreadable(path, error),))
    except Exception as error:
        return FileReport(path, (failed(path, error),))
    traces = [each.trace for each in interpretations]
    lowest = Severity.INFO if module.source.may_name_our_codes else task.lowest
    return FileReport(
        path,
        merged(found for each in interpretations for found in judge(each, task.settings, task.engine.rules, lowest)),
        _top_level(path, project).union(*(reached(trace, project) for trace in traces)),
        traces=len(traces),
        cut=sum(trace.cut for trace in traces),
        events=sum(len(trace.events) for trace in traces),
        unknowns=sum(len(trace.unknowns) for trace in traces),
        beyond=beyond(project, closure, module),
    )


def concerns_warp(module: Module, closure: ImportClosure) -> bool:
    """Whether the file or anything that it imports in the project can have to do with Warp."""
    return module.source.mentions_warp or any(each.source.mentions_warp for each in closure.of(module))


def judge(
    interpretation: Interpretation, settings: Settings, rules: Iterable[Rule], lowest: Severity = Severity.INFO
) -> Iterator[Finding]:
    """The findings of all rules on one trace; a rule that fails is one finding NVW900 that names it."""
    trace = interpretation.trace
    dataflow = Dataflow(trace, interpretation.summary_of)
    context = Context(trace, dataflow, settings.warp_version, interpretation.source_of, lowest)
    for rule in rules:
        try:
            yield from tuple(rule.detect(context))
        except Exception as error:
            yield failed(trace.path, RuntimeError(f"{rule.code} {rule.name}: {type(error).__name__}: {error}"))


def reached(trace: Trace, project: Project) -> Reached:
    """The functions that the events of a trace went through, kernels among them, of files whose comments name us."""
    frames = {(frame.span.path, frame.function) for event in trace.events for frame in event.stack}
    kernels = {event.kernel for event in trace.events if isinstance(event, Launch) and event.kernel is not None}
    frames |= {(kernel.span.path, kernel.name) for kernel in kernels}
    commented = {path for path in {path for path, _ in frames} if _is_commented(path, project)}
    return frozenset(frame for frame in frames if frame[0] in commented)


def _top_level(path: str, project: Project) -> Reached:
    return frozenset({(path, TOP_LEVEL)} if _is_commented(path, project) else ())


def _is_commented(path: str, project: Project) -> bool:
    try:
        return project.module(path).source.may_name_our_codes
    except Unreadable:
        return False


@dataclass(frozen=True)
class Task:
    """What a process needs to examine files of one run."""

    folders: tuple[str, ...]
    texts: tuple[SourceFile, ...]
    settings: Settings
    engine: Engine
    lowest: Severity

    def project(self) -> Project:
        """A project of its own, which each process makes for itself."""
        return self.engine.project_of(self.folders, self.texts)


def _reports(
    paths: Sequence[str], project: Project, task: Task, cache: Cache | None, jobs: int
) -> Iterator[FileReport]:
    closure = closure_of(project)
    keys = {path: _key(path, project, closure, task, cache) for path in paths} if cache else {}
    found = ((path, cache.get(key, FileReport)) for path, key in keys.items() if key and cache)
    known = {
        path: report
        for path, report in found
        if report is not None and holds(report.beyond, project, closure, project.module(path))
    }
    todo = [path for path in paths if path not in known]
    for report in _examined(todo, project, closure, task, jobs):
        known[report.path] = report
        if cache and keys[report.path] and not any(finding.code == UNREADABLE.code for finding in report.findings):
            cache.put(keys[report.path], report)
    yield from (known[path] for path in paths)


def _key(path: str, project: Project, closure: ImportClosure, task: Task, cache: Cache) -> str:
    """The cache's key of a file; ``""`` for one that cannot be read, which is never kept."""
    try:
        return cache.key(path, closure.digest(project.module(path)) + task.lowest.value.encode())
    except Unreadable:
        return ""


def _examined(
    todo: Sequence[str], project: Project, closure: ImportClosure, task: Task, jobs: int
) -> Iterator[FileReport]:
    if jobs <= 1 or len(todo) < FEWEST_FOR_POOL:
        _parse(todo, project)
        yield from (_examine_alone(path, project, closure, task) for path in todo)
        return
    size = max(1, min(16, len(todo) // (4 * jobs)))
    parts = [tuple(todo[at : at + size]) for at in range(0, len(todo), size)]
    from concurrent.futures import ProcessPoolExecutor  # a quarter of the start-up time of a single file

    with ProcessPoolExecutor(min(jobs, len(parts))) as pool:
        for future in [pool.submit(_examine_part, part, task) for part in parts]:
            yield from future.result()


def _examine_part(part: tuple[str, ...], task: Task) -> list[FileReport]:
    gc.disable()  # as in the process that started this one
    project, closure = _project_of_process(task)
    _parse(part, project)
    return [_examine_alone(path, project, closure, task) for path in part]


def _parse(paths: Iterable[str], project: Project) -> None:
    """Parse the files to be examined before anything leaves garbage.

    Their trees, millions of objects, then stay out of what is looked through for garbage after each file.
    """
    for path in paths:
        try:
            module = project.module(path)
            _ = None if module.source.is_too_large else module.tree
        except Unreadable:
            continue  # told when the file is examined
    gc.freeze()


def _examine_alone(path: str, project: Project, closure: ImportClosure, task: Task) -> FileReport:
    """Examine a file and give back what its traces took: the objects made since the last file are looked through."""
    report = examine(path, project, closure, task)
    gc.collect(0)
    return report


@lru_cache(maxsize=1)
def _project_of_process(task: Task) -> tuple[Project, ImportClosure]:
    """One project for all the parts that a process gets: parsing the same imports again would cost the most."""
    project = task.project()
    return project, closure_of(project)
