"""Allocation of arrays, and what an array's attributes and methods do.

Which allocators inherit ``requires_grad`` was measured on 1.19: ``*_like`` and ``clone`` do, ``zeros``, ``empty``,
``full``, ``ones``, ``array`` and ``from_numpy`` do not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warplint.trace import events
from warplint.trace.events import Alias
from warplint.trace.host.library.numpy import nested_shape, numbers_in, shape_of, size_of
from warplint.trace.host.machine import Call, Machine
from warplint.trace.host.memory import SMALL, ArrayValue, Memory, NumpyValue, Pointer, Shape
from warplint.trace.host.values import (
    ArrayType,
    External,
    Native,
    Record,
    TypeExpression,
    UnknownValue,
    Value,
    sources_of,
    unknown_from,
)
from warplint.trace.host.warp_api.types import components_of, dtype_name


def flag(value: Value) -> bool | None:
    """A truth-valued argument; None where it is not known."""
    if isinstance(value, UnknownValue):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return bool(value)
    return None


def on_host(device: Value) -> bool:
    """Whether arrays of the device may share memory with numpy: not where another device than the CPU is named."""
    name = device if isinstance(device, str) else device.attributes.get("alias") if isinstance(device, Record) else None
    return not (isinstance(name, str) and name.startswith("cuda"))


def _new(made_by: str, value: float | None) -> Callable[[Machine, Call], Value]:
    def create(machine: Machine, call: Call) -> Value:
        shape = shape_of(machine, call.kwargs["n"] if "n" in call.kwargs else call.get(0, "shape"))
        return _allocate(machine, call, made_by, shape, call.get(1, "dtype"), value, device=2, requires_grad=3)

    return create


def _full(machine: Machine, call: Call) -> Value:
    shape = shape_of(machine, call.get(0, "shape"))
    value = call.get(1, "value", 0)
    made = _allocate(machine, call, "full", shape, call.get(2, "dtype"), value, device=3, requires_grad=4)
    _note_host_data(machine, made, sources_of(value), "full")
    return made


def _allocate(
    machine: Machine,
    call: Call,
    made_by: str,
    shape: Shape | None,
    dtype: Value,
    value: Value,
    device: int,
    requires_grad: int,
) -> ArrayValue:
    size = size_of(shape)
    known = isinstance(value, (int, float)) and size is not None and size <= SMALL
    made = machine.allocate(
        made_by,
        flag(call.get(requires_grad, "requires_grad", False)),
        shape=shape,
        dtype=dtype_name(dtype) or ("float32" if dtype is None else None),
        retain_grad=flag(call.kwargs.get("retain_grad", False)) is True,
        contents=(float(value),) * size if known and size is not None else None,
    )
    made.memory.on_host = on_host(call.get(device, "device"))
    return made


def _like(made_by: str, value: float | None, flag_position: int = 2) -> Callable[[Machine, Call], Value]:
    """``zeros_like`` and its kin: the flag is the source's unless given."""

    def create(machine: Machine, call: Call) -> Value:
        source = call.get(0, "src")
        given = call.get(flag_position, "requires_grad")
        if not isinstance(source, ArrayValue):
            inherited = None if given is None else flag(given)
            return machine.allocate(made_by, inherited, contents=None)
        size = size_of(source.shape)
        made = machine.allocate(
            made_by,
            source.requires_grad if given is None else flag(given),
            shape=source.shape,
            dtype=source.dtype,
            retain_grad=flag(call.kwargs.get("retain_grad", False)) is True,
            contents=None if value is None or size is None or size > SMALL else (value,) * size,
        )
        made.memory.extents = dict(source.memory.extents)
        made.memory.on_host = source.memory.on_host
        return made

    return create


def _full_like(machine: Machine, call: Call) -> Value:
    value = call.get(1, "value")
    return _like("full_like", float(value) if isinstance(value, (int, float)) else None, flag_position=3)(machine, call)


def _array(machine: Machine, call: Call) -> Value:
    """``wp.array(data=, dtype=, shape=, ptr=, copy=, grad=, requires_grad=)``."""
    if not call.has(0, "data") and not call.has(4, "ptr") and not call.has(2, "shape") and not call.has(6, "length"):
        expression = TypeExpression(call.node, machine.frame.environment) if call.node is not None else None
        return ArrayType("warp.array", dtype_name(call.get(1, "dtype")), expression)
    data, pointer = call.get(0, "data"), call.kwargs.get("ptr")
    dtype = dtype_name(call.get(1, "dtype"))
    shape = shape_of(machine, call.kwargs["shape"]) if "shape" in call.kwargs else None
    requires_grad = flag(call.kwargs.get("requires_grad", False))
    if isinstance(pointer, Pointer):
        return _pointer_alias(call, pointer, shape, dtype, requires_grad)
    copies = flag(call.kwargs.get("copy", True))
    if isinstance(data, NumpyValue) and copies is False and on_host(call.kwargs.get("device")):
        return _share_numpy(machine, data, dtype, requires_grad)
    numbers = numbers_in(data)
    full = shape if shape is not None else (numbers[1] if numbers else nested_shape(data))
    trimmed = full[: len(full) - components_of(dtype)] if full and shape is None and components_of(dtype) else full
    made = machine.allocate(
        "array",
        requires_grad,
        dtype=dtype or getattr(data, "dtype", None),
        shape=trimmed,
        contents=tuple(numbers[0]) if numbers and len(numbers[0]) <= SMALL else None,
        retain_grad=flag(call.kwargs.get("retain_grad", False)) is True,
        copied_from=data.memory.id if isinstance(data, ArrayValue) else None,
        outside=pointer is not None,
    )
    made.memory.on_host = on_host(call.kwargs.get("device"))
    if isinstance(data, ArrayValue):
        if data.gradient:
            machine.emit(events.GradRead, array=data.snapshot(), how="copy")
        else:
            _emit_unrecorded_copy(machine, data, made, "array")
    use_views(machine, data)
    _note_host_data(machine, made, sources_of(data), "array")
    _give_gradient(made, call.kwargs.get("grad"))
    return made


def _emit_unrecorded_copy(machine: Machine, source: ArrayValue, dest: ArrayValue, how: str) -> None:
    machine.emit(
        events.Copy,
        source=source.snapshot(),
        dest=dest.snapshot(),
        tape=None,
        active_tape=machine.active_tape_id,
        how=how,
    )


def _note_host_data(machine: Machine, made: ArrayValue, sources: frozenset[int], how: str) -> None:
    """An array filled with what was read back from others: the host carried the data."""
    if sources:
        machine.emit(
            events.HostWrite, dest=made.snapshot(), how=how, active_tape=machine.active_tape_id, from_host=sources
        )


def _give_gradient(array: ArrayValue, gradient: Value) -> None:
    if gradient is not None:
        array.own_gradient = gradient
        array.memory.requires_grad = True if isinstance(gradient, ArrayValue) else None


def _pointer_alias(
    call: Call, pointer: Pointer, shape: Shape | None, dtype: str | None, requires_grad: bool | None
) -> ArrayValue:
    root = pointer.array
    gradient = call.kwargs.get("grad")
    shares = isinstance(gradient, ArrayValue) and gradient.gradient and gradient.memory is root.memory
    return ArrayValue(
        memory=root.memory,
        extent=root.extent,
        gradient=root.gradient,
        alias=Alias.VIEW if shares else Alias.POINTER,
        own_requires_grad=requires_grad,
        dtype=dtype or root.dtype,
        shape=shape,
        row_major=False,
        moved=root.moved,
    )


def _share_numpy(machine: Machine, data: NumpyValue, dtype: str | None, requires_grad: bool | None) -> ArrayValue:
    """``copy=False`` on the CPU: the array is numpy's memory."""
    if data.array is not None:
        shared = data.array.viewed(data.array.extent, data.shape, data.array.row_major, dtype)
        shared.alias, shared.own_requires_grad = Alias.POINTER, requires_grad
        return shared
    if data.memory is None:
        data.memory = Memory(
            machine.next_memory(),
            data.allocated or machine.stack(),
            "numpy",
            requires_grad,
            dtype=dtype or data.dtype,
            shape=data.shape,
            contents=None if data.contents is None else tuple(data.contents),
        )
        machine.adopt(data.memory)
    data.memory.requires_grad = data.memory.requires_grad or requires_grad
    return ArrayValue(data.memory, dtype=dtype or data.dtype, shape=data.shape)


def _from_numpy(machine: Machine, call: Call) -> Value:
    """``wp.from_numpy`` copies unless numpy's memory fits; the copy is what it documents."""
    kwargs = {
        "data": call.get(0, "arr"),
        "dtype": call.get(1, "dtype"),
        **{k: v for k, v in call.kwargs.items() if k != "arr"},
    }
    if kwargs["dtype"] is None:
        del kwargs["dtype"]
    made = _array(machine, Call([], kwargs, call.node))
    if isinstance(made, ArrayValue) and made.memory.made_by == "array":
        made.memory.made_by = "from_numpy"
    return made


def read_to_host(machine: Machine, array: ArrayValue, how: str) -> NumpyValue:
    """``array.numpy()``: on the CPU it shares the memory."""
    if array.gradient:
        machine.emit(events.GradRead, array=array.snapshot(), how=machine.reading(how))
    else:
        machine.emit(events.HostRead, array=array.snapshot(), how=how, active_tape=machine.active_tape_id)
    sources = frozenset({array.memory.id})
    shape = array.shape
    if shape is not None and components_of(array.dtype):
        shape = (*shape, *(None for _ in range(components_of(array.dtype))))
    shared = array if array.memory.on_host else None
    taken = machine.stack() if shared is not None and shared.gradient else ()
    return NumpyValue(shape, array.dtype, None, sources, shared, taken=taken)


def use_views(machine: Machine, *values: Value) -> None:
    """Something is computed with numpy arrays: a view of a gradient shows what the gradient holds now."""
    for value in values:
        if isinstance(value, NumpyValue) and value.taken and value.array is not None:
            how = machine.reading("view")
            if how != "assert":
                machine.emit(events.GradRead, array=value.array.snapshot(), how=how, taken=value.taken)
        elif isinstance(value, (list, tuple, dict)):
            items = list(value.values() if isinstance(value, dict) else value)[:8]
            use_views(machine, *[item for item in items if isinstance(item, NumpyValue)])


def gradient_of(machine: Machine, array: ArrayValue) -> Value:
    """``array.grad``: None where the array has no gradient."""
    if array.own_gradient is not None:
        return array.own_gradient
    if array.gradient:
        return None
    if array.requires_grad is False and array.alias is not Alias.POINTER:
        return None
    return ArrayValue(
        memory=array.memory,
        extent=array.extent,
        gradient=True,
        alias=array.alias,
        own_requires_grad=False,
        dtype=array.dtype,
        shape=array.shape,
        row_major=array.row_major,
    )


def array_attribute(machine: Machine, array: ArrayValue, name: str) -> Value:
    """``array.name``."""
    if name == "grad":
        return gradient_of(machine, array)
    if name == "requires_grad":
        known = array.requires_grad
        return UnknownValue("requires_grad") if known is None else known
    if name == "shape":
        if array.shape is None:
            return UnknownValue("the shape of an array")
        return tuple(array.size_along(position) for position in range(len(array.shape)))
    if name == "size":
        size = size_of(array.shape)
        return array.size_along(0) if size is None else size
    if name == "ndim":
        return UnknownValue("the rank of an array") if array.shape is None else len(array.shape)
    if name == "ptr":
        return Pointer(array)
    if name == "dtype":
        return External(f"warp.{array.dtype}") if array.dtype else UnknownValue("the type of an array")
    if name == "device":
        return Record(
            "device", {"is_cuda": UnknownValue("the device"), "is_cpu": UnknownValue("the device", negated=True)}
        )
    if name == "retain_grad":
        return array.memory.retain_grad
    if name == "T":
        return array.reshaped(None if array.shape is None else tuple(reversed(array.shape)))
    if name in ("strides", "capacity", "pinned", "is_contiguous", "deleter", "__cuda_array_interface__"):
        return UnknownValue(f"the {name} of an array")
    return Native(name, lambda machine, call: _method(machine, array, name, call))


def set_array_attribute(machine: Machine, array: ArrayValue, name: str, value: Value) -> None:
    """``array.requires_grad = …``, ``array.grad = …``: a flag set later counts from then on."""
    if name == "requires_grad":
        if array.alias is Alias.POINTER:
            array.own_requires_grad = flag(value)
        else:
            array.memory.requires_grad = flag(value)
    elif name == "retain_grad":
        array.memory.retain_grad = flag(value) is True
    elif name == "grad":
        if isinstance(value, ArrayValue) and value.gradient and value.memory is array.memory:
            return
        given = uniform_value(value) if isinstance(value, ArrayValue) else None
        machine.emit(events.GradWrite, array=_as_gradient(array).snapshot(), clears=value is None, value=given)
        if value is None:
            array.memory.requires_grad, array.own_gradient = False, None
        else:
            _give_gradient(array, value)


def uniform_value(array: ArrayValue) -> float | None:
    """The one number that an array holds everywhere, where its contents are known."""
    contents = array.memory.contents
    return contents[0] if contents and array.extent == events.WHOLE and len(set(contents)) == 1 else None


def _as_gradient(array: ArrayValue) -> ArrayValue:
    return ArrayValue(
        array.memory, array.extent, gradient=True, alias=array.alias, dtype=array.dtype, shape=array.shape
    )


def host_write(
    machine: Machine,
    array: ArrayValue,
    how: str,
    clears: bool = False,
    sources: frozenset[int] = frozenset(),
    value: float | None = None,
) -> None:
    """A write that no tape records: to the data, or to the gradient (``value``: one number for all of it)."""
    if array.gradient:
        machine.emit(events.GradWrite, array=array.snapshot(), clears=clears, value=value)
    else:
        machine.emit(
            events.HostWrite, dest=array.snapshot(), how=how, active_tape=machine.active_tape_id, from_host=sources
        )


def _method(machine: Machine, array: ArrayValue, name: str, call: Call) -> Value:
    if name in _METHODS:
        return _METHODS[name](machine, array, call)
    if name.startswith("mark_"):
        return None
    machine.escape(f"array.{name}", [array])
    return unknown_from(f"the result of array.{name}", *call.values)


def _numpy(machine: Machine, array: ArrayValue, call: Call) -> Value:
    return read_to_host(machine, array, "numpy")


def _list(machine: Machine, array: ArrayValue, call: Call) -> Value:
    return read_to_host(machine, array, "list")


def _zero(machine: Machine, array: ArrayValue, call: Call) -> Value:
    host_write(machine, array, "zero_", clears=True)
    return None


def _fill(machine: Machine, array: ArrayValue, call: Call) -> Value:
    value = call.get(0, "value")
    known = float(value) if isinstance(value, (int, float)) else None
    host_write(machine, array, "fill_", clears=value == 0, sources=sources_of(value), value=known)
    return None


def _assign(machine: Machine, array: ArrayValue, call: Call) -> Value:
    from warplint.trace.host.warp_api.copies import emit_copy

    source = call.get(0, "src")
    if isinstance(source, ArrayValue):
        emit_copy(machine, source, array, "assign")
        return array
    use_views(machine, source)
    if isinstance(source, UnknownValue):
        machine.emit(events.Opaque, why="assign of something unknown", arrays=(array.snapshot(),))
        host_write(machine, array, "assign", sources=sources_of(source))
    else:
        host_write(machine, array, "assign", sources=sources_of(source))
    return array


def _view(machine: Machine, array: ArrayValue, call: Call) -> Value:
    return array.viewed(array.extent, array.shape, array.row_major, dtype_name(call.get(0, "dtype")))


def _reshape(machine: Machine, array: ArrayValue, call: Call) -> Value:
    shape = shape_of(machine, call.args[0] if len(call.args) == 1 else tuple(call.args) or call.kwargs.get("shape"))
    size = size_of(array.shape)
    if shape is not None and -1 in shape:
        rest = [part for part in shape if part != -1]
        whole = size_of(tuple(rest))
        known = size // whole if size is not None and whole else None
        shape = tuple(known if part == -1 else part for part in shape)
    return array.reshaped(shape)


def _flatten(machine: Machine, array: ArrayValue, call: Call) -> Value:
    if array.ndim == 1:
        return array.viewed(array.extent, array.shape, array.row_major)
    return array.reshaped((size_of(array.shape),))


def _contiguous(machine: Machine, array: ArrayValue, call: Call) -> Value:
    """The array itself where it is contiguous, as arrays and row views are; nobody knows of other views."""
    if array.extent.known:
        return array
    return UnknownValue("a contiguous copy or the array itself")


def _transpose(machine: Machine, array: ArrayValue, call: Call) -> Value:
    return array.reshaped(None)


def _to(machine: Machine, array: ArrayValue, call: Call) -> Value:
    """``to(device)``: the array itself on the same device; the CPU run stands for both."""
    return array


def _astype(machine: Machine, array: ArrayValue, call: Call) -> Value:
    return machine.allocate("astype", array.requires_grad, dtype=dtype_name(call.get(0, "dtype")), shape=array.shape)


_METHODS: dict[str, Callable[[Machine, ArrayValue, Call], Any]] = {
    "numpy": _numpy,
    "list": _list,
    "zero_": _zero,
    "fill_": _fill,
    "assign": _assign,
    "view": _view,
    "reshape": _reshape,
    "flatten": _flatten,
    "contiguous": _contiguous,
    "transpose": _transpose,
    "to": _to,
    "astype": _astype,
}

MODELS: dict[str, Callable[[Machine, Call], Value]] = {
    "warp.zeros": _new("zeros", 0.0),
    "warp.ones": _new("ones", 1.0),
    "warp.empty": _new("empty", None),
    "warp.full": _full,
    "warp.zeros_like": _like("zeros_like", 0.0),
    "warp.ones_like": _like("ones_like", 1.0),
    "warp.empty_like": _like("empty_like", None),
    "warp.full_like": _full_like,
    "warp.array": _array,
    "warp.array1d": _array,
    "warp.array2d": _array,
    "warp.array3d": _array,
    "warp.array4d": _array,
    "warp.from_numpy": _from_numpy,
}
