"""The tandem verifier: a model runs in step with a trace, and after each group both must be in the same state.

Source: Trace Protocol Specification, version 2018-11-20, 3.1 (Tandem Verification) and 3.2 (Partial Trace). The shadow
state is `decode.tandem`'s. After each group the changes on both sides are compared, as 3.1 allows, and at the end
everything is: this reveals changes that a model's steps did not report (`FullComparison`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.program.csrs import MTIME, PRIVILEGE, parts
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem
from rvtrace_gdb.decode.tandem.effects import NOWHERE, TrapEffect
from rvtrace_gdb.decode.tandem.protocol import FPR_END, GPR
from rvtrace_gdb.decode.tandem.registers import PHYSICAL
from rvtrace_gdb.session.verify.batches import BatchExecution
from rvtrace_gdb.session.verify.compare import GroupComparison, GroupState
from rvtrace_gdb.session.verify.execution import ExecutionOutcome, GroupExecution, same
from rvtrace_gdb.session.verify.masks import ALL, STORES, Masks, absent_of, inputs
from rvtrace_gdb.session.verify.model import (
    PC,
    Difference,
    DifferenceKind,
    Divergence,
    Model,
    ModelState,
    ModelStep,
    ModelTrap,
    VerifyCounts,
)
from rvtrace_gdb.session.verify.nondeterminism import ModelInputs, UnknownState
from rvtrace_gdb.support.errors import Progress, silent

_LINE, _MOST = 64, 1 << 14  # bytes of memory compared at a time, and how many of those
_WHOLE = {csrs.SSTATUS: csrs.MSTATUS, csrs.SIP: csrs.MIP, csrs.SIE: csrs.MIE}  # views, whose bits may differ as there

_TRAP_STATE = frozenset(regno for taken in csrs.TRAPS for regno in taken[:4])
"""What a step that traps changes, and may have to be undone."""


class FullComparison:
    """Compares the whole shadow state with that of the model.

    diverged  by register the bits of reported divergences. These are not reported again, nor those that the model did
              not accept when they were copied: an instruction that reads them will differ
    """

    def __init__(
        self, tandem: DecodedTandem, model: Model, cache: ModelState, masks: Masks, counts: VerifyCounts
    ) -> None:
        self._tandem, self._model, self._cache = tandem, model, cache
        self._masks, self._counts = masks, counts
        self.diverged: dict[int, int] = {}

    def both(self, group: int) -> tuple[tuple[int, int | None, int | None], ...]:
        """Return (number, trace, model) of all registers that one of them has; the shadow state is
        that after *group*.
        """
        state = self._tandem.after(group)
        columns = self._tandem.index.registers.columns
        reported = sorted(regno for regno in columns if regno < GPR)
        rows = [(PC, state.pc, self._model.read_register(PC))]
        for regno in (PRIVILEGE, *range(GPR + 1, FPR_END), *reported):
            row = (regno, state.register(regno), self._model_register(regno))
            if row[1] is not None or row[2] is not None:
                rows.append(row)
        return tuple(rows)

    def differences(self, group: int) -> list[Difference]:
        """Return the differences in everything that is known after a group."""
        self._counts.full += 1
        self._cache.settle()
        return [*self._register_differences(group), *self._memory_differences(group)]

    def _register_differences(self, group: int) -> Iterator[Difference]:
        state = self._tandem.after(group)
        whole = parts(self._tandem.trace.parameters.xlen)
        for regno in (*range(GPR + 1, FPR_END), PRIVILEGE, *state.csrs()):
            if regno in whole and whole[regno].register != regno and state.register(whole[regno].register) is not None:
                continue
            trace = state.register(regno) if inputs(regno) != ALL else None
            if trace is None:
                continue
            model = self._model_register(regno)
            soft = self._masks.soft(regno) | self._masks.soft(_WHOLE.get(regno, regno))
            bits = ALL if model is None else (trace ^ model) & ~soft
            bits &= ~(self.diverged.get(regno, 0) | self._cache.refused.get(regno, 0))
            if bits:
                yield Difference(DifferenceKind.LATER, regno, None, trace, model, bits)

    def _model_register(self, regno: int) -> int | None:
        """Return a register of the model; for a view that it does not have, the bits of its whole."""
        found = self._model.read_register(regno)
        part = parts(self._tandem.trace.parameters.xlen).get(regno)
        if found is not None or part is None or part.delegated:
            return found
        whole = self._model.read_register(part.register)
        return None if whole is None else (whole & part.mask) >> part.shift

    def _memory_differences(self, group: int) -> Iterator[Difference]:
        """Yield differences in bytes that were stored at known physical addresses."""
        if STORES in self._masks.absent:
            return
        state = self._tandem.after(group)
        for line in self._lines():
            model = self._model.read_memory(line, _LINE)
            if model is None:
                continue
            for at, byte in enumerate(state.memory(line, _LINE, space=PHYSICAL)):
                if byte is not None and byte != model[at]:
                    yield Difference(DifferenceKind.LATER, line + at, None, byte, model[at], size=1)

    def _lines(self) -> list[int]:
        """Return the last stretches of memory that were stored to."""
        found: dict[int, None] = {}
        writes = self._tandem.index.physical.writes
        for number in range(len(writes) - 1, -1, -1):
            found.setdefault(writes.addresses[number] & ~(_LINE - 1))
            if len(found) == _MOST:
                break
        return sorted(found)

    def copy(self, group: int) -> None:
        """Copy everything that is known after a group to the model."""
        state = self._tandem.after(group)
        for regno in (*range(GPR + 1, FPR_END), *state.csrs(), PRIVILEGE):
            value = state.register(regno)
            if value is not None and inputs(regno) != ALL:
                self._cache.set(regno, value)
        if state.pc is not None:
            self._cache.go(state.pc)
        for line in self._lines():
            for at, byte in enumerate(state.memory(line, _LINE, space=PHYSICAL)):
                if byte is not None:
                    self._model.write_memory(line + at, bytes([byte]))


class Divergences:
    """Makes divergences of differences, and counts them. *states*: they have all registers, not only those that differ.
    """

    def __init__(self, tandem: DecodedTandem, full: FullComparison, counts: VerifyCounts, *, states: bool) -> None:
        self._tandem, self._full, self._counts, self._states = tandem, full, counts, states

    def divergence(
        self, reported: GroupState, trap: TrapEffect | None, step: ModelStep | None, differences: Sequence[Difference]
    ) -> Divergence:
        """Return the divergence after a group, at which the model had taken *step*."""
        counts, group = self._counts, reported.group
        counts.divergences += 1
        counts.by_kind.update(difference.kind for difference in differences)
        diverged = self._full.diverged
        for difference in differences:
            if difference.kind in (DifferenceKind.CSR, DifferenceKind.LATER):
                diverged[difference.place] = diverged.get(difference.place, 0) | difference.bits
        origin = self._tandem.index.origin(group)
        other = None if step is None or step.instr is None or reported.instr is None else step.instr
        return Divergence(
            counts.divergences,
            group,
            self._tandem.trace.offsets[group],
            self._position(group),
            step.pc if step is not None else None if origin == NOWHERE else origin,
            reported.instr,
            other if other is not None and reported.instr is not None and not same(reported.instr, other) else None,
            None if trap is None else ModelTrap(trap.cause, trap.interrupt),
            None if step is None else step.trap,
            tuple(differences),
            self._full.both(group) if self._states else (),
        )

    def _position(self, group: int) -> int | None:
        """Return the position of a group's instruction in the history: after the gap before it, if there is one."""
        if not self._tandem.index.retired[group]:
            return None
        position = self._tandem.position_of(group)
        while self._tandem.group_of(position + 1) == group:
            position += 1
        return position


class FollowingModel:
    """The model, which takes over what the trace says of a hart. *state*: what is known of it. *code*: code that is
    loaded into it besides its program: (address, bytes).
    """

    def __init__(
        self, model: Model, state: ModelState, tandem: DecodedTandem, code: Sequence[tuple[int, bytes]]
    ) -> None:
        self._model, self.state, self._index, self._code = model, state, tandem.index, code

    def reset(self) -> None:
        """Reset the model, and load the code again."""
        self._model.reset()
        for address, data in self._code:
            self._model.write_memory(address, data)
        self.state.refresh({*_TRAP_STATE, *(regno for regno in self._index.registers.columns if regno < GPR)})

    def correct(self, difference: Difference) -> None:
        """Give one place in the model the trace's value."""
        if difference.trace is not None and difference.size:
            self._model.write_memory(difference.place, difference.trace.to_bytes(difference.size, "little"))
        elif difference.trace is not None:
            self.state.set(difference.place, difference.trace)

    def copy(self, reported: GroupState) -> None:
        """Copy the registers and the pc that a group reports to the model."""
        for regno, value in reported.registers.items():
            if value is not None and (inputs(regno) != ALL or regno == MTIME):
                self.state.set(regno, value & ~inputs(regno) if regno == csrs.MIP else value)
        if reported.pc and self._index.pcs[reported.group] != NOWHERE:
            self.state.go(self._index.pcs[reported.group])


_REPORTED = 0x100  # groups between two reports of progress


@dataclass(frozen=True)
class VerifyOptions:
    """The options of a verification.

    masks    what is not compared
    every    groups between two comparisons of everything; 0: only at the end
    states   divergences have all registers, not only those that differ
    devices  (address, bytes) whose loads are not compared
    start, stop   groups, counted from 0; stop None: all
    """

    masks: Masks
    every: int = 0
    states: bool = False
    devices: Sequence[tuple[int, int]] = ()
    start: int = 0
    stop: int | None = None


class Verifier:
    """Compares a trace with a model. *program*: is loaded in it; *code*: other code that ran (address, bytes).

    counts   of all groups up to now
    missing  what the trace never reports, of `masks.ABSENT`: it is not compared
    masked   what the user excluded from comparison, in words
    """

    def __init__(
        self,
        tandem: DecodedTandem,
        model: Model,
        choices: VerifyOptions,
        program: Image | None = None,
        code: Sequence[tuple[int, bytes]] = (),
    ) -> None:
        self._tandem, self._trace, self._choices = tandem, tandem.trace, choices
        self._stop = len(self._trace) if choices.stop is None else min(choices.stop, len(self._trace))
        self.missing = absent_of(tandem) - choices.masks.absent
        masks = Masks(choices.masks.ignored, choices.masks.absent | self.missing)
        self.masked = tuple(choices.masks.described())
        losses, groups = self._trace.losses, range(1, len(self._trace))
        holes = sum(loss.group in groups for loss in losses)
        self.counts = VerifyCounts(losses=len(losses), holes=holes, lost_bytes=self._trace.accounting.skipped)
        state = ModelState(model, tandem.trace.parameters.xlen)
        self._model = FollowingModel(model, state, tandem, code)
        self._comparison = GroupComparison(tandem, state, masks, self.counts)
        from_outside = ModelInputs(tandem, model, state, self.counts, choices.devices, program)
        self._unknown = UnknownState(tandem, state)
        self._execution = GroupExecution(tandem, model, state, self._comparison, from_outside, self._unknown)
        self._batch = BatchExecution(tandem, model, state, self._comparison, from_outside)
        self._full = FullComparison(tandem, model, state, masks, self.counts)
        self._divergences = Divergences(tandem, self._full, self.counts, states=choices.states)
        self._traps = {trapped.group: trapped for trapped in tandem.index.traps}
        self._breaks = {gap.group: gap for gap in sorted(tandem.index.breaks, key=lambda gap: gap.loss)}

    def run(self, progress: Progress = silent) -> Iterator[Divergence]:
        """Yield the divergences in order. Raises ModelFailed, and what *progress* raises."""
        start, every = self._choices.start, self._choices.every
        stop = self._stop
        self._begin_at(start)
        group = start
        while group < stop:
            if not (group - start) % _REPORTED:
                progress("verifying (groups)", group - start, stop - start)
            agreed = self._agreed(group)
            found = None if agreed else self._group(group)
            if found is not None:
                yield found
            group += agreed or 1
            if every and not (group - start) % every:
                yield from self._compare_everything(group - 1)
        if stop > start and (not every or (stop - start) % every):
            yield from self._compare_everything(stop - 1)
        self._model.state.settle()

    @property
    def refused(self) -> dict[int, int]:
        """Return by register the bits that the model did not accept as in the trace: it cannot equal the hart there."""
        diverged = self._full.diverged
        found = {regno: bits & diverged.get(regno, 0) for regno, bits in self._model.state.refused.items()}
        return {regno: bits for regno, bits in sorted(found.items()) if bits}

    def _until(self, group: int) -> int:
        """Return how many groups there are from *group* on before something else than executing must be done."""
        done = group - self._choices.start
        every = self._choices.every
        left = [self._stop - group, _REPORTED - done % _REPORTED]
        return min([*left, every - done % every] if every else left)

    def _ahead_until(self, group: int) -> int:
        """Return the same, 0 where something else must be done before *group*."""
        done, every = group - self._choices.start, self._choices.every
        return 0 if every and not done % every and done else self._until(group)

    def _agreed(self, group: int) -> int:
        """Return how many of the next groups the model executed at once exactly as reported."""
        agreed, registers = self._batch.run(group, self._until(group), self._ahead_until)
        self.counts.groups += agreed
        self.counts.instructions += agreed
        self.counts.executed += agreed
        self._unknown.know(registers)
        return agreed

    def _begin_at(self, start: int) -> None:
        self._model.reset()
        first = self._group_state(start) if len(self._trace) else None
        known = start == 0 and first is not None and (first.reset or first.initializes)
        self._unknown.begin(lost=not known)
        if start:
            self._full.copy(start - 1)
            self._unknown.set_known(start - 1)

    def _group_state(self, group: int) -> GroupState:
        pc_register = self._trace.parameters.dialect.pc_register
        return GroupState(group, self._trace.elements(group), self._tandem, pc_register)

    def _compare_everything(self, group: int) -> Iterator[Divergence]:
        differences = self._full.differences(group)
        if differences:
            yield self._divergences.divergence(self._group_state(group), None, None, differences)
            for difference in differences:
                self._model.correct(difference)

    def _group(self, group: int) -> Divergence | None:
        """Verify one group; return the divergence after it."""
        reported = self._batch.group_state(group)
        self._execution.pending, self._batch.step = self._batch.step, None
        self.counts.groups += 1
        gap = self._breaks.get(group)
        if gap is not None and (gap.loss or self._trace.parameters.dialect.untraced_below):  # the gap is explained
            self._unknown.begin(lost=True)
            gap = None
        trap = self._traps.get(group)
        if reported.reset:
            self._copy_reset(reported)
            return None
        if reported.initializes or (reported.instr is None and trap is None):
            self._outside(reported)
            return None
        self._count_execution(trap)
        if self._trace.parameters.dialect.partial:
            self.counts.unknown += sum(regno >= GPR for regno, value in reported.registers.items() if value is None)
        outcome = self._execution.attempt(reported, trap, gap)
        self.counts.executed += outcome.executed
        found = self._found_divergence(reported, trap, outcome)
        self._execution.resume(reported, outcome)
        return found

    def _copy_reset(self, reported: GroupState) -> None:
        self.counts.resets += 1
        self._model.reset()
        self._comparison.begin(reported.group)
        self._unknown.begin(lost=False)
        self._copy(reported)

    def _outside(self, reported: GroupState) -> None:
        """Copy what comes from outside the hart to the model."""
        if reported.initializes:
            self.counts.initializations += 1
            if self._trace.parameters.dialect.partial:
                self._unknown.begin(lost=reported.group > self._choices.start)
        else:
            self.counts.loose += 1
        self._copy(reported)
        self._unknown.update(reported)

    def _copy(self, reported: GroupState) -> None:
        """Copy everything that a group reports to the model."""
        self._model.copy(reported)
        self._execution.copy_stores(reported)

    def _count_execution(self, trap: TrapEffect | None) -> None:
        if trap is None:
            self.counts.instructions += 1
        elif trap.interrupt:
            self.counts.interrupts += 1
        else:
            self.counts.traps += 1

    def _found_divergence(
        self, reported: GroupState, trap: TrapEffect | None, outcome: ExecutionOutcome
    ) -> Divergence | None:
        differences = outcome.result.differences
        if not differences:
            return None
        if self._unknown.about(reported, trap):
            differences = [found for found in differences if found.kind is DifferenceKind.ORDER]
            if not differences:
                self.counts.uncomparable += 1
                return None
        return self._divergences.divergence(reported, trap, outcome.step, differences)
