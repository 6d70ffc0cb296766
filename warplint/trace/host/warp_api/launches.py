"""``wp.launch`` and its kin: what a launch binds, whether a tape records it, and the module load behind it."""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Iterator, Sequence

from warplint.trace import events
from warplint.trace.host.classes import fields_of
from warplint.trace.host.held import hold, plain_value
from warplint.trace.host.library.numpy import shape_of
from warplint.trace.host.machine import Call, Machine
from warplint.trace.host.memory import ArrayValue, NumpyValue
from warplint.trace.host.values import (
    Class,
    Command,
    External,
    Instance,
    KernelValue,
    Native,
    Record,
    UnknownValue,
    Value,
    sources_of,
)
from warplint.trace.host.warp_api.arrays import flag
from warplint.trace.host.warp_api.kernels import event_kernel, instantiate
from warplint.trace.host.warp_api.modules import device_name, ensure_loaded

_NESTING = 4


class _Known(enum.IntEnum):
    """How much is known of what a launch is given; of all its arguments, as much as of the least known one."""

    NOTHING = 0
    """There should be an array, and nobody knows which."""
    STOOD_IN = 1
    """Code outside the project gave or made it: an array stands for it."""
    WELL = 2


_ARRAYS = frozenset({"array", "array1d", "array2d", "array3d", "array4d", "indexedarray", "fabricarray", "Array"})


def _launch(machine: Machine, call: Call) -> Value:
    """``wp.launch(kernel, dim, inputs, outputs, …, adjoint, record_tape, record_cmd)``."""
    kernel = call.get(0, "kernel")
    inputs, inputs_known = _values(machine, call, 2, "inputs")
    outputs, outputs_known = _values(machine, call, 3, "outputs")
    names = [*_argument_nodes(call, 2, "inputs"), *_argument_nodes(call, 3, "outputs")]
    if not inputs_known:
        names = []
    values = [*inputs, *outputs]
    given = [*_places(machine, call, 2, "inputs", inputs), *_places(machine, call, 3, "outputs", outputs)]
    dim = call.get(1, "dim")
    if flag(call.get(10, "record_cmd", False)):
        return Command(kernel, values, dim)
    record = flag(call.get(9, "record_tape", True)) is not False
    adjoint = flag(call.get(8, "adjoint", False)) is True
    launch(
        machine,
        kernel,
        values,
        dim,
        record=record,
        adjoint=adjoint,
        complete=call.complete and inputs_known and outputs_known,
        nodes=names,
        given=given,
        block_dim=call.get(12, "block_dim"),
        device=call.get(6, "device"),
        node=call.node,
    )
    return None


def _places(
    machine: Machine, call: Call, position: int, name: str, values: Sequence[Value]
) -> list[tuple[events.Slot, ...]]:
    """For each argument its place in the program's own list, where the list may outlive the call."""
    given, node = call.get(position, name), call.argument_node(position, name)
    if not isinstance(given, list) or not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        return [()] * len(values)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return [()] * len(values)
    held = hold(machine, given, machine.frame.module.module.text(node))
    return [(held.slot(key),) for key in range(len(values))]


def launch(
    machine: Machine,
    kernel: Value,
    values: Sequence[Value],
    dim: Value = None,
    *,
    record: bool = True,
    adjoint: bool = False,
    complete: bool = True,
    nodes: Sequence[ast.expr | None] = (),
    given: Sequence[tuple[events.Slot, ...]] = (),
    block_dim: Value = None,
    device: Value = None,
    node: ast.AST | None = None,
) -> None:
    """Emit a launch of a kernel on given arguments, and the load of its module if it is due.

    ``nodes`` are the arguments' expressions, ``given`` the places in lists of the program's that they were taken from.
    """
    tape = machine.active_tape_id
    machine.count_launch(recorded=tape is not None)
    if not isinstance(kernel, KernelValue):
        _unresolved(machine, kernel, values, record, adjoint, dim, node)
        return
    bindings: list[events.Binding] = []
    kept = record and not adjoint and tape is not None
    known = _Known.WELL if complete else _Known.NOTHING
    for position, (name, annotation) in enumerate(_parameters(kernel)):
        if position >= len(values):
            known = known if annotation is None else _Known.NOTHING
            break
        text = nodes[position] if position < len(nodes) else None
        place = (given[position] if position < len(given) else ()) if kept else None
        of_one = _bind(machine, bindings, name, annotation, values[position], kernel, text, place, _NESTING)
        known = min(known, of_one)
    if known is _Known.NOTHING and tape is not None:
        machine.note_unknown(node, "a launch on a tape with an unknown argument")
    if kernel.generic:
        instantiate(machine, kernel, values)
    ensure_loaded(machine, kernel, block_dim)
    described = event_kernel(kernel)
    _gradient_uses(machine, kernel, described, bindings)
    _emit(
        machine,
        described,
        bindings,
        dim,
        record=record,
        adjoint=adjoint,
        known=known,
        block_dim=_threads(block_dim),
        device=device_name(device),
    )


def _unresolved(
    machine: Machine,
    kernel: Value,
    values: Sequence[Value],
    record: bool,
    adjoint: bool,
    dim: Value,
    node: ast.AST | None,
) -> None:
    why = kernel.why if isinstance(kernel, UnknownValue) else f"it is a {type(kernel).__name__}"
    if machine.active_tape is not None:
        machine.note_unknown(node, f"the kernel of a launch on a tape is unknown: {why}")
    bindings: list[events.Binding] = []
    for position, value in enumerate(values):
        for path, array in _arrays_below(value, str(position), _NESTING):
            bindings.append(events.Binding(path, array.snapshot()))
    _emit(machine, None, bindings, dim, record=record, adjoint=adjoint, known=_Known.NOTHING)


def _emit(
    machine: Machine,
    kernel: events.Kernel | None,
    bindings: Sequence[events.Binding],
    dim: Value,
    *,
    record: bool,
    adjoint: bool,
    known: _Known,
    block_dim: int | None = None,
    device: str | None = None,
) -> None:
    tape = machine.active_tape_id
    machine.emit(
        events.Launch,
        kernel=kernel,
        bindings=tuple(bindings),
        tape=tape if record and not adjoint else None,
        active_tape=tape,
        adjoint=adjoint,
        complete=known is _Known.WELL,
        stood_in=known is _Known.STOOD_IN,
        dim=shape_of(machine, dim),
        block_dim=block_dim,
        device=device,
    )


def _threads(block_dim: Value) -> int | None:
    """Threads of a block; what is no positive number means Warp's own default."""
    if block_dim is None:
        return events.BLOCK
    if not isinstance(block_dim, int):
        return None
    return block_dim if block_dim > 0 else events.BLOCK


def _arrays_below(value: Value, path: str, depth: int) -> Iterator[tuple[str, ArrayValue]]:
    if isinstance(value, ArrayValue):
        yield path, value
    elif isinstance(value, Instance) and depth:
        for name, item in value.attributes.items():
            yield from _arrays_below(item, f"{path}.{name}", depth - 1)


def _values(machine: Machine, call: Call, position: int, name: str) -> tuple[list[Value], bool]:
    """The arguments given as ``inputs=`` or ``outputs=``; false where the list is not known."""
    value = call.get(position, name)
    if value is None:
        return [], call.complete or call.has(position, name)
    items = machine.iterate(value)
    if items is None:
        return [], False
    return list(items), True


def _argument_nodes(call: Call, position: int, name: str) -> list[ast.expr | None]:
    node = call.argument_node(position, name)
    if isinstance(node, (ast.List, ast.Tuple)) and not any(isinstance(item, ast.Starred) for item in node.elts):
        return list(node.elts)
    value = call.get(position, name)
    return [None] * len(value) if isinstance(value, (list, tuple)) else []


def _parameters(kernel: KernelValue) -> list[tuple[str, ast.expr | None]]:
    arguments = kernel.function.node.args
    return [(parameter.arg, parameter.annotation) for parameter in (*arguments.posonlyargs, *arguments.args)]


def _bind(
    machine: Machine,
    bindings: list[events.Binding],
    path: str,
    annotation: ast.expr | None,
    value: Value,
    kernel: KernelValue,
    node: ast.expr | None,
    place: tuple[events.Slot, ...] | None,
    depth: int,
) -> _Known:
    """Append what a parameter is bound to, and say how much is known of it.

    ``place``: where a tape will take it from again, None where no tape will.
    """
    if isinstance(value, ArrayValue):
        text = machine.frame.module.module.text(node) if node is not None else ""
        bindings.append(events.Binding(path, value.snapshot(text[:80]), held=place or ()))
        return _Known.WELL
    if isinstance(value, Instance) and value.cls.is_struct:
        known = _Known.WELL
        text = machine.frame.module.module.text(node) if node is not None else path
        struct = hold(machine, value, text) if place is not None else None
        for name, item in value.attributes.items():
            field = value.cls.annotations.get(name)
            if depth:
                inner = None if struct is None or place is None else (*place, struct.slot(name))
                of_one = _bind(machine, bindings, f"{path}.{name}", field, item, kernel, None, inner, depth - 1)
                known = min(known, of_one)
        return known
    if isinstance(value, NumpyValue) and expects_array(annotation) is True:
        bindings.append(events.Binding(path, None, None, value.sources))
        return _Known.WELL
    if isinstance(value, UnknownValue) and value.foreign:
        standing_in = _stand_ins(machine, path, annotation, value, kernel, node)
        bindings.extend(standing_in)
        if standing_in:
            return _Known.STOOD_IN
    sources = sources_of(value)
    bindings.append(events.Binding(path, None, plain_value(value), sources, place or ()))
    if value is None or not isinstance(value, (UnknownValue, Record)):
        return _Known.WELL
    if expects_array(annotation) or (
        expects_array(annotation) is None and _expects_struct(machine, kernel, annotation)
    ):
        why = value.why if isinstance(value, UnknownValue) else value.kind
        if machine.active_tape is not None:
            machine.note_unknown(node, f"argument {path} of {kernel.name}: {why}")
        return _Known.NOTHING
    return _Known.WELL


def _stand_ins(
    machine: Machine,
    path: str,
    annotation: ast.expr | None,
    value: UnknownValue,
    kernel: KernelValue,
    node: ast.expr | None,
) -> list[events.Binding]:
    """Bindings to what stands for a foreign array, or for the arrays in a foreign struct; none for anything else."""
    text = machine.frame.module.module.text(node) if node is not None else path
    expected = _annotated(machine, kernel, annotation)
    if expects_array(annotation) or (isinstance(expected, External) and expected.name in _ARRAYS):
        return [events.Binding(path, machine.stand_in(value).snapshot(text[:80]), None, value.sources)]
    if not isinstance(expected, Class) or not expected.is_struct:
        return []
    return [
        events.Binding(f"{path}.{name}", machine.stand_in(value, name).snapshot(f"{text}.{name}"[:80]))
        for name, owner in fields_of(expected).items()
        if expects_array(owner.annotations[name])
    ]


def expects_array(annotation: ast.expr | None) -> bool | None:
    """Whether a parameter is an array by its annotation; None where the annotation is another name."""
    node = annotation
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return None
    if isinstance(node, ast.Call):
        node = node.func
    elif isinstance(node, ast.Subscript):
        node = node.value
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    if name in _ARRAYS:
        return True
    if isinstance(node, ast.Attribute) and name[:1].islower():
        return False
    return False if name in ("float", "int", "bool") else None


def _expects_struct(machine: Machine, kernel: KernelValue, annotation: ast.expr | None) -> bool:
    """Whether an annotation names a struct, or an alias of an array type: values that hold arrays."""
    if annotation is None:
        return True
    value = _annotated(machine, kernel, annotation)
    if isinstance(value, Class):
        return value.is_struct
    if isinstance(value, External):
        return value.name in _ARRAYS
    return isinstance(value, UnknownValue)


def _annotated(machine: Machine, kernel: KernelValue, annotation: ast.expr | None) -> Value:
    """What the name that a parameter is annotated with means, None where it is no name."""
    from warplint.trace.host.machine import Frame

    if not isinstance(annotation, (ast.Name, ast.Attribute)):
        return None
    return machine.evaluate(annotation, Frame(kernel.function.closure, kernel.name, annotation))


def _gradient_uses(
    machine: Machine, kernel: KernelValue, described: events.Kernel, bindings: Sequence[events.Binding]
) -> None:
    """A launch that takes ``x.grad`` reads or sets a gradient, as its kernel reads or stores that parameter."""
    taken = [binding for binding in bindings if binding.array is not None and binding.array.gradient]
    if not taken:
        return
    summary = machine.summary_of(described)
    for binding in taken:
        assert binding.array is not None
        if summary is None or not summary.complete or binding.path in summary.read_paths:
            machine.emit(events.GradRead, array=binding.array, how=machine.reading("launch"))
        elif binding.path in summary.written_paths:
            machine.emit(events.GradWrite, array=binding.array, clears=False)


def command_attribute(machine: Machine, command: Command, name: str) -> Value:
    """Methods of what ``record_cmd=True`` returned; its launches are never recorded (measured)."""

    def run(machine: Machine, call: Call) -> Value:
        launch(machine, command.kernel, command.arguments, command.dim, record=False, node=call.node)
        return None

    def set_param(machine: Machine, call: Call) -> Value:
        index, value = call.get(0, "index"), call.get(1, "value")
        if isinstance(index, int) and 0 <= index < len(command.arguments):
            command.arguments[index] = value
        return None

    def set_named(machine: Machine, call: Call) -> Value:
        wanted, value = call.get(0, "name"), call.get(1, "value")
        if isinstance(command.kernel, KernelValue):
            for position, (parameter, _) in enumerate(_parameters(command.kernel)):
                if parameter == wanted and position < len(command.arguments):
                    command.arguments[position] = value
        return None

    def set_all(machine: Machine, call: Call) -> Value:
        values = machine.iterate(call.get(0, "values"))
        if values is not None:
            command.arguments[: len(values)] = values
        return None

    def set_dim(machine: Machine, call: Call) -> Value:
        command.dim = call.get(0, "dim")
        return None

    methods: dict[str, Callable[[Machine, Call], Value]] = {
        "launch": run,
        "set_param_at_index": set_param,
        "set_param_by_name": set_named,
        "set_param_at_index_from_ctype": set_param,
        "set_param_by_name_from_ctype": set_named,
        "set_params": set_all,
        "set_dim": set_dim,
    }
    if name in methods:
        return Native(name, methods[name])
    return UnknownValue(f"the attribute {name} of a recorded launch")


MODELS: dict[str, Callable[[Machine, Call], Value]] = {
    "warp.launch": _launch,
    "warp.launch_tiled": _launch,
}
