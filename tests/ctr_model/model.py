"""Control Transfer Records as the two documents tell them, fed with what a hart executed: the independent model.

    model = Model(elf, "1.0")
    model.run([Write(0x34E, 7), Instruction(0x80000000, 3), ...])
    model.entries(), model.status

Sources: Control Transfer Records 1.0, "Behavior"; draft 0.1.4, chapter 5. Events come in the order of execution. Debug
Mode leaves none. An instruction's transfer is known from where the next event is, so each event waits for the one that
follows; `reach` says where the hart stands now.

Where the documents leave room: a smaller depth cuts bits off WRPTR (1.0: "unspecified but legal"); a draft's transfer
between V=0 and V=1 is configured by the register of the mode it leaves, and enabled by that of each mode.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.ctr_model.transfers import SCTRCLR, Code, Kind, length
from tests.ctr_model.versions import DRAFT_DEPTHS, VERSIONS

VIRTUAL = 4
BREAKPOINT, LCOFI = 3, 13
_COUNTER_BITS = {0: 12, 1: 13, 2: 15, 3: 19, 4: 27}


class Instruction(NamedTuple):
    """An instruction that retired, in *mode* (as `priv`: bits 1:0, bit 2: V), when mcycle became *cycle*.

    taken: of a branch to the very next instruction, where addresses do not say it
    """

    pc: int
    mode: int
    cycle: int = 0
    taken: bool | None = None


class Trap(NamedTuple):
    """A trap out of *mode*; *pc*: what xepc got. The instruction of an exception did not retire."""

    pc: int
    mode: int
    cause: int
    interrupt: bool
    cycle: int = 0


class Write(NamedTuple):
    """A CSR was written, by the instruction before or by a debugger; *virtual*: with V=1."""

    csr: int
    value: int
    virtual: bool = False


Event = Instruction | Trap | Write
Entry = tuple[int, int, int]
"""ctrsource, ctrtarget, ctrdata."""


class Model:
    """One hart.

    depths         what the hart can
    writable       bits of the control register that exist; None: all that are defined
    exponent_bits  of CCE; None: no cycles are counted
    """

    def __init__(
        self, elf: Path, version: str, *, depths: tuple[int, ...] = (16, 32, 64, 128, 256),
        writable: int | None = None, exponent_bits: int | None = None, zcm: bool = False,
    ) -> None:  # fmt: skip
        self.bits = VERSIONS[version]
        self.code = Code(elf, zcm=zcm)
        self.control = self.vs_control = 0
        self.depth = depths[0]
        self.wrptr, self.wrap, self.frozen = 0, False, False
        self._depths = depths
        self._writable = self.bits.defined if writable is None else writable
        self._array: list[Entry] = [(0, 0, 0)] * 256
        self._when = [0] * 256
        self._happened = 0
        self._selected = dict.fromkeys(self.bits.selects, 0)
        self._waiting: Instruction | Trap | None = None
        self._writes: list[Write] = []
        self._limit = None if exponent_bits is None else (1 << _COUNTER_BITS[exponent_bits]) - 1
        self._cycles, self._counted, self._clock = 0, False, 0

    def run(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, Write):
                self._writes.append(event)
            else:
                self.reach(event.pc, event.mode)
                self._waiting = event

    def reach(self, pc: int, mode: int) -> None:
        """The hart is at *pc*, before what is there."""
        event, self._waiting = self._waiting, None
        self._happened += event is not None
        if isinstance(event, Instruction):
            self._instruction(event, pc, mode)
        elif isinstance(event, Trap):
            self._trap(event, pc, mode)
        for write in self._writes:
            self._write(write)
        self._writes = []

    def entries(self) -> list[Entry]:
        """All of the depth, youngest first, empty ones too."""
        return [self._array[self._place(entry)] for entry in range(self.depth)]

    def when(self) -> list[int]:
        """For each entry: it was recorded at that of the events, from 1, without the writes."""
        return [self._when[self._place(entry)] for entry in range(self.depth)]

    @property
    def status(self) -> int:
        """sctrstatus, or mctrstatus."""
        wrap = 0 if self.bits.wrap is None else int(self.wrap) << self.bits.wrap
        return self.wrptr | int(self.frozen) << self.bits.frozen | wrap

    # What happened

    def _instruction(self, event: Instruction, pc: int, mode: int) -> None:
        self._count(event)
        word = self.code.word(event.pc)
        kind = self.code.kind(word)
        if word == SCTRCLR and self.bits.clr is None:
            self._clear()
        elif kind is Kind.TRAP_RETURN:
            if self._enabled(event.mode):
                self._record(kind, event.mode, mode, event.pc, pc if self._enabled(mode) else None)
        elif kind is not None and self._enabled(event.mode):
            if kind is Kind.TAKEN_BRANCH and not self._taken(event, word, pc):
                kind = Kind.NOT_TAKEN_BRANCH
            self._record(kind, event.mode, event.mode, event.pc, pc)

    def _taken(self, event: Instruction, word: int, pc: int) -> bool:
        return event.taken if event.taken is not None else pc != event.pc + length(word)

    def _trap(self, event: Trap, pc: int, mode: int) -> None:
        self._count(event)
        kind = Kind.INTERRUPT if event.interrupt else Kind.EXCEPTION
        if self._freezes(event, mode):
            self.frozen = True
        elif self._enabled(mode):
            self._record(kind, event.mode, mode, event.pc if self._enabled(event.mode) else None, pc)
        elif self._enabled(event.mode) and self._external(event.mode, mode):
            self._record(kind, event.mode, mode, event.pc, None, external=True)

    def _freezes(self, event: Trap, mode: int) -> bool:
        """ "Freeze": by the register of the mode that is trapped to (1.0), by the active one (draft)."""
        control = self._of(mode if self.bits.eten is None else event.mode)
        if event.interrupt:
            return event.cause == LCOFI and bool(control >> self.bits.lcofifrz & 1)
        return event.cause == BREAKPOINT and bool(control >> self.bits.bpfrz & 1)

    def _external(self, source: int, target: int) -> bool:
        """ "External Traps": whether one out of *source* is recorded although *target* is not enabled."""
        mte = bool(self.control >> self.bits.mte & 1)
        ste, vste = bool(self.control >> self.bits.ste & 1), bool(self.vs_control >> self.bits.ste & 1)
        to = {3: mte, 1: ste, 1 | VIRTUAL: vste}
        if self.bits.eten is not None:  # the draft
            return to[target] and bool(self._of(source) >> self.bits.eten & 1)
        ladder = [VIRTUAL, 1 | VIRTUAL, 1, 3] if source & VIRTUAL else [0, 1, 3]
        return all(to[mode] for mode in ladder[ladder.index(source) + 1 : ladder.index(target) + 1])

    # What is recorded

    def _of(self, mode: int) -> int:
        return self.vs_control if mode & VIRTUAL else self.control

    def _enabled(self, mode: int) -> bool:
        bit = (self.bits.vs_modes if mode & VIRTUAL else self.bits.modes)[mode & 3]
        return bool(self._of(mode) >> bit & 1)

    def _record(
        self, kind: Kind, source_mode: int, target_mode: int, source: int | None, target: int | None,
        *, external: bool = False,
    ) -> None:  # fmt: skip
        if self.frozen:
            return
        virtual = source_mode & VIRTUAL or (self.bits.eten is None and target_mode & VIRTUAL)
        control = self.vs_control if virtual else self.control
        if control >> self.bits.rasemu & 1:
            self._emulate(kind, source, target)
        elif external:
            self._push(kind, source, target)  # whatever EXCINH and INTRINH are
        elif bool(control >> (32 + kind) & 1) == (kind is Kind.NOT_TAKEN_BRANCH):
            self._push(kind, source, target)

    def _emulate(self, kind: Kind, source: int | None, target: int | None) -> None:
        """RAS emulation mode."""
        if kind in (Kind.FUNCTION_RETURN, Kind.COROUTINE_SWAP):
            self._pop()
        if kind in (Kind.INDIRECT_CALL, Kind.DIRECT_CALL, Kind.COROUTINE_SWAP):
            self._push(kind, source, target)

    def _push(self, kind: Kind, source: int | None, target: int | None) -> None:
        self._array[self.wrptr] = ((source or 0) | 1, target or 0, kind | self._cycle_count())
        self._when[self.wrptr] = self._happened
        self.wrap |= self.wrptr == self.depth - 1
        self.wrptr = (self.wrptr + 1) % self.depth
        self._cycles, self._counted = 0, True

    def _pop(self) -> None:
        self.wrap &= self.wrptr != 0
        self.wrptr = (self.wrptr - 1) % self.depth
        source, target, data = self._array[self.wrptr]
        self._array[self.wrptr] = (source & ~1, target, data)
        known = bool(source & data >> 15 & 1)  # a return too many pops no call
        self._counted &= known
        self._add(_decoded(data >> 16 & 0xFFFF) if known else 0)

    def _place(self, entry: int) -> int:
        return (self.wrptr - 1 - entry) % self.depth

    # "Cycle Counting"

    def _count(self, event: Instruction | Trap) -> None:
        elapsed, self._clock = event.cycle - self._clock, event.cycle
        if self._enabled(event.mode) and not self.frozen:
            self._add(elapsed)

    def _add(self, cycles: int) -> None:
        if self._limit is not None:
            self._cycles = min(self._cycles + cycles, self._limit)

    def _cycle_count(self) -> int:
        """CCV and CC in their places of ctrdata."""
        if self._limit is None or not self._counted:
            return 0
        cce = max(self._cycles.bit_length() - 12, 0)
        ccm = self._cycles if cce == 0 else self._cycles >> (cce - 1) & 0xFFF
        return 1 << 15 | (cce << 12 | ccm) << 16

    # CSRs

    def _write(self, write: Write) -> None:
        if write.csr in self.bits.control:
            high = self.code.xlen == 32
            self._write_control(self.bits.control[write.csr], write, 0xFFFFFFFF if high else (1 << 64) - 1, 0)
        elif write.csr in self.bits.high:
            self._write_control(self.bits.high[write.csr], write, 0xFFFFFFFF << 32, 32)
        elif write.csr in self.bits.status:
            self.wrptr = write.value & 0xFF & (self.depth - 1)
            self.frozen = bool(write.value >> self.bits.frozen & 1)
            self.wrap = self.bits.wrap is not None and bool(write.value >> self.bits.wrap & 1)
        elif write.csr == self.bits.depth_csr:
            self._resize(16 << (write.value & 7))
        else:
            self._write_entry(write)

    def _write_control(self, which: str, write: Write, part: int, shift: int) -> None:
        virtual = which == "vs" or (which == "s" and write.virtual)
        keep = ~part | (self.bits.hidden_from_s if which != "m" else 0)
        old = self.vs_control if virtual else self.control
        new = (old & keep | write.value << shift & part & ~keep) & self._writable
        self._cycles, self._counted = 0, False
        if virtual:
            self.vs_control = new & ~self.bits.hidden_from_s
            acts = write.virtual
        else:
            self.control = new
            acts = True
            if self.bits.depth_csr is None:
                self._resize(DRAFT_DEPTHS.get(new >> 16 & 0xF, self.depth))
        if self.bits.clr is not None and shift == 0 and write.value >> self.bits.clr & 1 and acts:
            self._clear()
            self.wrptr, self.wrap, self.frozen = 0, False, False

    def _resize(self, depth: int) -> None:
        if depth in self._depths:
            self.depth = depth
            self.wrptr &= depth - 1

    def _write_entry(self, write: Write) -> None:
        for select, distance in self.bits.selects.items():
            field = write.csr - 0x151 - distance
            selected = 0x250 if write.virtual and select == 0x150 else select
            if write.csr == select:
                self._selected[selected] = write.value
            elif 0 <= field < 3 and 0 <= (entry := self._selected[selected] - 0x200) < self.depth:
                old = list(self._array[self._place(entry)])
                old[field] = write.value & (0xFFFF800F if field == 2 else (1 << self.code.xlen) - 1)
                self._array[self._place(entry)] = (old[0], old[1], old[2])

    def _clear(self) -> None:
        self._array = [(0, 0, 0)] * 256
        self._cycles, self._counted = 0, False


def _decoded(cc: int) -> int:
    """ "Cycle Counting": what a CC field says."""
    cce, ccm = cc >> 12, cc & 0xFFF
    return ccm if cce == 0 else (4096 + ccm) << (cce - 1)
