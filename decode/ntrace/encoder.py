"""A software N-Trace encoder: retired blocks and traps in, messages out.

Source: RISC-V N-Trace 1.0 and, behind `EncoderOptions.dialect`, 1.0.0-rc7 and what SiFive's encoders did before. The
rules are in `encoder_rules`; here is what a hart calls, and a shorter way through them for plain HTM.
"""

from collections.abc import Callable, Iterable, Sequence

from rvtrace_gdb.decode.history import Context
from rvtrace_gdb.decode.ingress import BRANCH, PLAIN, UNINFERABLE, Block, Trap
from rvtrace_gdb.decode.ntrace.encoder_options import EncoderOptions as EncoderOptions
from rvtrace_gdb.decode.ntrace.encoder_options import SyncMode as SyncMode
from rvtrace_gdb.decode.ntrace.encoder_options import SyncPlacement as SyncPlacement
from rvtrace_gdb.decode.ntrace.encoder_rules import DIRECT_JUMPS, NOWHERE, UNASKED, Rules
from rvtrace_gdb.decode.ntrace.layout import LAYOUTS, TCODE_BITS, BType, Evcode, Sync, Tcode
from rvtrace_gdb.decode.ntrace.options import ImplicitReturn

_ERROR, _PROG_TRACE_CORRELATION, _JUMP = int(Tcode.ERROR), int(Tcode.PROG_TRACE_CORRELATION), int(BType.JUMP)
_INDIRECT_BRANCH_HIST = int(Tcode.INDIRECT_BRANCH_HIST)
_INDIRECT_BRANCH_HIST_SYNC = int(Tcode.INDIRECT_BRANCH_HIST_SYNC)


class Encoder(Rules):
    """Encodes one hart. `emit` gets the bytes of one message at a time, idle bytes apart from them.

    Between `start` and `stop` the hart's retired blocks and traps go to `retire`, in order, in batches of any size;
    outside, `retire` ignores them.
    """

    def __init__(self, options: EncoderOptions, emit: Callable[[bytes], None]) -> None:
        super().__init__(options, emit)
        self._is_plain = _is_plain(options)

    def start(self, sync: Sync) -> None:
        """Tracing starts: what retires next is announced by a ProgTraceSync with this reason."""
        self._reset()
        self._tracing = True
        self._starting = sync

    def mark(self, sync: Sync) -> None:
        """Asks for a synchronizing message with this reason (a trigger, for one) at the next block boundary."""
        if self._due is None or self._due in UNASKED:
            self._due = sync
        else:
            self._marks.append(sync)

    def error(self, etype: int = 0, ecode: int = 0) -> None:
        """Messages were lost on the way out: says so and, while tracing, starts again ("Error Message")."""
        self._out.forget()
        self._out.send(_ERROR, etype, ecode)
        if self._tracing:
            self.start(Sync.RESTART_FROM_FIFO_OVERRUN)

    def reset(self, pc: int, sync: Sync = Sync.EXIT_FROM_RESET) -> None:
        """The hart goes on at *pc*, whatever it did before: a reset or a wake-up that did not stop tracing.

        The message says how far the hart came before ("SYNC Field Values", 1 and 9).
        """
        if not self._tracing:
            return
        if self._starting is None:
            self._synchronize(self._linear_form(), pc, sync)
        else:
            self._starting = sync
        self._last = NOWHERE

    def time(self, now: int) -> None:
        """The clock shows *now*: messages that follow are stamped with it, and with what `retire` adds to it."""
        self._out.now = now

    def context(self, context: Context) -> None:
        """After what retired so far, the hart runs in this context. It is told again after each synchronization."""
        self._enter(context)

    def vendor(self, tcode: int, *values: int) -> None:
        """A message with a TCODE that is vendor defined or reserved, or one of the dialect's beyond N-Trace.

        *values*: of its fields; each is of variable length, unless the dialect's table says otherwise. A message
        outside that table has no TSTAMP: no decoder could tell it from the other fields. Raises ValueError for a TCODE
        of N-Trace's own.
        """
        if tcode in LAYOUTS or not 0 <= tcode < 1 << TCODE_BITS:
            raise ValueError(f"TCODE {tcode} is not free for a vendor's message")
        layout = self.options.dialect.layouts.get(tcode)
        if layout is None:
            self._out.foreign(tcode, *values)
        elif layout.synchronizes:
            self._out.sync(tcode, *values)
        else:
            self._out.send(tcode, *values)

    def retire(
        self, items: Sequence[Block | Trap | Context], next_pc: int | None = None, cycles: int | None = None
    ) -> None:
        """What the hart retired next. *next_pc*, where known, lets the last block's message out at once.

        A Context among the items is as `context` between them. *cycles*: clock cycles these took; one per instruction
        unless told.
        """
        if not self._tracing:
            return
        self._cycle_each = cycles is None
        rest = iter(items)
        while self._starting is not None:
            item = next(rest, None)
            if item is None:
                return
            self._step(item)
        if cycles is not None and self._counts_cycles:
            self._spend(cycles)
        if self._is_plain:
            self._run(rest)
        else:
            for item in rest:
                self._step(item)
        self._out.now += cycles or 0
        if next_pc is not None:
            self._settle(next_pc)

    def stop(self, evcode: int, next_pc: int | None = None) -> None:
        """Tracing stops before the instruction at *next_pc* (None: not known). *evcode*: why, see `Evcode`."""
        if not self._tracing:
            return
        if self._due in UNASKED:
            self._due = None
        if next_pc is not None:
            self._settle(next_pc)
            while self._due is not None and self._due not in UNASKED:
                self._synchronize(self._linear_form(), next_pc, self._due)
        elif self._last.itype in DIRECT_JUMPS and self._follows_jumps:
            self._due = None
            self._direct_jump(self._last, self._last.taken_target)
        self._correlate(evcode)
        self._tracing = False
        self._reset()

    def disabled(self, evcode: int = Evcode.TRACE_DISABLED) -> None:
        """Says outside `start` and `stop` that tracing is off, or that the hart halted meanwhile ("Corner Cases")."""
        if not self._tracing:
            self._correlate(evcode)

    def _correlate(self, evcode: int) -> None:
        omits = self.options.correlation_without_hist or self.options.dialect.omits_empty_hist
        if self.options.btm or (self._hist == 1 and omits):
            self._out.send(_PROG_TRACE_CORRELATION, evcode, 0, self._icnt)
        else:
            self._out.send(_PROG_TRACE_CORRELATION, evcode, 1, self._icnt, self._hist)

    def _run(self, items: Iterable[Block | Trap | Context]) -> None:
        """As `_step` for each item, for plain HTM: registers in locals, methods only where something is sent."""
        by_halfwords = self._counts_halfwords
        counting = by_halfwords or (self._counts_cycles and self._cycle_each)
        hist_full, icnt_full, period, mask = self._hist_full, self._icnt_full, self._period, self._mask
        icnt, hist, last = self._icnt, self._hist, self._last
        ending, fall, send = last.ending, last.fall, self._out.send
        for item in items:
            if isinstance(item, Block):
                if ending == BRANCH:
                    hist = hist << 1 | (item.pc != fall)
                    if hist >= hist_full:
                        hist = self._fill_hist(hist)
                if self._due is not None:
                    self._icnt, self._hist = icnt, hist
                    self._synchronize(_INDIRECT_BRANCH_HIST_SYNC, item.pc, self._due)
                    icnt, hist = 0, 1
                elif ending == UNINFERABLE:
                    pc = item.pc
                    send(_INDIRECT_BRANCH_HIST, _JUMP, icnt, (self._reference ^ pc) >> 1 & mask, hist)
                    self._reference = pc
                    icnt, hist = 0, 1
                icnt += item.halfwords
                if icnt >= icnt_full:
                    self._icnt, self._hist = icnt - item.halfwords, hist
                    self._fill_icnt(item)
                    icnt, hist = self._icnt, self._hist
                last, ending, fall = item, item.ending, item.fall
                if counting:
                    self._spent += item.halfwords if by_halfwords else item.instructions
                    if self._spent >= period:
                        self._period_over()
            else:
                self._icnt, self._hist, self._last = icnt, hist, last
                self._step(item)
                icnt, hist, ending, last = self._icnt, self._hist, PLAIN, NOWHERE
        self._icnt, self._hist, self._last = icnt, hist, last


def _is_plain(options: EncoderOptions) -> bool:
    """Whether `_run` knows all that is asked for."""
    follows = options.sequential_jump or options.all_jumps or options.implicit_return is not ImplicitReturn.OFF
    varies = bool(options.hist_chunks) or options.hist_full_first or options.branch_runs or options.repeat_branch
    tells = options.timestamps or options.context
    placed = options.sync_placement is SyncPlacement.AT_ONCE
    forms = options.indirect_without_hist or options.linear_sync is not None
    return placed and not (options.btm or follows or varies or tells or forms)
