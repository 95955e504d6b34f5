"""Executing a history again, from a place where the hart's registers and memory are known.

`Forward` runs through the history once and keeps a checkpoint every `STRIDE` instructions: the registers, and the pages
that were written since the checkpoint before. The state at any position is then that of the checkpoint before it,
executed on from there. Behind a gap, and behind what nobody can follow, everything is unknown until it is written
again.

Where an instruction cannot have done what the history says, something that was believed is wrong, and nobody knows
since when. `executed` then starts again and believes less: first no memory, then no constants of the program either.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import ContextChange, EventKind, Loss, Start, Trap, TrapKind
from rvtrace_gdb.decode.history.history import GAP, GAP_PATH, Event, History, Path, RepeatPath
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import IType, UndecodableInstruction, length
from rvtrace_gdb.decode.reconstruction.accesses import AccessLog
from rvtrace_gdb.decode.reconstruction.compiler import LONGEST_RUN, NO_RAM, MainRam, RunCompiler
from rvtrace_gdb.decode.reconstruction.facts import KnownState, Machine, Value
from rvtrace_gdb.decode.reconstruction.hart import MACHINE, Contradiction, ExecutedHart, HartState, unobserved
from rvtrace_gdb.decode.reconstruction.known_memory import BLANK, PAGE, KnownMemory, PageContent, Ram, Rom
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

STRIDE = 1 << 16
"""Instructions between two checkpoints."""
_KEPT_LOGS = 16
_LONGEST_INSTRUCTION = 4  # bytes
_LONGEST_WHOLE = 16 * LONGEST_RUN  # instructions of a path whose runs are kept together

Runs = Sequence[tuple[Callable[[], None], int]]
"""Functions of runs, each with the number of its instructions."""


class _Checkpoint(NamedTuple):
    position: int
    hart: HartState
    pages: Mapping[int, PageContent]
    """The pages that were written since the checkpoint before."""


class _Compilations(NamedTuple):
    """What was compiled: runs by their addresses and what follows, whole paths by their identity and what follows."""

    runs: dict[tuple[tuple[int, ...], Value], Runs]
    whole: dict[tuple[int, Value], Runs]


class Contradicted(RvtraceError):
    """The instruction at a position cannot have done what the history says."""

    def __init__(self, position: int, pc: int) -> None:
        super().__init__(
            f"instruction {position + 1}, at {pc:#x}, cannot have done what the trace says, with the values that are"
            " known there: something else has written registers or memory"
        )
        self.position, self.pc = position, pc


class Executed(NamedTuple):
    """What came of executing a history again. *contradicted*: where more was believed than holds, in order; without
    *forward* nothing is known.
    """

    forward: "Forward | None"
    contradicted: Sequence[Contradicted]


def executed(
    history: History, image: Image, machine: Machine, beginning: KnownState, progress: Progress = silent
) -> Executed:
    """Execute a history again from its *beginning*, with as much memory as nothing contradicts. Raises Cancelled."""
    contradicted: list[Contradicted] = []
    for less, rom in ((machine, image), (machine._replace(rams=()), image), (machine._replace(rams=()), _NO_ROM)):
        forward = Forward(history, image, less, beginning, rom)
        try:
            forward.run(progress)
        except Contradicted as error:
            contradicted.append(error)
        else:
            return Executed(forward, contradicted)
    return Executed(None, contradicted)


class _NoRom:
    """No memory at all."""

    def constant(self, addr: int, size: int, /) -> bytes:
        return b""


_NO_ROM = _NoRom()


class Forward:
    """The state of a hart at each position of its history, from that of a *beginning* on.

    *rom*: what is never written; None: the constants of the program, *image*.
    """

    def __init__(
        self, history: History, image: Image, machine: Machine, beginning: KnownState, rom: Rom | None = None
    ) -> None:
        self._history, self._image, self._machine, self._beginning = history, image, machine, beginning
        self.memory = KnownMemory([Ram(*ram) for ram in machine.rams], image if rom is None else rom)
        self.hart = ExecutedHart(machine.xlen, self.memory)
        largest = max(self.memory.rams, key=lambda ram: ram.size, default=None)
        main = NO_RAM if largest is None else MainRam(largest.base, 1 << largest.size.bit_length() - 1)
        names = self._names(main, largest or Ram(0, PAGE))
        self._compiler = RunCompiler(machine.xlen, machine.extensions, main, names)
        self._words: dict[int, int] = {}
        self._compilations = _Compilations({}, {}), _Compilations({}, {})
        self._first: dict[int, int] = {}
        self._cuts = _cuts(history)
        self._cut_positions = sorted(self._cuts)
        self._checkpoints: list[_Checkpoint] = []
        self._versions: dict[int, list[tuple[int, PageContent]]] = {}
        self._position = beginning.position
        self._entry, self._entry_begin = 0, 0
        self._at = 0  # the position of the run that executes
        self._observed = False
        self._logs: dict[int, AccessLog] = {}

    def _names(self, main: MainRam, ram: Ram) -> dict[str, object]:
        mask, hart, memory = (1 << self._machine.xlen) - 1, self.hart, self.memory

        def load(offset: int, size: int) -> Value:
            return memory.load(offset + main.base & mask, size)

        def store(offset: int, size: int, value: Value) -> None:
            memory.store(offset + main.base & mask, size, value)

        views = {f"m{8 * size}": view for size, view in ram.views.items()}
        own = {"x": hart.x, "f": hart.f, "h": hart, "load": load, "store": store, "K": ram.known, "D": ram.dirty}
        return {**own, **views}

    # -- going through the history

    def run(self, progress: Progress = silent) -> None:
        """Execute the whole history, and keep checkpoints. Raises Contradicted; and Cancelled, and goes on where it was
        when called again.
        """
        if not self._checkpoints:
            self._begin()
        end = len(self._history)
        self._go_to(self._checkpoints[-1].position)
        while self._position < end:
            try:
                self._advance(min(self._checkpoints[-1].position + STRIDE, end))
            except Contradiction as error:
                position = self._at + error.number
                raise Contradicted(position, self._history.pc(position)) from None
            self._keep()
            progress("reconstructing values", self._position, end)

    def at(self, position: int) -> ExecutedHart:
        """Return the hart before the instruction at a position, which is not before the beginning. It is the same
        object each time, moved.
        """
        if not self._checkpoints:
            self._begin()
        self._go_to(position)
        return self.hart

    @property
    def segments(self) -> int:
        """How many stretches between checkpoints there are; `run` must have come to the end."""
        return len(self._checkpoints) - 1

    def segment_of(self, position: int) -> int:
        """Return the stretch that a position is in."""
        return bisect_right(self._checkpoints, position, key=lambda it: it.position) - 1

    def may_store(self, segment: int, address: int, size: int) -> bool:
        """Return whether anything in a stretch may store to some bytes: one page of them was written in it."""
        pages = self._checkpoints[segment + 1].pages
        return any(page in pages for page in range(address & -PAGE, address + size, PAGE))

    def accesses(self, segment: int) -> AccessLog:
        """Return the loads and stores of a stretch. Those of a few stretches are kept."""
        log = self._logs.pop(segment, None)
        if log is None:
            log = self._observe(segment)
        self._logs[segment] = log
        while len(self._logs) > _KEPT_LOGS:
            del self._logs[next(iter(self._logs))]
        return log

    def _observe(self, segment: int) -> AccessLog:
        log, stop = AccessLog(), self._checkpoints[segment + 1].position
        self._restore(segment)

        def seen(number: int, kind: str, address: Value, size: int) -> None:
            log.add(self._at + number, kind, address, size)

        self._observed, self.hart.seen = True, seen
        try:
            self._advance(stop)
        finally:
            self._observed, self.hart.seen = False, unobserved
        return log

    def _begin(self) -> None:
        state, hart = self._beginning, self.hart
        hart.x[:], hart.f[:], hart.csrs = list(state.x), list(state.f), dict(state.csrs)
        hart.privilege = state.privilege
        if (status := hart.csrs.pop(0x300, None)) is not None:
            hart.status = (status, (1 << self._machine.xlen) - 1)
        for address, content in state.memory:
            for ram in self.memory.rams:
                ram.fill(address, content)
        self._seek(state.position)
        self._happened(self._cuts.get(state.position, ()))
        self._keep()

    def _keep(self) -> None:
        """Keep a checkpoint here."""
        number, pages = len(self._checkpoints), self.memory.changed_pages()
        self._checkpoints.append(_Checkpoint(self._position, self.hart.snapshot(), pages))
        for address, content in pages.items():
            self._versions.setdefault(address, []).append((number, content))

    def _go_to(self, position: int) -> None:
        number = bisect_right(self._checkpoints, position, key=lambda it: it.position) - 1
        checkpoint = self._checkpoints[number]
        if not checkpoint.position <= self._position <= position:
            self._restore(number)
        self._advance(position)

    def _restore(self, number: int) -> None:
        checkpoint = self._checkpoints[number]
        later = {address for address, versions in self._versions.items() if versions[-1][0] > number}
        later.update(self.memory.dirty_pages())
        pages = {}
        for address in later:
            versions = self._versions.get(address, [])
            at = bisect_right(versions, number, key=lambda it: it[0]) - 1
            pages[address] = versions[at][1] if at >= 0 else BLANK
        self.memory.restore(pages)
        self.hart.restore(checkpoint.hart)
        self._seek(checkpoint.position)

    def _seek(self, position: int) -> None:
        self._position = position
        if position < len(self._history):
            self._entry, self._entry_begin = self._history.entry_at(position)
        else:
            self._entry, self._entry_begin = len(self._history.entries), position

    def _advance(self, stop: int) -> None:
        """Execute up to a position."""
        while self._position < stop:
            self._run_entry(min(stop, self._next_cut(self._position)))
            self._happened(self._cuts.get(self._position, ()))

    def _next_cut(self, position: int) -> int:
        at = bisect_right(self._cut_positions, position)
        return self._cut_positions[at] if at < len(self._cut_positions) else len(self._history)

    def _run_entry(self, stop: int) -> None:
        """Execute the entries up to *stop*, with no event in between."""
        entries = self._history.entries
        while self._position < stop:
            path = entries[self._entry]
            self._at = self._position
            first = self._position - self._entry_begin
            last = min(stop - self._entry_begin, path.count)
            if path is GAP_PATH:
                self._forget()
            elif first == 0 and last == path.count:
                self._run_whole(path, self._following(self._entry_begin + last))
            else:
                self._run_piece(path, first, last, self._following(self._entry_begin + last))
            self._position = self._entry_begin + last
            if last == path.count:
                self._entry += 1
                self._entry_begin = self._position

    def _following(self, position: int) -> Value:
        """Return the address at a position, None if something else may have run before it."""
        if position >= len(self._history) or position in self._cuts:
            return None
        if position == self._entry_begin + self._history.entries[self._entry].count:
            path = self._history.entries[self._entry + 1]
            known = self._first.get(id(path))
            if known is None:
                known = self._first[id(path)] = path.pc(0)
            pc = known
        else:
            pc = self._history.pc(position)
        return None if pc == GAP else pc

    def _run_whole(self, path: Path | RepeatPath, following: Value) -> None:
        if isinstance(path, RepeatPath):
            first = path.path.pc(0)
            for _ in range(path.times - 1):
                self._run_whole(path.path, first)
            self._run_whole(path.path, following)
            return
        runs = self._compilations[self._observed].whole.get((id(path), following))
        if runs is None:
            if path.count > _LONGEST_WHOLE:
                self._run_piece(path, 0, path.count, following)
                return
            pcs = tuple(pc for chunk in path.chunks(0, path.count) for pc in chunk)
            runs = self._compilations[self._observed].whole[id(path), following] = self._compiled(pcs, following)
        self._execute(runs)

    def _execute(self, runs: Runs) -> None:
        at = self._at
        for run, count in runs:
            self._at = at
            run()
            at += count
        self._at = at

    def _run_piece(self, path: Path | RepeatPath, first: int, last: int, following: Value) -> None:
        if isinstance(path, RepeatPath):
            self._run_repeated(path, first, last, following)
            return
        begin = 0
        for part in path.parts:
            low, high = max(first - begin, 0), min(last - begin, len(part))
            if low < high:
                after = following if begin + high == last else path.pc(begin + high)
                if isinstance(part, tuple):
                    self._execute(self._compiled(part[low:high], after))
                elif low == 0 and high == len(part):
                    self._run_whole(part, after)
                else:
                    self._run_piece(part, low, high, after)
            begin += len(part)

    def _run_repeated(self, path: RepeatPath, first: int, last: int, following: Value) -> None:
        unit, count = path.path, path.path.count
        while first < last:
            low = first % count
            high = min(count, low + last - first)
            first += high - low
            after = following if first == last else unit.pc(high % count)
            if high - low == count:
                self._run_whole(unit, after)
            else:
                self._run_piece(unit, low, high, after)

    def _compiled(self, pcs: tuple[int, ...], following: Value) -> Runs:
        """Return the functions of some instructions: compiling is what costs most, so that straight code is compiled
        once, wherever it occurs.
        """
        runs: list[tuple[Callable[[], None], int]] = []
        for begin, end in _straight(pcs):
            runs += self._run(pcs[begin:end], pcs[end] if end < len(pcs) else following)
        return runs

    def _run(self, pcs: tuple[int, ...], following: Value) -> Runs:
        compiled = self._compilations[self._observed].runs
        known = compiled.get((pcs, following))
        if known is None:
            words = [(pc, self._word(pc)) for pc in pcs]
            run = self._compiler.compiled(words, following, observed=self._observed)
            known = compiled[pcs, following] = [(run, len(pcs))]
        return known

    def _word(self, pc: int) -> int:
        """Return an instruction; one whose code is not there counts as illegal, so that nothing is known behind it."""
        word = self._words.get(pc)
        if word is None:
            try:
                word = int.from_bytes(self._image.read(pc, 2), "little")
                if length(word) > 2:
                    word |= int.from_bytes(self._image.read(pc + 2, 2), "little") << 16
            except (CodeMissing, UndecodableInstruction):
                word = 0
            self._words[pc] = word
        return word

    # -- events

    def _forget(self) -> None:
        self.hart.forget_registers()
        self.memory.forget()

    def _happened(self, events: Sequence[Event]) -> None:
        for event in events:
            fact = event.fact
            if isinstance(fact, Trap):
                self._trap(event, fact)
            elif isinstance(fact, ContextChange):
                self.hart.privilege = fact.now.prv
            elif not isinstance(fact, Start) or event.position > self._beginning.position:
                self._forget()

    def _trap(self, event: Event, trap: Trap) -> None:
        mode = MACHINE if self._machine.machine_only or self.hart.privilege == MACHINE else None
        cause = trap.cause
        if cause is not None:
            if trap.kind is TrapKind.INTERRUPT:
                cause |= 1 << self._machine.xlen - 1
            elif trap.kind is TrapKind.UNKNOWN:
                cause = None
        self.hart.trap(mode, self._sequential(event.position - 1), cause, trap.value)

    def _sequential(self, position: int) -> Value:
        """Return the address behind the instruction at a position, None if it may go elsewhere."""
        pc = self._history.pc(position) if position >= 0 else GAP
        if pc == GAP:
            return None
        try:
            instruction = self._image.instruction(pc)
        except (CodeMissing, UndecodableInstruction):
            return None
        if instruction.itype is not IType.NONE:
            return pc + instruction.offset if instruction.is_inferable_jump and instruction.offset is not None else None
        return pc + instruction.length


def _straight(pcs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield where stretches begin and end whose instructions follow each other in memory, and that are not too long."""
    begin, size = 0, len(pcs)
    for at in range(1, size + 1):
        if at == size or not 0 < pcs[at] - pcs[at - 1] <= _LONGEST_INSTRUCTION or at - begin == LONGEST_RUN:
            yield begin, at
            begin = at


def _cuts(history: History) -> dict[int, list[Event]]:
    """Return the events that change what is known, by position."""
    found: dict[int, list[Event]] = {}
    last_sync = 0
    for event in history.events:
        fact = event.fact
        if event.kind is EventKind.SYNC:
            last_sync = event.position
        if isinstance(fact, Loss) and not fact.has_place:
            found.setdefault(last_sync, []).append(event)
        if isinstance(fact, Trap | ContextChange | Loss) or (
            isinstance(fact, Start) and fact.reason.resumes  # something may have happened to the hart before
        ):
            found.setdefault(event.position, []).append(event)
    return found
