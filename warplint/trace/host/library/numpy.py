"""numpy arrays on the host: shapes, small literal contents, and the memories that their values came from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from warplint.trace import events
from warplint.trace.host.library.salt import varying
from warplint.trace.host.machine import Call, Machine
from warplint.trace.host.memory import SMALL, ArrayValue, NumpyValue, Shape
from warplint.trace.host.values import (
    NO_SOURCES,
    External,
    Native,
    UnknownValue,
    Value,
    Vector,
    sources_of,
    taints_of,
    unknown_from,
)


def shape_of(machine: Machine, value: Value) -> Shape | None:
    """The shape that a ``shape=`` argument means; a dimension that nobody knows is None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return (value,)
    if isinstance(value, float):
        return (int(value),)
    if isinstance(value, UnknownValue):
        return (None,)
    if isinstance(value, (tuple, list)):
        return tuple(item if isinstance(item, int) and not isinstance(item, bool) else None for item in value)
    return None


def size_of(shape: Shape | None) -> int | None:
    """The number of elements."""
    if shape is None or any(size is None for size in shape):
        return None
    return math.prod(size for size in shape if size is not None)


def numbers_in(value: Value) -> tuple[list[float], Shape] | None:
    """The flat numbers and the shape of nested lists, None where some are not known."""
    if isinstance(value, (bool, int, float)):
        return [float(value) if isinstance(value, float) else value], ()
    if isinstance(value, NumpyValue):
        if value.contents is None or value.shape is None or value.sources:
            return None
        return list(value.contents), value.shape
    if isinstance(value, Vector):
        value = list(value.components)
    if isinstance(value, (list, tuple, range)):
        if len(value) > 4096:
            return None
        flat: list[float] = []
        inner: Shape = ()
        for item in value:
            part = numbers_in(item)
            if part is None:
                return None
            flat.extend(part[0])
            inner = part[1]
        return flat, (len(value), *inner)
    return None


def nested_shape(value: Value) -> Shape | None:
    """The shape of nested lists whose numbers need not be known."""
    if isinstance(value, NumpyValue):
        return value.shape
    if isinstance(value, ArrayValue):
        return value.shape
    if isinstance(value, Vector):
        return (len(value.components),)
    if isinstance(value, (list, tuple, range)):
        inner = nested_shape(value[0]) if len(value) else ()
        return None if inner is None else (len(value), *inner)
    if isinstance(value, (int, float)):
        return ()
    return None


def make(machine: Machine, shape: Shape | None, contents: list[float] | None, dtype: str | None = None) -> NumpyValue:
    """A fresh numpy array."""
    if contents is not None and len(contents) > SMALL:
        contents = None
    return NumpyValue(shape, dtype, contents, allocated=machine.stack())


def elementwise(function: Callable[[Any, Any], Any], left: Value, right: Value) -> Value:
    """An operator between numpy arrays, or an array and a number."""
    sources = sources_of(left) | sources_of(right)
    first = left if isinstance(left, NumpyValue) else right
    second = right if first is left else left
    shape = first.shape
    if isinstance(second, NumpyValue) and second.shape != shape:
        shape = second.shape if shape == () else shape if second.shape == () else None
    contents: list[float] | None = None
    a = left.contents if isinstance(left, NumpyValue) else [left] if isinstance(left, (int, float)) else None
    b = right.contents if isinstance(right, NumpyValue) else [right] if isinstance(right, (int, float)) else None
    if a is not None and b is not None and not sources and (len(a) == len(b) or len(a) == 1 or len(b) == 1):
        size = max(len(a), len(b))
        try:
            contents = [function(a[i % len(a)], b[i % len(b)]) for i in range(size)]
        except Exception:
            contents = None
    return NumpyValue(shape, first.dtype, contents, sources, allocated=first.allocated)


def store_through(machine: Machine, array: NumpyValue, new: Value) -> NumpyValue:
    """``array op= value``: in place, so that what shares the memory changes too."""
    alias = array.alias()
    array.contents = new.contents if isinstance(new, NumpyValue) else None
    array.sources |= sources_of(new)
    if alias is not None:
        machine.emit(
            events.HostWrite,
            dest=alias.snapshot(),
            how="numpy-store",
            active_tape=machine.active_tape_id,
            from_host=sources_of(new),
        )
    return array


def _use(machine: Machine, *values: Value) -> None:
    from warplint.trace.host.warp_api.arrays import use_views

    use_views(machine, *values)


def item(machine: Machine, array: NumpyValue, index: Value) -> Value:
    """``array[index]``: a number, or a view."""
    if array.shape is not None and isinstance(index, int) and len(array.shape) <= 1:
        if array.contents is not None and not array.sources and -len(array.contents) <= index < len(array.contents):
            return array.contents[index]
        _use(machine, array)
        return UnknownValue("a number in a numpy array", array.sources)
    view = NumpyValue(None, array.dtype, None, array.sources, allocated=array.allocated, taken=array.taken)
    if isinstance(index, (tuple, int, slice)) and array.shape is not None:
        dummy = ArrayValue(_NO_MEMORY, shape=array.shape).indexed(index)
        view.shape = dummy.shape
        if isinstance(index, int) and array.contents is not None and array.shape[0]:
            width = len(array.contents) // array.shape[0]
            start = (index % array.shape[0]) * width
            view.contents = array.contents[start : start + width]
        elif isinstance(index, tuple) and view.shape == ():
            _use(machine, array)
            return _element(array, index)
        elif isinstance(index, tuple) and index[:1] == (slice(None),) and len(index) == len(array.shape) == 2:
            view.contents = _column(array.contents, array.shape[1], index[1])
    alias = array.array
    if alias is not None and not isinstance(index, NumpyValue):
        view.array = alias.indexed(index)
    elif array.memory is not None and not isinstance(index, NumpyValue):
        view.array = ArrayValue(array.memory, shape=array.shape).indexed(index)
    return view


def _column(contents: list[float] | None, width: int | None, column: Value) -> list[float] | None:
    """``array[:, column]``."""
    if contents is None or not width or not isinstance(column, int) or not -width <= column < width:
        return None
    return contents[column % width :: width]


def _element(array: NumpyValue, index: tuple[Value, ...]) -> Value:
    if array.contents is None or array.sources or array.shape is None or not all(isinstance(i, int) for i in index):
        return UnknownValue("a number in a numpy array", array.sources)
    position = 0
    for part, size in zip(index, array.shape, strict=False):
        if size is None or not -size <= part < size:
            return UnknownValue("a number in a numpy array")
        position = position * size + part % size
    return array.contents[position] if position < len(array.contents) else UnknownValue("a number in a numpy array")


def rows(machine: Machine, array: NumpyValue) -> Sequence[Value] | None:
    """The items that iterating over an array gives."""
    size = array.shape[0] if array.shape else None
    if size is None or size > machine.settings.items:
        return None
    return [item(machine, array, position) for position in range(size)]


def numpy_attribute(machine: Machine, array: NumpyValue, name: str) -> Value:
    """``array.name``."""
    if name == "shape":
        return (
            UnknownValue("the shape of a numpy array")
            if array.shape is None
            else tuple(UnknownValue("the size of a numpy array") if size is None else size for size in array.shape)
        )
    if name == "size":
        size = size_of(array.shape)
        return UnknownValue("the size of a numpy array") if size is None else size
    if name == "ndim":
        return UnknownValue("the rank of a numpy array") if array.shape is None else len(array.shape)
    if name == "dtype":
        return External(f"numpy.{array.dtype}") if array.dtype else UnknownValue("the type of a numpy array")
    if name == "T":
        return _shared(array, None if array.shape is None else tuple(reversed(array.shape)))
    return Native(name, lambda machine, call: _method(machine, array, name, call))


def _shared(array: NumpyValue, shape: Shape | None) -> NumpyValue:
    view = array.array.reshaped(shape) if array.array is not None else None
    return NumpyValue(
        shape, array.dtype, array.contents, array.sources, view, array.memory, array.allocated, array.taken
    )


_VIEWS = frozenset({"reshape", "view", "ravel", "setflags", "squeeze", "transpose"})


def _method(machine: Machine, array: NumpyValue, name: str, call: Call) -> Value:
    if name not in _VIEWS:
        _use(machine, array)
    if name in ("copy", "astype", "round", "clip", "__copy__"):
        contents = array.contents if name in ("copy", "astype") else None
        return NumpyValue(array.shape, array.dtype, contents, array.sources, allocated=machine.stack())
    if name in ("reshape", "view"):
        shape = (
            shape_of(machine, call.args[0] if len(call.args) == 1 else tuple(call.args))
            if name == "reshape"
            else array.shape
        )
        return _shared(array, _resolved(shape, size_of(array.shape)))
    if name in ("flatten", "ravel"):
        size = size_of(array.shape)
        flat = _shared(array, (size,))
        return flat if name == "ravel" else NumpyValue(flat.shape, array.dtype, array.contents, array.sources)
    if name in ("fill", "sort", "put", "itemset"):
        filled = call.get(0, "value")
        size = size_of(array.shape)
        known = (
            [filled] * size
            if name == "fill" and isinstance(filled, (int, float)) and size is not None and size <= SMALL
            else None
        )
        store_through(machine, array, NumpyValue(array.shape, array.dtype, known, sources_of(filled)))
        return None
    if name == "tolist":
        from warplint.trace.host.library.assembly import to_list

        return to_list(array)
    if name in ("item", "mean", "sum", "min", "max", "std", "dot", "any", "all", "argmin", "argmax", "prod", "var"):
        _note_reduction(machine, array, name, call)
        return _reduced(array, name, call)
    if name == "setflags":
        return None
    result = unknown_from(f"numpy's {name}", array, *call.values)
    return NumpyValue(None, array.dtype, None, result.sources)


def _note_reduction(machine: Machine, array: NumpyValue, name: str, call: Call, others: int = 0) -> None:
    """``y.numpy().mean()``: what the program makes of a Warp array's contents as a whole."""
    if name not in ("mean", "sum") or array.array is None or array.array.gradient:
        return
    if len(call.args) > others or call.kwargs:
        return
    frame = machine.frame
    line: int = getattr(frame.node, "lineno", 1)
    text = frame.module.module.source.lines[line - 1].strip()[:400]
    machine.emit(events.Reduction, array=array.array.snapshot(), how=name, line=text)


_REDUCTIONS: dict[str, Callable[[list[float]], float]] = {
    "sum": sum,
    "min": min,
    "max": max,
    "mean": lambda numbers: sum(numbers) / len(numbers),
    "item": lambda numbers: numbers[0],
}


def _reduced(array: NumpyValue, name: str, call: Call) -> Value:
    if array.contents and not array.sources and not call.args and "axis" not in call.kwargs and name in _REDUCTIONS:
        return _REDUCTIONS[name](array.contents)
    if call.args or "axis" in call.kwargs:
        return NumpyValue(None, array.dtype, None, array.sources | unknown_from("", *call.values).sources)
    return UnknownValue(f"the {name} of a numpy array", array.sources)


def _resolved(shape: Shape | None, size: int | None) -> Shape | None:
    """A shape with its ``-1`` worked out."""
    if shape is None or -1 not in shape:
        return shape
    rest = math.prod(part for part in shape if part is not None and part != -1)
    known = None not in shape and size is not None and rest
    return tuple((size // rest if known and size is not None else None) if part == -1 else part for part in shape)


# -- functions ---------------------------------------------------------------------------------------------------------


def _dtype(call: Call, position: int) -> str | None:
    value = call.get(position, "dtype")
    if isinstance(value, External):
        return value.name
    if isinstance(value, Native):
        return value.name
    return value if isinstance(value, str) else None


def _array(machine: Machine, call: Call) -> Value:
    data = call.get(0, "object")
    _use(machine, data)
    if isinstance(data, NumpyValue):
        return NumpyValue(
            data.shape, _dtype(call, 1) or data.dtype, data.contents, data.sources, allocated=machine.stack()
        )
    known = numbers_in(data)
    result = make(machine, known[1] if known else nested_shape(data), known[0] if known else None, _dtype(call, 1))
    if isinstance(data, ArrayValue):
        result = _read(machine, data)
    result.sources |= sources_of(data)
    return result


def _read(machine: Machine, array: ArrayValue) -> NumpyValue:
    from warplint.trace.host.warp_api.arrays import read_to_host

    return read_to_host(machine, array, "numpy")


def _as_array(machine: Machine, call: Call) -> Value:
    data = call.get(0, "a")
    if isinstance(data, NumpyValue):
        return data
    return _array(machine, call)


def _filled(value: float | None) -> Callable[[Machine, Call], Value]:
    def create(machine: Machine, call: Call) -> Value:
        shape = shape_of(machine, call.get(0, "shape"))
        return make(machine, shape, _repeated(shape, value), _dtype(call, 1))

    return create


def _repeated(shape: Shape | None, value: Value) -> list[float] | None:
    size = size_of(shape)
    if size is None or size > SMALL or not isinstance(value, (int, float)):
        return None
    return [value] * size


def _full(machine: Machine, call: Call) -> Value:
    shape = shape_of(machine, call.get(0, "shape"))
    value = call.get(1, "fill_value")
    result = make(machine, shape, _repeated(shape, value), _dtype(call, 2))
    result.sources |= sources_of(value)
    return result


def _like(value: float | None) -> Callable[[Machine, Call], Value]:
    def create(machine: Machine, call: Call) -> Value:
        source = call.get(0, "a")
        shape = nested_shape(source)
        return make(machine, shape, _repeated(shape, value), getattr(source, "dtype", None))

    return create


def _arange(machine: Machine, call: Call) -> Value:
    if all(isinstance(part, (int, float)) for part in call.args) and call.args:
        if all(isinstance(part, int) for part in call.args):
            numbers: list[float] = [*range(*call.args)[: machine.settings.items]]
        else:
            start, stop = (0.0, call.args[0]) if len(call.args) == 1 else call.args[:2]
            step = call.args[2] if len(call.args) > 2 else 1.0
            count = max(math.ceil((stop - start) / step), 0) if step else 0
            numbers = [start + step * position for position in range(min(count, machine.settings.items))]
        return make(machine, (len(numbers),), numbers, _dtype(call, 3))
    if len(call.args) == 1 and isinstance(call.args[0], UnknownValue):
        return make(machine, (None,), None, _dtype(call, 3))
    return make(machine, (None,), None)


def _linspace(machine: Machine, call: Call) -> Value:
    start, stop, count = call.get(0, "start"), call.get(1, "stop"), call.get(2, "num", 50)
    if not isinstance(count, int):
        return make(machine, (None,), None)
    numbers = None
    if isinstance(start, (int, float)) and isinstance(stop, (int, float)) and 1 < count <= SMALL:
        numbers = [start + (stop - start) * position / (count - 1) for position in range(count)]
    return make(machine, (count,), numbers)


def _elementwise_function(name: str) -> Callable[[Machine, Call], Value]:
    """A function of numpy on its arguments: the shape of the first array, exact on small literal contents."""
    function = getattr(math, {"abs": "fabs", "absolute": "fabs"}.get(name, name), None)

    def run(machine: Machine, call: Call) -> Value:
        _use(machine, *call.values)
        sources = NO_SOURCES.union(*(sources_of(value) for value in call.values))
        if len(call.args) == 1 and function is not None and not sources:
            known = numbers_in(call.args[0])
            if known is not None and len(known[0]) <= SMALL:
                try:
                    numbers = [function(number) for number in known[0]]
                except Exception:
                    numbers = None
                if numbers is not None:
                    return numbers[0] if known[1] == () else make(machine, known[1], numbers)
        for value in call.args:
            if isinstance(value, NumpyValue):
                return NumpyValue(value.shape, value.dtype, None, sources, allocated=machine.stack())
        return UnknownValue(f"numpy's {name}", sources, taints=taints_of(*call.values))

    return run


def default_model(path: str) -> Callable[[Machine, Call], Value]:
    """Any other function of numpy: something unknown made from its arguments; it changes nothing."""
    name = path.rpartition(".")[2]
    if name in (
        "float32",
        "float64",
        "int32",
        "int64",
        "uint32",
        "float16",
        "int8",
        "uint8",
        "bool_",
        "int16",
        "uint64",
    ):
        from warplint.trace.host.library.builtins import BUILTINS

        return lambda machine, call: machine.call(BUILTINS["int" if "int" in name else "float"], call.args[:1])

    def run(machine: Machine, call: Call) -> Value:
        _use(machine, *call.values)
        if call.args and isinstance(call.args[0], NumpyValue):
            _note_reduction(machine, call.args[0], name, call, others=1)
        sources = NO_SOURCES.union(*(sources_of(value) for value in call.values))
        for value in call.values:
            if isinstance(value, ArrayValue):
                sources |= _read(machine, value).sources
        if path.startswith("numpy.testing.") or name.startswith(("save", "print", "set_")):
            return None
        if path.startswith("numpy.random."):
            return _random(machine, name, call)
        return NumpyValue(None, None, None, sources, allocated=machine.stack())

    return run


def drawn(machine: Machine) -> Value:
    """A random number: another one in each process, unless the program seeds a generator."""
    return UnknownValue("a random number") if machine.seeded else varying(machine, "a random number")


def _random(machine: Machine, name: str, call: Call) -> Value:
    if name == "seed":
        machine.seeded = True
        return None
    if name in ("rand", "randn"):
        return make(machine, shape_of(machine, tuple(call.args)), None)
    if name in ("default_rng", "RandomState", "Generator"):
        fresh = not call.values or call.values == [None]
        return varying(machine, "an unseeded generator") if fresh else UnknownValue("a random generator")
    shape = shape_of(machine, call.kwargs.get("size")) if "size" in call.kwargs else None
    return make(machine, shape, None) if shape is not None else drawn(machine)


class _NoMemory:
    """Stands for the memory of a plain numpy array when only shapes are asked."""


_NO_MEMORY: Any = _NoMemory()

MODELS: dict[str, Callable[[Machine, Call], Value]] = {
    "numpy.array": _array,
    "numpy.asarray": _as_array,
    "numpy.ascontiguousarray": _as_array,
    "numpy.zeros": _filled(0.0),
    "numpy.ones": _filled(1.0),
    "numpy.empty": _filled(None),
    "numpy.full": _full,
    "numpy.zeros_like": _like(0.0),
    "numpy.ones_like": _like(1.0),
    "numpy.empty_like": _like(None),
    "numpy.arange": _arange,
    "numpy.linspace": _linspace,
    **{
        f"numpy.{name}": _elementwise_function(name)
        for name in [
            "sin",
            "cos",
            "tan",
            "exp",
            "log",
            "sqrt",
            "abs",
            "absolute",
            "floor",
            "ceil",
            "tanh",
            "radians",
            "degrees",
            "deg2rad",
            "rad2deg",
        ]
    },
}
