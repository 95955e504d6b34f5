"""What the model cannot know: it gets such values before a group (chapter 3.1, step 2), or instead of executing it.

Examples are devices, code that the model does not have, an sc that failed because of the memory system: the group's
results are copied, and everything that does not depend on these is still compared: the address, the data, the
destination.

`UnknownState` has unknown values, which a verifier cannot report as divergences: after a reset registers have any
value; after a loss, and if a trace does not begin with a reset, so do CSRs and memory. An instruction that reads an
unknown value has an unpredictable result: it is copied. CSRs that decide whether there is a trap, and where it leads,
are assumed to have values with which the model does what the hart did.

The registers that an instruction reads are also decoded here. Source: RISC-V Instruction Set Manual, volume I: "Base
Instruction Formats", "C Extension" (formats CI, CSS, CL, CS).
"""

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache

from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.program.csrs import PRIVILEGE
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import CSR, reach
from rvtrace_gdb.decode.semantics.addressed import addressed
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem
from rvtrace_gdb.decode.tandem.effects import NOWHERE, UNKNOWN_CAUSE, TrapEffect
from rvtrace_gdb.decode.tandem.protocol import FPR, FPR_END, GPR
from rvtrace_gdb.decode.tandem.registers import PHYSICAL, UNKNOWN
from rvtrace_gdb.decode.tandem.state import TandemState
from rvtrace_gdb.session.verify.compare import GroupState, is_load
from rvtrace_gdb.session.verify.model import Model, ModelState, ModelStep, ModelStore, VerifyCounts
from rvtrace_gdb.session.verify.translated_pages import TranslatedPages

_LOAD, _LOAD_FP, _STORE_FP = 0x03, 0x07, 0x27
_IMMEDIATE = {0x13, 0x1B, 0x67, 0x0F}
_NOTHING = {0x17, 0x37, 0x6F}  # auipc, lui, jal
_FUSED = range(0x43, 0x50, 4)
_OP_FP, _SYSTEM = 0x53, 0x73
_HYPERVISOR = 4  # funct3 of hlv and hsv
_FROM_INTEGER = {0b11010, 0b11110}  # funct5 of fcvt.s.w and fmv.w.x
_OF_ONE = {0b01011, 0b01000, *_FROM_INTEGER, 0b11000, 0b11100}  # fsqrt, fcvt.s.d, and those to x: rs2 says which


@lru_cache(maxsize=1 << 16)
def sources(word: int, xlen: int) -> frozenset[int]:
    """Return the registers an instruction reads, x and f, without x0; for unknown extensions: rs1 and rs2."""
    found = _sources16(word & 0xFFFF, xlen) if word & 3 != 3 else _sources32(word)
    return frozenset(found) - {GPR}


def _sources32(word: int) -> set[int]:
    opcode, rs1, rs2 = word & 0x7F, GPR + (word >> 15 & 31), GPR + (word >> 20 & 31)
    f1, f2 = rs1 - GPR + FPR, rs2 - GPR + FPR
    if opcode in _NOTHING:
        return set()
    if opcode in (_LOAD, _LOAD_FP) or opcode in _IMMEDIATE:
        return {rs1}
    if opcode == _STORE_FP:
        return {rs1, f2}
    if opcode in _FUSED:
        return {f1, f2, FPR + (word >> 27)}
    if opcode == _OP_FP:
        funct5 = word >> 27
        return {rs1 if funct5 in _FROM_INTEGER else f1} | (set() if funct5 in _OF_ONE else {f2})
    if opcode == _SYSTEM and word >> 12 & 7 != _HYPERVISOR:
        return {rs1} if word >> 12 & 7 in (1, 2, 3) else set()
    return {rs1, rs2}


def _sources16(half: int, xlen: int) -> set[int]:
    """Return the registers of a compressed instruction, by quadrant and funct3."""
    quadrant, funct3 = half & 3, half >> 13
    rd, rs2, rs1_, rs2_ = (  # rs1' and rs2' are three bits wide
        GPR + number for number in (half >> 7 & 31, half >> 2 & 31, (half >> 7 & 7) + 8, (half >> 2 & 7) + 8)
    )
    if quadrant == 0:
        return _sources_of_quadrant_0(funct3, rs1_, rs2_, xlen)
    if quadrant == 1:
        if funct3 == 4:
            return {rs1_, rs2_} if half >> 10 & 3 == 3 else {rs1_}
        if funct3 >= 6:
            return {rs1_}
        reads = funct3 == 0 or (funct3 == 1 and xlen == 64) or (funct3 == 3 and rd == GPR + 2)
        return {rd} if reads else set()
    if funct3 == 0:
        return {rd}
    if funct3 < 4:
        return {GPR + 2}
    if funct3 > 4:
        return {GPR + 2, rs2 - GPR + FPR if _stores_floating(funct3, xlen) else rs2}
    if rs2 == GPR:
        return {rd}
    return {rd, rs2} if half >> 12 & 1 else {rs2}


def _sources_of_quadrant_0(funct3: int, rs1: int, rs2: int, xlen: int) -> set[int]:
    if funct3 == 0:
        return {GPR + 2}
    if funct3 < 4:
        return {rs1}
    return {rs1, rs2 - GPR + FPR if _stores_floating(funct3, xlen) else rs2}


def _stores_floating(funct3: int, xlen: int) -> bool:
    return funct3 == 5 or (funct3 == 7 and xlen == 32)


MEMORY = "loads of memory nobody stored to"
CODE, DEVICE, FAILED = "instructions the model has no memory for", "accesses to devices", "sc that failed"
_PAGE, _MACHINE_MODE = 12, 3
_FETCH, _DATA = (1, 12, 20), (5, 7)
_ATOMIC, _SC = 0x2F, 0b00011
_FLOATING_LOADS = 0x07


class ModelInputs:
    """Gives the model its inputs. *devices*: (address, bytes) that are devices, whatever the model has there."""

    def __init__(
        self,
        tandem: DecodedTandem,
        model: Model,
        cache: ModelState,
        counts: VerifyCounts,
        devices: Sequence[tuple[int, int]],
        program: Image | None,
    ) -> None:
        self._tandem, self._model, self._cache, self._counts = tandem, model, cache, counts
        self._index, self._xlen = tandem.index, tandem.trace.parameters.xlen
        self._devices = [range(start, start + size) for start, size in devices]
        self._program = program
        self._pages: dict[int, bool] = {}
        self.no_code: set[int] = set()
        """Pages of which the model has no code, by their numbers."""
        self._translated = TranslatedPages(tandem)

    def why_not(self, reported: GroupState, pc: int) -> str:
        """Return why the model must not execute the instruction of a group; "" if it may."""
        if reported.instr is None:
            return ""
        if pc >> _PAGE in self.no_code:
            return CODE
        word = reported.instr.word
        if word & 0x7F == _ATOMIC and word >> 27 == _SC and reported.registers.get(GPR + (word >> 7 & 31)):
            return FAILED
        address = reported.effective if reported.physical is None else reported.physical
        if address is None or (reported.physical is None and not self._is_untranslated(reported.group)):
            return ""
        return "" if self.is_memory(address) else DEVICE

    def _is_untranslated(self, group: int) -> bool:
        """Return whether addresses are physical; if the trace does not know, whether the model is in M-mode."""
        space = self._tandem.after(group - 1).space
        if space != UNKNOWN:
            return space == PHYSICAL
        return self._cache.get(PRIVILEGE) == _MACHINE_MODE and not (self._cache.get(csrs.MSTATUS) or 0) & csrs.MPRV

    def physical(self, group: int, address: int) -> int | None:
        """Return the physical address of a load or store of a group."""
        if self._is_untranslated(group):
            return address
        return self._translated.physical(group, address)

    def is_memory(self, address: int) -> bool:
        """Return whether the model has memory at a physical address, and it is not a device."""
        page = address >> _PAGE
        found = self._pages.get(page)
        if found is None:
            found = self._pages[page] = self._model.read_memory(address & ~7, 8) is not None
        return found and not (self._devices and any(address in device for device in self._devices))

    def has_page(self, address: int) -> bool:
        """Return whether `is_memory` knows about a physical address without asking the model."""
        return address >> _PAGE in self._pages

    def translation(self, group: int) -> int:
        """Return a number that changes whenever virtual addresses may have got other physical ones before *group*."""
        return self._translated.version(group)

    def was_refused(self, reported: GroupState, step: ModelStep) -> str:
        """Return why the model could not execute what the hart did, if that is not a divergence: a trap because it
        lacks memory.
        """
        if step.trap is None or step.trap.interrupt or reported.instr is None:
            return ""
        state = self._tandem.after(reported.group - 1)
        if step.trap.cause in _FETCH and step.instr is None:
            is_machine = state.privilege in (_MACHINE_MODE, None)
            place = step.pc if is_machine else state.physical_address(step.pc)
            if place is None or self._model.read_memory(place, 2) is not None:
                return ""
            self.no_code.add(step.pc >> _PAGE)
            return CODE
        if step.trap.cause in _DATA and reported.effective is not None:
            place = self.physical(reported.group, reported.effective)
            if place is not None and not self.is_memory(place):
                return DEVICE
        return ""

    def initial(self, address: int, size: int) -> bytes | None:
        """Return the program's bytes at a physical address before it runs."""
        for start, data in self._segments:
            if start <= address and address + size <= start + len(data):
                return data[address - start : address - start + size]
        return None

    @cached_property
    def _segments(self) -> list[tuple[int, bytes]]:
        return [] if self._program is None else self._program.segments

    def fill(self, reported: GroupState) -> None:
        """Write memory that a load reads, and that neither a store nor the program has written."""
        found = self.filling(reported)
        if found is not None:
            self._counts.copied[MEMORY] += self._model.write_memory(*found)

    def filling(self, reported: GroupState) -> tuple[int, bytes] | None:
        """Return what `fill` writes, and where; None: nothing."""
        assert reported.effective is not None
        if self.initial(reported.effective, 1) is not None:
            return None
        found = self.loaded(reported)
        if found is None or self._is_written(reported.group, reported.effective, found[0], len(found[1])):
            return None
        return found

    def has_loaded(self, group: int, address: int, size: int) -> bool:
        """Return whether memory has what a load of a group reads, so that `filling` is None."""
        if self.initial(address, 1) is not None:
            return True
        place = self.physical(group, address)
        return place is None or self._is_written(group, address, place, size)

    def _is_written(self, group: int, address: int, place: int, size: int) -> bool:
        """Return whether the program has the memory that a load of a group reads, or a store has written it.

        *address*: of the load; *place*: the physical one
        """
        if self.initial(place, 1) is not None:
            return True
        before = self._tandem.after(group - 1)
        in_page = address % (1 << _PAGE) + size <= 1 << _PAGE
        is_walked = in_page and before.space not in (PHYSICAL, UNKNOWN)
        where, space = (place, PHYSICAL) if is_walked else (address, None)  # the page tables are walked once
        return None not in before.memory(where, size, space=space)

    def loaded(self, reported: GroupState) -> tuple[int, bytes] | None:
        """Return the bytes that a load has read, and their physical address; None: it is not a load,
        or this is unknown.
        """
        if reported.effective is None or reported.instr is None or not is_load(reported.instr.word, self._xlen):
            return None
        word = reported.instr.word
        found, values = reach(word, self._xlen), list(self._reported_destination(reported, word).values())
        place = self.physical(reported.group, reported.effective)
        if found is None or not found.size or not values or place is None:
            return None
        return place, (values[0] & (1 << 8 * found.size) - 1).to_bytes(found.size, "little")

    def prepare(self, reported: GroupState, trap: TrapEffect | None) -> int | None:
        """Make the model take the interrupt that was taken, or none, with bits of mip for one step.
        Return mip before.
        """
        mip = self._cache.get(csrs.MIP)
        if trap is not None and trap.interrupt:
            asked = (self._cache.get(csrs.MIE) or 0) if trap.cause == UNKNOWN_CAUSE else 1 << trap.cause
            self._counts.copied["interrupts"] += 1
            self._cache.pend(asked)
            return mip or 0
        if mip and mip & (self._cache.get(csrs.MIE) or 0):
            self._cache.pend(0)
            return mip
        return None

    def instead(self, reported: GroupState, why: str, pc: int) -> ModelStep:
        """Return the model's step as far as it does not depend on what the model lacks."""
        assert reported.instr is not None
        self._counts.copied[why] += 1
        word = reported.instr.word
        if why == CODE:
            return self._as_reported(reported, pc)
        following = pc + reported.instr.length & (1 << self._xlen) - 1
        place = addressed(word, self._xlen)
        if place is None:
            return self._as_reported(reported, pc)._replace(next_pc=following)
        return ModelStep(
            pc, word, following, self._reported_destination(reported, word), self._model_stores(reported, why)
        )

    def _as_reported(self, reported: GroupState, pc: int) -> ModelStep:
        assert reported.instr is not None
        registers = {regno: value for regno, value in reported.registers.items() if value is not None}
        next_pc = self._index.pcs[reported.group]
        done = tuple(
            ModelStore(store.address, store.value.to_bytes(store.size, "little"))
            for _, store in self._tandem.stored(reported.group)
            if store.value is not None
        )
        return ModelStep(pc, reported.instr.word, pc if next_pc == NOWHERE else next_pc, registers, done)

    def _reported_destination(self, reported: GroupState, word: int) -> dict[int, int]:
        """Return the destination, with the reported value."""
        if not is_load(word, self._xlen):
            is_sc = word & 0x7F == _ATOMIC
            candidates = {GPR + (word >> 7 & 31)} if is_sc else set()
        elif word & 3 == 3:
            first = GPR + 32 if word & 0x7F == _FLOATING_LOADS else GPR
            candidates = {first + (word >> 7 & 31)}
        else:
            candidates = {regno for regno in reported.registers if GPR < regno < FPR_END}
        found = {regno: reported.registers.get(regno) for regno in candidates}
        return {regno: value for regno, value in found.items() if value is not None}

    def _model_stores(self, reported: GroupState, why: str) -> tuple[ModelStore, ...]:
        """Return the bytes that a store writes: the model's register, at the model's address."""
        assert reported.instr is not None
        place = addressed(reported.instr.word, self._xlen)
        if why == FAILED or place is None:
            return ()
        stores = [store for _, store in self._tandem.stored(reported.group)]
        if place.data < 0:  # an AMO: the device's answer decides
            return tuple(
                ModelStore(s.address, s.value.to_bytes(s.size, "little")) for s in stores if s.value is not None
            )
        base, value = self._cache.get(place.base) if place.base != GPR else 0, self._model_register(place.data)
        if base is None or value is None or not stores:
            return ()
        size = stores[0].size
        address = base + place.offset & (1 << self._xlen) - 1
        return (ModelStore(address, (value & (1 << 8 * size) - 1).to_bytes(size, "little")),)

    def _model_register(self, regno: int) -> int | None:
        return 0 if regno == GPR else self._cache.get(regno)

    def address(self, reported: GroupState) -> int | None:
        """Return the effective address of the model's load or store; None: unknown."""
        place = None if reported.instr is None else addressed(reported.instr.word, self._xlen)
        if place is None:
            return None
        base = self._model_register(place.base)
        return None if base is None else base + place.offset & (1 << self._xlen) - 1


_OPCODE_FP, _FUSED_OPCODES = 0x53, range(0x43, 0x50, 4)
_TRAPPING = (0x105, 0x302, csrs.MIDELEG, 0x305, csrs.MSTATUS, csrs.MIE)
_RETURNING = (csrs.MSTATUS, csrs.MEPC, 0x141)
_SUPERVISOR, _MACHINE = 1, 3
_VECTORS = {_SUPERVISOR: 0x105, _MACHINE: 0x305}
_MEDELEG = 0x302
_FS = 0x6000


class UnknownState:
    """The unknown values. *lost*: CSRs and memory are also unknown."""

    def __init__(self, tandem: DecodedTandem, cache: ModelState) -> None:
        self._tandem, self._cache = tandem, cache
        self._columns = tandem.index.registers.columns
        self._xlen = tandem.trace.parameters.xlen
        self._registers: set[int] = set()
        self.lost = False
        self._partial = tandem.trace.parameters.dialect.partial

    def begin(self, *, lost: bool) -> None:
        """Note that no register is known. *lost*: nor is anything else."""
        self._registers = set(range(GPR + 1, FPR_END))
        self.lost = lost
        if lost:  # floating point may be enabled, and an instruction that needs it does not report that
            self._presume(csrs.MSTATUS, _FS, _FS)

    def set_known(self, group: int) -> None:
        """Note that the model got what is known after a group."""
        state = self._tandem.after(group)
        self._registers = {regno for regno in self._registers if state.register(regno) is None}

    def update(self, reported: GroupState) -> None:
        """Note what is known after a group because it reports it."""
        if self._registers:
            self._registers.difference_update(reported.registers)
        if self._partial:
            self._registers.update(regno for regno, value in reported.registers.items() if value is None)

    def know(self, registers: Iterable[int]) -> None:
        """Note that the values of registers are known, x and f."""
        self._registers.difference_update(registers)

    def presume(self, reported: GroupState, trap: TrapEffect) -> None:
        """Before a trap after a loss, give the model the state that leads to the trap, if the trace
        does not report it.
        """
        before, after = self._tandem.after(reported.group - 1), self._tandem.after(reported.group)
        mode = _MACHINE if after.privilege is None else after.privilege
        handler, status = self._tandem.index.pcs[reported.group], after.register(csrs.MSTATUS)
        delegated = mode == _SUPERVISOR
        presumed: list[tuple[int, int, int]] = []
        if trap.cause != UNKNOWN_CAUSE:
            bit = 1 << trap.cause
            presumed.append((csrs.MIDELEG if trap.interrupt else _MEDELEG, bit, bit if delegated else 0))
            if trap.interrupt:
                presumed += [(csrs.MIE, bit, bit), (csrs.MSTATUS, 1 << mode, 1 << mode)]
            if mode in _VECTORS and handler != NOWHERE:
                presumed.append((_VECTORS[mode], (1 << self._xlen) - 1, handler & ~3))
        for regno, bits, value in presumed:
            if before.register(regno) is None:
                self._presume(regno, bits, value)
        if before.privilege is None and status is not None:
            self._cache.set(PRIVILEGE, status >> 8 & 1 if delegated else status >> 11 & 3)

    def _presume(self, regno: int, bits: int, value: int) -> None:
        """Set these bits of a CSR of the model."""
        found = self._cache.get(regno)
        if found is not None and found & bits != value:
            self._cache.set(regno, found & ~bits | value)

    def about(self, reported: GroupState, trap: TrapEffect | None) -> bool:
        """Return whether the effects of a group depend on an unknown value."""
        word = 0 if reported.instr is None else reported.instr.word
        if self._registers and word and not self._registers.isdisjoint(sources(word, self._xlen)):
            return True
        if not (self.lost or self._partial):
            return False
        return self._is_lost(reported, trap, self._tandem.after(reported.group - 1), word)

    def _is_lost(self, reported: GroupState, trap: TrapEffect | None, state: TandemState, word: int) -> bool:
        needed = self._needed(word, trap)
        if any(state.register(regno) is None for regno in needed):
            return True
        address = reported.effective if reported.effective is not None else reported.physical
        if address is None or not word or not is_load(word, self._xlen):
            return False
        found = reach(word, self._xlen)
        size = found.size if found is not None and found.size else 1
        return None in state.memory(address, size, loads=True)

    def _needed(self, word: int, trap: TrapEffect | None) -> list[int]:
        """Return the CSRs that decide what an instruction, or a trap, does, mostly those that the
        trace reports at all.
        """
        if trap is not None:
            return [regno for regno in _TRAPPING if regno in self._columns]
        if word in csrs.XRETS:
            return [regno for regno in _RETURNING if regno in self._columns]
        if word & 0x7F == _OPCODE_FP or word & 0x7F in _FUSED_OPCODES:
            return [csrs.FCSR]
        found = reach(word, self._xlen) if word else None
        return [found.number] if found is not None and found.kind == CSR else []
