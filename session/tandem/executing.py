"""One group that ran, executed by the model, and what is not the same after it (chapter 3.1, steps 2 to 5)."""

from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.tandem import csrs
from rvtrace_gdb.decode.tandem.decoder import Tandem
from rvtrace_gdb.decode.tandem.group import Instr
from rvtrace_gdb.decode.tandem.index import Break, Trapped
from rvtrace_gdb.decode.tandem.spaces import PHYSICAL
from rvtrace_gdb.decode.tandem.steps import NOWHERE
from rvtrace_gdb.session.tandem.comparing import Comparing, Result
from rvtrace_gdb.session.tandem.doubts import Doubts
from rvtrace_gdb.session.tandem.findings import Difference, Kind
from rvtrace_gdb.session.tandem.inputs import CODE, Inputs
from rvtrace_gdb.session.tandem.mirror import Mirror
from rvtrace_gdb.session.tandem.model import Model, Step, Trap
from rvtrace_gdb.session.tandem.told import Told

_CSR_READ = 0x73


class Bridge(NamedTuple):
    """Over a gap: what is to be said of it; *step*: the group's own, that was executed to find that out."""

    differences: Sequence[Difference] = ()
    step: Step | None = None


class Outcome(NamedTuple):
    """What the model did; *result*: of comparing it. *executed*: it did so, and was not only told."""

    step: Step
    result: Result
    executed: bool


class Executing:
    """Lets the model attempt what groups tell (`attempt`), and brings it in line with the trace (`resume`)."""

    def __init__(
        self, tandem: Tandem, model: Model, mirror: Mirror, comparing: Comparing, inputs: Inputs, doubts: Doubts
    ) -> None:
        self._tandem, self._index, self._model, self._mirror = tandem, tandem.index, model, mirror
        self._comparing, self._inputs, self._doubts = comparing, inputs, doubts
        self.made: Step | None = None
        """A step of the model that has been made already: that of the next group."""

    def attempt(self, told: Told, trap: Trapped | None, gap: Break | None) -> Outcome:
        """An instruction, or a trap. *gap*: it does not go on where the group before it did."""
        bridge = Bridge() if gap is None else self._bridged(told, trap, gap)
        origin = self._index.origin(told.group)
        if origin != NOWHERE and bridge.step is None:
            self._mirror.go(origin)
        place = None if told.effective is None or bridge.step is not None else self._inputs.address(told)
        step, why = (bridge.step, "") if bridge.step is not None else self._stepped(told, trap)
        result = self._compare(told, step, trap, list(bridge.differences), place)
        self._comparing.held = 0
        if why:
            self._put(told, step, why)
        return Outcome(step, result, not why)

    def _stepped(self, told: Told, trap: Trapped | None) -> tuple[Step, str]:
        """What the model does; where it cannot, what it would have, and why it cannot."""
        pc = self._mirror.pc
        why = self._inputs.why_not(told, pc)
        if not why:
            step = self._step(told, trap)
            why = "" if trap is not None else self._inputs.was_refused(told, step)
            if not why:
                return step, ""
            self._undo(step)
        return self._inputs.instead(told, why, pc), why

    def _bridged(self, told: Told, trap: Trapped | None, gap: Break) -> Bridge:
        """Where a group does not go on from the one before: let the model go on there, which tells what is wrong.

        It does what the group says, but for where the hart goes on: that is wrong. It comes to where the group is: one
        group is missing. Else nobody knows what is missing, or there twice.
        """
        missing = Difference(Kind.ORDER, note=gap.why)
        instr = told.instr
        if trap is not None or instr is None or self._inputs.why_not(told, self._mirror.pc):
            self._doubts.begin(lost=True)
            return Bridge([missing])
        step = self._step(told, None)
        if step.instr is not None and same(instr, step.instr) and told.registers == step.registers:
            return Bridge([], step)
        self._mirror.values.update(self._mirror.wholes(step.registers))
        self._mirror.pc = step.next_pc
        self._comparing.held = 0
        if step.next_pc != self._index.origin(told.group):
            self._doubts.begin(lost=True)
            return Bridge([missing])
        words = "" if step.instr is None else f" of the instruction 0x{step.instr:x}"
        note = f"a group is missing before this one: that{words} at 0x{step.pc:x}"
        return Bridge([missing._replace(note=note)])

    def _step(self, told: Told, trap: Trapped | None) -> Step:
        """Copy what is not deterministic, and execute one instruction."""
        word = 0 if told.instr is None else told.instr.word
        if word & 0x7F == _CSR_READ and word >> 12 & 3:
            self._mirror.get(word >> 20)
        if trap is not None and self._doubts.lost and self.made is None:
            self._doubts.presume(told, trap)
        self._mirror.settle()
        if trap is None and told.effective is not None:
            self._inputs.fill(told)
        mip = self._inputs.prepare(told, trap)
        step, self.made = self.made or self._model.step(), None
        if mip is not None:
            self._put_back(step, mip, held=trap is None or not trap.interrupt)
        return step

    def _put_back(self, step: Step, mip: int, *, held: bool) -> None:
        """mip as it was, where it was changed for one step."""
        self._comparing.held = mip if held else 0
        changed = step.registers.get(csrs.MIP)
        self._mirror.pend(mip if changed is None else changed | mip)

    def _compare(
        self, told: Told, step: Step, trap: Trapped | None, differences: list[Difference], place: int | None
    ) -> Result:
        """Everything about one group; *place*: the address its load or store has in the model."""
        if told.instr is not None and step.instr is not None and not same(told.instr, step.instr):
            differences.append(Difference(Kind.INSTRUCTION, step.pc, None, told.instr.word, step.instr))
        taken = None if trap is None else Trap(trap.cause, trap.interrupt)
        if (taken is None) != (step.trap is None) or (taken and step.trap and taken != step.trap and taken.cause >= 0):
            differences.append(Difference(Kind.TRAP, step.pc))
        next_pc = self._index.pcs[told.group]
        if next_pc not in (NOWHERE, step.next_pc):
            differences.append(Difference(Kind.PC, step.pc, None, next_pc, step.next_pc))
        stored = self._comparing.stores(told, step) if told.stores or step.stores else []
        if not stored and place is not None and place != told.effective:
            differences.append(Difference(Kind.ADDRESS, told.effective or 0, None, told.effective, place))
        differences += stored
        if told.registers == step.registers:
            self._comparing.count(told.registers)
            return Result(differences, {})
        result = self._comparing.registers(told, step)
        return Result(differences + result.differences, result.set)

    def _put(self, told: Told, step: Step, why: str) -> None:
        """What was not executed, into the model."""
        for regno, value in step.registers.items():
            self._mirror.set(regno, value)
        self._mirror.go(step.next_pc)
        if why == CODE:
            self.copy_stores(told)

    def _undo(self, step: Step) -> None:
        """The model as it was before a step that only trapped."""
        for regno in self._mirror.wholes(step.registers):
            value = self._mirror.values.get(regno)
            if value is not None:
                self._mirror.set(regno, value)
        self._mirror.pc = step.next_pc
        self._mirror.go(step.pc)

    def resume(self, told: Told, outcome: Outcome) -> None:
        """The model as the trace has it, as far as it is known to be another one."""
        mirror, step, result = self._mirror, outcome.step, outcome.result
        mirror.values.update(mirror.wholes(step.registers))
        mirror.pc = step.next_pc
        for regno, value in result.set.items():
            mirror.set(regno, value)
        next_pc = self._index.pcs[told.group]
        if next_pc != NOWHERE:
            mirror.go(next_pc)
        if result.differences:
            self._restore(told, step)
        self._doubts.told(told)

    def _restore(self, told: Told, step: Step) -> None:
        """Memory after a divergence: what the model stored is undone as far as it is known, what is told is done."""
        before = self._tandem.after(told.group - 1)
        for stored in step.stores:
            place = stored.physical if stored.physical is not None else stored.address
            for at, byte in enumerate(before.memory(stored.address, len(stored.data), loads=True)):
                data = self._inputs.initial(place + at, 1) if byte is None else bytes([byte])
                if data is not None:
                    self._model.write_memory(place + at, data)
        loaded = self._inputs.loaded(told)
        if loaded is not None:
            self._model.write_memory(*loaded)
        self.copy_stores(told)
        if told.instr is not None and step.instr is not None and not same(told.instr, step.instr):
            place_of_code = before.physical_address(step.pc)
            if place_of_code is not None:
                code = told.instr.word.to_bytes(told.instr.length, "little")
                self._model.write_memory(place_of_code, code)

    def copy_stores(self, told: Told) -> None:
        """What a group stored, into the model's memory."""
        state = self._tandem.after(told.group) if told.stores else None
        for space, store in self._tandem.stored(told.group) if state is not None else ():
            place = store.address if space == PHYSICAL else self._inputs.physical(told.group, store.address)
            if place is not None and store.value is not None:
                self._model.write_memory(place, store.value.to_bytes(store.size, "little"))


def same(instr: Instr, word: int) -> bool:
    """Whether two instructions are the same, of which one may have the bytes behind it, too."""
    bits = 0xFFFF if instr.length == 2 or instr.word & 3 != 3 else 0xFFFF_FFFF
    return (instr.word ^ word) & bits == 0
