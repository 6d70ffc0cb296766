"""Loops and comprehensions: known counts exactly, unknown ones for a few rounds, epochs for three."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from warplint.trace.events import Interlude
from warplint.trace.host import operators
from warplint.trace.host.machine import BudgetExceeded, Frame, Machine, Unwinding
from warplint.trace.host.values import (
    Environment,
    Generator,
    Instance,
    Signal,
    UnknownValue,
    Value,
    part_of,
)

_EPOCHS = 3
_ARITHMETIC = 8
_PLAIN_DATA = 32
_LONGEST_RING = 16
_WRITTEN_OUT = 16
_LONG = 16
_LEVELS = 2
_LONG_EPOCH = 1_000
"""Events in the first rounds of a loop of epochs after which two of them are enough."""


class _Left(Unwinding):
    """A loop over a generator was left early: the generator is closed."""

    def __init__(self, signal: Signal | None) -> None:
        super().__init__()
        self.signal = signal


def execute_for(machine: Machine, frame: Frame, node: ast.For) -> Signal | None:
    """``for``: over a generator its body runs in step with the loop's."""
    outer_rings, machine.rings = machine.rings, [*machine.rings, *_rings_in_sight(machine, frame, node)]
    iterable = machine.evaluate(node.iter, frame)
    items = iterate_for_loop(machine, iterable)
    machine.rings = outer_rings
    if isinstance(iterable, Generator) and iterable.items is None:
        return _for_generator(machine, frame, node, iterable)
    rounds = _Rounds(machine, node, counts=_counts(iterable), expected=_length(iterable))
    return _loop(machine, frame, node, _bound_items(machine, frame, node, items), rounds)


def execute_while(machine: Machine, frame: Frame, node: ast.While) -> Signal | None:
    """``while``: a known condition exactly; an unknown one for as many rounds as stand for an unknown count."""
    return _loop(machine, frame, node, _true_conditions(machine, frame, node), _Rounds(machine, node, counts=True))


def _loop(
    machine: Machine, frame: Frame, node: ast.For | ast.While, ahead: Iterator[None], rounds: _Rounds
) -> Signal | None:
    """Run the body for each round that ``ahead`` prepares, then the ``else``."""
    machine.loops += 1
    try:
        for _ in islice(ahead, machine.settings.rounds):
            signal = machine.execute(node.body, frame)
            if _leaves(signal):
                return _beyond(signal)
            if rounds.enough():
                if rounds.leave_the_end_open:
                    machine.emit(Interlude)
                break
            if rounds.take_too_long():
                machine.long_loops.add(rounds.count)
                raise BudgetExceeded
    finally:
        machine.loops -= 1
        if rounds.done > _LONG:
            machine.long_loops.add(rounds.count)
    return machine.execute(node.orelse, frame)


def _leaves(signal: Signal | None) -> bool:
    """Whether what ended a round ends the loop with it."""
    return signal is not None and signal.kind in ("break", "return")


def _beyond(signal: Signal | None) -> Signal | None:
    """What a loop that was left passes on: a ``break`` is done with, a ``return`` is not."""
    return signal if signal is not None and signal.kind == "return" else None


def _bound_items(machine: Machine, frame: Frame, node: ast.For, items: Iterator[Value]) -> Iterator[None]:
    """One round of a ``for`` for each item, bound to the target."""
    from warplint.trace.host.assignment import bind_target

    for item in items:
        bind_target(machine, frame, node.target, item)
        yield


def _counts(iterable: Value) -> bool:
    """Whether a loop only counts: over a range, or over more numbers than anybody writes out, nearly all the same."""
    if isinstance(iterable, (list, tuple)):
        numbers = [_enumerated(position, item) for position, item in enumerate(iterable)]
        return len(numbers) > _WRITTEN_OUT and None not in numbers and len(set(numbers)) <= _LEVELS
    return isinstance(iterable, range)


def _length(iterable: Value) -> int | None:
    """How many rounds a loop over this runs, where that is known before."""
    return len(iterable) if isinstance(iterable, (list, tuple, range)) else None


def _enumerated(position: int, item: Value) -> float | None:
    """The plain number that an item is, or that ``enumerate`` has numbered."""
    if isinstance(item, tuple) and len(item) == 2 and item[0] == position:
        item = item[1]
    return item if isinstance(item, (int, float)) else None


def _true_conditions(machine: Machine, frame: Frame, node: ast.While) -> Iterator[None]:
    """One round of a ``while`` for each time that its condition holds, as far as anybody knows.

    Where it hangs on what nobody knows, as many rounds as stand for an unknown count: so it does where a list of things
    to do is worked off (``while queue``) that a round may have grown under an unknown condition.
    """
    endless = isinstance(node.test, ast.Constant) and node.test.value
    works_off = isinstance(node.test, (ast.Name, ast.Attribute))
    most = max([machine.settings.unknown_rounds, *(length + 1 for length in _rings_in_sight(machine, frame, node))])
    unknown = 0
    decisions = machine.decisions
    while (condition := _loop_condition(machine, frame, node.test)) is not False:
        if condition is None or endless or (works_off and machine.decisions > decisions):
            if unknown >= most:
                return
            unknown += 1
        decisions = machine.decisions
        yield


def _loop_condition(machine: Machine, frame: Frame, test: ast.expr) -> bool | None:
    """The condition of a ``while``; a count that nobody knows stands for its rounds (``while t < n``)."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in operators.COMPARE:
        left = machine.evaluate(test.left, frame)
        right = machine.evaluate(test.comparators[0], frame)
        counting = type(left) is int or type(right) is int
        return operators.truth(operators.compare(machine, type(test.ops[0]), left, right, counting=counting))
    if isinstance(test, ast.BoolOp):
        parts = [_loop_condition(machine, frame, part) for part in test.values]
        decisive = isinstance(test.op, ast.Or)
        if decisive in parts:
            return decisive
        return None if None in parts else not decisive
    return operators.truth(machine.evaluate(test, frame))


def _rings_in_sight(machine: Machine, frame: Frame, node: ast.For | ast.While) -> list[int]:
    """The lengths of the lists that the loop's body goes round: an unknown count must be long enough to meet again."""
    lengths: list[int] = []
    for container in machine.caches.rings_of(node):
        value = machine.evaluate(container, frame)
        if isinstance(value, (list, tuple)) and len(value) <= _LONGEST_RING:
            lengths.append(len(value))
    return lengths


def iterate_for_loop(machine: Machine, iterable: Value) -> Iterator[Value]:
    """The items that a loop runs over."""
    if isinstance(iterable, Generator) and iterable.items is None:
        return iter(())
    if isinstance(iterable, (list, dict)):
        return _live_items(iterable)
    items = machine.iterate(iterable)
    if items is not None:
        return iter(items)
    rounds = max([machine.settings.unknown_rounds, *(length + 1 for length in machine.rings)])
    return iter([part_of("an item of an unknown iterable", iterable) for _ in range(rounds)])


def _live_items(container: list[Value] | dict[Value, Value]) -> Iterator[Value]:
    """A list as the loop sees it when its body changes it; a dict as it was."""
    if isinstance(container, dict):
        yield from list(container)
        return
    position = 0
    while position < len(container):
        yield container[position]
        position += 1


def _for_generator(machine: Machine, frame: Frame, node: ast.For, generator: Generator) -> Signal | None:
    from warplint.trace.host.assignment import bind_target

    rounds = _Rounds(machine, node, counts=False)
    taken = 0

    def on_yield(item: Value) -> Value:
        nonlocal taken
        taken += 1
        inner, machine.frames = machine.frames, outer
        try:
            bind_target(machine, frame, node.target, item)
            signal = machine.execute(node.body, frame)
        finally:
            machine.frames = inner
        if _leaves(signal):
            raise _Left(_beyond(signal))
        if rounds.enough() or taken >= machine.settings.rounds:
            raise _Left(None)
        return None

    outer = machine.frames
    depth = len(outer)
    machine.loops += 1
    try:
        machine.frames = list(outer)
        machine.parts.run_generator(machine, generator, on_yield)
    except _Left as left:
        return left.signal
    finally:
        machine.frames = outer
        del machine.frames[depth:]
        machine.loops -= 1
    return machine.execute(node.orelse, frame)


class _Rounds:
    """When a loop has run long enough.

    A loop with a backward pass in it is a loop of epochs: three rounds show all that happens from one to the next, two
    if they are long; but one that walks tapes which were recorded before it, each for the first time, goes on. Three
    are enough too for loops that count (``counts``) and only launch outside of any tape, a simulation without
    gradients, unless something grows in them. Loops of plain arithmetic end after eight rounds, an outermost one after
    32 if lists of plain data grow in it.
    """

    def __init__(self, machine: Machine, node: ast.For | ast.While, counts: bool, expected: int | None = None) -> None:
        self._machine = machine
        self._node = node
        self._counts = counts
        self._expected = expected
        self._steps = machine.steps
        self.count = node.iter if isinstance(node, ast.For) else node.test
        """What decides how often the loop runs."""
        self.done = 0
        self._backwards = machine.backwards
        self._launches = machine.unrecorded_launches
        self._tapes = machine.tapes_entered
        self._walked = len(machine.tapes_walked)
        self._events = machine.log.count
        self._memories = machine.newest_memory
        self._collected = machine.collected

    def enough(self) -> bool:
        """Called after each round."""
        machine = self._machine
        self.done += 1
        happened = machine.log.count > self._events
        if machine.backwards > self._backwards:
            if self._walks_recordings():
                return False
            long = machine.log.count - self._events > _LONG_EPOCH
            return self.done >= (2 if long else _EPOCHS)
        if self.done < _EPOCHS or (happened and machine.active_tape is not None):
            return False
        if machine.tapes_entered > self._tapes or machine.collected > self._collected:
            return False
        if machine.unrecorded_launches > self._launches:
            return self._counts and not machine.caches.grows(self._node)
        if happened or machine.newest_memory > self._memories:
            return False
        grows = machine.loops == 1 and machine.caches.grows(self._node)
        return self.done >= (_PLAIN_DATA if grows else _ARITHMETIC)

    @property
    def leave_the_end_open(self) -> bool:
        """Whether rounds with a backward pass are left out of which the last may be another: ``if epoch < last``."""
        if self._machine.backwards == self._backwards or self._expected is None or self.done >= self._expected:
            return False
        return isinstance(self._node, ast.For) and self._machine.caches.asks_for_round(self._node)

    def take_too_long(self) -> bool:
        """Whether the first rounds tell that all of them take many steps, and the program can be run in small instead.

        Asked after each round; in small the loop does in each round what it does here.
        """
        machine = self._machine
        if self.done != _EPOCHS or self._expected is None:
            return False
        left = min(self._expected, machine.settings.rounds) - self.done
        ahead = (machine.steps - self._steps) * left // self.done
        return ahead > machine.settings.steps_ahead and machine.can_shorten(self.count)

    def _walks_recordings(self) -> bool:
        machine = self._machine
        firsts = len(machine.tapes_walked) - self._walked
        return machine.tapes_entered == self._tapes and machine.backwards - self._backwards == firsts


# -- comprehensions ----------------------------------------------------------------------------------------------------

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def comprehension(machine: Machine, frame: Frame, node: Comprehension) -> Value:
    """List, set and dict comprehensions; a generator expression is its list (nothing in it may run twice)."""
    environment = Environment(
        frame.module, frame.environment.closure if not frame.environment.is_class else frame.environment
    )
    inner = Frame(environment, frame.function, node, frame.owner)
    inner.receiver = frame.receiver
    items: list[Value] = []
    pairs: dict[Value, Value] = {}

    def collect() -> None:
        machine.take_step()
        if isinstance(node, ast.DictComp):
            key = machine.evaluate(node.key, inner)
            try:
                pairs[key] = machine.evaluate(node.value, inner)
            except TypeError:
                return
        else:
            items.append(machine.evaluate(node.elt, inner))

    outer = machine.frames[-1]
    machine.frames[-1] = inner
    machine.loops += 1
    try:
        sure = _nested(machine, inner, node.generators, collect)
    finally:
        machine.loops -= 1
        machine.frames[-1] = outer
    if not sure and not items and not pairs:
        return UnknownValue("a comprehension over something unknown")
    if isinstance(node, ast.DictComp):
        return pairs
    if isinstance(node, ast.SetComp):
        try:
            return set(items)
        except TypeError:
            return UnknownValue("a set of unhashable values")
    return items


def _nested(
    machine: Machine, frame: Frame, generators: Sequence[ast.comprehension], collect: Callable[[], None]
) -> bool:
    """Run the loops of a comprehension; False where an unknown filter left something out."""
    from warplint.trace.host.assignment import bind_target

    if not generators:
        collect()
        return True
    first, rest = generators[0], generators[1:]
    iterable = machine.evaluate(first.iter, frame)
    items = machine.iterate(iterable)
    if items is None:
        items = [part_of("an item of an unknown iterable", iterable) for _ in range(machine.settings.unknown_rounds)]
    if len(items) > _LONG:
        machine.long_loops.add(first.iter)
    sure = True
    for item in items[: machine.settings.items]:
        bind_target(machine, frame, first.target, item)
        taken = True
        for test in first.ifs:
            known = operators.truth(machine.evaluate(test, frame))
            taken = taken and known is not False
        if taken:
            sure = _nested(machine, frame, rest, collect) and sure
    return sure


def collect_generator(machine: Machine, generator: Generator) -> list[Value]:
    """All items of a generator, its body run to the end (or to the limit) at once."""
    if generator.items is not None:
        return generator.items
    items: list[Value] = []

    def on_yield(item: Value) -> Value:
        items.append(item)
        if len(items) >= machine.settings.items:
            raise _Left(None)
        return UnknownValue("a sent value")

    depth = len(machine.frames)
    generator.items = items
    try:
        machine.parts.run_generator(machine, generator, on_yield)
    except _Left:
        del machine.frames[depth:]
    return items


def iterate(machine: Machine, value: Value) -> Sequence[Value] | None:
    """The items of an iterable, None where they are not known."""
    from warplint.trace.host.library.iteration import items_of

    return items_of(machine, value)


def object_items(machine: Machine, value: Instance) -> Sequence[Value] | None:
    """The items of an object of the project: a named tuple's fields, or what ``__iter__`` yields."""
    if value.cls.is_tuple:
        return list(value.attributes.values())
    if value.cls.find("__iter__"):
        result = machine.call(machine.parts.get_attribute(machine, value, "__iter__"))
        if result is value:
            return _by_next(machine, value)
        return machine.iterate(result)
    if value.cls.find("__getitem__") and value.cls.find("__len__"):
        length = machine.call(machine.parts.get_attribute(machine, value, "__len__"))
        if isinstance(length, int) and length <= machine.settings.items:
            getter = machine.parts.get_attribute(machine, value, "__getitem__")
            return [machine.call(getter, [position]) for position in range(length)]
    return None


def _by_next(machine: Machine, value: Instance) -> Sequence[Value] | None:
    from warplint.trace.host.machine import Raised

    if not value.cls.find("__next__"):
        return None
    items: list[Value] = []
    advance = machine.parts.get_attribute(machine, value, "__next__")
    machine.handlers.append(("StopIteration",))
    depth = len(machine.frames)
    try:
        while len(items) < machine.settings.rounds:
            items.append(machine.call(advance))
    except Raised as raised:
        del machine.frames[depth:]
        if "StopIteration" not in raised.kinds:
            raise
    finally:
        machine.handlers.pop()
    return items
