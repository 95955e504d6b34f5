"""What an N-Trace encoder knows between two messages: each part of its state is a value with a name.

Source: RISC-V N-Trace 1.0, "Field Encoding and Calculation Techniques", "SYNC Field Values", "ResourceFull Message".
"""

from rvtrace_gdb.decode.executed.encoder_ingress import Block
from rvtrace_gdb.decode.ntrace.messages import UNREQUESTED, Sync
from rvtrace_gdb.decode.ntrace.options import EncoderOptions, InstSyncMode
from rvtrace_gdb.decode.program.csrs import ProgramContext

NO_BLOCK = Block(0, b"")
"""An empty block, about which nothing is pending."""


class Registers:
    """The registers whose values messages report.

    icnt       halfwords since the last message that reported I-CNT
    hist       outcomes of branches since the last message that reported HIST, after the stop bit
    reference  the last address that was sent, to which U-ADDR is relative
    icnt_full  the least value of I-CNT at which it is reported
    hist_full  the least value of HIST at which it is reported the next time
    chunks     the numbers of branches after which HIST is reported, from now on
    """

    __slots__ = ("_at_once", "_hist_bits", "chunks", "hist", "hist_full", "icnt", "icnt_full", "reference")

    def __init__(self, options: EncoderOptions) -> None:
        self._at_once = options.full_at_once
        self._hist_bits = options.hist_limit - 1
        self.icnt_full = options.icnt_limit + (0 if options.full_at_once else 1)
        self.chunks = list(options.hist_chunks)
        self.next_chunk()
        self.reference = 0
        self.clear()

    def clear(self) -> None:
        """Clear I-CNT and HIST, because a message has reported both."""
        self.icnt, self.hist = 0, 1

    def next_chunk(self) -> None:
        """Take the next number of branches after which HIST is reported; the last one remains."""
        bits = self.chunks[0] if self.chunks else self._hist_bits
        if len(self.chunks) > 1:
            del self.chunks[0]
        self.hist_full = 1 << (bits if self._at_once else bits + 1)


class PendingBlock:
    """The last block, whose outcome depends on where execution continues.

    split           I-CNT was reported between its last two instructions
    icnt_postponed  I-CNT is full, and is reported after the message for this block
    """

    __slots__ = ("block", "icnt_postponed", "split")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget the block."""
        self.block = NO_BLOCK
        self.split = self.icnt_postponed = False


class SyncRequests:
    """The synchronizing messages that are to be sent.

    starting      the reason of the one with which tracing starts, before the next block
    due           the reason of the one to send at the next opportunity
    further       the reasons of those after it
    synchronized  whether one has been sent since the last block
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Drop all requests."""
        self.starting: Sync | None = None
        self.due: Sync | None = None
        self.further: list[Sync] = []
        self.synchronized = False

    def add(self, sync: Sync) -> None:
        """Request one for this reason."""
        if self.due is None or self.due in UNREQUESTED:
            self.due = sync
        else:
            self.further.append(sync)

    def period_over(self) -> None:
        """Request a periodic one, unless one is due."""
        if self.due is None:
            self.due = Sync.PERIODIC

    def sent(self, reason: Sync) -> None:
        """Note that one was sent for this reason."""
        if self.due is reason or self.due in UNREQUESTED:
            self.due = self.further.pop(0) if self.further else None
        self.synchronized = True


class SyncTimer:
    """Counts cycles or halfwords between synchronizing messages.

    period  how many there are between two of them
    since   how many there were since the last one
    """

    def __init__(self, options: EncoderOptions, requests: SyncRequests) -> None:
        self._requests = requests
        self.counts_halfwords = options.sync_mode is InstSyncMode.HALFWORDS
        self.counts_cycles = options.sync_mode is InstSyncMode.CYCLES
        self.period = options.sync_period
        self.since = 0

    def unit(self, cycle_each: bool) -> int:
        """Return what `retired` counts: 1 for halfwords, 2 for instructions, 0 for nothing."""
        return 1 if self.counts_halfwords else 2 * cycle_each

    def retired(self, block: Block, cycle_each: bool) -> None:
        """Count a block. *cycle_each*: each of its instructions takes a cycle; else the cycles are spent elsewhere."""
        if self.counts_halfwords:
            self.spend(block.halfwords)
        elif cycle_each:
            self.spend(block.instructions)

    def spend(self, units: int) -> None:
        """Count cycles or halfwords, and request a periodic synchronization when the period is over."""
        self.since += units
        if self.since >= self.period:
            self._requests.period_over()


class ReportedContext:
    """The context of the hart: as it is, and as Ownership messages reported it last."""

    __slots__ = ("current", "sent")

    def __init__(self) -> None:
        self.current = self.sent = ProgramContext()
