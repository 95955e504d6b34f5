"""The last write to a register, from the instructions that ran: for every trace, whether or not it has values.

Which registers an instruction writes follows from its encoding. Everything else that may have written the register
since is a doubt: gaps, halts, instructions that are not known here.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import Loss, Start, StartReason, Stop, Trap
from rvtrace_gdb.decode.history.history import GAP, Event, History, PathPart, RepeatPath
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.history.reverse_search import AddressSearch
from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.program.csrs import FCSR, FFLAGS, MSTATUS, PRIVILEGE, SSTATUS, F, X
from rvtrace_gdb.decode.program.image import CodeMissing, Image, Program
from rvtrace_gdb.decode.program.instructions import UndecodableInstruction, length
from rvtrace_gdb.decode.reconstruction.code import word_at
from rvtrace_gdb.decode.reconstruction.facts import HaltWrites, HartMachine
from rvtrace_gdb.decode.reconstruction.happenings import is_lost
from rvtrace_gdb.decode.semantics import zcmp
from rvtrace_gdb.decode.semantics.encodings import Decoder
from rvtrace_gdb.decode.semantics.writes import Writes, WriteTable
from rvtrace_gdb.session.past.past import INSTRUCTION, OUTSIDE, PC, TRAP, NoWrite, PastWrite
from rvtrace_gdb.support.errors import Progress, silent

_ANYTHING = Writes(possible=None)
_A0 = X + 10
_EVERY = 4096
_MOST_UNKNOWN = 100  # instructions that are looked for
_RESETS = (StartReason.RESET, StartReason.EXIT_FROM_RESET, StartReason.EXIT_FROM_POWER_DOWN)
_BY_TRAPS: Mapping[int, frozenset[int]] = {
    it.mode: frozenset({it.status, it.epc, it.cause, it.tval, PRIVILEGE, MSTATUS}) for it in csrs.TRAPS[:2]
}
"""What a trap into a mode writes."""
_NO_MODE = "It is not known whether this trap led to machine or to supervisor mode, which have different registers."


class _RegisterTrap(NamedTuple):
    """*mode*: into which it led, None: not known."""

    position: int
    mode: int | None


class _Sets(NamedTuple):
    """The addresses of instructions: that write a register, that may write it, that may set its bits implicitly."""

    writes: frozenset[int]
    possible: frozenset[int]
    implicit: frozenset[int]


class RegisterWriters:
    """The writers of the registers in a history.

    halts         what a debugger wrote at halts of which that is known
    machine_only  the hart has no S-mode
    """

    def __init__(
        self, history: History, program: Program, *, halts: Sequence[HaltWrites] = (), machine_only: bool = False
    ) -> None:
        self._history, self._program, self._machine_only = history, program, machine_only
        self._halts: dict[int, list[HaltWrites]] = {}
        for halt in halts:
            self._halts.setdefault(halt.position, []).append(halt)
        self._search = AddressSearch(history)
        self._parts = csrs.parts(program.xlen)
        self._codes: dict[int, tuple[Image, WriteTable, dict[int, Writes]]] = {}
        self._executed: set[int] | None = None
        self._sets: dict[int, _Sets] = {}

    def last(
        self, position: int, register: int, below: int | None = None, progress: Progress = silent
    ) -> PastWrite | NoWrite:
        """Return the last write to a register before a position, without values. *below*: that of a `PastWrite`,
        for the one before it. *register*: by the Debug Specification, or `PC`.
        """
        limit = 2 * position + 1 if below is None else min(below, 2 * position + 1)
        if register == PC:
            return self._last_pc(limit)
        if register == X:
            return NoWrite()
        found = max(self._candidates(limit, register, progress), key=lambda it: it.below, default=None)
        since = -1 if found is None else found.below
        doubts = tuple(self._doubts(since, limit, register, progress))
        return NoWrite(doubts) if found is None else found._replace(doubts=(*found.doubts, *doubts))

    def is_instruction(self, position: int, register: int) -> bool:
        """Return whether the instruction at a position writes a register, or one that shares bits with it."""
        return self._history.pc(position) != GAP and not self._same(register).isdisjoint(
            self._writes_at(position).registers
        )

    def unknown_instructions(self, machine: HartMachine, progress: Progress = silent) -> list[tuple[int, int]]:
        """Return (position, pc) of the last execution of each instruction that ran, and is not executed for a hart."""
        decoder, has_zcm = Decoder(machine.xlen, machine.extensions), "Zcmp" in machine.extensions

        def is_known(word: int) -> bool:
            several = has_zcm and bool(zcmp.operations(word, machine.xlen))
            return several or decoder.decode(word).name != "illegal"

        images = self._images()
        executed = {pc for pc, _ in self._all(progress)}
        unknown = {pc for pc in executed if not any(is_known(word_at(image, pc)) for image in images)}
        found: list[tuple[int, int]] = []
        while unknown and len(found) < _MOST_UNKNOWN:
            at = self._search.find(len(self._history), -1, frozenset(unknown), progress)
            if at is None:
                break
            found.append((at, self._history.pc(at)))
            unknown.discard(self._history.pc(at))
        return found

    @cached_property
    def unwritten(self) -> frozenset[int]:
        """The integer and floating-point registers that nothing may have written in all of the history."""
        found = set() if self._other_writers else set(range(X + 1, F + 32))
        for halts in self._halts.values():
            found -= {number for halt in halts for number in halt.registers}
        for _, it in self._all(silent) if found else ():
            if it.possible is None:
                return frozenset()
            found -= it.registers | it.possible
        return frozenset(found)

    def changes_before(self, position: int, register: int) -> bool:
        """Return whether something between two instructions, before that at a position, changes a register."""
        same = self._same(register)
        trap = self._last_trap(position, same)
        if trap is not None and trap.position == position:
            return True
        return any(not same.isdisjoint(halt.registers) for halt in self._halts.get(position, ()))

    def lost_between(self, first: int, last: int) -> Iterator[str]:
        """Yield the doubts that follow from what is missing behind position *first*, up to before *last*."""
        yield from self._missing(2 * first, 2 * last + 1)

    # -- candidates

    def _candidates(self, limit: int, register: int, progress: Progress) -> Iterator[PastWrite]:
        """Yield the last writers of each kind. What comes before the instruction at position n has the order 2 * n, the
        instruction itself 2 * n + 1; it is the `below` of a writer.
        """
        same = self._same(register)
        sets = self._sets_of(register, progress)
        at = self._last_write(limit // 2, sets.writes, lambda it: not same.isdisjoint(it.registers), progress)
        if at is not None:
            written = self._writes_at(at).registers
            yield PastWrite(
                INSTRUCTION, at, 2 * at + 1, register=register, reported=self._reported_value(register, written)
            )
        trap = self._last_trap((limit - 1) // 2, same)
        if trap is not None:
            told = None if trap.mode is None else self._reported_value(register, _BY_TRAPS[trap.mode])
            doubts = (_NO_MODE,) if trap.mode is None and register != PRIVILEGE else ()
            yield PastWrite(TRAP, trap.position, 2 * trap.position, register=register, reported=told, doubts=doubts)
        for position in sorted(self._halts, reverse=True):
            values = {number: value for halt in self._halts[position] for number, value in halt.registers.items()}
            if 2 * position < limit and not same.isdisjoint(values):
                new, told = values.get(register), self._reported_value(register, frozenset(values))
                yield PastWrite(OUTSIDE, position, 2 * position, register=register, reported=told, new=new)
                return

    def _last_trap(self, last: int, same: frozenset[int]) -> _RegisterTrap | None:
        """Return the last trap up to a position that writes one of some registers, or may do so."""
        if not any(same & written for written in _BY_TRAPS.values()):
            return None
        for at in range(bisect_right(self._traps, last, key=lambda it: it.position) - 1, -1, -1):
            trap = self._traps[at]
            if trap.mode is None or same & _BY_TRAPS[trap.mode]:
                return trap
        return None

    def _last_pc(self, limit: int) -> PastWrite | NoWrite:
        """Return the last instruction or trap: all of them write the pc."""
        history, at = self._history, limit // 2 - 1
        trap = self._last_trap((limit - 1) // 2, frozenset({PRIVILEGE}))
        if trap is not None and trap.position > at:
            return PastWrite(TRAP, trap.position, 2 * trap.position, register=PC, new=self._pc(trap.position))
        lost: tuple[str, ...] = ()
        if at >= 0 and history.pc(at) == GAP:
            lost = (f"Part of the trace is missing before {at + 2}: what ran last there is not known.",)
            at -= 1
        if at < 0:
            return NoWrite(lost)
        new = None if lost or (trap is not None and trap.position == at + 1) else self._pc(at + 1)
        return PastWrite(INSTRUCTION, at, 2 * at + 1, register=PC, old=history.pc(at), new=new, doubts=lost)

    def _pc(self, position: int) -> int | None:
        pc = self._history.pc(position) if position < len(self._history) else GAP
        return None if pc == GAP else pc

    @cached_property
    def _traps(self) -> list[_RegisterTrap]:
        return [
            _RegisterTrap(it.position, self._mode(it.position))
            for it in self._history.events
            if isinstance(it.fact, Trap)
        ]

    def _mode(self, position: int) -> int | None:
        if self._machine_only:
            return 3
        mode = self._history.context_at(position).prv
        return mode if mode in _BY_TRAPS else None

    def _same(self, register: int) -> frozenset[int]:
        """Return a register, and those that share bits with it."""
        own = self._parts.get(register)
        if own is None:
            return frozenset({register})
        others = (number for number, it in self._parts.items() if it.register == own.register and it.mask & own.mask)
        return frozenset({register, *others})

    def _reported_value(self, register: int, written: frozenset[int]) -> int | None:
        """Return the register that was written, if it is another one that shares bits."""
        return None if register in written else min(self._same(register) & written, default=None)

    # -- doubts

    def _doubts(self, since: int, limit: int, register: int, progress: Progress) -> Iterator[str]:
        """Yield why something between two places in the order of the writers may have written a register."""
        yield from self._missing(since, limit)
        yield from self._doubtful_instructions(since, limit, register, progress)
        if csrs.is_counter(register):
            yield "It counts by itself."

    def _missing(self, since: int, limit: int) -> Iterator[str]:
        lost = [it for it in self._other_writers if since < 2 * it.position < limit]
        starts = [(it, it.fact.reason) for it in lost if isinstance(it.fact, Start)]
        resets = [it for it, reason in starts if reason in _RESETS]
        halts = [it for it, reason in starts if reason.resumes]
        explained = {id(it) for it in (*resets, *halts)}
        others = [it for it in lost if id(it) not in explained]
        if resets:
            number = history_number(resets[-1].position)
            yield f"The hart was reset since, before {number}: its value from then on is not known."
        if others:
            more = f", and {len(others) - 1} more" if len(others) > 1 else ""
            yield f"Part of the trace is missing since ({others[-1].text}{more}): it may have been written there."
        if halts:
            number = history_number(halts[-1].position)
            yield f"The hart was halted since, before {number}: a debugger may have written it."

    def _doubtful_instructions(self, since: int, limit: int, register: int, progress: Progress) -> Iterator[str]:
        same, sets = self._same(register), self._sets_of(register, progress)

        def may_write(writes: Writes) -> bool:
            return writes.possible is None or not same.isdisjoint(writes.possible)

        at = self._last_write(limit // 2, sets.possible, may_write, progress)
        if at is not None and 2 * at + 1 > since:
            pc = self._history.pc(at)
            yield f"The instruction at {at + 1}, at {pc:#x}, is not known to rvtrace: it may have written it since."
        at = self._last_write(limit // 2, sets.implicit, lambda it: it.flags or it.floating, progress)
        if at is not None and 2 * at + 1 > since:
            what = "set flags in it" if register in (FFLAGS, FCSR) else "changed its field FS"
            yield f"Floating-point instructions may have {what} since: the last one is at {at + 1}."

    @cached_property
    def _other_writers(self) -> list[Event]:
        """The events at which something else may have written registers."""
        events = self._history.events
        return [
            it
            for it in events
            if isinstance(it.fact, Loss | Start | Stop)
            and 0 < it.position < len(self._history)
            and is_lost(it, self._halts.get(it.position, ()))
        ]

    # -- instructions

    def _last_write(
        self, before: int, addresses: frozenset[int], condition: Callable[[Writes], bool], progress: Progress
    ) -> int | None:
        """Return the last instruction before a position that is as *condition*. *addresses*: of all that are."""
        at = self._search.find(before, -1, addresses, progress)
        while at is not None and not condition(self._writes_at(at)):
            at = self._search.find(at, -1, addresses, progress)
        return at

    def _sets_of(self, register: int, progress: Progress) -> _Sets:
        found = self._sets.get(register)
        if found is None:
            found = self._sets[register] = self._found_sets(register, progress)
        return found

    def _found_sets(self, register: int, progress: Progress) -> _Sets:
        same = self._same(register)
        flags, floating = bool(same & {FFLAGS, FCSR}), bool(same & {MSTATUS, SSTATUS})
        writes, possible, implicit = set[int](), set[int](), set[int]()
        for pc, it in self._all(progress):
            if not same.isdisjoint(it.registers):
                writes.add(pc)
            elif it.possible is None or not same.isdisjoint(it.possible):
                possible.add(pc)
            if (flags and it.flags) or (floating and it.floating):
                implicit.add(pc)
        return _Sets(frozenset(writes), frozenset(possible), frozenset(implicit))

    def _all(self, progress: Progress) -> Iterator[tuple[int, Writes]]:
        """Yield the address of each instruction that ran, with what it writes, in each program it may be of."""
        if self._executed is None:
            self._executed = _executed(self._history, progress)
        for image in self._images():
            for number, pc in enumerate(self._executed):
                if not number % _EVERY:
                    progress("looking at the instructions (instructions)", number, len(self._executed))
                yield pc, self._in(image, pc)
        for path in {id(path): path for path in self._history.entries if path.code}.values():
            yield from (
                (pc, self._writes_of(self._program.image_of(csrs.ProgramContext()), word))
                for pc, word in path.code.items()
            )

    def _images(self) -> Sequence[Image]:
        images = map(self._program.image_of, self._history.program_contexts)
        return list({id(image): image for image in images}.values())

    def _writes_at(self, position: int) -> Writes:
        """Return what the instruction at a position writes."""
        image = self._program.image_of(self._history.context_at(position))
        other = self._history.code(position, position + 1)
        return self._writes_of(image, other[position]) if other else self._in(image, self._history.pc(position))

    def _writes_of(self, image: Image, code: bytes) -> Writes:
        return self._known_code(image)[1].writes_of(int.from_bytes(code[:4], "little"))

    def _in(self, image: Image, pc: int) -> Writes:
        """Return what an instruction of a program writes."""
        _, table, known = self._known_code(image)
        found = known.get(pc)
        if found is None:
            found = known[pc] = _writes_of_instruction(image, pc, table)
        return found

    def _known_code(self, image: Image) -> tuple[Image, WriteTable, dict[int, Writes]]:
        if id(image) not in self._codes:
            self._codes[id(image)] = image, WriteTable(image.xlen, zcm=image.zcm), {}
        return self._codes[id(image)]


def _writes_of_instruction(image: Image, pc: int, table: WriteTable) -> Writes:
    try:
        word = int.from_bytes(image.read(pc, 2), "little")
        if length(word) > 2:
            word |= int.from_bytes(image.read(pc + 2, 2), "little") << 16
        if image.instruction(pc).served:
            return Writes(frozenset({_A0}))
    except (CodeMissing, UndecodableInstruction):
        return _ANYTHING
    return table.writes_of(word)


def _executed(history: History, progress: Progress) -> set[int]:
    """Return the addresses of all instructions that ran. Each different path is looked at once."""
    found, seen = set[int](), set[int]()
    waiting: list[PathPart] = []
    for number, path in enumerate(dict.fromkeys(history.entries)):
        if not number % _EVERY:
            progress("looking at the instructions (parts)", 0)
        waiting.append(path)
        while waiting:
            part = waiting.pop()
            if id(part) in seen:
                continue
            seen.add(id(part))
            if isinstance(part, tuple):
                found.update(part)
            else:
                waiting.extend([part.path] if isinstance(part, RepeatPath) else part.parts)
    return found - {GAP}
