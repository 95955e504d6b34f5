"""The output of an encoder: messages are held back to count repetitions, packed, given timestamps, and counted.

Full HIST registers, runs of branches and branch messages are held back and sent once with a count. Sources: RISC-V
N-Trace 1.0, "Repeated History Optimization" and "RepeatBranch Message"; the patterns of 28 and 30 branches are those
that the reference encoder looks for. Runs (RCODE 8 and 9) are SiFive's. A context is reported by Ownership messages:
"Ownership Message". `CallCounter` keeps the return addresses to which returns need not be reported: "Implicit Return
Optimization" and, for the effect of each instruction on the stack, "Handling of 4-bit itype values"; the decoder's
side is `decode.stepping.control_flow`.
"""

from collections import deque
from collections.abc import Callable
from sys import maxsize

from rvtrace_gdb.decode.ntrace.messages import Packer, ProcessFormat, Rcode, Tcode
from rvtrace_gdb.decode.ntrace.options import EncoderOptions, ImplicitReturn, InstSyncMode
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.instructions import IType

WriteMessage = Callable[..., None]
"""A function that sends a message, given its TCODE and the values of its fields."""

_RESOURCE_FULL = int(Tcode.RESOURCE_FULL)
_REPEAT_BRANCH = int(Tcode.REPEAT_BRANCH)
_HIST = int(Rcode.HIST)
_REPEATED_HIST = int(Rcode.REPEATED_HIST)


class RepeatedHistory:
    """Counts full HIST registers while they repeat, and sends ResourceFull with RCODE 2, or 1 for a single one.

    Patterns include a stop bit, as HIST does. *on_repetition* is called for each repetition that is counted.
    """

    def __init__(self, options: EncoderOptions, write: WriteMessage, on_repetition: Callable[[], None]) -> None:
        self._on_repetition = on_repetition
        self._limit = options.hrepeat_limit
        bits = options.hist_limit - 1
        self._trims = [trim for trim in options.repeat_trims if 2 * trim < bits]
        self._shortest = options.repeat_shortest
        self._write = write
        self._pattern = 0
        self._count = 0

    def take(self, hist: int) -> int:
        """Count a full HIST, and return what remains in the register."""
        if self._pattern:
            rest = self._without_pattern(hist)
            if rest is None:
                rest = self._trimmed(hist)
            if rest is not None:
                return rest
            self.flush()
        return self._begin_repetition(hist)

    def flush(self) -> None:
        """Send the count."""
        if self._count == 1:
            self._write(_RESOURCE_FULL, _HIST, self._pattern)
        elif self._count:
            self._write(_RESOURCE_FULL, _REPEATED_HIST, self._pattern, self._count)
        self.forget()

    def forget(self) -> None:
        """Discard the count."""
        self._pattern = self._count = 0

    def _begin_repetition(self, hist: int) -> int:
        self._pattern = _shortest(hist) if self._shortest else hist
        rest = self._without_pattern(hist)
        assert rest is not None
        return rest

    def _without_pattern(self, hist: int) -> int | None:
        """Count the repetitions at the beginning of HIST and return the rest; None if there is no repetition."""
        size = self._pattern.bit_length() - 1
        left = hist.bit_length() - 1
        found = False
        while left >= size and hist >> left - size == self._pattern:
            left -= size
            hist = 1 << left | hist & (1 << left) - 1
            found = True
            self._add_repetition()
        return hist if found else None

    def _add_repetition(self) -> None:
        if self._count == self._limit:
            self._write(_RESOURCE_FULL, _REPEATED_HIST, self._pattern, self._count)
            self._count = 0
        self._count += 1
        self._on_repetition()

    def _trimmed(self, hist: int) -> int | None:
        """Do the same for a shorter pattern that occurs twice at the beginning of the first two full registers."""
        bits = self._pattern.bit_length() - 1
        if self._count != 1 or hist.bit_length() - 1 != bits:
            return None
        both = self._pattern << bits | hist & (1 << bits) - 1
        for trim in self._trims:
            size = bits - trim
            left = 2 * trim
            pattern, second = self._pattern >> trim, 1 << size | both >> left & (1 << size) - 1
            if pattern == second:
                self._pattern, self._count = pattern, 2
                return 1 << left | both & (1 << left) - 1
        return None


def _shortest(hist: int) -> int:
    """Return the shortest pattern that HIST consists of, at least twice; HIST itself if there is none."""
    bits = hist.bit_length() - 1
    for size in range(1, bits // 2 + 1):
        if (hist ^ hist >> size) & (1 << bits - size) - 1 == 0:
            return hist >> bits - size
    return hist


class BranchRuns:
    """Counts runs of branches with the same outcome for SiFive's ResourceFull:

    RCODE is the outcome, RDATA the count.
    """

    def __init__(self, options: EncoderOptions, write: WriteMessage) -> None:
        self._rcodes = {outcome: rcode for rcode, outcome in options.dialect.run_rcodes.items()}
        self._limit = options.hrepeat_limit
        self._starts = {(2 << options.run_minimum) - 1: 1, 1 << options.run_minimum: 0}  # HIST: the outcome in it
        self._minimum = options.run_minimum
        self._write = write
        self._outcome = 0
        self._count = 0

    @property
    def counting(self) -> bool:
        """Whether a run is being counted."""
        return self._count > 0

    def append(self, hist: int, outcome: int) -> int:
        """Add a branch, and return the new value of HIST."""
        if self._count and outcome == self._outcome:
            if self._count == self._limit:
                self._send()
            self._count += 1
            return hist
        self.flush()
        hist = hist << 1 | outcome
        if hist not in self._starts:
            return hist
        self._outcome, self._count = self._starts[hist], self._minimum
        return 1

    def flush(self) -> None:
        """Send the count."""
        if self._count:
            self._send()

    def forget(self) -> None:
        """Discard the count."""
        self._count = 0

    def _send(self) -> None:
        self._write(_RESOURCE_FULL, self._rcodes[self._outcome], self._count)
        self._count = 0


class RepeatedBranch:
    """Counts branch messages that equal the one before."""

    def __init__(self, options: EncoderOptions, write: WriteMessage) -> None:
        self._limit = options.bcnt_limit
        self._write = write
        self._last: tuple[int, ...] | None = None
        self._count = 0

    def count_repeat(self, message: tuple[int, ...]) -> bool:
        """Count *message* if it equals the last one, and return whether it does.

        The tuple contains all that determines what a decoder does with the message.
        """
        if message != self._last:
            return False
        if self._count == self._limit:
            self._write(_REPEAT_BRANCH, self._count)
            self._count = 0
        self._count += 1
        return True

    def remember(self, message: tuple[int, ...]) -> None:
        """Remember *message* as the last one."""
        self._last = message

    def flush(self) -> None:
        """Send the count and forget the last message, because another message follows."""
        if self._count:
            self._write(_REPEAT_BRANCH, self._count)
        self.forget()

    def forget(self) -> None:
        """Discard the count and the last message."""
        self._last, self._count = None, 0


# As plain numbers: an enumeration's member costs more to hash than the message to build.
_ICNT = int(Rcode.ICNT)
_IDLE = b"\xff"


class MessageOutput:
    """Sends the messages of one encoder. All values are plain numbers in the order of the layout.

    *emit* receives the bytes of one message at a time, and idle bytes. *period_over* is called when a synchronizing
    message is due by the number of messages. Repetitions are held back and sent before the next message.

    now       the time for TSTAMP, in ticks
    messages  the number of messages since the last synchronizing one
    sent      the last time that was transmitted
    ticks     the bits of a time that are transmitted
    form      `Packer.form` of these messages
    """

    def __init__(self, options: EncoderOptions, emit: Callable[[bytes], None], period_over: Callable[[], None]) -> None:
        self.now = 0
        self.messages = 0
        self.runs = BranchRuns(options, self._write_held) if options.branch_runs else None
        self._options = options
        self.emit = emit
        self._period_over = period_over
        self._period = 1 << options.sync_max + 4 if options.sync_mode is InstSyncMode.MESSAGES else maxsize
        self._packer = packer = Packer(
            options.dialect.layouts,
            options.src_bits,
            options.src_id,
            address_bits=options.xlen - 1 if options.extend_addr_msb else 0,
            empty_fields=options.empty_fields,
            padding=options.field_padding,
        )
        self._pack, self.form = packer.pack, packer.form
        counts_full = options.repeated_history and self.runs is None
        self._repeats = RepeatedHistory(options, self._write_held, self._hold) if counts_full else None
        self._branches = RepeatedBranch(options, self._write_held) if options.repeat_branch else None
        self._held_at = 0  # time of the last event that is held back
        self._bare = not (options.timestamps or options.idle_bytes)
        self.ticks = (1 << options.timestamp_bits) - 1 if options.timestamp_bits else -1
        self.sent = 0  # the last time that was transmitted
        self._without_time = 0  # messages since
        self._held = [held for held in (self._branches, self._repeats, self.runs) if held is not None]
        self.send = self._send_after_held if self._held else self._send_now
        """Send a message that does not synchronize: its TCODE and the values of its fields."""

    def branch(self, target: int, tcode: int, *values: int) -> None:
        """Send a branch message without SYNC, whose branch leads to *target*. U-ADDR, if present, is values[2]."""
        if self._branches is None:
            self.send(tcode, *values)
            return
        key = (target, tcode, *values[:2], *values[3:])
        if self._branches.count_repeat(key):
            self._held_at = self.now
        else:
            self.send(tcode, *values)
            self._branches.remember(key)

    def history(self, hist: int) -> int:
        """Report HIST, which is full or as full as it may become, and return its new value."""
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
        """Add the outcome of a branch if runs are counted, and return the new value of HIST."""
        assert self.runs is not None
        hist = self.runs.append(hist, outcome)
        if self.runs.counting:
            self._held_at = self.now
            if self._branches is not None:
                self._branches.flush()
        return hist

    def icnt(self, icnt: int) -> None:
        """Report a full I-CNT."""
        if self._options.repeat_broken_by_icnt:
            self.flush()
        elif self._branches is not None:
            self._branches.flush()
        self._send_now(_RESOURCE_FULL, _ICNT, icnt)

    def sync(self, tcode: int, *values: int) -> None:
        """Send a synchronizing message."""
        self.flush()
        if self._options.idle_before_sync:
            self.emit(_IDLE * self._options.idle_before_sync)
        raw = self._pack(tcode, *values)
        if self._options.timestamps:
            self.sent, self._without_time = self.now, 0
            raw = self._packer.stamp(raw, self.now & self.ticks)
        self._finish(raw)
        self.messages = 0

    def send_vendor(self, tcode: int, *values: int) -> None:
        """Send a message that is in no table; it has no TSTAMP."""
        self.flush()
        self._finish(self._pack(tcode, *values))

    def flush(self) -> None:
        """Send everything that is held back."""
        for held in self._held:
            held.flush()

    def forget(self) -> None:
        """Discard everything that is held back."""
        for held in self._held:
            held.forget()

    def _send_now(self, tcode: int, *values: int) -> None:
        raw = self._pack(tcode, *values)
        if self._bare:
            self.emit(raw)
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
        """Return *raw* with the relative timestamp for *time*, if this message is to have one."""
        if not self._options.timestamps:
            return raw
        self._without_time += 1
        if self._without_time < self._options.timestamp_sparse:
            return raw
        time = max(time, self.sent)  # an event that was held back is earlier than messages sent meanwhile
        xor = self._options.dialect.xor_timestamps
        tstamp = (time ^ self.sent if xor else time - self.sent) & self.ticks
        self.sent, self._without_time = time, 0
        return self._packer.stamp(raw, tstamp)

    def _finish(self, raw: bytes) -> None:
        self.emit(raw)
        if self._options.idle_bytes:
            self.emit(_IDLE * self._options.idle_bytes)
        self.messages += 1
        if self.messages >= self._period:
            self._period_over()


def process_fields(context: ProgramContext, options: EncoderOptions, *, complete: bool) -> list[int]:
    """Return the PROCESS fields to send, in order: for the whole context, or only for the privilege mode.

    A hart without hcontext sends one message; with hcontext it sends two, hcontext first unless the dialect says
    otherwise. The privilege mode must be known.
    """
    assert context.prv is not None
    mode = context.prv << 2 | context.virtual << 4
    forms: list[tuple[int, int]] = []
    if complete and context.hcontext is not None:
        forms.append((ProcessFormat.HCONTEXT, context.hcontext))
    if complete and (context.scontext is not None or forms or options.ownership_full):
        forms.append((ProcessFormat.SCONTEXT, context.scontext or 0))
    if options.dialect.scontext_first:
        forms.reverse()
    return [value << 5 | mode | form for form, value in forms or [(int(ProcessFormat.PRIVILEGE), 0)]]


PUSH = frozenset({IType.UNINFERABLE_CALL, IType.INFERABLE_CALL, IType.COROUTINE_SWAP})
POP = frozenset({IType.RETURN, IType.COROUTINE_SWAP})
DIRECT_JUMPS = frozenset({IType.INFERABLE_CALL, IType.INFERABLE_TAIL_CALL, IType.OTHER_INFERABLE})


class CallCounter:
    """The call counter, or the stack of full or partial return addresses; if it is full, it drops the oldest call.

    mask       the bits of an address that are kept and compared
    addresses  what is kept, the oldest first
    """

    def __init__(self, options: EncoderOptions) -> None:
        bits = {ImplicitReturn.COUNTER: 0, ImplicitReturn.PARTIAL_STACK: options.partial_bits}
        self.mask = (1 << bits.get(options.implicit_return, options.xlen)) - 1  # of a counter nothing is compared
        self.addresses: deque[int] = deque(maxlen=options.return_depth)

    def follow(self, itype: IType, fall: int, target: int) -> bool:
        """Apply an instruction of this type, located before *fall*, that went to *target*.

        Returns whether it is a return to the expected address.
        """
        expected = False
        if itype in POP and self.addresses:
            expected = self.addresses.pop() == target & self.mask
        if itype in PUSH:
            self.addresses.append(fall & self.mask)
        return expected

    def clear(self) -> None:
        """Drop all calls, as at every synchronizing message."""
        self.addresses.clear()
