"""What each group of a tandem trace did, as facts: for the listing, for JSON, and for other forms of the trace.

The text of an instruction is that of the trace, which need not be the one in the program at its address (`GroupTexts`).
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.history.event_wording import fact_text
from rvtrace_gdb.decode.history.positions import history_number_if_known
from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import CodeMissing
from rvtrace_gdb.decode.program.instructions import MemoryAccess, UndecodableInstruction, reach
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, TandemAccesses
from rvtrace_gdb.decode.tandem.effects import NOWHERE, TrapEffect, destinations
from rvtrace_gdb.decode.tandem.group_grammar import GroupProblem
from rvtrace_gdb.decode.tandem.index import Break
from rvtrace_gdb.decode.tandem.memory import Store
from rvtrace_gdb.decode.tandem.protocol import (
    SUCCESS,
    AdditionalState,
    Element,
    FullRegister,
    IncrementalRegister,
    IncrementalRegisterOr,
    Instr,
    MemoryOp,
    MemoryRequest,
    MemoryResponse,
    StateId,
)
from rvtrace_gdb.decode.tandem.registers import PHYSICAL
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.views.disassembly import Disassemblers, Images, code_texts, is_whole
from rvtrace_gdb.views.instruction_text import InstructionText
from rvtrace_gdb.views.tandem.placeholders import Placeholder

_REMEMBERED = 1 << 16
_REGISTERS = FullRegister | IncrementalRegister | IncrementalRegisterOr
_STATES = {StateId.PRIVILEGE_MODE: csrs.PRIVILEGE, StateId.MTIME: csrs.MTIME}


class GroupChange(NamedTuple):
    """A register that a group reports, by number; None: not known, before it or at all."""

    regno: int
    old: int | None
    new: int | None


class Row(NamedTuple):
    """One group. Numbers count from 1, as people see them.

    position   in the history, None if nothing retired, or its position is not known
    offset     of its first byte
    mode       the privilege mode before it
    pc         of its instruction, or where an interrupt hit
    sets_pc    the address it puts into the pc, if it has no instruction and takes no trap
    stored     what it stored, if its access does not have that: the address space, and the store
    bus        its memory requests and responses, except those that stored something: that is in *stored*
    lost       what is missing directly before it
    """

    number: int
    position: int | None
    offset: int
    mode: int | None
    pc: int | None
    sets_pc: int | None
    instr: Instr | None
    changes: tuple[GroupChange, ...]
    access: MemoryAccess | None
    stored: tuple[tuple[int, Store], ...]
    bus: tuple[Element, ...]
    trap: TrapEffect | None
    is_reset: bool
    initializes: bool
    loose: bool
    flaws: tuple[GroupProblem, ...]
    lost: tuple[Break, ...]

    @property
    def context(self) -> ProgramContext:
        """The context that determines the program."""
        return ProgramContext(self.mode)


class _AccessCache(dict[int, bool]):
    """Whether an instruction accesses anything, by its word."""

    def __init__(self, xlen: int) -> None:
        super().__init__()
        self._xlen = xlen

    def __missing__(self, word: int) -> bool:
        if len(self) >= _REMEMBERED:
            self.clear()
        try:
            found = reach(word, self._xlen) is not None
        except UndecodableInstruction:
            found = False
        self[word] = found
        return found


class Groups:
    """The groups of a decoded trace. The register that *dialect* uses for the pc does not count as a register."""

    def __init__(self, tandem: DecodedTandem) -> None:
        self.tandem, self.trace, self.index = tandem, tandem.trace, tandem.index
        self.parameters = tandem.trace.parameters
        accesses = tandem.history.accesses
        self._accesses = accesses if isinstance(accesses, TandemAccesses) else None
        self._resets, self._initializations = frozenset(self.index.resets), frozenset(self.index.initializations)
        self._traps = {trap.group: trap for trap in self.index.traps}
        self._reach = _AccessCache(self.parameters.xlen)

    def __len__(self) -> int:
        return len(self.trace)

    @cached_property
    def _flaws(self) -> dict[int, list[GroupProblem]]:
        found: dict[int, list[GroupProblem]] = {}
        for flaw in self.trace.flaws():
            found.setdefault(flaw.group, []).append(flaw.problem)
        return found

    @cached_property
    def breaks(self) -> dict[int, list[Break]]:
        """What is missing, by the group after it; by the number of groups: at the end."""
        found: dict[int, list[Break]] = {}
        for mark in self.index.breaks:
            found.setdefault(mark.group, []).append(mark)
        return found

    def rows(self, groups: Iterable[int]) -> Iterator[Row]:
        """Yield groups by number, counted from 0."""
        return map(self.row, groups)

    def position(self, group: int) -> int | None:
        """Return the position of the instruction of a group in the history."""
        if not self.index.retired[group] or self.origin(group) is None:
            return None
        tandem = self.tandem
        found = tandem.position_of(group)
        while tandem.group_of(found + 1) == group:  # a gap is before it
            found += 1
        return found

    def access(self, group: int) -> MemoryAccess | None:
        """Return the access of the instruction of a group."""
        return self._access_at(self.position(group))

    def _access_at(self, position: int | None) -> MemoryAccess | None:
        return None if position is None or self._accesses is None else self._accesses.access_at(position)

    def origin(self, group: int) -> int | None:
        """Return the address of the instruction of a group."""
        found = self.index.origin(group)
        return None if found == NOWHERE else found

    def row(self, group: int) -> Row:
        """Return group *group*, counted from 0."""
        trace = self.trace
        elements, position, trap = trace.elements(group), self.position(group), self._traps.get(group)
        instr = next((element for element in elements if isinstance(element, Instr)), None)
        pc = self.origin(group)
        if trap is not None and (pc is None or trap.interrupt) and trap.epc is not None:
            pc = trap.epc
        access = None if instr is None or not self._reach[instr.word] else self._access_at(position)
        return Row(
            number=group + 1,
            position=history_number_if_known(position),
            offset=trace.offsets[group],
            mode=self.before(csrs.PRIVILEGE, group),
            pc=pc,
            sets_pc=None if instr is not None or trap is not None else _told_pc(elements),
            instr=instr,
            changes=tuple(self._changes(group, elements)),
            access=access,
            stored=tuple(self._other_stores(group, access)),
            bus=tuple(_transactions(elements)),
            trap=trap,
            is_reset=group in self._resets,
            initializes=group in self._initializations,
            loose=trace.shape(group).loose,
            flaws=tuple(self._flaws.get(group, ())),
            lost=tuple(self.breaks.get(group, ())),
        )

    def _changes(self, group: int, elements: Sequence[Element]) -> Iterator[GroupChange]:
        seen: set[int] = set()
        for element in elements:
            regno = _register_number(element)
            if regno is not None and regno != self.parameters.dialect.pc_register and regno not in seen:
                seen.add(regno)
                yield GroupChange(regno, self.before(regno, group), self.index.registers.value(regno, group))
        instr = next((element for element in elements if isinstance(element, Instr)), None)
        if self.parameters.dialect.partial and instr is not None and self.index.retired[group]:
            for regno in sorted(destinations(self.parameters.xlen)[instr.word] - seen):
                yield GroupChange(regno, self.before(regno, group), None)

    def before(self, regno: int, group: int) -> int | None:
        """Return what a register held before a group. After a loss nothing is known."""
        registers = self.index.registers
        return registers.value(regno, group - 1) if group and registers.is_current(group - 1, group) else None

    def _other_stores(self, group: int, access: MemoryAccess | None) -> Iterator[tuple[int, Store]]:
        """Yield the stores that are not in the access anyhow."""
        for space, writes in self.index.memory.items():
            for store in writes.stores_of(group):
                said = access is not None and access.kind == "store"
                if access is None or not said or (store.address, store.value) != (access.address, access.value):
                    yield space, store


def _told_pc(elements: Sequence[Element]) -> int | None:
    told = (e.value for e in elements if isinstance(e, AdditionalState) and e.identifier == StateId.PC)
    return next(told, None)


def _transactions(elements: Sequence[Element]) -> Iterator[Element]:
    for before, element in pairwise([None, *elements]):
        asked = before if isinstance(element, MemoryResponse) else element
        if isinstance(asked, MemoryRequest) and asked.op == MemoryOp.STORE:
            failed = isinstance(element, MemoryResponse) and element.result != SUCCESS
            if not failed:
                continue
        if isinstance(element, MemoryRequest | MemoryResponse):
            yield element


def _register_number(element: Element) -> int | None:
    """Return the number of the register, or of the state with a number of its own, that an element is about."""
    if isinstance(element, _REGISTERS):
        return element.regno
    if isinstance(element, AdditionalState) and element.identifier in _STATES:
        return _STATES[StateId(element.identifier)]
    return None


def trap_words(trap: TrapEffect) -> str:
    """Return which trap it was; its value is among what it wrote."""
    return fact_text(trap.fact._replace(value=None))


def is_physical(space: int) -> bool:
    """Return whether addresses of a space are physical ones."""
    return space == PHYSICAL


_TEXTS_REMEMBERED = 1 << 18


class GroupTexts:
    """The text of instructions of a trace. *source*: of the program; *images*: the same program."""

    def __init__(self, source: Disassemblers, images: Images, xlen: int) -> None:
        self._source, self._images, self._xlen = source, images, xlen
        self._texts: dict[tuple[int | None, int, Instr], InstructionText] = {}

    def symbol(self, address: int, context: ProgramContext) -> tuple[str, int] | None:
        """Return the name at an address, and the offset from it."""
        if isinstance(address, Placeholder):
            return address.symbol
        return self._images.image_of(context).symbol(address)

    def text_of(self, row: Row) -> InstructionText:
        """Return the text of the instruction of a group, which was learnt before."""
        if row.instr is None or row.pc is None:
            return InstructionText(None, "" if row.instr is None else _encoding(row.instr))
        return self._texts[row.mode, row.pc, row.instr]

    def learn(self, rows: Iterable[Row], progress: Progress = silent) -> None:
        """Find the text of the instructions of some groups."""
        if len(self._texts) > _TEXTS_REMEMBERED:
            self._texts.clear()
        others: dict[tuple[int | None, int, Instr], Row] = {}
        wanted: dict[int | None, dict[int, Instr]] = {}
        for row in rows:
            if row.instr is None or row.pc is None or (row.mode, row.pc, row.instr) in self._texts:
                continue
            if is_whole(_instruction_bytes(row.instr)) and self._is_there(row.pc, row.instr, row.context):
                wanted.setdefault(row.mode, {})[row.pc] = row.instr
            else:
                others[row.mode, row.pc, row.instr] = row
        for mode, instructions in wanted.items():
            texts = self._source.disassembler_of(ProgramContext(mode)).texts(instructions, progress)
            self._texts |= {(mode, pc, instr): texts[pc] for pc, instr in instructions.items()}
        self._learn_others(others)

    def _is_there(self, pc: int, instr: Instr, context: ProgramContext) -> bool:
        try:
            return self._images.image_of(context).read(pc, instr.length) == _instruction_bytes(instr)
        except CodeMissing:
            return False

    def _learn_others(self, others: dict[tuple[int | None, int, Instr], Row]) -> None:
        """Find the text of instructions that the program does not have, or that differ there."""
        texts = code_texts(((pc, _instruction_bytes(instr)) for _, pc, instr in others), self._xlen) if others else {}
        for key, row in others.items():
            _, pc, instr = key
            self._texts[key] = InstructionText(self.symbol(pc, row.context), texts[pc, _instruction_bytes(instr)])


def _instruction_bytes(instr: Instr) -> bytes:
    return instr.word.to_bytes(instr.length, "little")


def _encoding(instr: Instr) -> str:
    """Return the bare encoding: without the address of an instruction, the target it is relative to is also unknown."""
    return f".{instr.length}byte\t0x{instr.word:0{2 * instr.length}x}"
