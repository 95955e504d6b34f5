"""Encodes what was encoded before in the compiled kernel, and what is new in the encoder, which says what is to be
remembered.

The kernel counts, and looks up the message where one is due (decode/kernel/encoder/encoder.h). What it does not know,
the encoder of the format encodes, as without a kernel; the message that it sends is remembered for the counters that it
had. So every rule of a format is in its encoder alone. Between two calls the kernel keeps only what it remembers.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import IntEnum, IntFlag
from typing import Any, NamedTuple

from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.program.csrs import ProgramContext

EncoderItem = Block | IngressTrap | ProgramContext
Emit = Callable[[bytes], None]


class BlockEnd(IntFlag):
    """What a block's end means for an encoder: `enum BlockFlag` of the kernel."""

    OUTCOME = 1
    REPORT = 2
    ALWAYS = 4
    JUMP = 8
    PUSH = 16
    POP = 32
    INFERRED = 64
    ALONE = 128
    TRAP = 256
    INTERRUPT = 512


class EncoderCounter(IntFlag):
    """What a message depends on, or changes: `enum Counter` of the kernel."""

    NONE = 0
    ICNT = 1
    HIST = 2
    REFERENCE = 4
    PC = 8


class LoopEvent(IntEnum):
    """What a message is due for: `enum Event` of the kernel."""

    HISTORY_FULL = 1
    TAKEN = 2
    JUMPED = 3
    EXCEPTED = 4
    INTERRUPTED = 5


class FormField(IntEnum):
    """What a field of a message contains: `enum FieldSource` of the kernel."""

    ICNT = 0
    HIST = 1
    ADDRESS = 2
    DELAY = 3


class EventCounters(NamedTuple):
    """Which counters count, by event: a full history, a branch that is reported, a jump or a trap."""

    full: EncoderCounter
    taken: EncoderCounter
    jump: EncoderCounter


class LoopCounters(NamedTuple):
    """The registers of an encoder as the kernel has them. *hist*: outcomes, the newest in bit 0, after a stop bit.

    now, sent        the time, and that of the last message
    messages, since  of the period that ends with a synchronization
    """

    icnt: int
    hist: int
    reference: int
    now: int
    sent: int
    messages: int
    since: int


class CountingLimits(NamedTuple):
    """Where the kernel stops, for the encoder to do what is due: values of the counters."""

    icnt: int
    hist: int
    messages: int
    since: int


_NEW_ITEM, _NEW_STEP, _PERIOD_OVER, _NEW_LAST = 1, 2, 4, 5  # enum EncoderStop
_MOST = (1 << 64) - 1
_MOST_STEPS, _MOST_BLOCKS, _MOST_TRAPS = 1 << 17, 1 << 18, 1 << 10
MOST_CALLS = 1 << 16
LARGEST = 1 << 62
"""Clocks are below this number; encoders with larger ones do without the kernel."""


class KernelLoop(ABC):
    """The items of one encoder, through the kernel.

    *uses*, *changes*: the counters that messages depend on and change. *calls*: how many return addresses are kept, and
    their mask. *timed*: messages also depend on the time since the last one. *traps*: a trap is reported as a jump is.
    """

    def __init__(
        self, kernel: Any, uses: EventCounters, changes: EventCounters, limits: CountingLimits,
        calls: tuple[int, int] = (0, 0), *, timed: bool, traps: bool = False,
    ) -> None:  # fmt: skip
        clipped = (min(limit, _MOST) for limit in limits)
        events = (bytes((0, *counters, counters.jump, counters.jump)) for counters in (uses, changes))
        self._known = kernel.Encoder(*events, *clipped, calls[1], calls[0], timed)
        self._traps: dict[int, IngressTrap] | None = {} if traps else None  # by identity: seen once

    def _set_form(
        self, event: LoopEvent, head: tuple[int, int, int], fields: Sequence[FormField], address_mask: int, delay: int
    ) -> None:
        """Let the kernel make the messages of an event. *head*: the bits before the first field, how many they are, and
        how many that field has at least. *delay*: the mask of a time.
        """
        self._known.form(event, *head, bytes(fields), address_mask, delay & _MOST)

    @abstractmethod
    def _is_quiet(self) -> bool:
        """Return whether nothing is due, so that only the end of the last block can cause a message."""

    @abstractmethod
    def _last_block(self) -> Block:
        """Return the block whose outcome is not known yet."""

    @abstractmethod
    def _counters(self) -> LoopCounters:
        """Return the registers of the encoder."""

    @abstractmethod
    def _set_counters(self, counters: LoopCounters, last: EncoderItem) -> None:
        """Set the registers of the encoder."""

    def _calls(self) -> tuple[int, ...]:
        """Return the return addresses that the encoder keeps, the oldest first."""
        return ()

    def _set_calls(self, calls: tuple[int, ...]) -> None:
        """Set the return addresses that the encoder keeps."""
        assert not calls

    @abstractmethod
    def _block_end(self, block: Block) -> tuple[int, int]:
        """Return the `BlockEnd` of *block*, and the target that is inferred (-1: none)."""

    @abstractmethod
    def _encode(self, item: EncoderItem) -> list[bytes]:
        """Encode an item without the kernel. Return the messages that were sent."""

    @abstractmethod
    def _send_all(self, messages: list[bytes]) -> None:
        """Send messages that were made before."""

    @abstractmethod
    def _before(self, item: EncoderItem) -> tuple[int, int] | None:
        """Return I-CNT and HIST as they were before *item* was counted, which was encoded last; None: they are not
        known.
        """

    @abstractmethod
    def _period_over(self) -> None:
        """Note that a period is over."""

    def retire(self, items: Sequence[EncoderItem], begin: int, count_time: int, count_period: int) -> None:
        """Encode the items from *begin* on.

        *count_time*: whether each instruction takes one unit of time. *count_period*: what counts for the period: 1 for
        halfwords, 2 for instructions, else 0.
        """
        listed = items if isinstance(items, list) else list(items)
        at, end = begin, len(listed)
        while at < end:
            if not self._is_quiet():
                self._encode(listed[at])
                at += 1
                continue
            stop, at = self._run(listed, at, count_time, count_period)
            if stop == _NEW_LAST:
                self._add(self._last_block())
            elif stop == _PERIOD_OVER:
                self._period_over()
            elif at < end:
                at += self._step(listed[at], stop)

    def _run(self, items: list[Any], at: int, count_time: int, count_period: int) -> tuple[int, int]:
        out: list[bytes] = []
        last, calls = self._last_block(), self._calls()
        stop, after, *counters, calls_after = self._known.run(
            items, at, out, last, self._counters(), calls, count_time, count_period
        )
        if after > at:
            self._set_counters(LoopCounters(*counters), items[after - 1])
            self._set_calls(calls_after)
        if out:
            self._send_all(out)
        return stop, after

    def _step(self, item: EncoderItem, stop: int) -> int:
        """Do what the kernel cannot. Return how many items were encoded by it."""
        if stop == _NEW_ITEM and (isinstance(item, Block) or self._is_usual(item)):
            self._add(item)
            return 0
        sent = self._encode(item)
        most = 1 if isinstance(item, Block) else 2  # a trap's may follow that of the block before
        counters = self._before(item) if stop == _NEW_STEP and 1 <= len(sent) <= most else None
        if counters is not None and self._known.learn(sent[-1], *counters) > _MOST_STEPS:
            self._known.forget()
        return 1

    def _is_usual(self, item: EncoderItem) -> bool:
        """Return whether *item* is a trap that was there before, the same object."""
        if self._traps is None or not isinstance(item, IngressTrap):
            return False
        if self._traps.get(id(item)) is item:
            return True
        if len(self._traps) > _MOST_TRAPS:
            self._traps.clear()
        self._traps[id(item)] = item
        return False

    def _add(self, item: EncoderItem) -> None:
        if isinstance(item, Block):
            flags, inferred = self._block_end(item)
            facts = item.pc, item.fall, inferred & _MOST, item.halfwords, item.instructions, int(flags)
        elif isinstance(item, IngressTrap):
            flags = BlockEnd.TRAP | (BlockEnd.INTERRUPT if item.interrupt else 0)
            facts = item.epc, item.epc, item.handler, 0, 0, int(flags)
        else:
            return
        if self._known.add(item, *facts) > _MOST_BLOCKS:
            self._known.forget()
