"""What follows from the order of a trace's events: recordings, reachability, overwritten needs, gradient life.

One object per trace, handed to every rule; each derived fact is computed once, when first asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from warplint.dataclass import dataclass
from warplint.kernels.summary import KernelFault, StoreKind
from warplint.trace.events import Backward, GradRead, HostRead, Kernel, KernelDeclared, Opaque, OptimiserStep, Trace
from warplint.trace.flow.assigned_gradients import AssignedGradient, assigned_gradients
from warplint.trace.flow.breaks import BrokenLink, Surroundings, broken_links
from warplint.trace.flow.changed_arguments import ChangedArgument, Known, changed_arguments, changes_of
from warplint.trace.flow.gradients import FlagGap, FlatLeaf, LaunchedFault, flag_gaps, flat_leaves, launched_faults
from warplint.trace.flow.lost_updates import LostUpdate, lost_updates
from warplint.trace.flow.module_lives import value_in_build
from warplint.trace.flow.operations import Operation, SummaryOf, operations_of
from warplint.trace.flow.overwrites import Overwrite, Writes, overwrites_of, unconsumed_stores, writes_of
from warplint.trace.flow.reachability import Edges, Reach, Regard, Rules, edges_of, reach, same_edges, same_view
from warplint.trace.flow.recordings import (
    GradientLife,
    Period,
    Recording,
    gradient_life,
    periods_of,
    recordings_of,
)
from warplint.trace.flow.repeats import Reentry, Repeat, left_seeds, reentry_of, repeats_of, same_launches
from warplint.trace.flow.residues import LeftOver, StaleRead, Walks, left_overs, stale_reads, unready_reads
from warplint.trace.flow.retained import Retained, retained_stores
from warplint.trace.flow.same_contents import unchanging_copies
from warplint.trace.flow.seed_mismatches import SeedMismatch, seed_mismatches
from warplint.trace.flow.seeds import seeded_by_others, unseeded
from warplint.trace.flow.stale_fills import StaleFill, stale_fills
from warplint.trace.flow.windows import CarriedState, Tapes, carried_states

if TYPE_CHECKING:
    from warplint.trace.flow.points import LaunchedPoint, LeftLoops

__all__ = ["Dataflow", "SummaryOf"]

COMPONENT_OVERWRITES = "enable_vector_component_overwrites"


@dataclass(frozen=True)
class Dataflow:
    """A trace and the summaries of its kernels; every derived fact is computed once, when first asked for."""

    trace: Trace
    summary_of: SummaryOf

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """The launches, copies and host writes, in time order, with arrays for access paths."""
        return operations_of(self.trace, self.summary_of)

    @cached_property
    def writes(self) -> Writes:
        """All writes by memory."""
        return writes_of(self.operations)

    @cached_property
    def gradient_life(self) -> GradientLife:
        """When gradients are used, set and cleared."""
        return gradient_life(self.trace.events, self.operations)

    @cached_property
    def periods(self) -> tuple[Period, ...]:
        """Each tape's life, cut at its resets."""
        return periods_of(self.trace, self.operations)

    @cached_property
    def recordings(self) -> tuple[Recording, ...]:
        """What each backward of the trace differentiates; without one, no kernel needs to be analysed."""
        if not any(isinstance(event, Backward) for event in self.trace.events):
            return ()
        found = recordings_of(self.trace, self.periods, self.operations, self.gradient_life)
        return seeded_by_others(found, lambda each: self.reach(each, Regard.BEYOND_DOUBT).left, self.gradient_life)

    def reach(self, recording: Recording, regard: Regard) -> Reach:
        """Which steps of a recording carry gradient, and which matter to its seeds."""
        key = (recording.backward.seq, same_view(regard, recording.window))
        if key not in self._reached:
            self._reached[key] = self._reach(recording, key[1], recording.seeds)
        return self._reached[key]

    @cached_property
    def _reached(self) -> dict[tuple[int, Regard], Reach]:
        return {}

    def _reach(self, recording: Recording, regard: Regard, roots: frozenset[int]) -> Reach:
        rules = Rules(regard, recording.window, self.trace.memories, self.trace.warp)
        key = (recording.backward.seq, same_edges(regard))
        if key not in self._edges:
            self._edges[key] = edges_of(rules)
        return reach(rules, recording.wanted, roots, self._edges[key])

    @cached_property
    def _edges(self) -> dict[tuple[int, Regard], Edges]:
        return {}

    @cached_property
    def same_launches(self) -> Mapping[int, int]:
        """Launches that only compute again what an earlier one did: event number to event number."""
        return same_launches(self.operations, self.writes)

    @cached_property
    def _stored_again(self) -> frozenset[int]:
        """Launches and copies that store what is there already."""
        return unchanging_copies(self.trace.events, self.operations) | frozenset(self.same_launches)

    @cached_property
    def changed_arguments(self) -> tuple[ChangedArgument, ...]:
        """Arguments of recorded launches that the backward finds changed, since the tape keeps their holder."""
        changes = changes_of(self.trace)
        return tuple(
            changed
            for recording in (self.recordings if changes.by_slot else ())
            for changed in changed_arguments(
                recording,
                changes,
                Known(
                    self.reach(recording, Regard.ESTABLISHED),
                    self.reach(recording, Regard.POSSIBLE),
                    self.writes.operations,
                    self.summary_of,
                ),
            )
        )

    @cached_property
    def overwrites(self) -> tuple[Overwrite, ...]:
        """Values that an adjoint needs and that a later write destroyed.

        Where the tape finds another array in the place of the one that was read, that is the fault, and what became of
        the first one does not matter; nor does what an exchange within the list of arguments brought about.
        """
        elsewhere = {(c.recording.backward.seq, c.launch.seq, c.before.path) for c in self.changed_arguments}
        exchanges = {changed.change.span for changed in self.changed_arguments}
        return tuple(
            overwrite
            for recording in self.recordings
            for overwrite in self._overwrites(recording)
            if not (overwrite.moved is not None and overwrite.moved.stack[-1].span in exchanges)
            and not (
                overwrite.read is not None
                and (recording.backward.seq, overwrite.reader.seq, overwrite.read.need.read.path) in elsewhere
            )
        )

    def _overwrites(self, recording: Recording) -> Iterator[Overwrite]:
        established, possible = self.reach(recording, Regard.ESTABLISHED), self.reach(recording, Regard.POSSIBLE)
        yield from overwrites_of(recording, established, possible, self.writes, self._stored_again)
        yield from unconsumed_stores(recording, established, self.writes, self.trace.warp)

    @cached_property
    def assigned_gradients(self) -> tuple[AssignedGradient, ...]:
        """Copies whose adjoint, before Warp 1.17, wipes out what later readers of the source put into its gradient."""
        return tuple(
            lost
            for recording in self.recordings
            for lost in assigned_gradients(recording, self.reach(recording, Regard.ESTABLISHED), self.trace.warp)
        )

    @cached_property
    def stale_fills(self) -> tuple[StaleFill, ...]:
        """Clearings beside the tape through which gradient flows on to what they threw away."""
        return tuple(
            fill
            for recording in self.recordings
            for fill in stale_fills(recording, self.reach(recording, Regard.ESTABLISHED))
        )

    @cached_property
    def _walks(self) -> Walks:
        by_number = {recording.backward.seq: recording for recording in self.recordings}
        return Walks(
            by_number,
            {seq: self.reach(recording, Regard.BEYOND_DOUBT).left for seq, recording in by_number.items()},
            {seq: self.reach(recording, Regard.POSSIBLE).left for seq, recording in by_number.items()},
            {seq: self.reach(recording, Regard.ESTABLISHED) for seq, recording in by_number.items()},
            {seq: self._poured(recording) for seq, recording in by_number.items()},
        )

    def _poured(self, recording: Recording) -> Reach:
        accumulators = {s.dest.memory for _, s in recording.window.on_tape() if s.kind is StoreKind.ACCUMULATE}
        return self._reach(recording, Regard.ESTABLISHED, recording.seeds | accumulators)

    @cached_property
    def left_overs(self) -> tuple[LeftOver, ...]:
        """Backwards that add to what an earlier one left, where the sum is used as the later one's gradient."""
        if not self.recordings:
            return ()
        return tuple(left_overs(self.trace, self._walks, self.writes.operations, self.writes, self.gradient_life))

    @cached_property
    def stale_reads(self) -> tuple[StaleRead, ...]:
        """Gradients that are used where they hold nothing."""
        if not self.recordings:
            return ()
        asked = (self.trace, self._walks, self.writes.operations)
        return (*stale_reads(*asked, self.trace.memories), *unready_reads(*asked))

    @cached_property
    def retained_stores(self) -> tuple[Retained, ...]:
        """Arrays with ``retain_grad`` that one tape stores to more than once."""
        return tuple(
            retained
            for recording in self.recordings
            for retained in retained_stores(
                recording,
                self.reach(recording, Regard.ESTABLISHED),
                self.trace.memories,
                frozenset(self.same_launches),
            )
        )

    @cached_property
    def lost_updates(self) -> tuple[LostUpdate, ...]:
        """Copies of parameters that an optimiser updates while the tape reads the original."""
        if not self.recordings:
            return ()
        return tuple(lost_updates(self.trace, self.recordings, self.writes.operations))

    @cached_property
    def unseeded(self) -> tuple[Recording, ...]:
        """Backwards that nothing seeds, although a gradient of theirs is used; none where a seed may be unseen."""
        if not self.recordings:
            return ()
        return tuple(unseeded(self.trace, self.recordings, self.gradient_life))

    @cached_property
    def seed_mismatches(self) -> tuple[SeedMismatch, ...]:
        """Seeds written by hand that are not the derivative of the loss that is reported."""
        return tuple(seed_mismatches(self.trace, self.recordings))

    @cached_property
    def broken_links(self) -> tuple[BrokenLink, ...]:
        """Operations that pass a value on towards the loss, and no gradient back to its leaves."""
        if not self.recordings:
            return ()
        around = Surroundings(
            self.operations,
            self.trace.memories,
            self.gradient_life,
            tuple(event for event in self.trace.events if isinstance(event, Opaque)),
            tuple(event for event in self.trace.events if isinstance(event, HostRead)),
            self.trace.source,
            self.trace.warp,
        )
        return tuple(link for recording in self.recordings for link in broken_links(recording, around))

    @cached_property
    def flag_gaps(self) -> tuple[FlagGap, ...]:
        """Arrays without a gradient between a wanted leaf and the loss."""
        return tuple(
            gap
            for recording in self.recordings
            for gap in flag_gaps(recording, self.reach(recording, Regard.FLAGS_IGNORED), self.trace.memories)
        )

    @cached_property
    def launched_faults(self) -> tuple[LaunchedFault, ...]:
        """Faults of kernels, met by recorded launches that a backward walks."""
        return tuple(
            fault
            for recording in self.recordings
            for fault in launched_faults(
                recording,
                self.reach(recording, Regard.ESTABLISHED),
                self.reach(recording, Regard.CUTS_IGNORED),
                self.writes.operations,
            )
        )

    @cached_property
    def launched_points(self) -> tuple[LaunchedPoint, ...]:
        """Operations without a derivative somewhere, in recorded launches through which gradient flows."""
        if not self.recordings:
            return ()
        from warplint.trace.flow.points import launched_points  # executes kernels: a tenth of the start-up time

        return tuple(
            point
            for recording in self.recordings
            for point in launched_points(
                recording, self.reach(recording, Regard.ESTABLISHED), self.writes.operations, self.trace
            )
        )

    @cached_property
    def left_loops(self) -> LeftLoops:
        """The loops that threads leave early, as far as the contents of arrays in the program's text show."""
        from warplint.trace.flow.points import LeftLoops, left_loops

        if not self.recordings:
            return LeftLoops()
        return left_loops(self.recordings[-1], self.writes.operations, self.trace)

    @cached_property
    def flat_leaves(self) -> tuple[FlatLeaf, ...]:
        """Leaves whose gradient is wanted and zero, since each way to the loss passes a flat operation."""
        return tuple(
            leaf
            for recording in self.recordings
            for leaf in flat_leaves(
                recording,
                self.reach(recording, Regard.FLAGS_IGNORED),
                self.reach(recording, Regard.FLAT_IGNORED),
                self.writes.operations,
                self.trace.memories,
            )
        )

    def component_overwrites(self, kernel: Kernel) -> bool | None:
        """Whether a kernel is built with ``enable_vector_component_overwrites``; None if unknown."""
        value = value_in_build(self.trace, kernel.module, COMPONENT_OVERWRITES, default=False)
        return None if value is None else bool(value)

    @cached_property
    def kernel_faults(self) -> tuple[tuple[Kernel, KernelFault], ...]:
        """Faults of the kernels that the trace's own file declares, whoever launches them."""
        declared = {
            event.kernel.key: event.kernel
            for event in self.trace.events
            if isinstance(event, KernelDeclared) and event.kernel.span.path == self.trace.path
        }
        return tuple(
            (kernel, fault)
            for kernel in declared.values()
            if kernel.has_fault_trigger is not False and (summary := self.summary_of(kernel)) is not None
            for fault in summary.faults
        )

    @cached_property
    def repeats(self) -> tuple[Repeat, ...]:
        """The same launch recorded twice on one tape."""
        return tuple(
            repeat
            for recording in self.recordings
            for repeat in repeats_of(
                recording,
                self.same_launches,
                self.reach(recording, Regard.ESTABLISHED),
                self.writes,
                self.trace.memories,
                self.trace.warp,
            )
        )

    @cached_property
    def reentries(self) -> tuple[Reentry, ...]:
        """Tapes that recorded on after a backward without being reset."""
        found = (self._reentry(recording) for recording in self.recordings if recording.is_reentered)
        return tuple(reentry for reentry in found if reentry is not None)

    def _reentry(self, recording: Recording) -> Reentry | None:
        left = left_seeds(recording, self.gradient_life)
        beyond_doubt = self._reach(recording, Regard.BEYOND_DOUBT, recording.seeds | left)
        return reentry_of(recording, beyond_doubt, self.writes, left)

    @cached_property
    def carried_states(self) -> tuple[CarriedState, ...]:
        """State carried from one tape into the next; nothing where the trace was cut, since an absence is at stake."""
        if self.trace.cut or not self.recordings:
            return ()
        if len({period.tape for period in self.periods if period.operations}) < 2:  # none that could carry it over
            return ()
        tapes = Tapes(
            self.periods,
            self.writes,
            self.gradient_life,
            self.trace.memories,
            opaque=tuple(event for event in self.trace.events if isinstance(event, Opaque)),
            updates=tuple(
                event
                for event in self.trace.events
                if isinstance(event, OptimiserStep)
                or (isinstance(event, GradRead) and event.how in ("optimiser", "escape"))
            ),
            shown=frozenset(
                event.seq
                for event in self.trace.events
                if isinstance(event, GradRead) and event.how in ("print", "assert")
            ),
            warp=self.trace.warp,
        )
        return tuple(
            state
            for recording in self.recordings
            for state in carried_states(recording, self.reach(recording, Regard.ESTABLISHED), tapes)
        )
