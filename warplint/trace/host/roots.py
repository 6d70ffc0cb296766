"""Where interpretation starts: the file as a program, and the functions of it that lead to a tape and were not reached.

What calls a function that opens a tape knows its arguments, so the outermost callers come first (tests above all); a
function that opens a tape and was entered from none of them starts on its own, with unknown arguments.
"""

from __future__ import annotations

import ast
import bisect
import re
from collections.abc import Iterator, Sequence

from warplint.dataclass import dataclass
from warplint.project import Module
from warplint.syntax import walk
from warplint.trace.events import Interlude
from warplint.trace.host.facts import line_numbers
from warplint.trace.host.lookup import global_value
from warplint.trace.host.machine import Call, Machine
from warplint.trace.host.values import Bound, Class, Function, Instance, Record, UnknownValue, Value

Definition = ast.FunctionDef | ast.AsyncFunctionDef

_NAMES_TAPE = re.compile(r"[Tt]ape\b")
_HALVES = {"forward", "backward"}
_CALLED_BY_PYTHON = {"__init__", "__call__", "__enter__", "__exit__"}
_BATCH = 200
"""Functions of one file that are started on their own, at most."""


@dataclass(frozen=True)
class Root:
    """A function or method (then ``owner`` is its class) at the top level of the file.

    ``after``: the method that is called next, with the same context; the two halves of a ``torch.autograd.Function``.
    """

    node: Definition
    owner: ast.ClassDef | None = None
    after: Definition | None = None


def taped_functions(module: Module) -> list[Root]:
    """The functions and methods at the top level that lead to a tape: outermost callers first, then the openers."""
    lines = line_numbers(module.source.text, _NAMES_TAPE)
    openers: list[Root] = []
    others: list[Root] = []
    for owner, node in _functions(module.tree) if lines else ():
        first = bisect.bisect_left(lines, node.lineno)
        near = first < len(lines) and lines[first] <= (node.end_lineno or 0)
        (openers if near and opens_tape(node) else others).append(Root(node, owner))
    return [*_outermost_callers(openers, others), *dict.fromkeys(map(_as_whole, openers))][:_BATCH]


def _as_whole(root: Root) -> Root:
    """One half of a ``torch.autograd.Function`` stands for both, forward first; any other root for itself."""
    owner = root.owner
    if owner is None or not any(_last_name(base) == "Function" for base in owner.bases):
        return root
    halves = {each.name: each for each in owner.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))}
    if root.node.name not in _HALVES or not halves.keys() >= _HALVES or "setup_context" in halves:
        return root
    return Root(halves["forward"], owner, halves["backward"])


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _outermost_callers(openers: Sequence[Root], others: Sequence[Root]) -> Iterator[Root]:
    """Functions that call an opener, directly or through others, and that no function of the file calls in turn."""
    if not openers:
        return
    called = {root: _called(root.node) for root in others}
    wanted = {root.node.name for root in openers} - _CALLED_BY_PYTHON
    reaching: set[Root] = set()
    while found := [root for root, names in called.items() if root not in reaching and names & wanted]:
        reaching.update(found)
        wanted |= {root.node.name for root in found} - _CALLED_BY_PYTHON
    within = set().union(*called.values(), *(_called(root.node) for root in openers)) if reaching else set()
    yield from (root for root in others if root in reaching and root.node.name not in within)


def _called(node: Definition) -> set[str]:
    """The bare names of what a function's body calls: functions and methods, told without types."""
    calls = (item.func for item in walk(node) if isinstance(item, ast.Call))
    return {
        callee.id if isinstance(callee, ast.Name) else callee.attr
        for callee in calls
        if isinstance(callee, (ast.Name, ast.Attribute))
    }


def _functions(tree: ast.Module) -> Iterator[tuple[ast.ClassDef | None, Definition]]:
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield None, statement
        elif isinstance(statement, ast.ClassDef):
            for member in statement.body:
                if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    yield statement, member


def opens_tape(node: Definition) -> bool:
    """Whether ``Tape(`` is called or a ``with …tape`` stands in the body, nested functions included."""
    for item in walk(node):
        if isinstance(item, ast.Call):
            name = item.func.attr if isinstance(item.func, ast.Attribute) else getattr(item.func, "id", "")
            if name == "Tape":
                return True
        elif isinstance(item, ast.With):
            for context in item.items:
                expression = context.context_expr
                name = expression.attr if isinstance(expression, ast.Attribute) else getattr(expression, "id", "")
                if name.lower().endswith("tape"):
                    return True
    return False


def start(machine: Machine, root: Root) -> None:
    """Call a root: arguments without a default are unknown, ``self`` is made by ``__init__`` with unknowns."""
    module = machine.frame.module
    hook = global_value(machine, module, "setUpModule")
    if isinstance(hook, Function) and root.node.name.startswith("test"):
        machine.parts.call(machine, hook, Call([]))
    if root.owner is None:
        function = global_value(machine, module, root.node.name)
        _enter(machine, function)
        return
    cls = global_value(machine, module, root.owner.name)
    if not isinstance(cls, Class):
        return
    found = cls.find(root.node.name)
    if found is None:
        return
    if root.after is not None:
        context = Record("autograd-context")
        for half in (root.node, root.after):
            call = Call([context, *_given(machine, half)])
            machine.parts.call(machine, machine.parts.get_attribute(machine, cls, half.name), call)
        return
    receiver = _object(machine, cls)
    method = found[0]
    if isinstance(method, Function):
        _enter(machine, Bound(method, receiver))
    else:
        _enter(machine, machine.parts.get_attribute(machine, receiver, root.node.name))


def _given(machine: Machine, half: Definition) -> list[Value]:
    """What torch gives after the context: what has a name is unknown by itself, ``*args`` are some unknowns."""
    if half.args.vararg is None:
        return []
    named = len(half.args.posonlyargs) + len(half.args.args) - 1
    return [UnknownValue("an argument") for _ in range(named + machine.settings.unknown_rounds)]


def _object(machine: Machine, cls: Class) -> Value:
    if cls.is_struct:
        return Instance(cls)
    value = machine.parts.call(machine, cls, Call([]))
    if isinstance(value, Instance):
        machine.emit(Interlude)
        for hook in ("setUp", "setup_method"):
            if cls.find(hook):
                machine.call(machine.parts.get_attribute(machine, value, hook), [])
        return value
    return UnknownValue("an object")


def _enter(machine: Machine, function: Value) -> None:
    target = function.function if isinstance(function, Bound) else function
    if isinstance(target, Function):
        result = machine.parts.call(machine, function, Call([]))
        machine.iterate(result)
