"""What the model cannot know, and is told before it executes a group (chapter 3.1, step 2), or instead of executing it.

Devices, code the model does not have, an sc that failed for reasons of the memory system: the group's results are taken
over, and everything that does not depend on these is compared all the same: the address, the data, the destination.
"""

from collections.abc import Sequence
from functools import cached_property

from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.memory_access import reach
from rvtrace_gdb.decode.tandem import csrs
from rvtrace_gdb.decode.tandem.decoder import Tandem
from rvtrace_gdb.decode.tandem.index import UNTOLD_CAUSE, Trapped
from rvtrace_gdb.decode.tandem.layout import FPR_END, GPR
from rvtrace_gdb.decode.tandem.spaces import PHYSICAL, UNKNOWN
from rvtrace_gdb.decode.tandem.steps import NOWHERE
from rvtrace_gdb.session.tandem.comparing import is_load
from rvtrace_gdb.session.tandem.findings import Counts
from rvtrace_gdb.session.tandem.mirror import Mirror
from rvtrace_gdb.session.tandem.model import PRIVILEGE, Model, Step, Stored
from rvtrace_gdb.session.tandem.operands import addressed
from rvtrace_gdb.session.tandem.told import Told

MEMORY = "loads of memory nobody stored to"
CODE, DEVICE, FAILED = "instructions the model has no memory for", "accesses to devices", "sc that failed"
_PAGE, _MACHINE = 12, 3
_FETCH, _DATA = (1, 12, 20), (5, 7)
_AMO, _SC = 0x2F, 0b00011
_FLOATING_LOADS = 0x07


class Inputs:
    """Feeds the model. *devices*: (address, bytes) that are devices, whatever the model has there."""

    def __init__(
        self,
        tandem: Tandem,
        model: Model,
        mirror: Mirror,
        counts: Counts,
        devices: Sequence[tuple[int, int]],
        program: Image | None,
    ) -> None:
        self._tandem, self._model, self._mirror, self._counts = tandem, model, mirror, counts
        self._index, self._xlen = tandem.index, tandem.trace.parameters.xlen
        self._devices = [range(start, start + size) for start, size in devices]
        self._program = program
        self._pages: dict[int, bool] = {}
        self._no_code: set[int] = set()

    def why_not(self, told: Told, pc: int) -> str:
        """Why the model is not to execute the instruction of a group; "" if it is."""
        if told.instr is None:
            return ""
        if pc >> _PAGE in self._no_code:
            return CODE
        word = told.instr.word
        if word & 0x7F == _AMO and word >> 27 == _SC and self._rd(told, word):
            return FAILED
        address = told.effective if told.physical is None else told.physical
        if address is None or (told.physical is None and not self._is_untranslated(told.group)):
            return ""
        return "" if self._is_memory(address) else DEVICE

    def _is_untranslated(self, group: int) -> bool:
        """Whether addresses are physical ones; where the trace does not know that, as the model has it: in M-mode."""
        space = self._tandem.after(group - 1).space
        if space != UNKNOWN:
            return space == PHYSICAL
        return self._mirror.get(PRIVILEGE) == _MACHINE and not (self._mirror.get(csrs.MSTATUS) or 0) & csrs.MPRV

    def physical(self, group: int, address: int) -> int | None:
        """Where an address of a load or store of a group is in physical memory."""
        if self._is_untranslated(group):
            return address
        return self._tandem.after(group - 1).physical_address(address)

    def _rd(self, told: Told, word: int) -> int | None:
        return told.registers.get(GPR + (word >> 7 & 31))

    def _is_memory(self, address: int) -> bool:
        page = address >> _PAGE
        found = self._pages.get(page)
        if found is None:
            found = self._pages[page] = self._model.read_memory(address & ~7, 8) is not None
        return found and not any(address in device for device in self._devices)

    def was_refused(self, told: Told, step: Step) -> str:
        """Why the model could not execute what the hart did, where that is no fault: a trap for want of memory."""
        if step.trap is None or step.trap.interrupt or told.instr is None:
            return ""
        state = self._tandem.after(told.group - 1)
        if step.trap.cause in _FETCH and step.instr is None:
            is_machine = state.privilege in (_MACHINE, None)
            place = step.pc if is_machine else state.physical_address(step.pc)
            if place is None or self._model.read_memory(place, 2) is not None:
                return ""
            self._no_code.add(step.pc >> _PAGE)
            return CODE
        if step.trap.cause in _DATA and told.effective is not None:
            place = self.physical(told.group, told.effective)
            if place is not None and not self._is_memory(place):
                return DEVICE
        return ""

    def initial(self, address: int, size: int) -> bytes | None:
        """What the program has at a physical address before it runs."""
        for start, data in self._segments:
            if start <= address and address + size <= start + len(data):
                return data[address - start : address - start + size]
        return None

    @cached_property
    def _segments(self) -> list[tuple[int, bytes]]:
        return [] if self._program is None else self._program.segments

    def fill(self, told: Told) -> None:
        """Memory that was never stored to, and is not the program's: it holds what a load reads from it."""
        found = self.filling(told)
        if found is not None:
            self._counts.copied[MEMORY] += self._model.write_memory(*found)

    def filling(self, told: Told) -> tuple[int, bytes] | None:
        """What `fill` writes, and where; None: nothing."""
        assert told.effective is not None
        if self.initial(told.effective, 1) is not None:
            return None
        found, before = self.loaded(told), self._tandem.after(told.group - 1)
        if found is None or self.initial(found[0], 1) is not None:
            return None
        place, data = found
        is_walked = before.space not in (PHYSICAL, UNKNOWN) and told.effective % (1 << _PAGE) + len(data) <= 1 << _PAGE
        where, space = (place, PHYSICAL) if is_walked else (told.effective, None)  # the page tables are walked once
        return None if None not in before.memory(where, len(data), space=space) else found

    def loaded(self, told: Told) -> tuple[int, bytes] | None:
        """What a load has read, and where in physical memory that is; None: no load, or not known."""
        if told.effective is None or told.instr is None or not is_load(told.instr.word, self._xlen):
            return None
        found, values = reach(told.instr.word, self._xlen), list(self._loaded(told, told.instr.word).values())
        place = self.physical(told.group, told.effective)
        if found is None or not found.size or not values or place is None:
            return None
        return place, (values[0] & (1 << 8 * found.size) - 1).to_bytes(found.size, "little")

    def prepare(self, told: Told, trap: Trapped | None) -> int | None:
        """Make the model take the interrupt that was taken, or none: bits of mip for the step. Returns mip before."""
        mip = self._mirror.get(csrs.MIP)
        if trap is not None and trap.interrupt:
            asked = (self._mirror.get(csrs.MIE) or 0) if trap.cause == UNTOLD_CAUSE else 1 << trap.cause
            self._counts.copied["interrupts"] += 1
            self._mirror.pend(asked)
            return mip or 0
        if mip and mip & (self._mirror.get(csrs.MIE) or 0):
            self._mirror.pend(0)
            return mip
        return None

    def instead(self, told: Told, why: str, pc: int) -> Step:
        """What the model would have done, as far as that does not depend on what it does not have."""
        assert told.instr is not None
        self._counts.copied[why] += 1
        word = told.instr.word
        if why == CODE:
            return self._as_told(told, pc)
        following = pc + told.instr.length & (1 << self._xlen) - 1
        place = addressed(word, self._xlen)
        if place is None:
            return self._as_told(told, pc)._replace(next_pc=following)
        return Step(pc, word, following, self._loaded(told, word), self._stored(told, why))

    def _as_told(self, told: Told, pc: int) -> Step:
        assert told.instr is not None
        registers = {regno: value for regno, value in told.registers.items() if value is not None}
        next_pc = self._index.pcs[told.group]
        done = tuple(
            Stored(store.address, store.value.to_bytes(store.size, "little"))
            for _, store in self._tandem.stored(told.group)
            if store.value is not None
        )
        return Step(pc, told.instr.word, pc if next_pc == NOWHERE else next_pc, registers, done)

    def _loaded(self, told: Told, word: int) -> dict[int, int]:
        """The destination, with the value that is told."""
        if not is_load(word, self._xlen):
            is_sc = word & 0x7F == _AMO
            candidates = {GPR + (word >> 7 & 31)} if is_sc else set()
        elif word & 3 == 3:
            first = GPR + 32 if word & 0x7F == _FLOATING_LOADS else GPR
            candidates = {first + (word >> 7 & 31)}
        else:
            candidates = {regno for regno in told.registers if GPR < regno < FPR_END}
        found = {regno: told.registers.get(regno) for regno in candidates}
        return {regno: value for regno, value in found.items() if value is not None}

    def _stored(self, told: Told, why: str) -> tuple[Stored, ...]:
        """What a store writes: the model's register, at the model's address."""
        assert told.instr is not None
        place = addressed(told.instr.word, self._xlen)
        if why == FAILED or place is None:
            return ()
        stores = [store for _, store in self._tandem.stored(told.group)]
        if place.data < 0:  # an AMO: what the device answered decides
            return tuple(Stored(s.address, s.value.to_bytes(s.size, "little")) for s in stores if s.value is not None)
        base, value = self._mirror.get(place.base) if place.base != GPR else 0, self._value(place.data)
        if base is None or value is None or not stores:
            return ()
        size = stores[0].size
        address = base + place.offset & (1 << self._xlen) - 1
        return (Stored(address, (value & (1 << 8 * size) - 1).to_bytes(size, "little")),)

    def _value(self, regno: int) -> int | None:
        return 0 if regno == GPR else self._mirror.get(regno)

    def address(self, told: Told) -> int | None:
        """The effective address a load or store of the model would have; None: not known."""
        place = None if told.instr is None else addressed(told.instr.word, self._xlen)
        if place is None:
            return None
        base = self._value(place.base)
        return None if base is None else base + place.offset & (1 << self._xlen) - 1
