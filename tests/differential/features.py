"""What a random kernel may contain: drawn once a kernel, so that kernels differ in kind and not only in detail."""

from __future__ import annotations

from dataclasses import dataclass, fields
from random import Random


@dataclass(frozen=True)
class Features:
    """Each feature is in a kernel or not; :data:`SHARES` says how often."""

    threads: bool
    dynamic_loops: bool
    while_loops: bool
    breaks: bool
    static_loops: bool
    branches: bool
    vectors: bool
    matrices: bool
    components: bool
    grids: bool
    structs: bool
    functions: bool
    array_functions: bool
    gathers: bool
    kinks: bool
    flat: bool
    missing: bool
    reads_outputs: bool
    """Arrays that the kernel stores to are read as well."""
    writes_inputs: bool
    multiplies_elements: bool
    atomics: bool
    returned_atomics: bool
    shared_stores: bool
    returns: bool
    local_aliases: bool
    launch_aliases: bool


SHARES = {
    "threads": 0.7,
    "dynamic_loops": 0.5,
    "while_loops": 0.12,
    "breaks": 0.12,
    "static_loops": 0.3,
    "branches": 0.5,
    "vectors": 0.45,
    "matrices": 0.2,
    "components": 0.65,
    "grids": 0.25,
    "structs": 0.2,
    "functions": 0.4,
    "array_functions": 0.2,
    "gathers": 0.2,
    "kinks": 0.3,
    "flat": 0.12,
    "missing": 0.06,
    "reads_outputs": 0.22,
    "writes_inputs": 0.12,
    "multiplies_elements": 0.12,
    "atomics": 0.4,
    "returned_atomics": 0.04,
    "shared_stores": 0.04,
    "returns": 0.12,
    "local_aliases": 0.15,
    "launch_aliases": 0.08,
}


def drawn(random: Random) -> Features:
    """The features of one kernel."""
    return Features(**{each.name: random.random() < SHARES[each.name] for each in fields(Features)})
