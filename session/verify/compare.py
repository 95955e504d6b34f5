"""Compares one group of the trace with one step of the model.

`GroupState` contains what the group reports, in the form that is compared. Both directions are compared, as chapter 3.1
of the Trace Protocol Specification demands: the model must have what the group reports, and the model must not have
changed anything that the group does not report, except for what the trace never reports.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.program.csrs import PRIVILEGE
from rvtrace_gdb.decode.program.instructions import CSR, LOAD, reach
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem
from rvtrace_gdb.decode.tandem.effects import destinations
from rvtrace_gdb.decode.tandem.memory import Store
from rvtrace_gdb.decode.tandem.protocol import (
    FPR,
    FPR_END,
    GPR,
    STORE_DATA,
    AdditionalState,
    Element,
    FullRegister,
    HartReset,
    IncrementalRegister,
    IncrementalRegisterOr,
    IncrementPc,
    Instr,
    MemoryRequest,
    StateId,
    StateInitialization,
)
from rvtrace_gdb.decode.tandem.registers import PHYSICAL, Column, RegisterWrite
from rvtrace_gdb.session.verify.masks import ADDRESSES, ALL, STORES, TRAP_STATUS, Masks, inputs
from rvtrace_gdb.session.verify.model import (
    Difference,
    DifferenceKind,
    ExpectedStep,
    ModelState,
    ModelStep,
    ModelStore,
    VerifyCounts,
)

_STATES = {StateId.PRIVILEGE_MODE: csrs.PRIVILEGE, StateId.MTIME: csrs.MTIME}
_STORED = frozenset(STORE_DATA)


class GroupState:
    """The state that group number *group* reports.

    instr       its instruction
    registers   its registers by number, including PRIVILEGE and MTIME; None: a change of an unknown value
    pc          it reports a pc (`Index.pcs` has where the hart continues)
    effective, physical   the first address of each kind
    stores      it has store data or memory requests; *requests*: those
    reset, initializes    it has such an element
    """

    __slots__ = (
        "effective", "group", "initializes", "instr", "pc", "physical", "registers", "requests", "reset", "stores",
    )  # fmt: skip

    def __init__(self, group: int, elements: Sequence[Element], tandem: DecodedTandem, pc_register: int) -> None:
        self.group = group
        self.instr: Instr | None = None
        self.registers: dict[int, int | None] = {}
        self.effective: int | None = None
        self.physical: int | None = None
        self.pc = self.stores = self.requests = self.reset = self.initializes = False
        for element in elements:
            kind = type(element)
            if isinstance(element, FullRegister):
                if element.regno == pc_register:
                    self.pc = True
                elif element.regno != GPR:
                    self.registers[element.regno] = element.value
            elif isinstance(element, AdditionalState):
                self._note_state(element)
            elif isinstance(element, Instr):
                self.instr = element
            elif isinstance(element, IncrementalRegister | IncrementalRegisterOr):
                written = tandem.index.registers.columns[element.regno].last(group)
                self.registers[element.regno] = None if written is None else written.value
            elif kind is MemoryRequest:
                self.stores = self.requests = True
            elif kind is IncrementPc:
                self.pc = True
            elif kind is HartReset:
                self.reset = True
            elif kind is StateInitialization:
                self.initializes = True
        parameters = tandem.trace.parameters
        if parameters.dialect.partial and self.instr is not None and not self._traps(self.instr.word):
            for regno in destinations(parameters.xlen)[self.instr.word]:
                self.registers.setdefault(regno, None)

    def _traps(self, word: int) -> bool:
        """Return whether the instruction of a group of what is known trapped."""
        return csrs.PRIVILEGE in self.registers and word not in csrs.XRETS

    def _note_state(self, element: AdditionalState) -> None:
        identifier, value = element.identifier, element.value
        if identifier == StateId.PC:
            self.pc = True
        elif identifier == StateId.EFFECTIVE_ADDRESS:
            self.effective = value if self.effective is None else self.effective
        elif identifier == StateId.PHYSICAL_ADDRESS:
            self.physical = value if self.physical is None else self.physical
        elif identifier in _STORED:
            self.stores = True
        elif identifier in _STATES:
            self.registers[_STATES[StateId(identifier)]] = value


_DIRTY = csrs.FS_DIRTY << csrs.FS_SHIFT
_CHOSEN = 3 << 13 | 3 << 9 | 3 << 15 | 15 << 32 | 1 << 31 | 1 << 63
"""The bits of mstatus that implementations choose after a reset: FS, VS, XS, UXL, SXL, SD."""


class ComparisonResult(NamedTuple):
    """*differences*, and the values to *set* in the model's registers to make them those of the trace."""

    differences: list[Difference]
    set: dict[int, int]


class GroupComparison:
    """Compares groups with steps. *held*: bits of mip that were taken from the model for this step, and may differ."""

    def __init__(self, tandem: DecodedTandem, cache: ModelState, masks: Masks, counts: VerifyCounts) -> None:
        self._tandem, self._cache, self._masks, self._counts = tandem, cache, masks, counts
        self._columns = tandem.index.registers.columns
        self._xlen = tandem.trace.parameters.xlen
        self._sign = 1 << self._xlen - 1
        self.held = 0
        self._reset = -1

    def begin(self, group: int) -> None:
        """Note that *group* reset the hart: the implementation chooses the values of CSRs."""
        self._reset = group

    def registers(self, reported: GroupState, step: ModelStep) -> ComparisonResult:
        """Compare registers and the privilege mode."""
        changes = self._cache.wholes(step.registers)
        expected = self._expected(reported)
        result = ComparisonResult([], {})
        for regno in sorted(expected.keys() | changes.keys()):
            if inputs(regno) != ALL:
                self._compare_register(reported, regno, expected.get(regno), changes.get(regno), result)
        return result

    def _expected(self, reported: GroupState) -> dict[int, tuple[int, int] | None]:
        """Return the reported (value, bits) by number, with views merged into their whole; None: changed to an unknown
        value.
        """
        expected: dict[int, tuple[int, int] | None] = {}
        for regno, value in reported.registers.items():
            part = self._cache.part(regno)
            if value is None:
                expected[regno if part is None else part.register] = None
            elif part is None:
                expected[regno] = value, ALL
            else:
                mask = self._cache.bits(part)
                old, bits = expected.get(part.register) or (0, 0)
                expected[part.register] = old & ~mask | value << part.shift & mask, bits | mask
        if PRIVILEGE not in expected:
            written = self.mode_written(reported.group)
            if written is not None and written.value is not None:
                expected[PRIVILEGE] = written.value, ALL
        return expected

    def mode_written(self, group: int) -> RegisterWrite | None:
        """Return the privilege mode after a trap or return, reported or not; its value is None if it is unknown."""
        written = self._columns[PRIVILEGE].last(group) if PRIVILEGE in self._columns else None
        return None if written is None or written.group != group else written

    def _compare_register(
        self,
        reported: GroupState,
        regno: int,
        expected: tuple[int, int] | None,
        change: int | None,
        result: ComparisonResult,
    ) -> None:
        was = self._cache.values.get(regno)
        new = self._cache.get(regno) if change is None else change
        is_reported = expected is not None
        if expected is None:
            if new == was or self._is_unreported(reported, regno, was, new):
                return
            expected = (0, 0) if was is None else (was, ALL)
        else:
            self._count_register(regno)
        if new is None:
            self._missing(regno, expected[0], result)
            return
        value, bits = expected
        bits = bits if was is None else ALL
        value = value if was is None else value & expected[1] | was & ~expected[1]
        different = (new ^ value) & bits if bits else ALL
        if different and is_reported and was is not None and self._is_first(reported, regno):
            different ^= self._carried(regno, different & ~(new ^ was), new, result)
        soft = self._masks.soft(regno) | self._soft_read(reported, regno) | (self.held if regno == csrs.MIP else 0)
        if different & ~soft:
            trace = value if is_reported else None
            result.differences.append(Difference(_kind_of(regno), regno, was, trace, new, different & ~soft))
            if bits:
                result.set[regno] = value & bits | new & ~bits
        elif different:
            self._tolerated(reported, regno, value, result)

    def _carried(self, regno: int, unchanged: int, new: int, result: ComparisonResult) -> int:
        """Return which of the bits that did not change are those that a CSR has after a reset in the trace, and note
        that the model takes them. *new*: what the model has.
        """
        carried = unchanged & (_CHOSEN if regno == csrs.MSTATUS else ALL)
        if carried:
            self._counts.copied["what CSRs hold after a reset"] += 1
            result.set[regno] = new ^ carried
        return carried

    def _is_first(self, reported: GroupState, regno: int) -> bool:
        """Return whether a CSR is reported for the first time since a reset, as a change of some of its bits."""
        if regno >= GPR:
            return False
        word = 0 if reported.instr is None else reported.instr.word
        trapped = any(other in csrs.TRAP_OF_CAUSE for other in reported.registers)
        writes_all = not trapped and word & 0x7F == 0x73 and word >> 12 & 3 == 1
        before = [column.last(reported.group - 1) for column in self._family(regno)]
        first = all(written is None or written.group < self._reset for written in before)
        return first and not writes_all and (regno == csrs.MSTATUS or word >> 20 == regno)

    def _tolerated(self, reported: GroupState, regno: int, value: int, result: ComparisonResult) -> None:
        """Handle a difference that is tolerated: masked, or non-deterministic."""
        if GPR <= regno < FPR_END and not self._masks.soft(regno):
            result.set[regno] = value
            self._counts.copied["what CSR instructions read"] += 1
        elif self._masks.ignored.get(regno):
            self._counts.masked += 1

    def _missing(self, regno: int, value: int, result: ComparisonResult) -> None:
        if not self._masks.soft(regno):
            note = "the model does not have this register"
            result.differences.append(Difference(DifferenceKind.CSR, regno, None, value, None, ALL, note=note))

    def count(self, numbers: Iterable[int]) -> None:
        """Count registers that were compared, and were the same."""
        for regno in numbers:
            self._count_register(regno)

    def agreed(self, done: Sequence[ExpectedStep], csr_count: int) -> None:
        """Count groups that were compared and had no difference; they report so many CSRs, which kept their values."""
        self._counts.registers += sum(len(step.registers) for step in done)
        self._counts.csrs += csr_count
        if STORES not in self._masks.absent:
            self._counts.stores += sum(step.store is not None for step in done)
        self.held = 0

    def _count_register(self, regno: int) -> None:
        if regno >= GPR:
            self._counts.registers += 1
        else:
            self._counts.csrs += 1

    def _is_unreported(self, reported: GroupState, regno: int, was: int | None, new: int | None) -> bool:
        """Return whether the model may change a register that the group does not report."""
        if regno == PRIVILEGE:
            accepted = PRIVILEGE not in self._columns or self.mode_written(reported.group) is not None
        elif regno == csrs.MSTATUS and self._is_status_unreported(reported, was, new):
            accepted = True
        else:
            word = 0 if reported.instr is None else reported.instr.word
            named = word & 0x7F == 0x73 and word >> 12 & 3 and word >> 20 == regno
            accepted = regno < GPR and not named and not any(len(column.groups) for column in self._family(regno))
        self._counts.unreported += accepted
        incremented = regno in reported.registers and reported.registers[regno] is None  # from an unknown value
        return accepted or incremented

    def _is_status_unreported(self, reported: GroupState, was: int | None, new: int | None) -> bool:
        """Return whether it is mstatus after a trap or return, if the trace never reports it; or its FS, Dirty after a
        floating-point instruction.
        """
        trapped = reported.instr is None or any(regno in csrs.TRAP_OF_CAUSE for regno in reported.registers)
        returned = reported.instr is not None and reported.instr.word in csrs.XRETS
        if (trapped or returned) and TRAP_STATUS in self._masks.absent:
            return True
        if was is None or new is None:
            return False
        if (was ^ new) & ~(_DIRTY | self._sign) or new & _DIRTY != _DIRTY:
            return False
        return any(FPR <= regno < FPR_END or regno in csrs.FLOATING for regno in reported.registers)

    def _family(self, regno: int) -> list[Column]:
        """Return the reported values of a register and of its views."""
        return [self._columns[other] for other in (regno, *_VIEWS.get(regno, ())) if other in self._columns]

    def _soft_read(self, reported: GroupState, regno: int) -> int:
        """Return the bits of a CSR instruction's destination in which the value that it reads may differ."""
        if not GPR <= regno < FPR or reported.instr is None or reported.instr.word & 0x7F != 0x73:
            return 0
        found = reach(reported.instr.word, self._xlen)
        if found is None or found.kind != CSR:
            return 0
        part = self._cache.part(found.number)
        whole = found.number if part is None else part.register
        soft = self._masks.soft(whole) | (self.held if whole == csrs.MIP else 0)
        own = self._masks.soft(found.number)
        return soft if part is None else (soft & self._cache.bits(part)) >> part.shift | own

    def stores(self, reported: GroupState, step: ModelStep) -> list[Difference]:
        """Compare the stores and their addresses."""
        if STORES in self._masks.absent:
            return []
        entries = self._tandem.stored(reported.group) if reported.stores or step.stores else []
        if ADDRESSES in self._masks.absent and not entries:
            return []
        self._counts.stores += len(entries)
        if not entries:
            return [
                Difference(
                    DifferenceKind.STORE, done.address, model=int.from_bytes(done.data, "little"), size=len(done.data)
                )
                for done in step.stores
            ]
        found: list[Difference] = []
        for space in sorted({space for space, _ in entries}):
            stores = [store for of, store in entries if of == space]
            found += self._in_space(reported, stores, step.stores, physical=space == PHYSICAL)
        return found

    def _in_space(
        self, reported: GroupState, stores: list[Store], done: tuple[ModelStore, ...], *, physical: bool
    ) -> Iterable[Difference]:
        if len(stores) == len(done) == 1 and stores[0].size == len(done[0].data):
            return self._one(stores[0], done[0], physical=physical)
        expected = {at: byte for store in stores for at, byte in _bytes_of(store)}
        written = {
            _store_address(one, physical=physical) + at: byte for one in done for at, byte in enumerate(one.data)
        }
        return list(_byte_differences(expected, written, bus=reported.requests))

    def _one(self, store: Store, done: ModelStore, *, physical: bool) -> Iterable[Difference]:
        """Compare the usual case: one store on either side."""
        place = _store_address(done, physical=physical)
        written = int.from_bytes(done.data, "little")
        if place != store.address:
            yield Difference(DifferenceKind.ADDRESS, store.address, None, store.address, place, size=store.size)
        if store.value is not None and store.value != written:
            yield Difference(DifferenceKind.STORE, store.address, None, store.value, written, size=store.size)


_VIEWS = {
    csrs.MSTATUS: (csrs.SSTATUS,), csrs.MIE: (csrs.SIE,), csrs.MIP: (csrs.SIP,), csrs.FCSR: (csrs.FFLAGS, csrs.FRM),
}  # fmt: skip


def is_load(word: int, xlen: int) -> bool:
    """Return whether an instruction reads memory."""
    found = reach(word, xlen)
    return found is not None and (found.kind == LOAD or word & 0x7F == 0x2F)


def _store_address(stored: ModelStore, *, physical: bool) -> int:
    return stored.physical if physical and stored.physical is not None else stored.address


def _bytes_of(store: Store) -> list[tuple[int, int | None]]:
    data = None if store.value is None else store.value.to_bytes(store.size, "little")
    return [(store.address + at, None if data is None else data[at]) for at in range(store.size)]


def _byte_differences(
    expected: Mapping[int, int | None], written: Mapping[int, int], *, bus: bool
) -> Iterable[Difference]:
    """Compare bytes. *bus*: the trace has transactions on the bus, which may write more than the instruction does."""
    for address in sorted(expected.keys() | written.keys()):
        want, has = expected.get(address), written.get(address)
        if address in expected and address in written:
            if want is None or want == has:
                continue
        elif bus and address in expected:
            continue
        yield Difference(DifferenceKind.STORE, address, None, want, has, size=1)


def _kind_of(regno: int) -> DifferenceKind:
    """Return the kind of a difference in a register."""
    if regno == PRIVILEGE:
        return DifferenceKind.PRIVILEGE
    return DifferenceKind.REGISTER if regno >= GPR else DifferenceKind.CSR
