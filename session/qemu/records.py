"""From the words of a hart's ring (transport/qemu/plugin/plugin.c) to what an encoder takes.

A block that was entered is given out when it is known what became of it: it ran to its end, or was left when some of
its instructions had begun. The last of these retired, unless

* it caused the exception that comes next, or
* execution goes on with it though it cannot lead to itself: QEMU takes back an instruction that changes its own block,
  hits a watchpoint, or has to be executed alone, and begins it anew.

Sources: QEMU 10, accel/tcg/translate-all.c (cpu_io_recompile), accel/tcg/tb-maint.c (the TB invalidates itself),
system/watchpoint.c; target/riscv/cpu_helper.c (riscv_cpu_do_interrupt).
"""

from array import array
from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.history import Context
from rvtrace_gdb.decode.ingress import Block, Trap
from rvtrace_gdb.decode.instructions import Instruction, IType
from rvtrace_gdb.session.qemu.code import Code, Entered, may_follow
from rvtrace_gdb.transport.qemu.errors import QemuError
from rvtrace_gdb.transport.qemu.ring import BEGIN, BLOCK, DATA, FIELD, PARTIAL, TAG, TRAP, TRAP_WORDS

_ALL = -1
_MOST_TRAPS = 32
"""Of a handler that itself traps, for ever: the first ones and the newest are kept, as the plugin has it."""
_HINDERED = Entered(0, 0, [Instruction(2, IType.NONE)], 64)
_CAUSE_MASK = 0x7FFF_FFFF  # old versions leave the top bit of an interrupt in


class Jumped(NamedTuple):
    """Execution went on at *pc* though the code does not lead there: somebody set pc, or reset the machine."""

    pc: int


class Happened(NamedTuple):
    """A trap whose handler the next block, or the next trap, tells."""

    interrupt: bool
    epc: int
    cause: int
    tval: int


Item = Block | Trap | Context | Jumped


class Records:
    """What one hart ran, told in pieces. *code*: the blocks. *contexts*: privilege modes are told, too."""

    def __init__(self, code: Code, *, contexts: bool = False) -> None:
        self._code, self._contexts = code, contexts
        self._out: list[Item] = []
        self._last: Entered | None = None  # entered last
        self._count = _ALL  # of its instructions, how many had begun
        self._traps: list[Happened] = []
        self._data: list[int] = []  # of a trap that is being read
        self._interrupt = False
        self._block: Block | None = None  # given out last, if nothing came after it
        self._mode: Context | None = None

    def feed(self, words: "array[int]") -> list[Item]:
        """What is known by now, oldest first. Raises QemuError."""
        out: list[Item] = []
        self._out = out
        append, blocks = out.append, self._code.blocks
        last, given = self._unhindered(), self._block
        for word in words:
            if word < DATA:
                if word >= len(blocks):
                    self._code.refresh()
                entered = self._entered(word) if word >= len(blocks) else blocks[word]
                if entered in last.followers:
                    given = last.block
                    append(given)
                    last = entered
                    continue
                if last is not _HINDERED:
                    self._last, self._block = last, given
                self._enter(entered)
            else:
                if last is not _HINDERED:
                    self._last, self._block = last, given
                self._other(word)
            last, given = self._unhindered(), self._block
        if last is not _HINDERED:
            self._last, self._block = last, given
        return out

    def _unhindered(self) -> Entered:
        """The block that was entered last if it goes without saying that it is given out when one of its `followers` is
        entered.
        """
        last, block = self._last, self._block
        if last is None or self._count != _ALL or self._traps:
            return _HINDERED
        return last if block is None or may_follow(block, last.pc) else _HINDERED

    def _enter(self, entered: Entered) -> None:
        last = self._last
        if last is not None and self._count == _ALL and not self._traps and last.repeated != entered.pc:
            self._give(last.block)
            if may_follow(last.block, entered.pc) and last.mode == entered.mode:
                last.followers.add(entered)
        else:
            self._settle(entered.pc)
        if self._contexts and entered.mode != self._mode and entered.mode is not None:
            self._mode = entered.mode
            self._out.append(entered.mode)
        self._last, self._count = entered, _ALL

    def open_end(self, began: int) -> list[Item]:
        """What of the block that was entered last retired, when *began* of its instructions have begun and the program
        is stopped. `feed` will tell it again.
        """
        last, kept = self._last, (self._count, self._block)
        if last is None:
            return []
        out: list[Item] = []
        self._out = out
        if self._count == _ALL:
            self._count = min(began, len(last))
        traps, self._traps = self._traps, self._traps[:1]
        self._finish(self._traps[0].epc if self._traps else _ALL, last)
        self._traps = traps
        self._count, self._block = kept
        return out

    def _entered(self, number: int) -> Entered:
        try:
            return self._code.blocks[number]
        except IndexError:
            raise QemuError(self._code.why_missing(number)) from None

    def _other(self, word: int) -> None:
        tag = word & TAG
        if tag == PARTIAL:
            self._count = word & FIELD
        elif tag == TRAP and word & BEGIN:
            self._last, self._block, self._traps = None, None, []
        elif tag == TRAP:
            self._data, self._interrupt = [], bool(word & 1)
        elif tag == DATA:
            self._data.append(word & FIELD)
            if len(self._data) == TRAP_WORDS:
                epc, cause, tval = (sum(self._data[i + n] << 30 * n for n in range(3)) for i in (0, 3, 6))
                if len(self._traps) == _MOST_TRAPS:
                    self._traps.pop()
                self._traps.append(Happened(self._interrupt, epc, cause & _CAUSE_MASK, tval))

    def _settle(self, pc: int) -> None:
        """What became of the block before, now that one is entered at *pc*."""
        if self._last is not None:
            self._finish(self._traps[0].epc if self._traps else pc, self._last)
            self._out += self._handled(pc)
        self._traps = []

    def _handled(self, pc: int) -> Iterator[Trap]:
        """The traps, the last of which led to *pc*."""
        for number, trap in enumerate(self._traps, 1):
            handler = self._traps[number].epc if number < len(self._traps) else pc
            self._block = None
            yield Trap(trap.epc, trap.interrupt, trap.cause, trap.tval, handler)

    def _finish(self, then: int, last: Entered) -> None:
        """*then*: where execution went on."""
        count = len(last) if self._count == _ALL else self._count
        if count and then == last.pcs[count - 1]:
            excepted = bool(self._traps) and not self._traps[0].interrupt
            if excepted or not last.may_stay(count):
                count -= 1
        if count:
            self._give(last.part(0, count))

    def _give(self, block: Block) -> None:
        if self._block is not None and not may_follow(self._block, block.pc):
            self._out.append(Jumped(block.pc))
        self._out.append(block)
        self._block = block


assert BLOCK == 0, "feed tells blocks by their words being below DATA"
