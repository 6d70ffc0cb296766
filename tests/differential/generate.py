"""Whole random kernels, with their functions."""

from __future__ import annotations

import dataclasses
import re
from random import Random

from tests.differential.cases import OWN, Case
from tests.differential.expressions import Arrays, Expressions, Names
from tests.differential.features import Features, drawn
from tests.differential.statements import DEPTH, Body, Statements


def cases(seed: int, count: int) -> list[Case]:
    """``count`` kernels; equal seeds make equal kernels."""
    return [case(Random(f"{seed}/{number}")) for number in range(count)]


def case(random: Random) -> Case:
    """One kernel."""
    features = drawn(random)
    structs = ("state.position", "state.velocity") if features.structs else ()
    outputs = ["b", "d", *structs[1:]]
    inputs = ["a", "c", *structs[:1]]
    if features.writes_inputs:
        outputs.append(random.choice(inputs))
    grids = ["m"] if features.grids else []
    vectors = ["v"] if features.vectors else []
    read = Arrays(list(inputs), vectors, grids, frozenset({*outputs, "w", "g"}))
    if features.reads_outputs:
        read.reals = [*inputs, *outputs, *outputs]
        read.vectors = [*vectors, *(["w"] if vectors else [])]
        read.grids = [*grids, *(["g"] if grids else [])]
    expressions = Expressions(random, features, read, threads=features.threads)
    functions, writers = _functions(random, features, expressions)
    statements = Statements(random, features, expressions, read, Arrays(list(outputs)), writers=writers)
    body = Body([], Names(constants=["s", *(["state.dt"] if structs else [])]), leavable=False)
    if features.threads:
        body.add("i = wp.tid()")
    for _ in range(random.randint(2, 5)):
        statements.statement(body)
        if features.returns and random.random() < 0.2:
            statements.leave(body)
    if random.random() < 0.7:
        _use(body, statements)
    text = "\n".join(body.lines)
    aliases = ((random.choice("ac"), random.choice("bd")),) if features.launch_aliases else ()
    made = Case("\n\n".join(functions), text, 3 if features.threads else 1)
    kept = tuple(pair for pair in aliases if set(pair) <= set(made.parameters))
    return dataclasses.replace(made, aliases=_usable(kept, text))


def _usable(aliases: tuple[tuple[str, str], ...], text: str) -> tuple[tuple[str, str], ...]:
    """Only arrays that each thread has its own element of are given twice."""
    other = [rf"\b{name}\b(?!\[i\])" for pair in aliases for name in pair]
    return () if "wp.tid" in text and any(re.search(each, text) for each in other) else aliases


def _use(body: Body, statements: Statements) -> None:
    """Store something made of the locals, so that they matter."""
    names = body.names
    for name in names.reals[-2:]:
        form = statements.random.choice(("{0}", "{0}", "{0} * {0}", "wp.sin({0})", "{0} * s"))
        array = statements.random.choice(list(statements.outputs.reals))
        index = statements.expressions.index_of(array, names)
        body.add(f"{array}[{index}] {statements.random.choice(('=', '+='))} {form.format(name)}")
    for name in names.vectors[-1:]:
        body.add(f"w[{statements.expressions.own_index(names)}] = {name}")
    for name in names.matrices[-1:]:
        body.add(f"wp.atomic_add(total, 1, {name}[0, 1] + real(2.0) * {name}[1, 1] - {name}[0, 0])")


def _functions(random: Random, features: Features, caller: Expressions) -> tuple[list[str], tuple[str, ...]]:
    """The functions of a kernel, and those of them that store."""
    texts: list[str] = []
    writers: list[str] = []
    if features.functions:
        for number in range(random.randint(1, 2)):
            name = f"{OWN}f{number}"
            texts.append(_plain(name, random, features))
            caller.functions[name] = ("real", "real", "real")
    if features.array_functions:
        texts.append(_reader(f"{OWN}reader", random, features))
        caller.functions[f"{OWN}reader"] = ("real", "array", "count", "real")
        texts.append(_writer(f"{OWN}writer", random, features))
        caller.functions[f"{OWN}writer"] = ("none", "output", "index", "real")
        writers.append(f"{OWN}writer")
    return texts, tuple(writers)


def _inside(random: Random, features: Features) -> Statements:
    """A function's own writer: no array is in reach."""
    arrays, features = Arrays(), dataclasses.replace(features, gathers=False)
    expressions = Expressions(random, features, arrays, threads=False)
    return Statements(random, features, expressions, arrays, Arrays(), local=True)


def _plain(name: str, random: Random, features: Features) -> str:
    """A function of two reals, perhaps with loops (bound 4) and an early return."""
    statements = _inside(random, features)
    names = Names(["x", "y"])
    body = Body([f"@wp.func\ndef {name}(x: real, y: real):"], names, indent=1)
    statements.count = 50
    early = ""
    for _ in range(random.randint(0, 2)):
        _local_statement(statements, body)
    if random.random() < 0.25:
        body.add(f"if wp.sin(real(6.0) * {random.choice('xy')}) > real(0.0):")
        early = _returned(statements, names)
        body.add(f"    return {early}")
    late = _returned(statements, names)
    body.add(f"return {late if late != early else f'wp.sin({late})'}")
    return "\n".join(body.lines).replace("range(n)", "range(4 + int(0))").replace("range(1, n)", "range(1, 4 + int(0))")


def _returned(statements: Statements, names: Names) -> str:
    """What depends on the arguments."""
    return statements.expressions.varying(statements.expressions.real(names, DEPTH), names)


def _local_statement(statements: Statements, body: Body) -> None:
    choices = [statements.new_real, statements.assign_real, statements.static_loop, statements.dynamic_loop]
    if statements.features.vectors:
        choices += [statements.new_vector, statements.assign_component]
    if statements.features.branches:
        choices.append(statements.branch)
    statements.random.choice(choices)(body)


def _reader(name: str, random: Random, features: Features) -> str:
    """A sum (or product) over an array."""
    term = random.choice(("values[k] * values[k]", "wp.sin(values[k]) * x", "x * values[k]", "values[k]"))
    step = random.choice((f"r += {term}", f"r += {term}", f"r *= {term}", f"r = wp.cos(r) + {term}"))
    loop = random.choice(("range(n)", "range(3)"))
    back = random.choice(("r", "r", "r * r", "r / (real(2.0) + wp.cos(x))"))
    lines = [
        "@wp.func",
        f"def {name}(values: Reals, n: int, x: real):",
        "    r = real(0.5)",
        f"    for k in {loop}:",
        f"        {step}",
        f"    return {back}",
    ]
    return "\n".join(lines)


def _writer(name: str, random: Random, features: Features) -> str:
    """Stores to an array that it is given."""
    forms = ["out[k] = x * x", "out[k] += wp.sin(x)", "out[k] = out[k] + x", "wp.atomic_add(out, k, x * x * x)"]
    if features.reads_outputs:
        forms += ["out[k] = wp.sin(out[k]) * x", "out[k] = out[k] * x"]
    if features.multiplies_elements:
        forms.append("out[k] *= x")
    return f"@wp.func\ndef {name}(out: Reals, k: int, x: real):\n    {random.choice(forms)}"
