"""``--verify`` and ``gradcheck``: run the programs, let the rules look at what was recorded, judge, report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from warplint import catalogue
from warplint.config import Settings
from warplint.dataclass import dataclass
from warplint.discovery import Discovered
from warplint.finding import Finding, Status, Verdict
from warplint.lint import judge as apply_rules
from warplint.project import Project
from warplint.proof import Experiment
from warplint.report import words
from warplint.report.model import BuildCount, GradientCheck, ProgramRun, SignatureShown, Verification
from warplint.rule import Rule
from warplint.runner import memory_limit
from warplint.runner.command import Command, CommandError, parse
from warplint.runner.process import Limits
from warplint.runner.protocol import EntryKind
from warplint.runner.result import RunResult
from warplint.runner.run import RunOptions, check_kernels, run
from warplint.trace.interpretation import Interpretation
from warplint.verify.child_processes import judged_children, unjudged_children
from warplint.verify.declared import experiment_of
from warplint.verify.evidence import Evidence
from warplint.verify.keeping import keep_scripts
from warplint.verify.plan import kernel_targets, plan, reaches
from warplint.verify.records import Gradient, GradientStatus, KernelCheck, Note, Signature, SignatureKind
from warplint.verify.shown_places import with_shown_places
from warplint.verify.trace_of import Recorded, recorded_trace
from warplint.verify.verdicts import Measurements, judge

if TYPE_CHECKING:
    from warplint.builds.count import Builds, Comparison


class Say(Protocol):
    """Shows what is going on, and for how long already; ``""`` ends it."""

    def __call__(self, text: str, seconds: float = 0.0) -> None:
        """Show it."""


MOST_NAMED = 4
"""Files that are named in one line."""
OWN_WORK = "NVW9"
"""Findings about the linter's own work: of a run they are told as errors."""


def verify(findings: Iterable[Finding], found: Discovered, settings: Settings, say: Say) -> Verification:
    """Run what there is to run for these files, and give each finding its verdict.

    What the user's commands cannot start, and an interpreter without Warp, are errors of the result; nothing raises.
    """
    asked = tuple(findings)
    project = Project.for_paths(found.files)
    chosen = plan(found, asked, settings.verify.run, project, settings.verify.python)
    session = _Session(settings, project, catalogue.catalogue(), say)
    notes = (f"{_instead(chosen.instead)}: the configured commands were run instead",) if chosen.instead else ()
    try:
        verification = session.verify(chosen.commands, asked)
    except CommandError as error:
        verification = Verification(asked, errors=(str(error),))
    finally:
        say("")
    errors, notes = (*chosen.errors, *verification.errors), (*notes, *verification.notes)
    return replace(verification, errors=errors, notes=notes)


def _instead(paths: Sequence[str]) -> str:
    shown = ", ".join(paths[:MOST_NAMED]) + (", …" if len(paths) > MOST_NAMED else "")
    return f"{shown} {'was' if len(paths) == 1 else 'were'} not run"


def gradcheck(command: str | Sequence[str], settings: Settings, say: Say) -> Verification:
    """Check every gradient that one program computes; the findings are those that the run confirms."""
    try:
        parsed = parse(command)
        target = parsed.entry.target
        project = Project.for_paths([target] if parsed.entry.kind is EntryKind.SCRIPT else ["."])
        settings = replace(settings, verify=replace(settings.verify, run=()))
        verification = _Session(settings, project, catalogue.catalogue(), say).verify([parsed], ())
    except CommandError as error:
        return Verification(errors=(str(error),))
    finally:
        say("")
    confirmed = [each for each in verification.findings if each.verdict and each.verdict.status is Status.CONFIRMED]
    return replace(verification, findings=tuple(confirmed))


@dataclass(frozen=True)
class _Session:
    settings: Settings
    project: Project
    rules: tuple[Rule, ...]
    say: Say

    def verify(self, commands: Sequence[Command], asked: tuple[Finding, ...]) -> Verification:
        """Run the programs, then what is left to ask: kernels alone, builds."""
        runs, errors = self._runs(commands)
        everything = [*runs, *self._children(runs, errors)]
        alone = self._alone(asked, everything)
        measured = Measurements(
            tuple(everything),
            alone=alone.of(KernelCheck) if alone is not None else (),
            alone_problem=alone.problem if alone is not None else None,
            builds=self._builds(commands, asked, runs),
            configured=bool(self.settings.verify.run),
        )
        judged = judge(asked, measured)
        kept = self._kept(commands, runs, errors)
        return Verification(
            findings=judged,
            gradients=tuple(gradient for each in everything for gradient in _gradients(each, judged)),
            builds=tuple(count for each in measured.builds for count in _build_counts(each.before)),
            programs=tuple(_program(each, self.settings.verify.device) for each in everything),
            errors=tuple(errors),
            notes=(*kept, *(_ceiling(each, judged) for each in measured.builds if each.before.problem is None)),
        )

    def _kept(self, commands: Sequence[Command], runs: Sequence[Evidence], errors: list[str]) -> tuple[str, ...]:
        """Scripts that measure again, where they are wanted."""
        folder = self.settings.verify.keep
        if folder is None:
            return ()
        try:
            return (keep_scripts(list(zip(commands, runs, strict=False)), folder),)
        except OSError as error:
            errors.append(f"{folder}: cannot be written: {error.strerror or error}")
            return ()

    def _options(self, doing: str) -> RunOptions:
        verify = self.settings.verify
        self.say(doing)
        return RunOptions(
            python=verify.python,
            device=verify.device,
            limits=Limits(verify.time_limit, _bytes(verify.memory_limit)),
            iterations=verify.iterations,
            horizon=verify.horizon,
            tick=lambda seconds: self.say(doing, seconds),
        )

    def _runs(self, commands: Sequence[Command]) -> tuple[list[Evidence], list[str]]:
        runs: list[Evidence] = []
        errors: list[str] = []
        for number, command in enumerate(commands, 1):
            of = f"[{number}/{len(commands)}] " if len(commands) > 1 else ""
            result = run(command, self._options(f"{of}running {command.shown}"))
            if any(note.topic == "no-warp" or note.topic == "no-python" for note in result.of(Note)):
                return runs, [f"{result.problem}"]  # the same for every program
            entry = command.entry
            evidence, trouble = self._evidence(result, entry.target if entry.kind is EntryKind.SCRIPT else "")
            runs.append(evidence)
            errors += trouble
        return runs, errors

    def _children(self, runs: Sequence[Evidence], errors: list[str]) -> list[Evidence]:
        """The processes that the programs started and that were judged, each a program of its own."""
        found: list[Evidence] = []
        for started in runs:
            for result in judged_children(started.result):
                evidence, trouble = self._evidence(result, "")
                found.append(evidence)
                errors += trouble
        return found

    def _evidence(self, result: RunResult, path: str) -> tuple[Evidence, list[str]]:
        recorded = recorded_trace(result.records, self.project, path)
        settings = replace(self.settings, warp_version=recorded.trace.warp)
        found = tuple(apply_rules(_interpretation(recorded), settings, self.rules))
        trouble = [f"{result.command}: {each.message}" for each in found if each.code.startswith(OWN_WORK)]
        findings = tuple(each for each in found if not each.code.startswith(OWN_WORK))
        return Evidence(with_shown_places(result, recorded.places), recorded, findings), trouble

    def _alone(self, asked: Iterable[Finding], runs: Sequence[Evidence]) -> RunResult | None:
        """Check by itself every kernel with a finding of which no run checked a launch."""
        missed = [
            finding
            for finding in asked
            if experiment_of(finding) is Experiment.KERNEL_CHECK
            and self._is_shown(finding)
            and not any(each.checks_of(finding) for each in runs)
        ]
        targets = kernel_targets(missed, self.project)
        if not targets:
            return None
        return check_kernels(targets, self._options(f"checking {_count(len(targets))} alone"))

    def _is_shown(self, finding: Finding) -> bool:
        """Whether the finding is worth runs of its own: hidden information is judged by what is run anyway."""
        return finding.severity.rank >= self.settings.severity.rank

    def _builds(
        self,
        commands: Sequence[Command],
        asked: Iterable[Finding],
        runs: Sequence[Evidence],
    ) -> tuple[Comparison, ...]:
        """Count the builds of the programs that come to a finding about builds, from source or of the run itself."""

        def about(findings: Iterable[Finding]) -> list[Finding]:
            counted = (each for each in findings if experiment_of(each) is Experiment.BUILD_COUNT)
            return [each for each in counted if self._is_shown(each)]

        compared = []
        for command, evidence in zip(commands, runs, strict=False):
            here = [
                each
                for each in about(asked)
                if reaches(command, each.span.path, self.project) or evidence.came_to(each)
            ]
            told = {id(evidence.counterpart(each)) for each in here}
            here += [each for each in about(evidence.findings) if id(each) not in told]
            if here:
                from warplint.builds.count import compare  # most programs are not asked about their builds

                options = self._options(f"counting the builds of {command.shown}")
                compared.append(compare(command, options, here, self.project))
        return tuple(compared)


def _gradients(evidence: Evidence, judged: Iterable[Finding]) -> Iterable[GradientCheck]:
    confirmed = [each for each in judged if each.verdict is not None and _speaks_of_gradients(each.verdict)]
    leaves = Counter((gradient.leaf, gradient.allocated) for gradient in evidence.gradients)
    earlier = _counted_before(evidence.gradients)
    for gradient in evidence.gradients:
        backward = gradient.backward[-1] if gradient.backward else ()
        called = evidence.places.span(backward[-1]) if backward else None
        span = evidence.places.span(gradient.allocated[-1]) if gradient.allocated else None
        yield GradientCheck(
            leaf=gradient.leaf,
            path=span.path if span is not None else "",
            line=span.line if span is not None else 0,
            status=gradient.status.value,
            ad=gradient.ad,
            fd=gradient.fd if not math.isnan(gradient.fd) else None,
            relative_error=gradient.relative_error,
            reason=gradient.reason,
            program=evidence.result.command,
            unexplained=gradient.status is GradientStatus.FAIL
            and not any(_explains(finding, gradient, evidence) for finding in confirmed),
            backward=earlier[gradient.memory, gradient.window] + gradient.group + 1,
            backward_path=called.path if called is not None else "",
            backward_line=called.line if called is not None else 0,
            repeated=leaves[gradient.leaf, gradient.allocated] > 1,
            signature=_signature(gradient.signature, evidence) if gradient.signature is not None else None,
        )


def _counted_before(gradients: Sequence[Gradient]) -> dict[tuple[int, int], int]:
    """For each leaf and part of the run: how many of the leaf's groups lie in the parts before."""
    most: dict[tuple[int, int], int] = {}
    for gradient in gradients:
        key = gradient.memory, gradient.window
        most[key] = max(most.get(key, 0), gradient.group + 1)
    before: Counter[int] = Counter()
    found: dict[tuple[int, int], int] = {}
    for memory, window in sorted(most, key=lambda key: key[1]):
        found[memory, window] = before[memory]
        before[memory] += most[memory, window]
    return found


def _signature(signature: Signature, evidence: Evidence) -> SignatureShown:
    span = evidence.places.span(signature.at[-1]) if signature.at else None
    return SignatureShown(
        name=signature.kind.value,
        text=signature.text,
        factor=signature.factor,
        operation=signature.operation,
        path=span.path if span is not None else "",
        line=span.line if span is not None else 0,
        right=signature.kind is SignatureKind.OPTIMISATION,
    )


def _bytes(gigabytes: float | None) -> int | None:
    """The limit on memory that a setting means; None: no limit."""
    if gigabytes is None:
        return memory_limit.default()
    return int(gigabytes * memory_limit.GIGABYTE) or None


def _speaks_of_gradients(verdict: Verdict) -> bool:
    proofs = (
        Experiment.FINITE_DIFFERENCE,
        Experiment.KERNEL_CHECK,
        Experiment.NONSMOOTH_POINT,
        Experiment.ADJOINT_CHECK,
    )
    return verdict.status is Status.CONFIRMED and verdict.experiment in proofs


def _explains(finding: Finding, gradient: Gradient, evidence: Evidence) -> bool:
    """Whether the confirmed finding says why the gradient is wrong: a repair names it, or its tape passes there."""
    named = any(evidence.names(culprit, finding) for culprit in gradient.culprits)
    return named or gradient in evidence.gradients_about(finding)


def _is_about_builds(finding: Finding) -> bool:
    """Whether a count has confirmed the finding."""
    verdict = finding.verdict
    return verdict is not None and verdict.status is Status.CONFIRMED and verdict.experiment is Experiment.BUILD_COUNT


def _build_counts(builds: Builds) -> Iterable[BuildCount]:
    from warplint.builds.text import cause_words

    for module in builds.modules:
        cold = [load for load in builds.cold if load.module == module and load.compiled]
        warm = [load for load in builds.warm if load.module == module and load.compiled]
        seconds = sum(load.milliseconds for load in cold) / 1000.0
        why = tuple(dict.fromkeys(cause_words(cause) for cause in builds.causes(module)))
        yield BuildCount(module, len(cold), len(warm), builds.command, round(seconds, 3), why)


def _interpretation(recorded: Recorded) -> Interpretation:
    """What the rules look at: a run as one possible run."""
    return Interpretation(recorded.trace, recorded.summary_of, source_of=recorded.source_of)


def _ceiling(compared: Comparison, judged: Iterable[Finding]) -> str:
    """What would remain of a program's builds; an honest line where none is needless."""
    before, remaining = compared.before, compared.ceiling
    if remaining == before.built_cold and not before.built_warm:
        counted = f"{words.counted(remaining, 'build')} in a fresh cache"
        if any(_is_about_builds(finding) for finding in judged):
            return f"{before.command}: {counted}; no module is built twice, but see the findings"
        return f"{before.command}: nothing is built redundantly; {counted}"
    again = f", {before.built_warm} in a second run" if before.built_warm else ""
    repaired = "each module were built once" if compared.after is None else "every finding about builds were repaired"
    left = f"{remaining} would remain if {repaired}"
    return f"{before.command}: {words.counted(before.built_cold, 'build')} in a fresh cache{again}; {left}"


def _program(evidence: Evidence, device: str | None) -> ProgramRun:
    result = evidence.result
    program = result.program
    notes = [note.text for note in result.of(Note) if not note.topic.startswith("no-")]
    notes += unjudged_children(result)
    has_children = any(True for _ in judged_children(result))
    if program is not None and not program.backward_calls and result.problem is None and not has_children:
        notes.append("no tape ran backward: there is no gradient to check")
    return ProgramRun(
        command=result.command,
        seconds=result.exit.seconds,
        backward_calls=program.backward_calls if program is not None else 0,
        launches=program.launches if program is not None else 0,
        warp=program.warp if program is not None else "",
        device=device or "",
        problem=result.problem or _undecided(evidence),
        notes=tuple(notes),
        stopped=f"after {program.seen}" if program is not None and program.seen else "",
        more=program.more if program is not None else "",
    )


def _undecided(evidence: Evidence) -> str:
    """Why nothing is known of a program that computes gradients; empty where one is judged, or where there is none."""
    result, gradients = evidence.result, evidence.gradients
    if any(gradient.status is not GradientStatus.INCONCLUSIVE for gradient in gradients):
        return ""
    failed = [note.text for note in result.of(Note) if note.topic in ("unsupported", "engine")]
    if failed:
        return failed[0]
    if gradients:
        which = "its gradient" if len(gradients) == 1 else f"none of its {len(gradients)} gradients"
        return f"{which} could {'not ' if len(gradients) == 1 else ''}be judged: {gradients[0].reason}"
    program = result.program
    if program is not None and program.backward_calls and program.reason:
        return f"no gradient was judged: {program.reason}"
    return ""


def _count(kernels: int) -> str:
    return f"{kernels} kernel{'s' if kernels != 1 else ''}"
