"""A software N-Trace encoder: retired blocks and traps in, messages out, in HTM mode.

Source: RISC-V N-Trace 1.0.0-rc7, chapters 8 and 10. Where the ratified 1.0 differs its rule is followed: every
synchronizing message resets the encoder, a full I-CNT is a ResourceFull. Where the documents leave freedom,
`EncoderOptions` names it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from decode.ingress import BRANCH, PLAIN, UNINFERABLE, Block, Trap
from decode.ntrace.layout import LAYOUTS, MAX_SRC_BITS, BType, Rcode, Sync, Tcode
from decode.ntrace.packing import build, pack

# As plain numbers: an enumeration's member costs more to hash than the message to build.
_INDIRECT_BRANCH, _INDIRECT_BRANCH_HIST = int(Tcode.INDIRECT_BRANCH), int(Tcode.INDIRECT_BRANCH_HIST)
_RESOURCE_FULL, _HIST, _JUMP = int(Tcode.RESOURCE_FULL), int(Rcode.HIST), int(BType.JUMP)


class SyncMode(IntEnum):
    """trTeInstSyncMode: what the period of synchronizing messages is counted in."""

    OFF = 0
    MESSAGES = 1
    CYCLES = 2
    HALFWORDS = 3


@dataclass(frozen=True)
class EncoderOptions:
    """How the encoder is built and configured.

    src_bits, src_id          width and value of SRC (trTeSrcBits, trTeSrcID)
    icnt_limit                I-CNT at which the counter is full, in halfwords
    hist_limit                bits of the HIST register, stop bit included (table 10: at most 32)
    full_at_once              report a register in the moment it is full (7.8, 8.3.1); else when the next instruction
                              does not fit, as the reference encoder does
    icnt_full_sync            rc7's other way to report a full I-CNT while HIST is not empty: SYNC=4 (8.4.4)
    sync_mode, sync_max       synchronize after every 2**(sync_max + 4) units (trTeInstSyncMode, trTeInstSyncMax)
    b_type_extended           tell exceptions (2) from interrupts (3); else both are 1
    indirect_without_hist     IndirectBranch in place of IndirectBranchHist while HIST is empty (chapter 10, rule 4)
    correlation_without_hist  CDF=0 in place of an empty HIST in ProgTraceCorrelation: what the reference encoder does,
                              against table 23
    """

    src_bits: int = 0
    src_id: int = 0
    icnt_limit: int = 1 << 16
    hist_limit: int = 32
    full_at_once: bool = True
    icnt_full_sync: bool = False
    sync_mode: SyncMode = SyncMode.OFF
    sync_max: int = 0
    b_type_extended: bool = True
    indirect_without_hist: bool = False
    correlation_without_hist: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.src_bits <= MAX_SRC_BITS:
            raise ValueError(f"SRC cannot have {self.src_bits} bits, the maximum is {MAX_SRC_BITS}")
        if not 0 <= self.src_id < 1 << self.src_bits:
            raise ValueError(f"src_id {self.src_id} does not fit in {self.src_bits} bits")
        if self.icnt_limit < 1 or self.hist_limit < 3:
            raise ValueError("icnt_limit must be at least 1 and hist_limit at least 3")


class Encoder:
    """Encodes one hart. `emit` gets the bytes of one message at a time.

    Between `start` and `stop` the hart's retired blocks and traps go to `retire`, in order, in batches of any size;
    outside, `retire` ignores them.
    """

    def __init__(self, options: EncoderOptions, emit: Callable[[bytes], None]) -> None:
        self.options = options
        self._emit = emit
        self._src_bits, self._src_id = options.src_bits, options.src_id
        self._by_messages = options.sync_mode is SyncMode.MESSAGES
        self._hist_full = 1 << (options.hist_limit - 1 if options.full_at_once else options.hist_limit)
        self._icnt_full = options.icnt_limit if options.full_at_once else options.icnt_limit + 1
        self._period = 1 << (options.sync_max + 4)
        self._tracing = False
        self._starting: Sync | None = None
        self._due: Sync | None = None  # a synchronizing message goes out at the next opportunity
        self._messages = 0  # since the last synchronizing message
        self._spent = 0  # cycles or halfwords since the last synchronizing message
        self._icnt = 0
        self._hist = 1
        self._reference = 0
        self._ending = PLAIN  # of the last block, whose outcome the next pc will tell
        self._fall = 0

    def start(self, sync: Sync) -> None:
        """Tracing starts: what retires next is announced by a ProgTraceSync with this reason."""
        self._tracing = True
        self._starting = sync
        self._due = None
        self._icnt, self._hist, self._ending = 0, 1, PLAIN

    def mark(self, sync: Sync) -> None:
        """Asks for a synchronizing message with this reason (a trigger, for one) at the next block boundary."""
        self._due = sync

    def error(self, etype: int = 0, ecode: int = 0) -> None:
        """Messages were lost on the way out: says so and starts again (7.4)."""
        self._send(Tcode.ERROR, etype=etype, ecode=ecode)
        self.start(Sync.RESTART_FROM_FIFO_OVERRUN)

    def retire(self, items: Sequence[Block | Trap], next_pc: int | None = None, cycles: int | None = None) -> None:
        """What the hart retired next. *next_pc*, where known, lets the last block's message out at once.

        *cycles*: clock cycles these took; one per instruction unless told.
        """
        if not self._tracing:
            return
        if self._starting is not None and items:
            first = items[0]
            self._announce(first.pc if isinstance(first, Block) else first.epc)
        self._retire(items, cycles)
        if next_pc is not None:
            self._settle(next_pc)

    def stop(self, evcode: int, next_pc: int | None = None) -> None:
        """Tracing stops before the instruction at *next_pc* (None: not known). *evcode*: why, see `Evcode`."""
        if not self._tracing:
            return
        if next_pc is not None:
            if self._starting is not None:
                self._announce(next_pc)
            self._due = None
            self._settle(next_pc)
        with_hist = not (self.options.correlation_without_hist and self._hist == 1)
        self._send(Tcode.PROG_TRACE_CORRELATION, evcode=evcode, cdf=int(with_hist), icnt=self._icnt, hist=self._hist)
        self._tracing, self._starting = False, None
        self._icnt, self._hist, self._ending = 0, 1, PLAIN

    def _retire(self, items: Sequence[Block | Trap], cycles: int | None) -> None:
        """The hot path: registers in locals, methods only where something is sent."""
        mode, period = self.options.sync_mode, self._period
        by_halfwords = mode is SyncMode.HALFWORDS
        counting = by_halfwords or (mode is SyncMode.CYCLES and cycles is None)
        hist_full, icnt_full = self._hist_full, self._icnt_full
        icnt, hist, ending, fall = self._icnt, self._hist, self._ending, self._fall
        if mode is SyncMode.CYCLES and cycles is not None:
            self._count(cycles)
        for item in items:
            if isinstance(item, Block):
                if ending == BRANCH:
                    hist = hist << 1 | (item.pc != fall)
                    if hist >= hist_full:
                        hist = self._send_full_hist(hist)
                if self._due is not None:
                    icnt, hist = self._send_sync(_JUMP, icnt, item.pc, hist)
                elif ending == UNINFERABLE:
                    icnt, hist = self._send_indirect(_JUMP, icnt, item.pc, hist)
                icnt += item.halfwords
                if icnt >= icnt_full:
                    icnt, hist = self._send_full_icnt(icnt - item.halfwords, hist, item)
                ending, fall = item.ending, item.fall
                if counting:
                    self._spent += item.halfwords if by_halfwords else item.instructions
                    if self._spent >= period:
                        self._due = Sync.PERIODIC
            else:
                self._icnt, self._hist, self._ending, self._fall = icnt, hist, ending, fall
                self._trap(item)
                icnt, hist, ending = self._icnt, self._hist, PLAIN
        self._icnt, self._hist, self._ending, self._fall = icnt, hist, ending, fall

    def _count(self, units: int) -> None:
        self._spent += units
        if self._spent >= self._period:
            self._due = Sync.PERIODIC

    def _announce(self, pc: int) -> None:
        assert self._starting is not None
        self._send(Tcode.PROG_TRACE_SYNC, sync=self._starting, icnt=0, faddr=pc >> 1)
        self._starting = None
        self._synchronized(pc)

    def _settle(self, pc: int) -> None:
        """Execution goes on at *pc*: the outcome of the last block is known."""
        ending, self._ending = self._ending, PLAIN
        if ending == BRANCH:
            self._hist = self._hist << 1 | (pc != self._fall)
            if self._hist >= self._hist_full:
                self._hist = self._send_full_hist(self._hist)
        if self._due is not None:
            self._icnt, self._hist = self._send_sync(_JUMP, self._icnt, pc, self._hist)
        elif ending == UNINFERABLE:
            self._icnt, self._hist = self._send_indirect(_JUMP, self._icnt, pc, self._hist)

    def _trap(self, trap: Trap) -> None:
        due, self._due = self._due, None  # the trap's own message can carry it
        self._settle(trap.epc)
        if due is not None:
            self._due = due
        b_type = BType.TRAP
        if self.options.b_type_extended:
            b_type = BType.INTERRUPT if trap.interrupt else BType.EXCEPTION
        send = self._send_indirect if self._due is None else self._send_sync
        self._icnt, self._hist = send(int(b_type), self._icnt, trap.handler, self._hist)

    def _send_indirect(self, b_type: int, icnt: int, pc: int, hist: int) -> tuple[int, int]:
        """IndirectBranchHist; returns the registers after it."""
        uaddr = (self._reference ^ pc) >> 1
        self._reference = pc
        if hist == 1 and self.options.indirect_without_hist:
            self._pack(_INDIRECT_BRANCH, b_type, icnt, uaddr)
        else:
            self._pack(_INDIRECT_BRANCH_HIST, b_type, icnt, uaddr, hist)
        return 0, 1

    def _send_sync(self, b_type: int, icnt: int, pc: int, hist: int) -> tuple[int, int]:
        """IndirectBranchHistSync, which may also stand where no jump is; returns the registers after it."""
        sync = Sync.PERIODIC if self._due is None else self._due
        self._send(Tcode.INDIRECT_BRANCH_HIST_SYNC, sync=sync, b_type=b_type, icnt=icnt, faddr=pc >> 1, hist=hist)
        self._synchronized(pc)
        return 0, 1

    def _synchronized(self, pc: int) -> None:
        self._reference = pc
        self._due = None
        self._messages = self._spent = 0

    def _send_full_hist(self, hist: int) -> int:
        """ResourceFull with RCODE 1; returns the register after it."""
        if self.options.full_at_once:
            self._pack(_RESOURCE_FULL, _HIST, hist)
            return 1
        self._pack(_RESOURCE_FULL, _HIST, hist >> 1)
        return 0b10 | hist & 1

    def _send_full_icnt(self, icnt: int, hist: int, block: Block) -> tuple[int, int]:
        """Counts the block's instructions one by one, reporting I-CNT wherever it is full; returns the registers."""
        at_once, limit = self.options.full_at_once, self.options.icnt_limit
        pc = block.pc
        for left, halfwords in enumerate(block.lengths, 1 - block.instructions):
            if not at_once and icnt and icnt + halfwords > limit:
                icnt, hist = self._send_icnt(icnt, hist, pc)
            icnt += halfwords
            pc += 2 * halfwords
            if at_once and icnt >= limit:
                if left == 0 and hist != 1 and self.options.icnt_full_sync:
                    self._due = Sync.SEQUENTIAL_INSTRUCTION_COUNTER  # F-ADDR is known when the next block is
                else:
                    icnt, hist = self._send_icnt(icnt, hist, pc)
        return icnt, hist

    def _send_icnt(self, icnt: int, hist: int, pc: int) -> tuple[int, int]:
        if hist != 1 and self.options.icnt_full_sync:
            self._due = Sync.SEQUENTIAL_INSTRUCTION_COUNTER
            return self._send_sync(_JUMP, icnt, pc, hist)
        self._send(Tcode.RESOURCE_FULL, rcode=Rcode.ICNT, rdata=icnt)
        return 0, hist

    def _send(self, tcode: Tcode, **fields: int) -> None:
        self._emit(build(LAYOUTS[tcode], self._src_bits, self._src_id, **fields))
        self._sent()

    def _pack(self, tcode: int, *values: int) -> None:
        """As `_send`, for the messages that matter for speed: plain numbers in the order of the layout."""
        self._emit(pack(tcode, self._src_bits, self._src_id, *values))
        self._sent()

    def _sent(self) -> None:
        self._messages += 1
        if self._by_messages and self._messages >= self._period and self._due is None:
            self._due = Sync.PERIODIC
