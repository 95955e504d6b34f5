"""Executing a history again, from a place where the hart's registers and memory are known.

`Forward` goes through the history once and keeps a checkpoint every `STRIDE` instructions: the registers, and the pages
that were written since the checkpoint before. The state at any position is then that of the checkpoint before it,
executed on from there. Behind a gap, and behind what nobody can follow, everything is unknown until it is written
again.

Where an instruction cannot have done what the history says, something that was believed is wrong, and nobody knows
since when. One then starts again and believes less (`beliefs.BELIEFS`).
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

from rvtrace_gdb.decode.history.events import ContextChange, Start, Trap
from rvtrace_gdb.decode.history.history import GAP, GAP_PATH, AnyPath, Event, History, RepeatPath
from rvtrace_gdb.decode.program.image import Image, Program
from rvtrace_gdb.decode.reconstruction.accesses import AccessLog, StretchAccesses
from rvtrace_gdb.decode.reconstruction.beliefs import BELIEFS, Belief, ImpossibleInstruction
from rvtrace_gdb.decode.reconstruction.checkpoints import Checkpoint, Checkpoints, KeptExecution
from rvtrace_gdb.decode.reconstruction.constants import NoConstants, ProgramConstants
from rvtrace_gdb.decode.reconstruction.cuts import trap_cause
from rvtrace_gdb.decode.reconstruction.facts import HaltWrites, HartMachine, KnownState, KnownValue
from rvtrace_gdb.decode.reconstruction.happenings import Cuts, is_lost, sequential_pc
from rvtrace_gdb.decode.reconstruction.hart import (
    LOST_ALL,
    MACHINE,
    AssumptionContradicted,
    ExecutedHart,
    TranslationChanged,
    unnoted,
    unobserved,
)
from rvtrace_gdb.decode.reconstruction.known_memory import KnownMemory, rams_of
from rvtrace_gdb.decode.reconstruction.runs import ProgramCode, Runs, compilers_of
from rvtrace_gdb.support.errors import Progress, silent

STRIDE = 1 << 15
"""Instructions between two checkpoints."""
_STEP = 1 << 12  # instructions between two in the stretch that was visited last
_BACKWARD = 8  # so many times more of them are where one went back to, twice
_FINEST = _STEP // _BACKWARD**2


class Forward:
    """The state of a hart at each position of its history, from that of a *beginning* on.

    halts  what a debugger wrote while the hart was halted; at other halts everything may have changed
    """

    def __init__(
        self,
        history: History,
        program: Program,
        machine: HartMachine,
        beginning: KnownState,
        *,
        halts: Sequence[HaltWrites] = (),
        belief: Belief = BELIEFS[0],
    ) -> None:
        self._history, self._program, self._machine, self._beginning = history, program, machine, beginning
        image = program.image_of(history.context_at(beginning.position))
        self._rom = ProgramConstants(image) if belief.constants else None
        rams = rams_of(machine.rams if belief.ram else ())
        self.memory = KnownMemory(rams, self._rom or NoConstants())
        self.hart = ExecutedHart(machine.xlen, self.memory, machine_only=machine.machine_only)
        self._compilers = compilers_of(machine, self.hart, self.memory)
        self._codes: dict[tuple[int, int], ProgramCode] = {}
        self._use(image)
        self._first: dict[int, int] = {}
        self._cuts = Cuts(history, beginning.position, halts)
        self._checkpoints = Checkpoints(self.hart, self.memory)
        self.unknown_stores = array("Q")
        """The positions of the stores to unknown addresses, as far as the history was executed."""
        self._switched: list[int] = []  # positions from which on addresses are no longer those of memory, or are again
        self._notes = True  # what is executed now is so for the first time
        self._position = beginning.position
        self._entry, self._entry_begin = 0, 0
        self._at = 0  # the position of the run that executes
        self._observed = False
        self._accesses = StretchAccesses(self._observe)

    def _use(self, image: Image) -> None:
        self._image = image
        if self._rom is not None:
            self._rom.use(image)
        self._code = self._code_of({})

    def _code_of(self, others: Mapping[int, bytes]) -> ProgramCode:
        """Return the code of the image, with instructions that are not the program's."""
        key = id(self._image), id(others) if others else 0
        code = self._codes.get(key)
        if code is None:
            code = self._codes[key] = ProgramCode(self._image, others, self._compilers)
        return code

    # -- going through the history

    def run(self, progress: Progress = silent) -> None:
        """Execute the whole history, and keep checkpoints. Raises Contradicted; and Cancelled, and goes on where it was
        when called again.
        """
        self.reach(len(self._history), progress)

    def reach(self, position: int, progress: Progress = silent) -> None:
        """Execute the history up to a position at least. Raises as `run`."""
        if not self._checkpoints.all:
            self._begin()
        end = len(self._history)
        while (done := self.reached) < position:
            self._go_to(done)
            self._note(done)
            self.hart.lost = 0
            try:
                self._advance(min(done + STRIDE, end))
            finally:
                self.hart.stored_anywhere, self._notes = unnoted, False
            self._checkpoints.keep(self._position)
            if self._has_written_code():
                self._checkpoints.drop()
                self._position = -1
                continue
            progress("reconstructing values (instructions)", self._position, end)

    def kept(self) -> KeptExecution | None:
        """Return what another one of the same history, program and facts can use instead of executing
        (`use_execution`); None before all is executed, and where the program has written code.
        """
        if self.reached < len(self._history) or any(code.is_written for code in self._codes.values()):
            return None
        return KeptExecution(self._checkpoints.all, self.unknown_stores, self._switched, self.memory.replaced)

    def use_execution(self, kept: KeptExecution) -> None:
        """Have executed everything, with these results; nothing was executed before."""
        self._checkpoints.use_checkpoints(kept.checkpoints)
        self.unknown_stores, self._switched = kept.unknown_stores, list(kept.switched)
        self.memory.replaced = kept.replaced
        self._notes, self._position = False, -1

    def _has_written_code(self) -> bool:
        """Return whether the program has written code that was believed: it is not from now on."""
        pages = self.memory.rewritten
        distrusted = [code.distrust(pages, self.memory) for code in self._codes.values()] if pages else []
        return any(distrusted)

    @property
    def reached(self) -> int:
        """The position up to which the history was executed."""
        return self._checkpoints.all[-1].position if self._checkpoints.all else self._beginning.position

    def _note(self, begin: int) -> None:
        """Note from here on which stores have unknown addresses, and forget what was noted of positions from *begin*
        on.
        """
        del self.unknown_stores[bisect_left(self.unknown_stores, begin) :]
        del self._switched[bisect_right(self._switched, begin) :]

        def noted(number: int) -> None:
            self.unknown_stores.append(max(self._at + number, 0))

        self.hart.stored_anywhere, self._notes = noted, True

    def hart_at(self, position: int, progress: Progress = silent) -> ExecutedHart:
        """Return the hart before the instruction at a position, which is not before the beginning. It is the same
        object each time, moved. Raises as `run`.
        """
        self.reach(position, progress)
        self._go_to(position)
        return self.hart

    def after(self, position: int, progress: Progress = silent) -> ExecutedHart:
        """Return the hart after the instruction at a position, before what happened next. Raises as `run`."""
        self.reach(position + 1, progress)
        self._go_to(position)
        try:
            self._run_entries(position + 1)
        except TranslationChanged:
            self._position = -1
        if position + 1 in self._cuts:
            self._position = -1  # the state there is another one
        return self.hart

    def lost_from(self, position: int, progress: Progress = silent) -> int:
        """Return which registers of results become unknown from a position on, see `ExecutedHart.lost`. Raises as
        `run`.
        """
        self.run(progress)
        segment = self.segment_of(position)
        lost = 0
        for checkpoint in self._checkpoints.all[segment + 2 :]:
            lost |= checkpoint.lost
        if segment < self.segments:
            self._go_to(position)
            self.hart.lost = 0
            self._advance(self._checkpoints.all[segment + 1].position)
            lost |= self.hart.lost
        return lost

    @property
    def segments(self) -> int:
        """How many stretches between checkpoints there are, as far as the history was executed."""
        return max(len(self._checkpoints.all) - 1, 0)

    def segment_of(self, position: int) -> int:
        """Return the stretch that a position is in; it must have been reached."""
        return self._checkpoints.number(position)

    def bounds(self, segment: int) -> tuple[int, int]:
        """Return the first position of a stretch, and that behind it."""
        return self._checkpoints.all[segment].position, self._checkpoints.all[segment + 1].position

    def may_store(self, segment: int, address: int, size: int) -> bool:
        """Return whether stores at known addresses in a stretch may be to some bytes: one was to the same page, and to
        these, as far as is known of a stretch whose accesses have been looked at.
        """
        stored = self._checkpoints.all[segment + 1].stored
        return stored.may_include(address, size) and self._accesses.may_store(segment, address, size)

    def is_translated(self, first: int, last: int) -> bool:
        """Return whether addresses are not those of memory anywhere from *first* to *last* - 1, as far as reached."""
        at = bisect_right(self._switched, first)
        return at % 2 == 1 or (at < len(self._switched) and self._switched[at] < last)

    @property
    def first_translated(self) -> int | None:
        """From where on addresses are not those of memory, None: nowhere, as far as reached."""
        return self._switched[0] if self._switched else None

    def accesses(self, segment: int) -> AccessLog:
        """Return the loads and stores of a stretch. Those of a few stretches are kept."""
        return self._accesses.log(segment)

    def unknown_accesses(self, segment: int) -> Sequence[int]:
        """Return the positions in a stretch of loads and stores whose addresses are unknown."""
        return self._accesses.unknown(segment)

    def _observe(self, segment: int) -> AccessLog:
        log, hart = AccessLog(), self.hart
        self._restore(self._checkpoints.all[segment])

        def seen(number: int, kind: str, address: KnownValue, size: int) -> None:
            if hart.physical:
                log.add(self._at + number, kind, address, size)

        self._observed, hart.seen = True, seen
        try:
            self._advance(self._checkpoints.all[segment + 1].position)
        finally:
            self._observed, hart.seen = False, unobserved
        return log

    def _begin(self) -> None:
        state, hart = self._beginning, self.hart
        if state.privilege is None:
            state = state._replace(privilege=self._history.context_at(state.position).prv)
        hart.begin(state)
        self.memory.begin(state.memory)
        self._seek(state.position)
        if not hart.physical:
            self._switched.append(state.position)
        self._happened()
        self._checkpoints.keep(self._position)
        self._notes = False

    def _go_to(self, position: int) -> None:
        is_backward = position < self._position
        if self._checkpoints.is_full:
            self._checkpoints.leave()
            self._position = -1
        nearest = self._checkpoints.nearest(position)
        if not nearest.position <= self._position <= position:
            self._restore(nearest)
        while self._position < position:
            kept = self._next_kept(position, is_backward=is_backward)
            self._advance(min(kept, position))
            if self._position == kept < position:
                self._checkpoints.keep_there(kept)

    def _next_kept(self, position: int, *, is_backward: bool) -> int:
        """Return where the state is kept next on the way to a position: whoever came there backward goes on so."""
        step = _STEP
        while is_backward and step > _FINEST and self._position // step == position // step:
            step //= _BACKWARD
        return (self._position // step + 1) * step

    def _restore(self, checkpoint: Checkpoint) -> None:
        self._checkpoints.restore(checkpoint)
        self._seek(checkpoint.position)

    def _seek(self, position: int) -> None:
        self._position = position
        if position < len(self._history):
            self._entry, self._entry_begin = self._history.entry_at(position)
            self._use(self._program.image_of(self._history.context_at(position)))
        else:
            self._entry, self._entry_begin = len(self._history.entries), position

    def _advance(self, stop: int) -> None:
        """Execute up to a position. What it leaves when it raises anything is valid nowhere."""
        try:
            while self._position < stop:
                cut, lost = self._cuts.after(self._position), self._cuts.lost_until(self._position)
                if lost is not None:
                    self._pass_over(min(stop, lost))
                    continue
                try:
                    self._run_entries(stop if cut is None else min(stop, cut))
                except TranslationChanged as change:
                    self._translate(self._at + change.number)
                if self._position in self._cuts:
                    self._happened()
        except BaseException as error:
            self._position = -1  # before all checkpoints, so that it is restored from one
            if isinstance(error, AssumptionContradicted):
                at = self._at + error.number
                raise ImpossibleInstruction(at, self._history.pc(at)) from None
            raise

    def _pass_over(self, stop: int) -> None:
        """Go on without executing anything: what is computed here need not be what the hart had."""
        self._forget_hart(stop)
        self._seek(stop)
        if stop in self._cuts:
            self._happened()

    def _run_entries(self, stop: int) -> None:
        """Execute the entries up to *stop*, with no event in between."""
        entries = self._history.entries
        while self._position < stop:
            path = entries[self._entry]
            self._at = self._position
            first = self._position - self._entry_begin
            last = min(stop - self._entry_begin, path.count)
            if path is GAP_PATH:
                self._forget_hart(self._position + 1)
            else:
                code = self._code
                if path.code:
                    self._code = self._code_of(path.code)
                if first == 0 and last == path.count:
                    self._run_whole(path, self._following(self._entry_begin + last))
                else:
                    self._run_piece(path, first, last, self._following(self._entry_begin + last))
                self._code = code
            self._position = self._entry_begin + last
            if last == path.count:
                self._entry += 1
                self._entry_begin = self._position

    def _translate(self, position: int) -> None:
        """Go on behind an instruction at which addresses became those of memory, or others."""
        rd = self._code.word(self._history.pc(position)) >> 7 & 31
        if rd:
            self.hart.x[rd] = None  # the instruction was interrupted; all that write another register leave rd 0
            self.hart.lost |= LOST_ALL
        self._switch(position + 1)
        self._seek(position + 1)

    def _switch(self, position: int) -> None:
        """Execute on with addresses that are those of memory, or others, whichever it was not. What others stored is
        not known.
        """
        self.hart.physical = not self.hart.physical
        self.memory.forget()
        if self._notes:
            self._switched.append(position)

    def _following(self, position: int) -> KnownValue:
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
            pc = self._history.entries[self._entry].pc(position - self._entry_begin)
        return None if pc == GAP else pc

    def _run_whole(self, path: AnyPath, following: KnownValue) -> None:
        if isinstance(path, RepeatPath):
            first = path.path.pc(0)
            for _ in range(path.times - 1):
                self._run_whole(path.path, first)
            self._run_whole(path.path, following)
            return
        runs = self._code.whole_run(path, following, (self.hart.physical, self._observed))
        if runs is None:
            self._run_piece(path, 0, path.count, following)
        else:
            self._execute(runs)

    def _execute(self, runs: Runs) -> None:
        at = self._at
        for run, count in runs:
            self._at = at
            run()
            at += count
        self._at = at

    def _run_piece(self, path: AnyPath, first: int, last: int, following: KnownValue) -> None:
        if isinstance(path, RepeatPath):
            self._run_repeated(path, first, last, following)
            return
        runs = self._code.piece_runs(path, first, last, following, (self.hart.physical, self._observed))
        if runs is not None:
            self._execute(runs)
            return
        begin = 0
        for part in path.parts:
            low, high = max(first - begin, 0), min(last - begin, len(part))
            if low < high:
                after = following if begin + high == last else path.pc(begin + high)
                if isinstance(part, tuple):
                    kind = self.hart.physical, self._observed
                    self._execute(self._code.runs(part[low:high], after, kind))
                elif low == 0 and high == len(part):
                    self._run_whole(part, after)
                else:
                    self._run_piece(part, low, high, after)
            begin += len(part)

    def _run_repeated(self, path: RepeatPath, first: int, last: int, following: KnownValue) -> None:
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

    # -- events

    def _forget_hart(self, position: int) -> None:
        """Forget everything. *position*: where the hart is now."""
        self.hart.forget_registers()
        self.memory.forget()
        if position < len(self._history):
            self.hart.privilege = self._history.context_at(position).prv

    def _happened(self) -> None:
        """Do what happens at the cut here."""
        position = self._position
        happening, halts = self._cuts.happening_at(position), list(self._cuts.happening_at(position).halts)
        if not halts and self._is_call(position - 1) and not any(isinstance(it.fact, Trap) for it in happening.events):
            self._forget_hart(position)
        self._use(self._program.image_of(self._history.context_at(position)))
        traps = 0
        for event in happening.events:
            fact = event.fact
            if is_lost(event, happening.halts):
                self._forget_hart(position)
            elif isinstance(fact, Trap):
                self._trap(event, fact, in_handler=traps > 0)
                traps += 1
            elif isinstance(fact, ContextChange):
                if "prv" in fact.changed:
                    self.hart.privilege = fact.now.prv
                if fact.now.virtual:
                    self.hart.bare = None
            elif isinstance(fact, Start) and fact.reason.resumes:
                self._apply(halts)
                halts.clear()
        self._apply(halts)
        if self.hart.is_physical != self.hart.physical:
            self._switch(position)

    def _is_call(self, position: int) -> bool:
        """Return whether an instruction calls an environment, which nothing is known of without a trap."""
        if not self._beginning.position <= position < len(self._history) or (pc := self._history.pc(position)) == GAP:
            return False
        return self._code.word(pc) in (0x73, 0x0010_0073, 0x9002)

    def _apply(self, halts: Sequence[HaltWrites]) -> None:
        """Write what a debugger wrote."""
        for halt in halts:
            self.hart.write(halt.registers)
            for address, content in halt.memory:
                self.memory.write(address, content)
            for address, size in halt.forgotten:
                self.memory.lose(address, size)

    def _trap(self, event: Event, trap: Trap, *, in_handler: bool) -> None:
        """Take a trap. *in_handler*: it hit the first instruction of the handler of another one."""
        mode = MACHINE if self._machine.machine_only or self.hart.privilege == MACHINE else None
        epc = None if in_handler else sequential_pc(self._history, self._program, event.position - 1)
        self.hart.trap(mode, epc, trap_cause(trap, self._machine.xlen), trap.value)
