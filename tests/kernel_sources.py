"""Kernels written in a test's text, as the analysis wants them: node, scope, summary."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from warplint.kernels.analysis import summarise
from warplint.kernels.source import (
    PYTHON_BUILTINS,
    Adjoint,
    Builtin,
    Constant,
    Function,
    KernelSource,
    Meaning,
    Struct,
    TypeAlias,
)
from warplint.kernels.summary import KernelFaultKind, KernelSummary, Store

PATH = "kernels.py"


@dataclass(frozen=True, eq=False)
class MappingScope:
    """A scope backed by a dict of meanings, in which ``wp`` and ``warp`` mean the package."""

    names: Mapping[str, Meaning]

    def resolve(self, dotted: str) -> Meaning | None:
        """See ``Scope.resolve``."""
        if dotted in self.names:
            return self.names[dotted]
        head, _, rest = dotted.partition(".")
        if rest and head in ("wp", "warp"):
            return Builtin(rest.rpartition(".")[2])
        return Builtin(dotted) if dotted in PYTHON_BUILTINS else None


def scope_of(tree: ast.Module, path: str = PATH) -> MappingScope:
    """The top level of a file as a scope."""
    names: dict[str, Meaning] = {}
    scope = MappingScope(names)
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names[node.name] = Struct(node, path, scope)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names[node.targets[0].id] = _assigned(node.value, scope)
        elif isinstance(node, ast.FunctionDef):
            _declare(node, names, scope, path)
    return scope


def _assigned(value: ast.expr, scope: MappingScope) -> Meaning:
    if isinstance(value, ast.Constant):
        return Constant(value.value)
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "wp.constant":
        return Constant(ast.literal_eval(value.args[0]))
    return TypeAlias(value, scope)


def _declare(node: ast.FunctionDef, names: dict[str, Meaning], scope: MappingScope, path: str) -> None:
    decorator = ast.unparse(node.decorator_list[0]) if node.decorator_list else ""
    adjoint = Adjoint.GENERATED
    if "func_native" in decorator:
        adjoint = Adjoint.NATIVE if "adj_snippet" in decorator else Adjoint.NATIVE_MISSING
    made = Function(node, path, scope, adjoint)
    for role in ("func_grad", "func_replay"):
        if role in decorator:
            name = decorator.partition("(")[2].rstrip(")")
            of = names[name]
            assert isinstance(of, Function)
            if role == "func_grad":
                names[name] = Function(of.node, path, scope, Adjoint.CUSTOM, of.replay, made)
            else:
                names[name] = Function(of.node, path, scope, of.adjoint, made, of.gradient)
            return
    known = names.get(node.name)
    overloads = (known, *known.overloads) if isinstance(known, Function) else ()
    names[node.name] = Function(node, path, scope, adjoint, overloads=overloads)


def sources_of(text: str, path: str = PATH, max_unroll: int = 16) -> dict[str, KernelSource]:
    """Every function decorated as a kernel, by name."""
    tree = ast.parse(textwrap.dedent(text))
    scope = scope_of(tree, path)
    return {
        node.name: KernelSource(node, path, scope, max_unroll)
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and node.decorator_list
        and ast.unparse(node.decorator_list[0]).startswith("wp.kernel")
    }


def summary_of(text: str, max_unroll: int = 16) -> KernelSummary:
    """The summary of the one kernel in ``text``."""
    (source,) = sources_of(text, max_unroll=max_unroll).values()
    return summarise(source)


def kernel(body: str, parameters: str = "a: R, b: R, c: R", before: str = "") -> KernelSummary:
    """The summary of a kernel with this body, over arrays of floats named a, b, c; ``i`` is the thread's index."""
    lines = ["R = wp.array(dtype=float)", "Z = wp.array(dtype=int)", "V = wp.array(dtype=wp.vec3)"]
    lines += textwrap.dedent(before).splitlines()
    lines += ["@wp.kernel", f"def k({parameters}):", "    i = wp.tid()"]
    lines += textwrap.indent(textwrap.dedent(body).strip("\n"), "    ").splitlines()
    return summary_of("\n".join(lines))


def store_to(summary: KernelSummary, path: str) -> Store:
    """The only store to ``path``."""
    (store,) = [store for store in summary.stores if store.path == path]
    return store


def needs_of(store: Store) -> set[tuple[str, str, frozenset[str]]]:
    """(path and index that is read, the paths through one of which gradient must flow), for each need."""
    return {(f"{need.read.path}[{need.read.index}]", need.operation, need.given) for need in store.needs}


def needed(summary: KernelSummary) -> set[str]:
    """Every array element that some adjoint reads, as text."""
    return {f"{need.read.path}[{need.read.index}]" for store in summary.stores for need in store.needs}


def fault_lines(summary: KernelSummary, kind: KernelFaultKind) -> list[str]:
    """The statements at which faults of this kind stand."""
    return [fault.operation for fault in summary.faults if fault.kind is kind]
