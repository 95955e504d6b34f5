"""Messages on their way out of an encoder: packed, stamped, counted, with idle bytes around them."""

from collections.abc import Callable
from sys import maxsize

from rvtrace_gdb.decode.ntrace.encoder_options import EncoderOptions, SyncMode
from rvtrace_gdb.decode.ntrace.encoder_repeats import BranchRuns, RepeatedBranch, RepeatedHistory
from rvtrace_gdb.decode.ntrace.layout import Rcode, Tcode
from rvtrace_gdb.decode.ntrace.packing import Packer

# As plain numbers: an enumeration's member costs more to hash than the message to build.
_RESOURCE_FULL, _HIST, _ICNT = int(Tcode.RESOURCE_FULL), int(Rcode.HIST), int(Rcode.ICNT)
_IDLE = b"\xff"


class Output:
    """Takes the messages of one encoder, all values as plain numbers in the order of the layout.

    `emit` gets the bytes of one message at a time, and idle bytes. *period_over* is called when it is time for a
    synchronizing message after so many others. What repeats is held back and goes out before the next message.

    now       the time TSTAMP tells, in its ticks
    messages  sent since the last synchronizing one
    """

    def __init__(self, options: EncoderOptions, emit: Callable[[bytes], None], period_over: Callable[[], None]) -> None:
        self.now = 0
        self.messages = 0
        self.runs = BranchRuns(options, self._write_held) if options.branch_runs else None
        self._options = options
        self._emit = emit
        self._period_over = period_over
        self._period = 1 << options.sync_max + 4 if options.sync_mode is SyncMode.MESSAGES else maxsize
        self._packer = packer = Packer(
            options.dialect.layouts,
            options.src_bits,
            options.src_id,
            address_bits=options.xlen - 1 if options.extend_addr_msb else 0,
            empty_fields=options.empty_fields,
            padding=options.field_padding,
        )
        self._pack = packer.pack
        counts_full = options.repeated_history and self.runs is None
        self._repeats = RepeatedHistory(options, self._write_held, self._hold) if counts_full else None
        self._branches = RepeatedBranch(options, self._write_held) if options.repeat_branch else None
        self._held_at = 0  # when the last of what is held back happened
        self._bare = not (options.timestamps or options.idle_bytes)
        self._ticks = (1 << options.timestamp_bits) - 1 if options.timestamp_bits else -1
        self._told = 0  # the last time that was transmitted
        self._untold = 0  # messages since
        self._held = [held for held in (self._branches, self._repeats, self.runs) if held is not None]
        self.send = self._send_after_held if self._held else self._send_now
        """Send a message that does not synchronize."""

    def branch(self, target: int, tcode: int, *values: int) -> None:
        """Send a branch message without SYNC that leads to *target*; U-ADDR, if it has it, is values[2]."""
        if self._branches is None:
            self.send(tcode, *values)
            return
        key = (target, tcode, *values[:2], *values[3:])
        if self._branches.counts(key):
            self._held_at = self.now
        else:
            self.send(tcode, *values)
            self._branches.sent(key)

    def history(self, hist: int) -> int:
        """HIST is full, or as full as it is meant to get; returns what it holds afterwards."""
        if self._repeats is None:
            self.send(_RESOURCE_FULL, _HIST, hist)
            return 1
        if self._branches is not None:
            self._branches.flush()
        rest = self._repeats.take(hist)
        self._held_at = self.now
        return rest

    def _hold(self) -> None:
        self._held_at = self.now

    def append_to_run(self, hist: int, outcome: int) -> int:
        """The outcome of a branch, where runs of them are counted; HIST afterwards."""
        assert self.runs is not None
        hist = self.runs.append(hist, outcome)
        if self.runs.counting:
            self._held_at = self.now
            if self._branches is not None:
                self._branches.flush()
        return hist

    def icnt(self, icnt: int) -> None:
        """I-CNT is full."""
        if self._options.repeat_broken_by_icnt:
            self.flush()
        elif self._branches is not None:
            self._branches.flush()
        self._send_now(_RESOURCE_FULL, _ICNT, icnt)

    def sync(self, tcode: int, *values: int) -> None:
        """Send a synchronizing message."""
        self.flush()
        if self._options.idle_before_sync:
            self._emit(_IDLE * self._options.idle_before_sync)
        raw = self._pack(tcode, *values)
        if self._options.timestamps:
            self._told, self._untold = self.now, 0
            raw = self._packer.stamp(raw, self.now & self._ticks)
        self._finish(raw)
        self.messages = 0

    def foreign(self, tcode: int, *values: int) -> None:
        """Send a message that only those who know it can read; it has no TSTAMP."""
        self.flush()
        self._finish(self._pack(tcode, *values))

    def flush(self) -> None:
        """Send what is held back."""
        for held in self._held:
            held.flush()

    def forget(self) -> None:
        """What is held back is lost."""
        for held in self._held:
            held.forget()

    def _send_now(self, tcode: int, *values: int) -> None:
        raw = self._pack(tcode, *values)
        if self._bare:
            self._emit(raw)
            self.messages += 1
            if self.messages >= self._period:
                self._period_over()
        else:
            self._finish(self._with_time(raw, self.now))

    def _send_after_held(self, tcode: int, *values: int) -> None:
        self.flush()
        self._send_now(tcode, *values)

    def _write_held(self, tcode: int, *values: int) -> None:
        raw = self._pack(tcode, *values)
        self._finish(raw if self._bare else self._with_time(raw, self._held_at))

    def _with_time(self, raw: bytes, time: int) -> bytes:
        """*raw* with the relative timestamp of *time*, if it is its turn to have one."""
        if not self._options.timestamps:
            return raw
        self._untold += 1
        if self._untold < self._options.timestamp_sparse:
            return raw
        time = max(time, self._told)  # what is held back happened before what was sent meanwhile
        xor = self._options.dialect.xor_timestamps
        tstamp = (time ^ self._told if xor else time - self._told) & self._ticks
        self._told, self._untold = time, 0
        return self._packer.stamp(raw, tstamp)

    def _finish(self, raw: bytes) -> None:
        self._emit(raw)
        if self._options.idle_bytes:
            self._emit(_IDLE * self._options.idle_bytes)
        self.messages += 1
        if self.messages >= self._period:
            self._period_over()
