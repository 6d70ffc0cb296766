"""``functools``, ``itertools``, ``collections``, ``dataclasses``, ``contextlib``, ``copy`` and ``typing``."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from warplint.trace.host.library.containers import DefaultDict, Deque
from warplint.trace.host.machine import Call, Machine
from warplint.trace.host.memory import ArrayValue
from warplint.trace.host.values import (
    Bound,
    Class,
    External,
    FieldDefault,
    Function,
    Generator,
    Instance,
    ModuleValue,
    Native,
    Property,
    Record,
    UnknownValue,
    Value,
    part_of,
    unknown_from,
)


def _remembering(machine: Machine, call: Call) -> Value:
    """``lru_cache`` and ``cache``, with and without arguments."""
    function = call.get(0, "user_function")
    if isinstance(function, Function):
        function.memo = {}
        return function
    if isinstance(function, (Bound, Native)):
        return function
    return Native("lru_cache", _remembering)


def _wraps(machine: Machine, call: Call) -> Value:
    return Native("wraps", lambda machine, inner: inner.get(0, "function"))


def _partial(machine: Machine, call: Call) -> Value:
    function, args, kwargs = call.args[0], list(call.args[1:]), dict(call.kwargs)

    def run(machine: Machine, inner: Call) -> Value:
        return machine.parts.call(machine, function, Call([*args, *inner.args], {**kwargs, **inner.kwargs}, inner.node))

    return Native("partial", run)


def _reduce(machine: Machine, call: Call) -> Value:
    items = machine.iterate(call.get(1, "iterable"))
    if items is None:
        return unknown_from("reduce over something unknown", *call.args)
    rest = list(items)
    result = call.args[2] if len(call.args) > 2 else (rest.pop(0) if rest else UnknownValue("reduce of nothing"))
    for item in rest:
        result = machine.call(call.args[0], [result, item])
    return result


def _dataclass(machine: Machine, call: Call) -> Value:
    cls = call.get(0, "cls")
    if isinstance(cls, Class):
        cls.is_dataclass = True
        return cls
    return Native("dataclass", _dataclass)


def _field(machine: Machine, call: Call) -> Value:
    factory = call.kwargs.get("default_factory")
    return FieldDefault(call.kwargs.get("default"), factory, "default" in call.kwargs)


def _replace(machine: Machine, call: Call) -> Value:
    instance = call.get(0, "obj")
    if isinstance(instance, Instance):
        return Instance(instance.cls, {**instance.attributes, **call.kwargs}, instance.tape)
    return unknown_from("dataclasses.replace", instance)


def _fields(machine: Machine, call: Call) -> Value:
    from warplint.trace.host.classes import fields_of

    value = call.get(0, "cls")
    cls = value.cls if isinstance(value, Instance) else value
    if isinstance(cls, Class):
        return tuple(Record("field", {"name": name}) for name in fields_of(cls))
    return unknown_from("dataclasses.fields", value)


def _asdict(machine: Machine, call: Call) -> Value:
    value = call.get(0, "obj")
    return dict(value.attributes) if isinstance(value, Instance) else unknown_from("dataclasses.asdict", value)


def _context_manager(machine: Machine, call: Call) -> Value:
    """The generator function itself: ``with`` knows how to run a generator."""
    return call.get(0, "func")


def _null_context(machine: Machine, call: Call) -> Value:
    return Record("context", {"__enter__": call.get(0, "enter_result")})


def _exit_stack(machine: Machine, call: Call) -> Value:
    return Record("exit-stack")


def _chain(machine: Machine, call: Call) -> Value:
    items: list[Value] = []
    for iterable in call.args:
        part = machine.iterate(iterable)
        items.extend(part if part is not None else [unknown_from("an item of an unknown iterable", iterable)])
    return items


def _chain_from(machine: Machine, call: Call) -> Value:
    outer = machine.iterate(call.get(0, "iterable"))
    return UnknownValue("chain of something unknown") if outer is None else _chain(machine, Call(list(outer)))


def _cycle(machine: Machine, call: Call) -> Value:
    items = machine.iterate(call.get(0, "iterable"))
    if not items:
        return UnknownValue("a cycle of something unknown")
    return Record("iterator", {"items": list(items) * (machine.settings.rounds // len(items) + 1)})


def _pairwise(machine: Machine, call: Call) -> Value:
    items = machine.iterate(call.get(0, "iterable"))
    return UnknownValue("pairs of something unknown") if items is None else list(itertools.pairwise(items))


def _product(machine: Machine, call: Call) -> Value:
    columns = [machine.iterate(iterable) for iterable in call.args]
    if any(column is None for column in columns):
        return unknown_from("a product of something unknown", *call.args)
    repeat = call.kwargs.get("repeat", 1)
    known = [column for column in columns if column is not None] * (repeat if isinstance(repeat, int) else 1)
    return list(itertools.islice(itertools.product(*known), machine.settings.items))


def _islice(machine: Machine, call: Call) -> Value:
    items = machine.iterate(call.get(0, "iterable"))
    bounds = call.args[1:]
    if items is None or any(isinstance(bound, UnknownValue) for bound in bounds):
        return unknown_from("a slice of something unknown", *call.args)
    return list(itertools.islice(items, *bounds))


def _count(machine: Machine, call: Call) -> Value:
    start, step = call.get(0, "start", 0), call.get(1, "step", 1)
    if isinstance(start, int) and isinstance(step, int):
        return [start + step * position for position in range(machine.settings.unknown_rounds)]
    return UnknownValue("itertools.count")


def _repeat(machine: Machine, call: Call) -> Value:
    times = call.get(1, "times", machine.settings.unknown_rounds)
    if isinstance(times, UnknownValue):
        times = machine.count_of(times)
    return [call.args[0]] * (times if isinstance(times, int) else 0)


def _selected(select: Callable[..., Any]) -> Callable[[Machine, Call], Value]:
    """``combinations``, ``permutations``: of known items, up to the limit."""

    def run(machine: Machine, call: Call) -> Value:
        items = machine.iterate(call.get(0, "iterable"))
        sizes = [value for value in (*call.args[1:], *call.kwargs.values()) if isinstance(value, int)]
        if items is None or len(sizes) < len(call.args) - 1:
            return unknown_from("a selection of something unknown", *call.args)
        return list(itertools.islice(select(items, *sizes), machine.settings.items))

    return run


def _zip_longest(machine: Machine, call: Call) -> Value:
    columns = [machine.iterate(iterable) for iterable in call.args]
    if any(column is None for column in columns):
        return unknown_from("a zip of something unknown", *call.args)
    known = [column for column in columns if column is not None]
    return list(itertools.zip_longest(*known, fillvalue=call.kwargs.get("fillvalue")))


def _starmap(machine: Machine, call: Call) -> Value:
    rows = machine.iterate(call.get(1, "iterable"))
    if rows is None:
        return unknown_from("a map over something unknown", *call.args)
    return [machine.call(call.args[0], list(machine.iterate(row) or ())) for row in rows]


def _tee(machine: Machine, call: Call) -> Value:
    items = machine.iterate(call.get(0, "iterable"))
    count = call.get(1, "n", 2)
    if items is None or not isinstance(count, int):
        return unknown_from("copies of an unknown iterator", *call.args)
    return tuple(Record("iterator", {"items": list(items)}) for _ in range(count))


def _accumulate(machine: Machine, call: Call) -> Value:
    items = machine.iterate(call.get(0, "iterable"))
    if items is None or not all(isinstance(item, (int, float)) for item in items):
        return unknown_from("an accumulation", *call.args)
    return list(itertools.accumulate(items))


def _deque(machine: Machine, call: Call) -> Value:
    items = machine.iterate(call.get(0, "iterable", ()))
    result = Deque(items if items is not None else [unknown_from("an unknown number of items", *call.args)])
    limit = call.get(1, "maxlen")
    result.maxlen = limit if isinstance(limit, int) else None
    return result


def _defaultdict(machine: Machine, call: Call) -> Value:
    result = DefaultDict()
    result.default_factory = call.get(0, "default_factory")
    return result


def _ordered(machine: Machine, call: Call) -> Value:
    source = call.get(0, "items")
    if isinstance(source, dict):
        return {**source, **call.kwargs}
    pairs = machine.iterate(source) if source is not None else ()
    try:
        return {**dict(pairs or ()), **call.kwargs}
    except (TypeError, ValueError):
        return UnknownValue("an ordered dict of unknown items")


def _namedtuple(machine: Machine, call: Call) -> Value:
    name, fields = call.get(0, "typename"), call.get(1, "field_names")
    names = fields.replace(",", " ").split() if isinstance(fields, str) else machine.iterate(fields)
    if not isinstance(name, str) or names is None:
        return UnknownValue("a named tuple of unknown fields")
    import ast

    module: ModuleValue = machine.frame.module
    annotations: dict[str, ast.expr] = {}
    for field in names:
        key = field[0] if isinstance(field, (tuple, list)) and field else field
        if isinstance(key, str):
            annotations[key] = ast.Constant(None)
    defaults = machine.iterate(call.kwargs.get("defaults", ())) or ()
    namespace = dict(zip(list(annotations)[len(annotations) - len(defaults) :], defaults, strict=False))
    return Class(name, (External("typing.NamedTuple"),), namespace, module, None, annotations, is_tuple=True)


def shallow_copy(value: Value) -> Value:
    """``copy.copy``: containers and objects anew, what they hold the same."""
    if isinstance(value, (list, dict, set)):
        return value.copy()
    if isinstance(value, Instance):
        return Instance(value.cls, dict(value.attributes), value.tape)
    if isinstance(value, Record):
        return Record(value.kind, dict(value.attributes), value.closed)
    return value


def deep_copy(machine: Machine, value: Value, depth: int = 6) -> Value:
    """``copy.deepcopy``: arrays are allocated anew."""
    if depth <= 0:
        return value
    if isinstance(value, list):
        return [deep_copy(machine, item, depth - 1) for item in value]
    if isinstance(value, tuple):
        return tuple(deep_copy(machine, item, depth - 1) for item in value)
    if isinstance(value, dict):
        return {key: deep_copy(machine, item, depth - 1) for key, item in value.items()}
    if isinstance(value, Instance):
        copied = {name: deep_copy(machine, item, depth - 1) for name, item in value.attributes.items()}
        return Instance(value.cls, copied, value.tape)
    if isinstance(value, ArrayValue):
        made = machine.allocate(
            "deepcopy", value.requires_grad, dtype=value.dtype, shape=value.shape, copied_from=value.memory.id
        )
        made.memory.name = value.memory.name
        return made
    return part_of(value.why, value) if isinstance(value, UnknownValue) else value


def _deepcopy(machine: Machine, call: Call) -> Value:
    return deep_copy(machine, call.get(0, "x"))


def _copy(machine: Machine, call: Call) -> Value:
    return shallow_copy(call.get(0, "x"))


def _cast(machine: Machine, call: Call) -> Value:
    return call.get(1, "val")


def _cached_property(machine: Machine, call: Call) -> Value:
    return Property(call.get(0, "func"), cached=True)


def _namespace(machine: Machine, call: Call) -> Value:
    return Record("namespace", dict(call.kwargs), closed=True)


def _itemgetter(machine: Machine, call: Call) -> Value:
    from warplint.trace.host.subscripts import load_item

    keys = list(call.args)

    def run(machine: Machine, inner: Call) -> Value:
        found = [load_item(machine, inner.args[0], key) for key in keys]
        return found[0] if len(found) == 1 else tuple(found)

    return Native("itemgetter", run)


def _attrgetter(machine: Machine, call: Call) -> Value:
    names = [name for name in call.args if isinstance(name, str)]

    def run(machine: Machine, inner: Call) -> Value:
        found: list[Value] = []
        for name in names:
            value = inner.args[0]
            for part in name.split("."):
                value = machine.parts.get_attribute(machine, value, part)
            found.append(value)
        return found[0] if len(found) == 1 else tuple(found)

    return Native("attrgetter", run)


def _signature(machine: Machine, call: Call) -> Value:
    """``inspect.signature`` of a function of the project."""
    function = call.get(0, "obj")
    target = function.function if isinstance(function, Bound) else function
    if not isinstance(target, Function):
        return UnknownValue("the signature of something unknown")
    arguments = target.node.args
    groups = (
        ("POSITIONAL_ONLY", arguments.posonlyargs),
        ("POSITIONAL_OR_KEYWORD", arguments.args),
        ("VAR_POSITIONAL", [arguments.vararg] if arguments.vararg else []),
        ("KEYWORD_ONLY", arguments.kwonlyargs),
        ("VAR_KEYWORD", [arguments.kwarg] if arguments.kwarg else []),
    )
    parameters = {
        parameter.arg: Record("parameter", {"name": parameter.arg, "kind": External(f"inspect.Parameter.{kind}")})
        for kind, members in groups
        for parameter in members
    }
    if isinstance(function, Bound):
        parameters.pop(next(iter(parameters), ""), None)
    return Record("signature", {"parameters": parameters})


def _generic_copy(machine: Machine, call: Call) -> Value:
    value = call.get(0, "x")
    return list(machine.iterate(value) or ()) if isinstance(value, Generator) else value


MODELS: dict[str, Callable[[Machine, Call], Value]] = {
    "functools.lru_cache": _remembering,
    "functools.cache": _remembering,
    "functools.wraps": _wraps,
    "functools.partial": _partial,
    "functools.reduce": _reduce,
    "functools.cached_property": _cached_property,
    "dataclasses.dataclass": _dataclass,
    "dataclasses.field": _field,
    "dataclasses.replace": _replace,
    "dataclasses.fields": _fields,
    "dataclasses.asdict": _asdict,
    "contextlib.contextmanager": _context_manager,
    "contextlib.nullcontext": _null_context,
    "contextlib.suppress": _null_context,
    "contextlib.redirect_stdout": _null_context,
    "contextlib.closing": _null_context,
    "contextlib.ExitStack": _exit_stack,
    "itertools.chain": _chain,
    "itertools.chain.from_iterable": _chain_from,
    "itertools.cycle": _cycle,
    "itertools.pairwise": _pairwise,
    "itertools.product": _product,
    "itertools.islice": _islice,
    "itertools.count": _count,
    "itertools.repeat": _repeat,
    "itertools.combinations": _selected(itertools.combinations),
    "itertools.combinations_with_replacement": _selected(itertools.combinations_with_replacement),
    "itertools.permutations": _selected(itertools.permutations),
    "itertools.zip_longest": _zip_longest,
    "itertools.starmap": _starmap,
    "itertools.tee": _tee,
    "itertools.accumulate": _accumulate,
    "collections.deque": _deque,
    "collections.defaultdict": _defaultdict,
    "collections.OrderedDict": _ordered,
    "collections.namedtuple": _namedtuple,
    "typing.NamedTuple": _namedtuple,
    "typing.cast": _cast,
    "copy.copy": _copy,
    "copy.deepcopy": _deepcopy,
    "types.SimpleNamespace": _namespace,
    "argparse.Namespace": _namespace,
    "inspect.signature": _signature,
    "operator.itemgetter": _itemgetter,
    "operator.attrgetter": _attrgetter,
    "tqdm.tqdm": _generic_copy,
    "tqdm.auto.tqdm": _generic_copy,
    "rich.progress.track": _generic_copy,
}

DECORATORS: dict[str, Callable[[Machine, Call], Any]] = {
    "functools.lru_cache": _remembering,
    "functools.cache": _remembering,
    "functools.cached_property": _cached_property,
    "contextlib.contextmanager": _context_manager,
    "dataclasses.dataclass": _dataclass,
}
