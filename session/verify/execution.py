"""Executes one group in the model, and compares afterwards (chapter 3.1, steps 2 to 5)."""

from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem
from rvtrace_gdb.decode.tandem.effects import NOWHERE, TrapEffect
from rvtrace_gdb.decode.tandem.index import Break
from rvtrace_gdb.decode.tandem.protocol import Instr
from rvtrace_gdb.decode.tandem.registers import PHYSICAL
from rvtrace_gdb.session.verify.compare import ComparisonResult, GroupComparison, GroupState
from rvtrace_gdb.session.verify.model import (
    Difference,
    DifferenceKind,
    Model,
    ModelState,
    ModelStep,
    ModelTrap,
)
from rvtrace_gdb.session.verify.nondeterminism import CODE, ModelInputs, UnknownState

_CSR_READ = 0x73


class Bridge(NamedTuple):
    """The result of a gap: notes about it; *step*: the group's own, which was executed to find out."""

    differences: Sequence[Difference] = ()
    step: ModelStep | None = None


class ExecutionOutcome(NamedTuple):
    """The model's step; *result*: of the comparison. *executed*: the model executed it, instead of
    getting its results.
    """

    step: ModelStep
    result: ComparisonResult
    executed: bool


class GroupExecution:
    """Lets the model execute groups (`attempt`), and makes its state that of the trace (`resume`)."""

    def __init__(
        self,
        tandem: DecodedTandem,
        model: Model,
        cache: ModelState,
        comparison: GroupComparison,
        inputs: ModelInputs,
        unknown: UnknownState,
    ) -> None:
        self._tandem, self._index, self._model, self._cache = tandem, tandem.index, model, cache
        self._comparison, self._inputs, self._unknown = comparison, inputs, unknown
        self.pending: ModelStep | None = None
        """A step of the model that has already been executed, for the next group."""

    def attempt(self, reported: GroupState, trap: TrapEffect | None, gap: Break | None) -> ExecutionOutcome:
        """Execute an instruction, or a trap. *gap*: the group does not continue the previous one."""
        bridge = Bridge() if gap is None else self._bridged(reported, trap, gap)
        origin = self._index.origin(reported.group)
        if origin != NOWHERE and bridge.step is None:
            self._cache.go(origin)
        place = None if reported.effective is None or bridge.step is not None else self._inputs.address(reported)
        step, why = (bridge.step, "") if bridge.step is not None else self._stepped(reported, trap)
        result = self._compare(reported, step, trap, list(bridge.differences), place)
        self._comparison.held = 0
        if why:
            self._put(reported, step, why)
        return ExecutionOutcome(step, result, not why)

    def _stepped(self, reported: GroupState, trap: TrapEffect | None) -> tuple[ModelStep, str]:
        """Return the model's step; if it cannot execute it, the step it would have made, and why it cannot."""
        pc = self._cache.pc
        why = self._inputs.why_not(reported, pc)
        if not why:
            step = self._execute_one(reported, trap)
            why = "" if trap is not None else self._inputs.was_refused(reported, step)
            if not why:
                return step, ""
            self._undo(step)
        return self._inputs.instead(reported, why, pc), why

    def _bridged(self, reported: GroupState, trap: TrapEffect | None, gap: Break) -> Bridge:
        """Let the model execute a group that does not continue the previous one, to find out what is wrong.

        If the model does what the group reports, only the pc was wrong. If it comes to the group's pc, one group is
        missing. Else it is unknown what is missing, or duplicated.
        """
        missing = Difference(DifferenceKind.ORDER, note=gap.why)
        instr = reported.instr
        if trap is not None or instr is None or self._inputs.why_not(reported, self._cache.pc):
            self._unknown.begin(lost=True)
            return Bridge([missing])
        step = self._execute_one(reported, None)
        if step.instr is not None and same(instr, step.instr) and reported.registers == step.registers:
            return Bridge([], step)
        self._cache.values.update(self._cache.wholes(step.registers))
        self._cache.pc = step.next_pc
        self._comparison.held = 0
        if step.next_pc != self._index.origin(reported.group):
            self._unknown.begin(lost=True)
            return Bridge([missing])
        words = "" if step.instr is None else f" of the instruction 0x{step.instr:x}"
        note = f"a group is missing before this one: that{words} at 0x{step.pc:x}"
        return Bridge([missing._replace(note=note)])

    def _execute_one(self, reported: GroupState, trap: TrapEffect | None) -> ModelStep:
        """Copy what is not deterministic, and execute one instruction."""
        word = 0 if reported.instr is None else reported.instr.word
        if word & 0x7F == _CSR_READ and word >> 12 & 3:
            self._cache.get(word >> 20)
        if trap is not None and self._unknown.lost and self.pending is None:
            self._unknown.presume(reported, trap)
        self._cache.settle()
        if trap is None and reported.effective is not None:
            self._inputs.fill(reported)
        mip = self._inputs.prepare(reported, trap)
        step, self.pending = self.pending or self._model.step(), None
        if mip is not None:
            self._put_back(step, mip, held=trap is None or not trap.interrupt)
        return step

    def _put_back(self, step: ModelStep, mip: int, *, held: bool) -> None:
        """Restore mip if it was changed for one step."""
        self._comparison.held = mip if held else 0
        changed = step.registers.get(csrs.MIP)
        self._cache.pend(mip if changed is None else changed | mip)

    def _compare(
        self,
        reported: GroupState,
        step: ModelStep,
        trap: TrapEffect | None,
        differences: list[Difference],
        place: int | None,
    ) -> ComparisonResult:
        """Compare everything about one group; *place*: the address of its load or store in the model."""
        if reported.instr is not None and step.instr is not None and not same(reported.instr, step.instr):
            differences.append(Difference(DifferenceKind.INSTRUCTION, step.pc, None, reported.instr.word, step.instr))
        taken = None if trap is None else ModelTrap(trap.cause, trap.interrupt)
        if (taken is None) != (step.trap is None) or (taken and step.trap and taken != step.trap and taken.cause >= 0):
            differences.append(Difference(DifferenceKind.TRAP, step.pc))
        next_pc = self._index.pcs[reported.group]
        if next_pc not in (NOWHERE, step.next_pc):
            differences.append(Difference(DifferenceKind.PC, step.pc, None, next_pc, step.next_pc))
        stored = self._comparison.stores(reported, step) if reported.stores or step.stores else []
        if not stored and place is not None and place != reported.effective:
            differences.append(
                Difference(DifferenceKind.ADDRESS, reported.effective or 0, None, reported.effective, place)
            )
        differences += stored
        if reported.registers == step.registers:
            self._comparison.count(reported.registers)
            return ComparisonResult(differences, {})
        result = self._comparison.registers(reported, step)
        return ComparisonResult(differences + result.differences, result.set)

    def _put(self, reported: GroupState, step: ModelStep, why: str) -> None:
        """Write the results of a step that was not executed to the model."""
        for regno, value in step.registers.items():
            self._cache.set(regno, value)
        self._cache.go(step.next_pc)
        if why == CODE:
            self.copy_stores(reported)

    def _undo(self, step: ModelStep) -> None:
        """Restore the model after a step that only trapped."""
        for regno in self._cache.wholes(step.registers):
            value = self._cache.values.get(regno)
            if value is not None:
                self._cache.set(regno, value)
        self._cache.pc = step.next_pc
        self._cache.go(step.pc)

    def resume(self, reported: GroupState, outcome: ExecutionOutcome) -> None:
        """Make the model's state that of the trace, as far as it is known to differ."""
        cache, step, result = self._cache, outcome.step, outcome.result
        cache.values.update(cache.wholes(step.registers))
        cache.pc = step.next_pc
        for regno, value in result.set.items():
            cache.set(regno, value)
        next_pc = self._index.pcs[reported.group]
        if next_pc != NOWHERE:
            cache.go(next_pc)
        if result.differences:
            self._restore(reported, step)
        self._unknown.update(reported)

    def _restore(self, reported: GroupState, step: ModelStep) -> None:
        """Correct memory after a divergence: undo the model's stores as far as possible, and do the reported ones."""
        before = self._tandem.after(reported.group - 1)
        for stored in step.stores:
            place = stored.physical if stored.physical is not None else stored.address
            for at, byte in enumerate(before.memory(stored.address, len(stored.data), loads=True)):
                data = self._inputs.initial(place + at, 1) if byte is None else bytes([byte])
                if data is not None:
                    self._model.write_memory(place + at, data)
        loaded = self._inputs.loaded(reported)
        if loaded is not None:
            self._model.write_memory(*loaded)
        self.copy_stores(reported)
        if reported.instr is not None and step.instr is not None and not same(reported.instr, step.instr):
            place_of_code = before.physical_address(step.pc)
            if place_of_code is not None:
                code = reported.instr.word.to_bytes(reported.instr.length, "little")
                self._model.write_memory(place_of_code, code)

    def copy_stores(self, reported: GroupState) -> None:
        """Copy the stores of a group to the model's memory."""
        state = self._tandem.after(reported.group) if reported.stores else None
        for space, store in self._tandem.stored(reported.group) if state is not None else ():
            place = store.address if space == PHYSICAL else self._inputs.physical(reported.group, store.address)
            if place is not None and store.value is not None:
                self._model.write_memory(place, store.value.to_bytes(store.size, "little"))


def same(instr: Instr, word: int) -> bool:
    """Return whether two instructions are the same; one of them may include the bytes after it."""
    bits = 0xFFFF if instr.length == 2 or instr.word & 3 != 3 else 0xFFFF_FFFF
    return (instr.word ^ word) & bits == 0
