"""A generated kernel, the module that measures many of them, and the program that warplint judges one by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SIZE = 8
"""Elements (or rows) of each array; every index in a generated kernel is below it."""
COLUMNS = 4
ROUNDS = 4
"""The value of the parameter ``n``, the bound of dynamic loops."""
MAX_UNROLL, LONG_LOOP = 4, 9
"""Iterations that Warp unrolls at most, and those of a constant loop that it does not. Few, since the gradient of what
came in dies out over many."""

ANNOTATIONS = {
    "a": "Reals",
    "c": "Reals",
    "v": "Vectors",
    "m": "Grid",
    "where": "Integers",
    "state": "State",
    "n": "int",
    "s": "real",
    "b": "Reals",
    "d": "Reals",
    "w": "Vectors",
    "g": "Grid",
    "total": "Reals",
}
"""All that a generated kernel may take, in this order; it takes what it mentions."""

OWN = "CASE_"
"""Stands before the names of a case's kernel and functions, so that many cases fit into one module."""

PRELUDE = f"""
import numpy as np
import warp as wp

wp.set_module_options({{"max_unroll": {MAX_UNROLL}}})

real = wp.float64
Vec = wp.vec3d
Mat = wp.mat22d
Reals = wp.array(dtype=wp.float64)
Grid = wp.array2d(dtype=wp.float64)
Vectors = wp.array(dtype=wp.vec3d)
Integers = wp.array(dtype=int)


@wp.struct
class State:
    position: wp.array(dtype=wp.float64)
    velocity: wp.array(dtype=wp.float64)
    dt: wp.float64
"""


@dataclass(frozen=True)
class Case:
    """``functions`` and ``body`` (the statements of the kernel, not indented) are text.

    ``dim``: threads of the launch. ``aliases``: pairs of parameters that are given one array.
    """

    functions: str
    body: str
    dim: int
    aliases: tuple[tuple[str, str], ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that the body mentions."""
        return tuple(name for name in ANNOTATIONS if re.search(rf"\b{name}\b", self.body))

    def text(self, prefix: str) -> str:
        """Functions and kernel, their names behind ``prefix``."""
        signature = ", ".join(f"{name}: {ANNOTATIONS[name]}" for name in self.parameters)
        body = "\n".join(f"    {line}" for line in self.body.splitlines())
        kernel = f"@wp.kernel\ndef {OWN}kernel({signature}):\n{body}\n"
        return f"{self.functions}\n\n{kernel}".replace(OWN, prefix)

    @property
    def shared(self) -> dict[str, str]:
        """Each parameter to the one whose array it is given."""
        return {name: dict(self.aliases).get(name, name) for name in self.parameters}


def case_of(fields: Mapping[str, Any]) -> Case:
    """A case from its fields as JSON has them."""
    return Case(**{**fields, "aliases": tuple((new, old) for new, old in fields["aliases"])})


def module_text(cases: Mapping[int, Case]) -> str:
    """One module with the kernels ``c0_kernel``, ``c1_kernel`` ..., by number."""
    return PRELUDE + "\n\n" + "\n\n".join(case.text(f"c{number}_") for number, case in cases.items())


_MADE = {
    "Reals": f"wp.array(np.random.rand({SIZE}), dtype=wp.float64, requires_grad=True)",
    "Vectors": f"wp.array(np.random.rand({SIZE}, 3), dtype=wp.vec3d, requires_grad=True)",
    "Grid": f"wp.array(np.random.rand({SIZE}, {COLUMNS}), dtype=wp.float64, requires_grad=True)",
    "Integers": f"wp.array(np.random.permutation({SIZE}), dtype=int)",
    "State": "State()",
    "int": str(ROUNDS),
    "real": "0.7",
}
_FIELDS = ("position", "velocity")


def program(case: Case) -> str:
    """A program that launches the kernel on a tape and differentiates every array with respect to every other."""
    names, arrays, lines = case.parameters, [], []
    for name in names:
        annotation, owner = ANNOTATIONS[name], case.shared[name]
        if owner != name:
            continue
        lines.append(f"{name} = {_MADE[annotation]}")
        if annotation == "State":
            lines += [f"{name}.{field} = {_MADE['Reals']}" for field in _FIELDS]
            lines.append(f"{name}.dt = 0.3")
            arrays += [f"{name}.{field}" for field in _FIELDS]
        elif annotation in ("Reals", "Vectors", "Grid"):
            arrays.append(name)
    arguments = ", ".join(case.shared[name] for name in names)
    seeds = ", ".join(f"{array}: wp.ones_like({array})" for array in arrays)
    lines += [
        "with wp.Tape() as tape:",
        f"    wp.launch({OWN}kernel, dim={case.dim}, inputs=[{arguments}])",
        f"tape.backward(grads={{{seeds}}})",
        *(f"print({array}.grad.numpy())" for array in arrays),
    ]
    return f"{PRELUDE}\n\n{case.text('')}\n\n".replace(OWN, "") + "\n".join(lines).replace(OWN, "") + "\n"
