"""Makes ``warplint/kernels/builtins.json`` from the installed Warp: what its registry says, and what a run measures.

    python tests/builtins_table.py [--output warplint/kernels/builtins.json]

Every builtin that can be called on numbers, vectors, matrices, quaternions and transforms is launched at a few points,
away from kinks. Its adjoint is compared with central differences, an input at a time (a builtin without an adjoint is
*flat* where nothing moves); what the adjoint reads is found by overwriting one input between the forward launch and the
backward; and zeros (or ones) are put into one input at a time to see whether the adjoint stays finite where there is no
derivative. Where the registry says that an adjoint is given the result again, a loop overwrites the variable that holds
it, or one that holds an argument, to see whose gradient then differs. Of builtins on tiles, queries and memory the
registry tells whether they have an adjoint; what it reads is declared in ``builtins_declared.py``.

A row: ``adjoint``; ``reads``, for each argument the positions of those whose values its adjoint reads (null: all of
them; past the end of the list as its last entry, past an empty list none); ``flat``; ``missing`` and, for calls on
vectors and the like, ``missing_composite``, the positions that get no gradient although the value depends on them;
``result`` (and, for calls that mix numbers with vectors and the like, ``result_mixed``), those whose adjoint reads the
result; ``held`` (``held_mixed``), like ``reads``, the arguments that the adjoint reads themselves, where the result
stands for others (only where that differs); ``wrong``, those whose gradient differences refute; ``singular`` and
``guarded``, by position the values at which there is no derivative and the adjoint is not finite, or finite all the
same (``singular_whole``: of a composite all of whose components are); ``outputs``, the first argument that receives a
result; ``number``, whether it makes a number of vectors and the like; ``measured``.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import pathlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp
from builtins_declared import CALLS, FLAT, LINEAR, OUTPUTS, READS, UNCOMPARED
from warp._src.context import ModuleBuilder, builtin_functions, get_module

TABLE = pathlib.Path(__file__).resolve().parent.parent / "warplint" / "kernels" / "builtins.json"
POINTS = 6
STEPS = {"d": 1e-6, "f": 2e-3}
AGREE = {"d": 1e-5, "f": 2e-2}
A_MODULE = 60
"""Kernels are built so many to a module."""

WIDTHS = {
    **{f"vec{n}": n for n in (2, 3, 4)},
    **{f"mat{n}{n}": n * n for n in (2, 3, 4)},
    "quat": 4,
    "transform": 7,
    "spatial_vector": 6,
    "spatial_matrix": 36,
    "float": 1,
}
INTEGERS = {"int32": "wp.int32(2)", "uint32": "wp.uint32(7)", "bool": "True", "int": "2"}
SPECIAL = (0.0, 1.0, -1.0)
COMPONENTWISE = frozenset(("cw_div", "div", "div_approx"))
SAME = {"mul": "transform_multiply"}
"""Of two transforms it is another builtin, with another row."""


@dataclass(frozen=True)
class Kind:
    """A real type: its family (``vec3``), its precision (``d``, ``f``)."""

    family: str
    precision: str

    @property
    def text(self) -> str:
        """As Warp writes it."""
        if self.family == "float":
            return "wp.float64" if self.precision == "d" else "wp.float32"
        return f"wp.{self.family}{self.precision}"

    @property
    def width(self) -> int:
        """The number of components."""
        return WIDTHS[self.family]


@dataclass
class Call:
    """One way to call a builtin. ``arguments`` are kinds for inputs and texts for the rest, in order."""

    name: str
    arguments: tuple[Kind | str, ...]
    results: tuple[Kind, ...]
    kernel: Any = field(default=None, repr=False)
    overwriting: Any = field(default=None, repr=False)
    """The kernel in which a loop overwrites the variable of the result, where the adjoint is given that."""
    losing: dict[int, Any] = field(default_factory=dict, repr=False)
    """By position: the kernel in which a loop overwrites the variable of that argument instead."""

    @property
    def inputs(self) -> dict[int, Kind]:
        """The real inputs by the position of the argument."""
        return {at: each for at, each in enumerate(self.arguments) if isinstance(each, Kind)}

    @property
    def precision(self) -> str:
        """``f`` if any number is of single precision."""
        return "f" if any(kind.precision == "f" for kind in (*self.inputs.values(), *self.results)) else "d"

    @property
    def is_composite(self) -> bool:
        """Whether vectors, matrices or the like go in."""
        return any(kind.width > 1 for kind in self.inputs.values())

    @property
    def is_mixed(self) -> bool:
        """Whether numbers go in and composites too."""
        return len({kind.width > 1 for kind in self.inputs.values()}) > 1

    @property
    def makes_number(self) -> bool:
        """Whether a single number comes out."""
        return [kind.width for kind in self.results] == [1]

    @property
    def is_given_result(self) -> bool:
        """Whether the adjoint gets the result once more."""
        return len(self.results) == 1 and bool(builtin_functions[self.name].require_original_output_arg)

    def text(self, key: str) -> str:
        """The kernel's source."""
        parameters = [f"a{at}: wp.array(dtype={kind.text})" for at, kind in self.inputs.items()]
        parameters += [f"r{at}: wp.array(dtype={kind.text})" for at, kind in enumerate(self.results)]
        given = [f"a{at}[i]" if isinstance(each, Kind) else each for at, each in enumerate(self.arguments)]
        call = f"wp.{self.name}({', '.join(given)})"
        if len(self.results) == 1:
            body = [f"r0[i] = {call}"]
        else:
            names = [f"t{at}" for at in range(len(self.results))]
            body = [f"{', '.join(names)} = {call}", *(f"r{at}[i] = {name}" for at, name in enumerate(names))]
        return _kernel(key, parameters, body)

    def overwriting_text(self, key: str, lost: int | None = None) -> str:
        """The source of a kernel that stores the result and overwrites its variable, or that of argument ``lost``."""
        overwritten = self.results[0] if lost is None else self.inputs[lost]
        parameters = [f"a{at}: wp.array(dtype={kind.text})" for at, kind in self.inputs.items()]
        parameters += [f"r0: wp.array(dtype={self.results[0].text})", f"other: wp.array(dtype={overwritten.text})"]
        held = [f"t{at} = a{at}[i]" for at in self.inputs]
        given = [f"t{at}" if isinstance(each, Kind) else each for at, each in enumerate(self.arguments)]
        call = f"t = wp.{self.name}({', '.join(given)})"
        loop = ["for k in range(n):", f"    t{'' if lost is None else lost} = other[i]"]
        return _kernel(key, [*parameters, "n: int"], [*held, call, "r0[i] = t", *loop])


def _kernel(key: str, parameters: Sequence[str], body: Sequence[str]) -> str:
    lines = ["i = wp.tid()", *body]
    return f"@wp.kernel\ndef {key}({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in lines)


def kind_of(of: object) -> Kind | None:
    """The real type that a type of the registry is, None for anything else."""
    name = {float: "float32", wp.float64: "float64", wp.float32: "float32"}.get(of) or getattr(of, "__name__", "")
    if name in ("float32", "float64"):
        return Kind("float", "f" if name == "float32" else "d")
    family, precision = name[:-1], name[-1:]
    return Kind(family, precision) if family in WIDTHS and precision in STEPS else None


def calls_of(name: str) -> Iterator[Call]:
    """The calls of a builtin to be measured: overloads of the registry on concrete types, one of each family."""
    seen: set[tuple[str, ...]] = set()
    function = builtin_functions[name]
    overloads = sorted(getattr(function, "overloads", [function]), key=_preference)
    for overload in overloads:
        call = _concrete(name, list(overload.input_types.values()), overload.value_type)
        if call is None or not call.inputs or (name in SAME and _are_transforms(call)):
            continue
        families = tuple(kind.family.rstrip("234") for kind in call.inputs.values())
        if families not in seen:
            seen.add(families)
            yield call
    for arguments, results in CALLS.get(name, ()):
        yield Call(name, tuple(map(_declared, arguments)), tuple(_required(each) for each in results))


def _are_transforms(call: Call) -> bool:
    return all(kind.family == "transform" for kind in call.inputs.values())


def _preference(overload: Any) -> tuple[bool, bool]:
    names = [getattr(of, "__name__", "") for of in overload.input_types.values()]
    double = any(name.endswith(("d", "64")) for name in names)
    return not double, not any(name.startswith(("vec3", "mat33")) for name in names)


def _declared(text: str) -> Kind | str:
    return _kind_of_text(text) or text


def _required(text: str) -> Kind:
    kind = _kind_of_text(text)
    assert kind is not None, text
    return kind


def _kind_of_text(text: str) -> Kind | None:
    return Kind(text[:-1], text[-1]) if text[:-1] in WIDTHS and text[-1] in STEPS else None


def _concrete(name: str, types: Sequence[object], value: object) -> Call | None:
    arguments: list[Kind | str] = []
    for of in types:
        kind = kind_of(of)
        literal = INTEGERS.get(getattr(of, "__name__", ""))
        if kind is None and literal is None:
            return None
        arguments.append(kind or literal or "")
    results = tuple(kind_of(each) for each in (value if isinstance(value, (list, tuple)) else [value]))
    known = tuple(kind for kind in results if kind is not None)
    if not results or len(known) != len(results):
        return None
    return Call(name, tuple(arguments), known)


# ----------------------------------------------------------------------------------------------------------------------
# Building


def built(calls: Sequence[Call]) -> list[Call]:
    """The calls whose kernels Warp can generate, compiled a module at a time."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="builtins_"))
    wp.config.quiet = True
    good = [call for number, call in enumerate(calls) if _generates(call, folder, number)]
    for number, batch in enumerate(itertools.batched(good, A_MODULE) if hasattr(itertools, "batched") else _cut(good)):
        text = "import warp as wp\n\n" + "\n".join(call.text(f"k{at}") for at, call in enumerate(batch))
        module = _imported(folder / f"builtins_table_{number}.py", text)
        for at, call in enumerate(batch):
            call.kernel = getattr(module, f"k{at}")
    given = [call for call in good if call.is_given_result]
    texts = [call.overwriting_text(f"k{at}") for at, call in enumerate(given)]
    texts += [call.overwriting_text(f"k{at}_{lost}", lost) for at, call in enumerate(given) for lost in call.inputs]
    module = _imported(folder / "builtins_table_results.py", "import warp as wp\n\n" + "\n".join(texts))
    for at, call in enumerate(given):
        call.overwriting = getattr(module, f"k{at}")
        call.losing = {lost: getattr(module, f"k{at}_{lost}") for lost in call.inputs}
    return good


def _cut(calls: Sequence[Call]) -> Iterator[Sequence[Call]]:
    return (calls[start : start + A_MODULE] for start in range(0, len(calls), A_MODULE))


def _generates(call: Call, folder: pathlib.Path, number: int) -> bool:
    """Whether Warp generates code for the call: no overload may fit after all, or the result be of another type."""
    name = f"builtins_trial_{number}"
    module = _imported(folder / f"{name}.py", "import warp as wp\n\n" + call.text("k"))
    try:
        ModuleBuilder(get_module(module.__name__), dict(get_module(module.__name__).options))
    except Exception as error:
        print(f"cannot be called: {call.name}{call.arguments}: {str(error).splitlines()[0][:150]}", file=sys.stderr)
        return False
    return True


def _imported(path: pathlib.Path, text: str) -> Any:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


# ----------------------------------------------------------------------------------------------------------------------
# Measuring


@dataclass
class Measured:
    """What one call showed. Positions are those of arguments."""

    reads: dict[int, set[int]] = field(default_factory=dict)
    moves: set[int] = field(default_factory=set)
    wrong: set[int] = field(default_factory=set)
    missing: set[int] = field(default_factory=set)
    singular: dict[int, set[float]] = field(default_factory=dict)
    guarded: dict[int, set[float]] = field(default_factory=dict)
    result: set[int] = field(default_factory=set)
    held: dict[int, set[int]] = field(default_factory=dict)


Inputs = dict[int, np.ndarray]


@dataclass
class Trial:
    """Runs one kernel forward, and backward with a fixed cotangent; ``further`` arguments stand behind the results."""

    call: Call
    seeds: list[np.ndarray]
    kernel: Any
    further: Sequence[Any] = ()

    def objective(self, inputs: Inputs) -> np.ndarray:
        """The cotangent times the results, for each point."""
        return sum(
            (np.sum(seed * out, axis=1) for seed, out in zip(self.seeds, self._recorded(inputs)[1], strict=True)),
            start=np.zeros(len(self.seeds[0])),
        )

    def gradients(self, inputs: Inputs, clobbered: Inputs | None = None) -> Inputs:
        """The adjoint's gradients; ``clobbered`` inputs are overwritten before the backward."""
        arrays, _, tape, results = self._recorded(inputs)
        for at, values in (clobbered or {}).items():
            arrays[at].assign(self._array(at, values, False))
        tape.backward(grads={result: self._result(k, self.seeds[k]) for k, result in enumerate(results)})
        return {at: array.grad.numpy().reshape(len(array), -1).astype(np.float64) for at, array in arrays.items()}

    def _recorded(self, inputs: Inputs) -> tuple[dict[int, Any], list[np.ndarray], Any, list[Any]]:
        arrays = {at: self._array(at, values, True) for at, values in inputs.items()}
        count = len(next(iter(inputs.values())))
        results = [wp.zeros(count, dtype=_dtype(kind), requires_grad=True) for kind in self.call.results]
        with wp.Tape() as tape:
            wp.launch(self.kernel, count, inputs=[*arrays.values(), *results, *self.further])
        outs = [result.numpy().reshape(count, -1).astype(np.float64) for result in results]
        return arrays, outs, tape, results

    def _array(self, at: int, values: np.ndarray, requires_grad: bool) -> Any:
        return _warp_array(self.call.inputs[at], values, requires_grad)

    def _result(self, at: int, values: np.ndarray) -> Any:
        return _warp_array(self.call.results[at], values, False)


def _dtype(kind: Kind) -> Any:
    return getattr(wp, kind.text.removeprefix("wp."))


def _warp_array(kind: Kind, values: np.ndarray, requires_grad: bool) -> Any:
    dtype = np.float64 if kind.precision == "d" else np.float32
    side = {"mat": round(kind.width**0.5)}.get(kind.family[:3])
    shaped = values.reshape(-1, side, side) if side else values.reshape(-1) if kind.width == 1 else values
    return wp.array(shaped.astype(dtype), dtype=_dtype(kind), requires_grad=requires_grad)


def points(call: Call, rng: np.random.Generator, count: int = POINTS) -> Inputs:
    """Points in general position; quaternions are of unit length, matrices far from singular ones."""
    found: Inputs = {}
    for at, kind in call.inputs.items():
        values = rng.uniform(0.2, 0.8, (count, kind.width))
        if kind.family.startswith("mat"):
            side = round(kind.width**0.5)
            values += 1.5 * np.eye(side).reshape(1, -1) * np.arange(1, side + 1).repeat(side)
        if kind.family in ("quat", "transform"):
            values[:, -4:] /= np.linalg.norm(values[:, -4:], axis=1, keepdims=True)
        found[at] = values
    return found


def measure(call: Call) -> Measured:
    """Compare, clobber, and go to the special points."""
    rng = np.random.default_rng(3)
    inputs, others = points(call, rng), points(call, rng)
    trial = Trial(call, [rng.uniform(0.5, 1.5, (POINTS, kind.width)) for kind in call.results], call.kernel)
    found, claimed = Measured(), trial.gradients(inputs)
    for at in call.inputs:
        slopes = differences(trial, inputs, at)
        if np.any(np.abs(slopes) > AGREE[call.precision]):
            found.moves.add(at)
        off = np.abs(claimed[at] - slopes) > AGREE[call.precision] * np.maximum(1.0, np.abs(slopes))
        if np.mean(np.any(off, axis=1)) >= 0.5 and call.name not in UNCOMPARED:
            (found.missing if not np.any(claimed[at]) else found.wrong).add(at)
        for values in (others[at], -1.7 * others[at], 5.0 * others[at]):
            for of, gradient in trial.gradients(inputs, {at: values}).items():
                if not np.allclose(gradient, claimed[of], rtol=1e-5, atol=1e-7, equal_nan=True):
                    found.reads.setdefault(of, set()).add(at)
    for at, special in itertools.product(call.inputs, SPECIAL):
        _at_special(trial, found, inputs, at, special)
    if call.overwriting is None:
        found.held = found.reads
        return found

    def differing(kernel: Any, overwritten: Kind) -> Iterator[int]:
        other = _warp_array(overwritten, rng.uniform(2.0, 3.0, (POINTS, overwritten.width)), False)
        for at, gradient in Trial(call, trial.seeds, kernel, (other, 1)).gradients(inputs).items():
            if not np.allclose(gradient, claimed[at], rtol=1e-5, atol=1e-7):
                yield at

    found.result.update(differing(call.overwriting, call.results[0]))
    for lost, kernel in call.losing.items():
        for at in differing(kernel, call.inputs[lost]):
            found.held.setdefault(at, set()).add(lost)
    return found


def differences(trial: Trial, inputs: Inputs, at: int) -> np.ndarray:
    """Central differences for each point and component of one input."""
    step = STEPS[trial.call.precision]
    slopes = np.zeros_like(inputs[at])
    for component in range(inputs[at].shape[1]):
        up, down = (trial.objective(moved(inputs, at, component, sign * step)) for sign in (1.0, -1.0))
        slopes[:, component] = (up - down) / (2.0 * step)
    return slopes


def moved(inputs: Inputs, at: int, component: int, step: float) -> Inputs:
    """The inputs with one component of one of them moved."""
    values = inputs[at].copy()
    values[:, component] += step
    return {**inputs, at: values}


def _at_special(trial: Trial, found: Measured, inputs: Inputs, at: int, special: float) -> None:
    """Whether the adjoint is finite where an input is ``special`` everywhere and there is no derivative.

    There is none where the slope grows as the step falls, or the slopes of the two sides stay apart.
    """
    kind = trial.call.inputs[at]
    if special and kind.width > 1:
        return
    there = {**inputs, at: np.full_like(inputs[at], special)}
    if np.any(np.isnan(trial.objective(there))):
        return
    gradients = trial.gradients(there)
    if not all(np.all(np.isfinite(gradient)) for gradient in gradients.values()):
        found.singular.setdefault(at, set()).add(special)
        return
    if trial.call.precision == "d" and _is_rough(trial, there, at):
        found.guarded.setdefault(at, set()).add(special)


def _is_rough(trial: Trial, there: Inputs, at: int) -> bool:
    here = trial.objective(there)
    for component in range(there[at].shape[1]):
        slopes = {}
        for sign, step in itertools.product((1.0, -1.0), (1e-4, 1e-6)):
            slopes[sign, step] = (trial.objective(moved(there, at, component, sign * step)) - here) / (sign * step)
        with np.errstate(invalid="ignore"):
            grows = any(np.any(np.abs(slopes[s, 1e-6]) > 5.0 * np.abs(slopes[s, 1e-4]) + 1.0) for s in (1.0, -1.0))
            bends = np.any(np.abs(slopes[1.0, 1e-6] - slopes[-1.0, 1e-6]) > 0.05)
        if grows or bends:
            return True
    return False


# ----------------------------------------------------------------------------------------------------------------------
# The table


def table() -> dict[str, dict[str, Any]]:
    """A row for each builtin of the installed Warp."""
    calls = built([call for name in builtin_functions for call in calls_of(name)])
    measured: dict[str, list[tuple[Call, Measured]]] = {}
    for call in calls:
        measured.setdefault(call.name, []).append((call, measure(call)))
    return {name: row(name, measured.get(name, [])) for name in sorted(builtin_functions)}


def row(name: str, measured: Sequence[tuple[Call, Measured]]) -> dict[str, Any]:
    """What is known of one builtin."""
    adjoint = bool(builtin_functions[name].is_differentiable)
    found: dict[str, Any] = {"adjoint": adjoint}
    if measured:
        found["measured"] = True
    if adjoint:
        found["reads"] = _reads(name, measured)
    elif name in LINEAR or name in READS:
        found["reads"] = _declared_reads(name)
    elif _is_flat(name, measured):
        found["flat"] = True
    for key, composite in (("missing", False), ("missing_composite", True)):
        positions = {at for call, each in measured if call.is_composite is composite for at in each.missing}
        if adjoint and positions:
            found[key] = sorted(positions)
    for key, mixed in (("result", False), ("result_mixed", True)):
        positions = {at for call, each in measured if call.is_mixed is mixed for at in each.result}
        if positions:
            found[key] = sorted(positions)
        held = _positions([(call, each.held) for call, each in measured if call.is_mixed is mixed])
        if positions and held != _positions([(call, each.reads) for call, each in measured if call.is_mixed is mixed]):
            found["held_mixed" if mixed else "held"] = held
    wrong = {at for _, each in measured for at in each.wrong}
    if adjoint and wrong:
        found["wrong"] = sorted(wrong)
    for key, attribute in (("singular", "singular"), ("singular_whole", "singular"), ("guarded", "guarded")):
        by_position: dict[int, set[float]] = {}
        for call, each in measured:
            for at, values in getattr(each, attribute).items():
                whole = call.inputs[at].width > 1 and name not in COMPONENTWISE
                if attribute == "guarded" or whole is (key == "singular_whole"):
                    by_position.setdefault(at, set()).update(values)
        if adjoint and by_position:
            found[key] = {str(at): sorted(values) for at, values in sorted(by_position.items())}
    if any(call.is_composite for call, _ in measured) and all(call.makes_number for call, _ in measured):
        found["number"] = True
    if name in OUTPUTS:
        found["outputs"] = OUTPUTS[name]
    return found


def _reads(name: str, measured: Sequence[tuple[Call, Measured]]) -> list[str] | None:
    if not measured or name in READS:
        return _declared_reads(name)
    return _positions([(call, each.reads) for call, each in measured])


def _positions(measured: Sequence[tuple[Call, dict[int, set[int]]]]) -> list[str]:
    """For each argument the positions that some call showed for it."""
    found: dict[int, set[int]] = {}
    for call, by_argument in measured:
        for at in call.inputs:
            found.setdefault(at, set()).update(by_argument.get(at, ()))
    return ["".join(map(str, sorted(found.get(at, ())))) for at in range(max(found, default=-1) + 1)]


def _declared_reads(name: str) -> list[str] | None:
    return [] if name in LINEAR else READS.get(name)


def _is_flat(name: str, measured: Sequence[tuple[Call, Measured]]) -> bool:
    """Nothing moves; or, of what cannot be measured, no real number goes in or none comes out."""
    if measured:
        return not any(each.moves for _, each in measured)
    return name in FLAT


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=TABLE)
    output = parser.parse_args().output
    rows = table()
    lines = [
        f'"warp": "{wp.config.version}"',
        '"builtins": {\n' + ",\n".join(_line(*each) for each in rows.items()) + "\n}",
    ]
    output.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _line(name: str, found: dict[str, Any]) -> str:
    return f" {json.dumps(name)}: {json.dumps(found)}"


if __name__ == "__main__":
    main()
