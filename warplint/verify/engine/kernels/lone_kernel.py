"""A kernel checked alone: launched on made inputs, its adjoint against finite differences, argument by argument."""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import warp

from warplint.dataclass import dataclass
from warplint.proof import Draw
from warplint.verify.engine.kernels.kernel_check import ArgumentCheck, State, check_operation, weightiest
from warplint.verify.engine.kernels.made_inputs import MadeArray, MadeInputs, Unmakeable, make_inputs
from warplint.verify.engine.warp_types import Types, overloads_kept, signatures_of
from warplint.verify.engine.warp_values import adjoint_enabled
from warplint.verify.records import GradientStatus

wp: Any = warp

TILE_BLOCK = 32
LAUNCHES = 600
"""So many launches at most for each array that is judged."""


@dataclass(frozen=True)
class Size:
    """How many threads along each axis, and the value of every integer scalar (a count, a width, a mode)."""

    threads: int
    integer: int


SIZES = (Size(4, 4), Size(2, 2), Size(3, 1), Size(1, 1), Size(4, 0))
"""Tried in turn until the kernel stays within its arrays and writes something."""
MODES = 2
"""Other values of the integer scalars that are looked at as well: a mode or a flag may choose what is computed."""
GENERAL = (Draw.ANY_SIGN, Draw.POSITIVE)
SEEDS = 3
"""Draws of one kind that a rule asks for: where its point lies in one array only, not each of them comes to it."""


class Unusable(Exception):
    """These inputs say nothing about the kernel; its text is the reason."""


class Refused(Unusable):
    """Warp does not launch the kernel on such arguments, whatever their values are."""


def check_ordinary(kernel: Any, seed: int) -> Iterator[ArgumentCheck]:
    """Judge the adjoint of ``kernel``: one check for each floating-point array, the worst of several draws.

    A failure is told as soon as it is found, since a later launch may end the process. Where the kernel cannot be
    judged there is a single check, inconclusive, without a name. Names and elements are those of the kernel's
    parameters; an element outside its array is one beside it, where the adjoint wrote.
    """
    try:
        fitting = _Fitting.of(Launcher.of(kernel), seed)
    except (Unmakeable, Unusable) as problem:
        yield _unjudged(str(problem))
        return
    yield from _checked(fitting, fitting.settings(seed))


def check_each_draw(kernel: Any, seed: int) -> list[tuple[ArgumentCheck, ...]]:
    """The checks of :func:`check_ordinary` draw by draw; none for what cannot be judged."""
    try:
        fitting = _Fitting.of(Launcher.of(kernel), seed)
    except (Unmakeable, Unusable):
        return []
    found = []
    for setting in fitting.settings(seed):
        with suppress(Unusable):
            found.append(tuple(MadeLaunch.on(fitting.launcher, setting).check(fitting.written)))
    return found


def check_modes(kernel: Any, seed: int) -> Iterator[ArgumentCheck]:
    """The failures that show with other values of what steers the kernel: a mode or a flag may choose what it does."""
    try:
        fitting = _Fitting.of(Launcher.of(kernel), seed)
    except (Unmakeable, Unusable):
        return
    if fitting.steered:
        yield from (check for check in _checked(fitting, fitting.modes(seed)) if check.status is GradientStatus.FAIL)


def check_draw(kernel: Any, seed: int, draw: Draw) -> Iterator[ArgumentCheck]:
    """Judge it on inputs of one kind (``check.draw``), as :func:`check_ordinary` does; nothing if that cannot."""
    try:
        fitting = _Fitting.of(Launcher.of(kernel), seed)
    except (Unmakeable, Unusable):
        return
    settings = [Setting(fitting.size, draw, seed + number) for number in range(SEEDS)]
    yield from (replace(check, draw=draw) for check in _checked(fitting, settings))


def _checked(fitting: _Fitting, settings: Sequence[Setting]) -> Iterator[ArgumentCheck]:
    """Failures at once, each argument's first; in the end the weightiest of what did not fail."""
    found: dict[str, list[ArgumentCheck]] = {}
    failed: set[str] = set()
    problems: list[str] = []
    for setting in settings:
        try:
            for check in MadeLaunch.on(fitting.launcher, setting).check(fitting.written):
                found.setdefault(check.name, []).append(check)
                if check.status is GradientStatus.FAIL and check.name not in failed:
                    failed.add(check.name)
                    yield check
        except Unusable as problem:
            problems.append(str(problem))
    if not found:
        yield _unjudged(next(iter(problems), "it was given no inputs"))
    for name, checks in found.items():
        if name not in failed:
            yield weightiest(checks)


def _unjudged(reason: str) -> ArgumentCheck:
    return ArgumentCheck("", GradientStatus.INCONCLUSIVE, reason, math.nan, math.nan)


@dataclass(frozen=True)
class Setting:
    """One way to launch a kernel."""

    size: Size
    draw: Draw
    seed: int


@dataclass(frozen=True)
class Launcher:
    """How a kernel is launched: on arguments of which types, along how many axes, in tiles or not."""

    kernel: Any
    types: Types
    axes: int
    tiled: bool

    @classmethod
    def of(cls, kernel: Any) -> Launcher:
        """Read it off the kernel's source.

        Raises:
            Unusable: it has no adjoint, or its source cannot be read.
        """
        if not adjoint_enabled(kernel):
            raise Unusable("it is compiled without an adjoint")
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(kernel.func)))
        except (OSError, TypeError, SyntaxError) as error:
            raise Unusable(f"its source cannot be read: {error}") from error
        axes = 1
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and _calls(node.value, "tid") and isinstance(node.targets[0], ast.Tuple):
                axes = len(node.targets[0].elts)
        tiled = any(isinstance(node, ast.Attribute) and node.attr.startswith("tile_") for node in ast.walk(tree))
        return cls(kernel, {}, axes, tiled)

    def launch(self, threads: int, arguments: Sequence[Any]) -> None:
        """Launch it with so many threads (or tiles) along every axis."""
        dim, inputs = (threads,) * self.axes, list(arguments)
        if self.tiled:
            wp.launch_tiled(self.kernel, dim=dim, inputs=inputs, block_dim=TILE_BLOCK, device="cpu")
        else:
            wp.launch(self.kernel, dim=dim, inputs=inputs, device="cpu")


@dataclass(frozen=True)
class _Fitting:
    """Types of the arguments, a size and ordinary draws with which the kernel stays within its arrays and writes."""

    launcher: Launcher
    size: Size
    draws: tuple[Draw, ...]
    steered: bool
    written: tuple[str, ...]

    @classmethod
    def of(cls, launcher: Launcher, seed: int) -> _Fitting:
        """The first that fits.

        Raises:
            Unmakeable: a parameter can only be given by a program.
            Unusable: nothing fits; why the first did not.
        """
        problems: list[str] = []
        for types in signatures_of(launcher.kernel):
            typed = replace(launcher, types=types)
            try:
                with overloads_kept(launcher.kernel):
                    return cls._with(typed, seed)
            except Unusable as problem:
                problems.append(str(problem))
        raise Unusable(problems[0])

    @classmethod
    def _with(cls, launcher: Launcher, seed: int) -> _Fitting:
        reason = ""
        for draws in (GENERAL, (Draw.SMALL,)):
            for size in SIZES:
                for draw in draws:
                    try:
                        tried = MadeLaunch.on(launcher, Setting(size, draw, seed))
                        return cls(launcher, size, draws, tried.made.steered, tried.written())
                    except Refused:
                        raise
                    except Unusable as problem:
                        reason = reason or str(problem)
        raise Unusable(reason)

    def settings(self, seed: int) -> list[Setting]:
        """The ordinary draws."""
        return [Setting(self.size, draw, seed + number) for number, draw in enumerate(self.draws)]

    def modes(self, seed: int) -> list[Setting]:
        """The first ordinary draw with other values of the integers and truth values by value."""
        others = {size.integer: size for size in reversed(SIZES) if size.integer != self.size.integer}
        return [Setting(others[integer], self.draws[0], seed) for integer in sorted(others)[:MODES]]


def _calls(value: ast.expr, name: str) -> bool:
    function = value.func if isinstance(value, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr == name


@dataclass
class MadeLaunch:
    """One launch on inputs of one draw, as a function of the arrays' floating-point parts, with its adjoint."""

    made: MadeInputs
    launcher: Launcher
    size: Size
    seed: int
    tape: Any

    @classmethod
    def on(cls, launcher: Launcher, setting: Setting) -> MadeLaunch:
        """Make the inputs and record the launch; nothing is asked yet.

        Raises:
            Unmakeable: a parameter can only be given by a program.
            Refused: the launch is refused, or the kernel cannot be built for arguments of these types.
        """
        rng = np.random.default_rng(setting.seed)
        made = make_inputs(launcher.types, rng, setting.size.integer)
        for array in made.arrays:
            array.draw(rng, setting.draw)
            array.restore()
        tape = wp.Tape()
        try:
            with tape:
                launcher.launch(setting.size.threads, made.arguments)
        except Exception as error:
            raise Refused(f"its launch is refused: {_first_line(error)}") from error
        return cls(made, launcher, setting.size, setting.seed, tape)

    def written(self, elsewhere: Collection[str] = ()) -> tuple[str, ...]:
        """The floating-point parts that the launch changes, and those that it changed on other inputs.

        Raises:
            Unusable: it writes beyond its arrays, or nothing, or values that are no numbers.
        """
        escaped = self.made.escaped()
        if escaped:
            raise Unusable(f"it reaches beyond `{escaped}` at every size that was tried")
        changed = []
        for array, name, path in self._parts():
            after, before = array.part(array.buffer.numpy(), path), array.part(array.initial, path)
            if not np.all(np.isfinite(after)):
                raise Unusable(f"it writes values to `{name}` that are no numbers")
            if name in elsewhere or not np.array_equal(after, before):
                changed.append(name)
        if not changed:
            raise Unusable("it writes no floating-point number on the inputs that were made for it")
        return tuple(changed)

    def check(self, elsewhere: Collection[str] = ()) -> list[ArgumentCheck]:
        """Judge it; the checks' elements are in the arrays' own indices. ``elsewhere``: as for :meth:`written`."""
        written = self.written(elsewhere)
        parts = {name: (array, path) for array, name, path in self._parts()}
        inputs = {name: array.part(array.initial, path).copy() for name, (array, path) in parts.items()}

        def forward(values: State) -> State:
            self._restore(values)
            self.launcher.launch(self.size.threads, self.made.arguments)
            return {name: self._read(*parts[name]) for name in written}

        def adjoint(cotangents: State) -> State:
            self._restore({})
            self.launcher.launch(self.size.threads, self.made.arguments)
            for array in self.made.arrays:
                if array.floats:
                    array.buffer.grad.zero_()
            for name, (array, path) in parts.items():
                array.part(array.buffer.grad.numpy(), path)[...] = cotangents[name]
            self.tape.backward()
            if self.made.escaped():
                raise Unusable(f"its adjoint reaches beyond the padding of `{self.made.escaped()}`")
            return {name: array.part(array.buffer.grad.numpy(), path).copy() for name, (array, path) in parts.items()}

        rng, budget = np.random.default_rng(self.seed), LAUNCHES * len(inputs)
        found = check_operation(forward, adjoint, inputs, written, rng, dtype_eps=self.made.eps, budget=budget)
        return [_in_its_array(check, parts[check.name][0]) for check in found.arguments]

    def _parts(self) -> list[tuple[MadeArray, str, tuple[str, ...]]]:
        return [(array, name, path) for array in self.made.arrays for name, path in array.floats]

    def _read(self, array: MadeArray, path: tuple[str, ...]) -> Any:
        return array.part(array.buffer.numpy(), path).copy()

    def _restore(self, values: State) -> None:
        for array in self.made.arrays:
            array.restore()
        for array, name, path in self._parts():
            if name in values:
                array.part(array.buffer.numpy(), path)[...] = values[name]


def _in_its_array(check: ArgumentCheck, array: MadeArray) -> ArgumentCheck:
    if not check.element:
        return check
    element = array.place(check.element)
    moved = replace(check, element=element)
    outside = check.status is GradientStatus.FAIL and len(element) < len(check.element) + array.argument.ndim - 1
    outside = outside or not 0 <= element[0] < array.argument.shape[0]
    return replace(moved, reason=f"beside the array: {check.reason}") if outside else moved


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
