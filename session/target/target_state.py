"""What is saved of a target where a trace begins and where it ends: the registers of halted harts, and memory.

Values of the past follow from it. The registers are read whenever a traced hart is halted; memory, while all harts are
halted: the data of the program if a hart stands at its entry, and what the user asks for (`trace start -with-memory`,
`set trace save-memory`). What cannot be read is missing, and nothing fails because of it.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from rvtrace_gdb.decode.program.csrs import F, X
from rvtrace_gdb.decode.program.elf import Elf, ElfSegment
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.facts import MemoryRange, own_ram
from rvtrace_gdb.session.capture.model import SavedAt, SavedMemory, SavedRegisters
from rvtrace_gdb.session.description.memory import rams
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.proxy.protocol.register_numbers import PC
from rvtrace_gdb.session.proxy.writes.write_log import KeptWrites
from rvtrace_gdb.session.target.link import Link, WithCsrs, csrs_of, halted_of, other_type
from rvtrace_gdb.session.target.saved_registers import NAMES, read_registers
from rvtrace_gdb.support.errors import Cancelled, Progress, RvtraceError, silent
from rvtrace_gdb.support.extents import Extent, common, cut, disjoint, joined, up_to, without
from rvtrace_gdb.support.system import memory_size

MOST = 1 << 26
"""Bytes of memory that are saved at most."""
_BELOW, _ABOVE = 1 << 12, 3 << 12  # bytes around the stack pointer
_SP = X + 2
_CODE = 64  # bytes of code at the entry that are compared


class TargetReader(Protocol):
    """The way to a target. Nothing is raised but by *progress*, and what cannot be read is missing.

    *piece*: how many bytes are read at once; *usual*: how many are saved if nobody asks for more; *is_fast*: reading
    takes no time to speak of.
    """

    piece: int
    usual: int
    is_fast: bool

    def unpolled(self) -> AbstractContextManager[None]:
        """Keep the debugger that leads to the target from looking after harts by itself inside the context."""

    def halted(self, harts: Collection[int]) -> set[int]:
        """Return those of *harts* that are halted."""

    def all_halted(self) -> bool:
        """Return whether all harts of the target are halted."""

    def registers(self, hart: int, at: SavedAt) -> SavedRegisters | None:
        """Return the registers of a halted hart."""

    def memory(self, address: int, size: int, progress: Progress) -> bytes:
        """Return the bytes from an address on, as many as can be read; both are multiples of 4."""


class LinkReader:
    """A `TargetReader` through OpenOCD or USB."""

    piece, usual, is_fast = 1 << 14, 1 << 16, False

    def __init__(self, link: Link) -> None:
        self._link = link

    def unpolled(self) -> AbstractContextManager[None]:
        return self._link.unpolled()

    def halted(self, harts: Collection[int]) -> set[int]:
        return halted_of(self._link, harts)

    def all_halted(self) -> bool:
        cores = [hart for hart in range(len(self._link.targets)) if not other_type(self._link, hart)]
        return bool(cores) and halted_of(self._link, cores) == set(cores)

    def registers(self, hart: int, at: SavedAt) -> SavedRegisters | None:
        try:
            access = csrs_of(self._link, hart, NAMES)
            found = read_registers(access, hart, at)
        except RvtraceError:
            return None
        if found is None or not isinstance(self._link, WithCsrs) or access.xlen == 64:
            return found
        # Abstract commands would read half of a wider floating-point register.
        return replace(found, registers={it: value for it, value in found.registers.items() if it < F})

    def memory(self, address: int, size: int, progress: Progress) -> bytes:
        try:
            return self._link.read_block(address, size, progress)
        except Cancelled:
            raise
        except RvtraceError as error:
            partial = getattr(error, "partial", b"")
            return partial if isinstance(partial, bytes) else b""


WITH_MEMORY = "with_memory"


class SaveRequest(NamedTuple):
    """What the user asks to be saved. *memory*: also RAM where the trace begins; *ranges*: this memory, instead of the
    declared RAM, there and where it ends; None: not said.
    """

    memory: bool = False
    ranges: tuple[Extent, ...] | None = None


def wishes_of(options: Mapping[str, Any], save_memory: str | None) -> SaveRequest:
    """Return the wishes of `trace start`. *save_memory*: the setting. Raises BadOption."""
    return SaveRequest(bool(options.get(WITH_MEMORY)), None if save_memory is None else ranges_of(save_memory))


_NUMBER = r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20}"
_RANGE = re.compile(rf"(?P<begin>{_NUMBER})(?:,\+(?P<size>{_NUMBER})|[-,](?P<end>{_NUMBER}))")


def ranges_of(text: str) -> tuple[Extent, ...]:
    """Return the ranges in a text: `BEGIN-END` or `BEGIN,+SIZE`, separated by spaces; () for "none". Raises BadOption.
    """
    return () if text.strip() == "none" else tuple(map(_parsed_extent, text.split()))


def _parsed_extent(word: str) -> Extent:
    match = _RANGE.fullmatch(word)
    if match is None:
        raise BadOption(f"save-memory: {word} is not a range: give BEGIN-END or BEGIN,+SIZE, as in 0x80000000,+0x10000")
    begin, size, end = (int(it, 16 if it[:2].lower() == "0x" else 10) if it else 0 for it in match.groups())
    size = size or end - begin
    if size <= 0 or begin + size > 1 << 64:
        raise BadOption(f"save-memory: there is nothing in {word}")
    return Extent(begin, size)


class SavedTarget:
    """What is saved of the target of one trace. *harts*: those that are traced; *ranges*: what is declared of memory.

    """

    def __init__(
        self,
        reader: TargetReader,
        harts: Iterable[int],
        image: Image,
        ranges: Sequence[MemoryRange],
        wishes: SaveRequest,
    ) -> None:
        self._reader, self._harts, self._image = reader, sorted(set(harts)), image
        self.ranges = tuple(ranges)
        self.wishes = wishes
        self._registers: dict[SavedAt, tuple[SavedRegisters, ...]] = {}
        self._memory: dict[SavedAt, tuple[SavedMemory, ...]] = {}
        self.kept: Callable[[int], KeptWrites | None] = lambda hart: KeptWrites({}, {})
        """Returns what was where a debugger has written since a hart came to where it stands now; None: that may be
        anywhere.
        """
        self.interrupted = False
        """The user has interrupted the reading of memory: whatever follows it goes on."""
        self._notes: list[str] = []
        self._lines = 0

    @property
    def registers(self) -> tuple[SavedRegisters, ...]:
        return tuple(saved for at in SavedAt for saved in self._registers.get(at, ()))

    @property
    def memory(self) -> tuple[SavedMemory, ...]:
        return tuple(saved for at in SavedAt for saved in self._memory.get(at, ()))

    def unsaid(self) -> list[str]:
        """Return the notes for the user that were not returned before."""
        notes, self._lines = self._notes[self._lines :], len(self._notes)
        return notes

    def wish(self, save_memory: str | None) -> None:
        """Take over the setting. Raises BadOption."""
        ranges = None if save_memory is None else ranges_of(save_memory)
        if ranges != self.wishes.ranges:
            self._memory.pop(SavedAt.STOP, None)
        self.wishes = self.wishes._replace(ranges=ranges)

    def begin(self, progress: Progress = silent, harts: Collection[int] | None = None) -> None:
        """Save what is there where the trace begins. Ctrl-C ends the reading of memory, and keeps what was read.

        *harts*: those whose trace begins now, None: all.
        """
        found = self._halted_registers(SavedAt.START, harts)
        self._registers[SavedAt.START] = found
        if self.wishes.memory:
            self._save_ram(found, progress)
        elif self._own() and self._reader.all_halted():
            if any(it.pc == self._image.entry for it in found):
                self._save_data(found)
            if self._reader.is_fast:
                self._memory[SavedAt.START] = self._read_planned(SavedAt.START, self._usual(found), progress)

    def end(self, halted: Collection[int]) -> None:
        """Save the registers where the trace ends, unless that is done. *halted*: the harts that have been halted since
        the trace was read out.
        """
        if SavedAt.STOP not in self._registers:
            found = self._halted_registers(SavedAt.STOP)
            self._registers[SavedAt.STOP] = tuple(saved for saved in found if saved.hart in halted)

    def end_memory(self, progress: Progress = silent) -> None:
        """Save also the memory where the trace ends. Nothing may have run since `end`, which is checked if there is any
        to save: the registers of many harts take a while.
        """
        before = self._registers.get(SavedAt.STOP, ())
        if SavedAt.STOP in self._memory or len(before) < len(self._harts) or not self._reader.all_halted():
            return
        plan = self._plan_of_end(before)
        if plan and self._halted_registers(SavedAt.STOP) == before:
            self._memory[SavedAt.STOP] = self._read_planned(SavedAt.STOP, plan, progress)

    def unpolled(self) -> AbstractContextManager[None]:
        """Keep the debugger that leads to the target from looking after harts by itself inside the context."""
        return self._reader.unpolled()

    def forget_end(self) -> None:
        """Drop what was saved of the end: the trace goes on."""
        self._registers.pop(SavedAt.STOP, None)
        self._memory.pop(SavedAt.STOP, None)

    def registers_now(self, hart: int) -> SavedRegisters | None:
        """Return the registers of a hart that is halted where the trace ends, None: it is not, or cannot be read."""
        with self._reader.unpolled():
            if hart not in self._reader.halted([hart]):
                return None
            found = self._reader.registers(hart, SavedAt.STOP)
        return None if found is None else self._as_left(found)

    def memory_now(self, hart: int, address: int, size: int) -> list[int | None]:
        """Return memory while a hart is halted where the trace ends, None for bytes that are not known."""
        kept = self.kept(hart)
        data = b"" if kept is None or hart not in self._reader.halted([hart]) else self._bytes(address, size)
        found: list[int | None] = [*data, *[None] * (size - len(data))]
        for at, old in () if kept is None else kept.memory.items():
            if address <= at < address + size:
                found[at - address] = old
        return found

    def _halted_registers(self, at: SavedAt, harts: Collection[int] | None = None) -> tuple[SavedRegisters, ...]:
        halted = self._reader.halted(self._harts if harts is None else harts)
        found = (self._reader.registers(hart, at) for hart in sorted(halted))
        saved = (it if it is None or at is SavedAt.START else self._as_left(it) for it in found)
        return tuple(it for it in saved if it is not None)

    def _as_left(self, saved: SavedRegisters) -> SavedRegisters | None:
        """Return the registers as the program left them, without what a debugger wrote; None: they are not known."""
        kept = self.kept(saved.hart)
        if kept is None:
            return None
        values = {number: value for number, value in {**saved.registers, **kept.registers}.items() if value is not None}
        pc = kept.registers.get(PC, saved.pc)
        return None if pc is None else replace(saved, pc=pc, registers={it: values[it] for it in values if it != PC})

    def _pieces_as_left(self, address: int, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the bytes as the program left them, without what is not known."""
        kept = self.kept(self._harts[0])
        assert kept is not None  # there are registers
        changed = [at for at in kept.memory if address <= at < address + len(data)]
        content = bytearray(data)
        for at in changed:
            content[at - address] = kept.memory[at] or 0
        begin = address
        for at in sorted(it for it in changed if kept.memory[it] is None):
            yield begin, bytes(content[begin - address : at - address])
            begin = at + 1
        yield begin, bytes(content[begin - address :])

    def _save_ram(self, stops: Sequence[SavedRegisters], progress: Progress) -> None:
        plan = self._asked_for()
        if not self._reader.all_halted():
            self._note("-with-memory: memory is not saved, because not all harts are halted")
        elif not plan:
            self._note(
                "-with-memory: no memory is saved: the target description declares no RAM ([[memory]]), and `set trace"
                " save-memory` names none"
            )
        else:
            ordered = [*common(_likely(self._image, stops), plan), *plan]
            self._memory[SavedAt.START] = self._read_planned(SavedAt.START, ordered, progress)

    def _asked_for(self) -> list[Extent]:
        return disjoint(self.wishes.ranges) if self.wishes.ranges is not None else rams(self.ranges)

    def _plan_of_end(self, registers: Sequence[SavedRegisters]) -> list[Extent]:
        if self.wishes.ranges is not None:
            plan = self._asked_for()
            return [*common(_likely(self._image, registers), plan), *plan]
        return self._usual(registers)

    def _usual(self, registers: Sequence[SavedRegisters]) -> list[Extent]:
        """Return what is saved if nobody asks for something else: RAM that is believed, all of it only if it is little,
        or can be read fast.
        """
        declared, usual = self._own(), self._reader.usual
        rest = declared if self._reader.is_fast or sum(size for _, size in declared) <= usual else []
        return up_to(usual, [*common(_likely(self._image, registers), declared), *rest])

    def _own(self) -> list[Extent]:
        """Return the RAM that only one of the traced harts writes."""
        return disjoint(it for hart in self._harts for it in own_ram(self.ranges, hart, self._harts))

    def _save_data(self, stops: Sequence[SavedRegisters]) -> None:
        """Save the data of the program, and whether all is in memory as the ELF has it."""
        data = _initial_data(self._image)
        if sum(len(content) for _, content in data) > self._reader.usual:
            return
        entry = self._image.entry
        code = self._image.constant(entry, _CODE)
        known = [*data, *([(entry, code)] if code else [])]
        read = [SavedMemory(SavedAt.START, address, self._bytes(address, len(content))) for address, content in known]
        equal = all(it.data == content for it, (_, content) in zip(read, known, strict=True))
        pieces = joined((it.address, it.data) for it in read[: len(data)])
        self._memory[SavedAt.START] = tuple(SavedMemory(SavedAt.START, *piece) for piece in pieces)
        self._registers[SavedAt.START] = tuple(
            replace(it, at_entry=equal and bool(code) and it.pc == entry) for it in stops
        )

    def _bytes(self, address: int, size: int, progress: Progress = silent) -> bytes:
        first = address & ~3
        return self._reader.memory(first, address + size + 3 - first & ~3, progress)[address - first :][:size]

    def _read_planned(self, at: SavedAt, plan: Sequence[Extent], progress: Progress) -> tuple[SavedMemory, ...]:
        """Read memory in the order of *plan*, of which parts may be there twice."""
        wanted = up_to(MOST, plan)
        total, done = sum(size for _, size in wanted), 0
        pieces: list[tuple[int, bytes]] = []
        missing = 0
        try:
            for address, size in cut(wanted, self._reader.piece):
                progress("saving memory", done, total)
                piece = self._bytes(address, size)
                missing += size - len(piece)
                pieces += [(address, piece)] if at is SavedAt.START else self._pieces_as_left(address, piece)
                done += size
        except Cancelled:
            self.interrupted = True
            self._note(f"saving memory was interrupted: {memory_size(done)} of {memory_size(total)} are saved")
        else:
            if sum(size for _, size in disjoint(plan)) > total >= MOST:
                self._note(f"only {memory_size(total)} of memory are saved: `set trace save-memory` says which")
        if missing:
            self._note(f"{memory_size(missing)} of memory could not be read, and are not saved")
        return tuple(SavedMemory(at, address, data) for address, data in joined(pieces))

    def _note(self, text: str) -> None:
        self._notes.append(text)


def _initial_data(image: Image) -> list[tuple[int, bytes]]:
    """Return what a loader puts into memory besides constants and code: (address, bytes)."""
    found = []
    for elf, bias in image.elves:
        variables = _variables(elf) if elf.sections else [_file_extent(it) for it in elf.segments]
        for segment in elf.segments:
            place = segment.vaddr + bias if bias else segment.paddr
            for start, size in common(variables, [_file_extent(segment)]):
                at = start - segment.vaddr
                found.append((place + at, segment.data[at : at + size]))
    return found


def _file_extent(segment: ElfSegment) -> Extent:
    """Return where a segment has content of the file, at virtual addresses."""
    return Extent(segment.vaddr, len(segment.data))


def _variables(elf: Elf) -> list[Extent]:
    """Return the sections that the program may write."""
    constants = [Extent(it.start, len(it)) for it in elf.constants]
    sections = (Extent.between(it.start, it.end) for it in elf.sections)
    return [part for section in sections for part in without(section, constants)]


def _likely(image: Image, registers: Iterable[SavedRegisters]) -> list[Extent]:
    """Return the memory that the program most likely uses: its data, and its stacks."""
    found: list[Extent] = []
    for elf, bias in image.elves:
        found += [Extent(it.address + bias, it.size) for it in _variables(elf)]
    for saved in registers:
        sp = saved.registers.get(_SP)
        if sp is not None:
            begin = max(0, (sp & ~0xF) - _BELOW)
            found.append(Extent(begin, _BELOW + _ABOVE))
    return found
