"""Methods of library objects that are modelled by their attributes."""

from __future__ import annotations

from collections.abc import Callable

from warplint.trace.host.machine import Call, Machine
from warplint.trace.host.values import Native, Record, UnknownValue, Value

Method = Callable[[Machine, Record, Call], Value]


def record_method(machine: Machine, record: Record, name: str) -> Value | None:
    """The bound method, or None where the object has no modelled method of that name."""
    method = _METHODS.get(record.kind, {}).get(name)
    if method is None:
        return None
    return Native(name, lambda machine, call: method(machine, record, call))


def _add_argument(machine: Machine, record: Record, call: Call) -> Value:
    flags = [flag for flag in call.args if isinstance(flag, str)]
    if not flags:
        return None
    longest = max(flags, key=lambda flag: (flag.startswith("--"), -flags.index(flag)))
    name = call.kwargs.get("dest", longest.lstrip("-").replace("-", "_"))
    defaults = record.attributes["defaults"]
    action = call.kwargs.get("action")
    if "default" in call.kwargs:
        value = call.kwargs["default"]
        kind = call.kwargs.get("type")
        if isinstance(value, str) and isinstance(kind, Native):
            value = machine.call(kind, [value])
    elif action in ("store_true", "store_false"):
        value = action == "store_false"
    elif flags[0].startswith("-"):
        value = None
    else:
        value = UnknownValue(f"the argument {name}")
    if isinstance(name, str):
        defaults.setdefault(name, value)
    return None


def _set_defaults(machine: Machine, record: Record, call: Call) -> Value:
    record.attributes["defaults"].update(call.kwargs)
    return None


def _group(machine: Machine, record: Record, call: Call) -> Value:
    return record


def _parse_args(machine: Machine, record: Record, call: Call) -> Value:
    """The run without arguments: each option has its default."""
    return Record("namespace", dict(record.attributes["defaults"]), closed=False)


def _parse_known_args(machine: Machine, record: Record, call: Call) -> Value:
    return (_parse_args(machine, record, call), [])


def _get_default(machine: Machine, record: Record, call: Call) -> Value:
    return record.attributes["defaults"].get(call.get(0, "dest"))


def _enter_context(machine: Machine, record: Record, call: Call) -> Value:
    from warplint.trace.host.values import TapeValue
    from warplint.trace.host.warp_api.tapes import enter_tape

    context = call.get(0, "cm")
    if isinstance(context, TapeValue):
        enter_tape(machine, context)
    return context


def _optimiser_step(machine: Machine, record: Record, call: Call) -> Value:
    from warplint.trace.host.warp_api.optim import step

    return step(machine, record, call)


def _optimiser_params(machine: Machine, record: Record, call: Call) -> Value:
    record.attributes["params"] = call.get(0, "params")
    return None


def _save_for_backward(machine: Machine, record: Record, call: Call) -> Value:
    """``ctx.save_for_backward(…)`` of a ``torch.autograd.Function``."""
    record.attributes["saved_tensors"] = tuple(call.args)
    return None


def _nothing(machine: Machine, record: Record, call: Call) -> Value:
    return None


_METHODS: dict[str, dict[str, Method]] = {
    "argument-parser": {
        "add_argument": _add_argument,
        "set_defaults": _set_defaults,
        "add_argument_group": _group,
        "add_mutually_exclusive_group": _group,
        "parse_args": _parse_args,
        "parse_known_args": _parse_known_args,
        "get_default": _get_default,
    },
    "autograd-context": {
        "save_for_backward": _save_for_backward,
        "mark_non_differentiable": _nothing,
        "mark_dirty": _nothing,
        "set_materialize_grads": _nothing,
    },
    "exit-stack": {"enter_context": _enter_context, "callback": _nothing, "close": _nothing},
    "optimiser": {"step": _optimiser_step, "set_params": _optimiser_params, "reset_internal_state": _nothing},
}
