"""Values that an adjoint needs and that are gone when the backward pass comes to read them.

For each needed read of a recording: the first later write to the same memory, whoever makes it and wherever it is
recorded. The first one destroys the value and is the fault; later ones do no further harm. Who writes decides which
rule speaks.
"""

from __future__ import annotations

import enum
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence

from warplint.dataclass import dataclass
from warplint.kernels.summary import KernelFaultKind, Store, StoreKind
from warplint.trace.events import Alias, Array, Copy, Event, HostWrite, Launch, Moved
from warplint.trace.flow.operations import FILLS, NUMPY_STORE, NeededRead, Operation, Step, active_tape, recorded_on
from warplint.trace.flow.reachability import CONSUMING_COPIES, CONSUMING_STORES, Reach
from warplint.trace.flow.recordings import Recording


class Writer(enum.Enum):
    """What kind of write destroyed the value."""

    LAUNCH = "launch"
    """A later recorded launch that replaces the array's contents and does not read them."""
    SAME_LAUNCH = "same launch"
    """The reading launch itself stores to what it read."""
    INPLACE_LAUNCH = "in-place launch"
    """A later recorded launch that reads the array too, adds to it or scales it."""
    COPY = "copy"
    """A copy, or ``assign`` of a Warp array."""
    FILL = "fill"
    """``zero_``, ``fill_``, ``assign`` of host data: recorded on no tape."""
    NUMPY = "numpy"
    """A store through a numpy view of the same memory."""
    UNRECORDED_LAUNCH = "unrecorded launch"
    """A launch inside the ``with`` block that the tape does not hold (``record_tape=False``)."""
    AFTER_TAPE = "after the tape"
    """Any write outside the ``with`` block, before the backward."""


@dataclass(frozen=True)
class Overwrite:
    """A value that the backward pass needs and the write that destroyed it.

    ``read`` None: not the value is lost but the gradient is muddled, since the store's adjoint does not consume it
    (Warp before 1.13). ``established``: nothing about it is a guess.
    """

    recording: Recording
    reader: Step
    array: Array
    read: NeededRead | None
    write: Step
    writer: Writer
    established: bool

    @property
    def moved(self) -> Moved | None:
        """The assignment that makes the write hit what was read, if there is one.

        It brought the memory under the name it is written through after the read; or before the read under a second
        one, in a slot of the container that holds it still (``s[0] = s[-1]``).
        """
        moved = self.write.dest.moved
        if moved is None or moved.seq > self.write.seq:
            return None
        return moved if moved.how == "slot" or moved.seq > self.reader.seq else None

    @property
    def through_alias(self) -> bool:
        """The write reaches the memory under another name than the read: a slice, a pointer, a numpy view.

        Two rows of one array are two names, the same row taken twice is one; a name that an exchange moved is no alias.
        """
        dest = self.write.dest
        if dest.alias in (Alias.POINTER, Alias.NUMPY) or self.array.alias in (Alias.POINTER, Alias.NUMPY):
            return dest.alias is not self.array.alias
        return (dest.alias, dest.extent) != (self.array.alias, self.array.extent)

    @property
    def through_struct(self) -> bool:
        """Read or written as a field of a struct argument."""
        paths = (self.read.need.read.path if self.read else "", self.write.store.path if self.write.store else "")
        return any("." in path for path in paths)


@dataclass(frozen=True)
class Writes:
    """All writes of a trace by memory, in time order, with their event numbers beside them for bisection."""

    steps: Mapping[int, tuple[Step, ...]]
    numbers: Mapping[int, tuple[int, ...]]
    operations: Mapping[int, Operation]

    def between(self, memory: int, start: int, stop: int) -> Iterator[Step]:
        """The writes to ``memory`` with ``start < seq < stop``."""
        numbers = self.numbers.get(memory, ())
        for position in range(bisect_right(numbers, start), len(numbers)):
            if numbers[position] >= stop:
                return
            yield self.steps[memory][position]

    def touch(self, memory: int, start: int, stop: int) -> bool:
        """Whether there is a write to ``memory`` with ``start <= seq < stop``."""
        numbers = self.numbers.get(memory, ())
        position = bisect_left(numbers, start)
        return position < len(numbers) and numbers[position] < stop

    def last_before(self, memory: int, seq: int) -> Iterator[Step]:
        """The writes to ``memory`` before event ``seq``, the latest first."""
        numbers = self.numbers.get(memory, ())
        for position in range(bisect_right(numbers, seq - 1) - 1, -1, -1):
            yield self.steps[memory][position]


def writes_of(operations: Sequence[Operation]) -> Writes:
    """Sort the steps of all operations by the memory that they write."""
    steps: dict[int, list[Step]] = {}
    for operation in operations:
        for step in operation.steps:
            steps.setdefault(step.dest.memory, []).append(step)
    return Writes(
        {memory: tuple(found) for memory, found in steps.items()},
        {memory: tuple(step.seq for step in found) for memory, found in steps.items()},
        {operation.seq: operation for operation in operations},
    )


def overwrites_of(
    recording: Recording, established: Reach, possible: Reach, writes: Writes, repeats: frozenset[int]
) -> Iterator[Overwrite]:
    """The destroyed values of one recording; what the operations ``repeats`` store is there already."""
    for position, step in recording.window.on_tape():
        if recording.is_old(step.seq) or not possible.matters[position]:  # the re-entry of the tape is the fault then
            continue
        stop = recording.backward.seq
        written = {path for path, array in step.bound.items() if writes.touch(array.memory, step.seq, stop)}
        for read in step.needs_of(written) if written else ():
            if not is_needed(read, position, possible):
                continue
            found = _destroying_write(step, read, recording, writes, repeats)
            if found is not None:
                write, hits = found
                certain = hits and is_needed(read, position, established)
                yield Overwrite(recording, step, read.array, read, write, _writer(step, write, writes), certain)


def unconsumed_stores(
    recording: Recording, established: Reach, writes: Writes, warp: tuple[int, int]
) -> Iterator[Overwrite]:
    """Before Warp 1.13: arrays stored again after they were read, whatever the adjoint needs; copies before 1.17.

    The second store's adjoint leaves the destination's gradient as it is, so that it reaches the first value's maker
    too (measured on 1.12.1, and for copies on 1.13 and 1.16: wrong also for linear steps).
    """
    if warp >= CONSUMING_COPIES:
        return
    readers: dict[int, tuple[Step, Array]] = {}
    for position, step in recording.window.on_tape():
        leaves = step.kind is StoreKind.STORE and (warp < CONSUMING_STORES or isinstance(step.event, Copy))
        known = readers.pop(step.dest.memory, None) if leaves else None
        if known is not None and established.matters[position] and step.dest.extent.overlaps(known[1].extent):
            reader, array = known
            yield Overwrite(recording, reader, array, None, step, _writer(reader, step, writes), True)
        if established.matters[position]:
            for array in step.active:
                if array.memory in established.carried[position]:
                    readers[array.memory] = (step, array)


def is_needed(read: NeededRead, position: int, reach: Reach) -> bool:
    """Whether the adjoint reads the value: the condition of the need, under what is known of the gradient's ways."""
    if not reach.matters[position]:
        return False
    if read.given & reach.carried[position]:
        return True
    return (not read.need.given or read.need.given_destination) and reach.is_active(position)


def _destroying_write(
    step: Step, read: NeededRead, recording: Recording, writes: Writes, repeats: frozenset[int]
) -> tuple[Step, bool] | None:
    """The first write that is certain to destroy the value, else the first that may; and whether it is certain."""
    doubtful: Step | None = None
    for write in _later_writes(step, read, recording, writes, repeats):
        overlaps = write.dest.extent.overlaps(read.array.extent)
        if overlaps is False or _are_apart(write, step, read):
            continue
        if overlaps is True and _hits(write, step, read, writes.operations[step.seq]):
            return write, True
        doubtful = doubtful or write
    return (doubtful, False) if doubtful is not None else None


def _later_writes(
    step: Step, read: NeededRead, recording: Recording, writes: Writes, repeats: frozenset[int]
) -> Iterator[Step]:
    operation = writes.operations[step.seq]
    for own in operation.steps:
        if own.dest.memory != read.array.memory or own.changes_nothing:
            continue
        again = own.store is not None and _is_overwritten_inside(own.store, read, operation)  # by a loop around both
        if own.order >= read.need.read.order or again:
            yield own
    for write in writes.between(read.array.memory, step.seq, recording.backward.seq):
        if not (write.seq in repeats and write.kind is StoreKind.STORE):
            yield write


def _are_apart(write: Step, step: Step, read: NeededRead) -> bool:
    """Whether read and write mean different elements (``a[0]``, ``a[1]``) or components (``a[i].x``, ``a[i].y``)."""
    if write.store is None:
        return False
    one, other = write.store.component, read.need.read.component
    if one and other and not (f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")):
        return True
    same = (write.dest.alias, write.dest.extent) == (read.array.alias, read.array.extent)
    return same and _are_other_numbers(_index(write), _index_read(step, read))


def _are_other_numbers(one: str, other: str) -> bool:
    """Whether two indices are numbers, as many in both, and not the same ones."""
    known = _NUMBERS.fullmatch(one) and _NUMBERS.fullmatch(other)
    return bool(known) and one.count(",") == other.count(",") and one != other


_NUMBERS = re.compile(r"\d+(, \d+)*")
"""Counted from the front: ``a[-1]`` may be any."""


def _hits(write: Step, step: Step, read: NeededRead, reader: Operation) -> bool:
    """Whether a write to overlapping parts is certain to replace the very element that was read.

    It is if the launch rewrites the whole array, but for threads beyond a bound, or if it names the element as the
    reading kernel named it, the launches' scalar arguments put in: ``q[t + 1, i]`` does not replace ``q[t, i]``.
    """
    if write.store is None or write.store.covers_array is True:
        return True
    if write.store.covers_array is None and write.store.every_thread is True and write.seq != step.seq:
        return True
    if write.seq == step.seq and write.store.path == read.need.read.path:
        return _is_overwritten_inside(write.store, read, reader)
    return _index(write) == _index_read(step, read)


def _is_overwritten_inside(store: Store, read: NeededRead, reader: Operation) -> bool:
    """Whether the kernel's own analysis says so: it knows branches that exclude each other, and loops."""
    faults = reader.summary.faults if reader.summary is not None else ()
    return any(
        fault.kind is KernelFaultKind.READ_THEN_OVERWRITTEN
        and fault.span == store.span
        and fault.read is not None
        and (fault.read.path, fault.read.index) == (read.need.read.path, read.need.read.index)
        for fault in faults
    )


def _index(step: Step) -> str:
    return _with_arguments(step.store.index, step.event) if step.store is not None else ""


def _index_read(step: Step, read: NeededRead) -> str:
    return _with_arguments(read.need.read.index, step.event)


def _with_arguments(index: str, event: Event) -> str:
    """The index text with the names of scalar parameters replaced by their values, unknown ones by their launch."""
    if not isinstance(event, Launch):
        return index
    for binding in event.bindings:
        if binding.array is None and re.search(rf"\b{re.escape(binding.path)}\b", index):
            value = binding.value if binding.value is not None else f"<{event.seq}>"
            index = re.sub(rf"\b{re.escape(binding.path)}\b", str(value), index)
    return index


_HOST_WRITERS = {NUMPY_STORE: Writer.NUMPY} | dict.fromkeys(FILLS, Writer.FILL)


def _writer(step: Step, write: Step, writes: Writes) -> Writer:
    if write.seq == step.seq:
        return Writer.SAME_LAUNCH
    if active_tape(write.event) is None:
        return Writer.AFTER_TAPE
    if isinstance(write.event, Copy):
        return Writer.COPY
    if isinstance(write.event, HostWrite):
        return _HOST_WRITERS.get(write.event.how, Writer.UNRECORDED_LAUNCH)
    if recorded_on(write.event) is None:
        return Writer.UNRECORDED_LAUNCH
    operation = writes.operations[write.seq]
    return Writer.INPLACE_LAUNCH if operation.works_in_place(write.dest) else Writer.LAUNCH
