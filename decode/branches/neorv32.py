"""The pairs of NEORV32's TRACER: where control was transferred from, and where to.

Source: NEORV32 datasheet, "Execution Trace Module (TRACER)"; rtl/core/neorv32_tracer.vhd and neorv32_cpu_trace.vhd. An
entry is what the registers DELTA_SRC and DELTA_DST give, 32 bits each, lowest byte first:

    DELTA_SRC   31:1 the instruction executed before, 0: the first entry since tracing was started
    DELTA_DST   31:1 the instruction executed next, 0: it is the first one of a trap handler

A branch that is not taken gives no entry, so between DELTA_DST and the next DELTA_SRC the code is straight: what ran
follows from the program. An instruction that raised an exception counts as executed: it is DELTA_SRC. Whether that, or
an interrupt behind it, led to the handler is known where the instruction always raises one (ecall, ebreak).

In debug mode nothing is recorded, and leaving it is a transfer, also to the next instruction. The ebreak of a software
breakpoint counts as executed: what ran in its place has an entry from that address to itself.

What ran before the first entry and after the last one follows from where the hart stood then, if that is known:
`history_of` takes it from the settings, which have these besides the registers:

    BEGIN       the hart was halted here when tracing was started
    END         it was halted here after the last entry
    EBREAK      1 if the ebreak of a breakpoint halted it there
    LAST        tracing stopped by itself when this instruction was executed (STOP_ADDR)
"""

import re
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.branches.items import NO_SETTINGS, BranchItem, Settings
from rvtrace_gdb.decode.branches.walk import StraightCode, TransferHistory, skipped
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.history.builder import SourceHistories
from rvtrace_gdb.decode.history.events import StartReason, StopReason, Trap, TrapKind
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

ENTRY = struct.Struct("<II")
BEGIN, END, EBREAK, LAST = "BEGIN", "END", "EBREAK", "LAST"
_OFTEN = 1 << 12  # entries between two calls of the progress
_CUT = "the last bytes are not a whole pair (8 bytes)"
_TEXT = re.compile(
    rb"SRC: *(0x[0-9a-f]{1,8}) *-> *DST: *(0x[0-9a-f]{1,8})(.*)|(?:0x)?([0-9a-f]{8})[ \t,]+(?:0x)?([0-9a-f]{8})\s*",
    re.IGNORECASE,
)


class BadPairs(RvtraceError):
    """A text with pairs that cannot be read. *line*: its number."""

    def __init__(self, line: int, text: str) -> None:
        self.line = line
        super().__init__(f"line {line} is not a pair of DELTA_SRC and DELTA_DST: {text}")


class DeltaPair(NamedTuple):
    """One entry. *first*: since tracing was started; *trap*: the destination is the first instruction of a handler."""

    source: int
    destination: int
    first: bool = False
    trap: bool = False

    @property
    def raw(self) -> bytes:
        """What the registers give."""
        return ENTRY.pack(self.source | self.first, self.destination | self.trap)

    def __str__(self) -> str:
        flags = f"{' first' if self.first else ''}{' trap' if self.trap else ''}"
        return f"Pair src=0x{self.source:08x} dst=0x{self.destination:08x}{flags}"


def pair_of(source: int, destination: int) -> DeltaPair:
    """Return the entry in these two registers."""
    return DeltaPair(source & ~1, destination & ~1, bool(source & 1), bool(destination & 1))


def pairs_in_text(text: bytes) -> bytes:
    """Return the entries of a text: lines as NEORV32's own programs print them, or two words in hexadecimal.

    Other lines are passed over, but for the two words' kind, which has no others but blank ones. Raises BadPairs.
    """
    raw, words = bytearray(), False
    for number, line in enumerate(text.splitlines(), 1):
        match = _TEXT.search(line)
        if match is not None and match[1] is not None:
            first, trap = b"TRACE_START" in match[3], b"TRAP_ENTRY" in match[3]
            raw += ENTRY.pack(int(match[1], 16) | first, int(match[2], 16) | trap)
        elif match is not None and match[0].strip() == line.strip():
            raw += ENTRY.pack(int(match[4], 16), int(match[5], 16))
            words = True
        elif words and line.strip():
            raise BadPairs(number, line[:60].decode("ascii", "replace"))
    return bytes(raw)


def is_text(data: bytes) -> bool:
    """Return whether these are pairs in a text."""
    head = data[:4096]
    return b"SRC:" in head or bool(_TEXT.match(head.lstrip()[:64].split(b"\n")[0]))


def items_of(data: bytes, settings: Settings = NO_SETTINGS) -> Iterator[BranchItem]:
    """Yield the entries, also of a text."""
    data = pairs_in_text(data) if is_text(data) else data
    for offset in range(0, len(data), ENTRY.size):
        raw = data[offset : offset + ENTRY.size]
        if len(raw) < ENTRY.size:
            yield BranchItem(offset, raw, f"{raw.hex(' ')} # {_CUT}", _CUT)
            return
        yield BranchItem(offset, raw, str(pair_of(*ENTRY.unpack(raw))))


def history_of(
    data: bytes,
    program: Program,
    settings: Settings = NO_SETTINGS,
    *,
    wrapped: bool = False,
    progress: Progress = silent,
) -> SourceHistories:
    """Return what ran. *settings*: may have BEGIN, END, EBREAK and LAST. *wrapped*: older entries were dropped. Raises
    only what *progress* raises.
    """
    decoder = _PairDecoder(TransferHistory(program, "pair"))
    if not wrapped:
        decoder.begin(settings.get(BEGIN))
    whole = len(data) - len(data) % ENTRY.size
    for number, (source, destination) in enumerate(ENTRY.iter_unpack(data[:whole])):
        if not number % _OFTEN:
            progress("decoding", number * ENTRY.size, len(data))
        decoder.take(pair_of(source, destination), number * ENTRY.size)
    decoder.end(whole, settings)
    if whole < len(data):
        decoder.history.loss(skipped(len(data) - whole, _CUT), whole)
    return decoder.history.finish(len(data), len(data) - whole + decoder.skipped)


class _PairDecoder:
    """Makes a history of entries, the oldest first. *skipped*: bytes of those that could not be used."""

    def __init__(self, history: TransferHistory) -> None:
        self.history, self.skipped = history, 0
        self._here: int | None = None  # the instruction that ran after the last entry
        self._begin: int | None = None

    def begin(self, pc: int | None) -> None:
        """Begin where a hart was halted; None: not known."""
        self._begin = pc

    def take(self, pair: DeltaPair, offset: int) -> None:
        """Add an entry: what ran up to its source, and the transfer."""
        history, code = self.history, self.history.code
        if self._here is not None and pair.first:
            self.end(offset)
        if self._here is None:
            found = self._start(pair, offset)
        else:
            found = code.up_to(self._here, pair.source)
        if found.why:
            self._contradicted(found, pair, offset)
            return
        if self._is_breakpoint(pair):
            history.run(found.pcs[:-1])
        elif not pair.trap:
            history.run(found.pcs)
            wrong = not code.may_transfer(pair.source, pair.destination) and not self._was_halted(pair)
            if wrong:
                why = f"the instruction does not lead to 0x{pair.destination:x}"
                history.contradiction(StraightCode((), why, pair.source), offset)
                history.builder.resume(pair.destination, offset)
        else:
            self._add_trap(found, pair, offset)
        self._here = pair.destination

    def _start(self, pair: DeltaPair, offset: int) -> StraightCode:
        """Start at the first entry, and return what ran up to its source."""
        history, code = self.history, self.history.code
        begin, self._begin = self._begin, None
        found = code.up_to(pair.source if begin is None else begin, pair.source)
        if begin is not None and (found.why or not pair.first):  # it did not go on where it was
            found = code.up_to(pair.source, pair.source)
        reason = StartReason.TRACING_STARTS if pair.first else StartReason.OLDEST_RECORD
        history.start(found.pcs[0] if found.pcs else pair.source, offset, reason)
        return found

    def _is_breakpoint(self, pair: DeltaPair) -> bool:
        """Return whether the source was the ebreak of a software breakpoint, and what is in its place ran then."""
        if pair.trap or pair.source != pair.destination:
            return False
        source = self.history.code.instruction(pair.source)
        return not isinstance(source, str) and source.offset != 0  # which is a loop of one instruction

    def _add_trap(self, code: StraightCode, pair: DeltaPair, offset: int) -> None:
        source = self.history.code.instruction(pair.source)
        raised = not isinstance(source, str) and source.itype is IType.EXCEPTION
        self.history.run(code.pcs[:-1] if raised else code.pcs)
        kind = TrapKind.EXCEPTION if raised else TrapKind.UNKNOWN
        self.history.add_trap(Trap(kind), offset, pair.source if raised else None, pair.destination)

    def _contradicted(self, code: StraightCode, pair: DeltaPair, offset: int) -> None:
        """Add what certainly ran, and a gap: then the source, if there is code."""
        history = self.history
        if self._here is not None and not isinstance(history.code.instruction(self._here), str):
            history.run((self._here,))
        history.contradiction(code, offset)
        self._here = None
        if isinstance(history.code.instruction(pair.source), str):
            self.skipped += ENTRY.size
            return
        history.builder.resume(pair.source, offset)
        history.run((pair.source,))
        self._here = pair.destination

    def _was_halted(self, pair: DeltaPair) -> bool:
        """Return whether a debugger halted the hart there and let it go on: the trace pauses in debug mode."""
        source = self.history.code.instruction(pair.source)
        return not isinstance(source, str) and pair.source + source.length == pair.destination

    def end(self, offset: int, settings: Settings = NO_SETTINGS) -> None:
        """End the trace, or what ran before it was started again: the last destination ran, and what certainly ran
        after it. Without an entry that is what ran from the beginning on.
        """
        history, here, begin = self.history, self._here, self._begin
        self._here = self._begin = None
        start = here if here is not None else begin
        if start is None:
            return
        rest = self._after(start, settings)
        if here is None and rest:
            history.start(start, offset, StartReason.TRACING_STARTS)
        if rest is None and here is not None:
            found = history.code.instruction(here)
            history.run(() if isinstance(found, str) or found.itype is IType.EXCEPTION else (here,))
        history.run(rest or ())
        if here is not None or rest:
            history.off(offset, _end_reason(settings) if rest is not None else StopReason.END_NOT_RECORDED)

    def _after(self, pc: int, settings: Settings) -> tuple[int, ...] | None:
        """Return what ran from *pc* on up to the end of the trace, None: that is not certain."""
        last, end, code = settings.get(LAST), settings.get(END), self.history.code
        if last is not None:
            found = code.up_to(pc, last)
            return None if found.why else found.pcs
        if end is None:
            return None
        if settings.get(EBREAK):  # it counts as executed: a transfer to it has an entry
            found = code.up_to(pc, end)
            return None if found.why else found.pcs[:-1]
        return code.before_halt(pc, end)


def _end_reason(settings: Settings) -> StopReason:
    return StopReason.DEBUG_MODE if LAST not in settings else StopReason.TRACE_DISABLED


class PairEncoder:
    """What TRACER records of a hart that retires blocks and takes traps. *stop_pc*: tracing stops when this runs."""

    def __init__(self, stop_pc: int = 0xFFFF_FFFF) -> None:
        self.stop_pc = stop_pc & ~1
        self._last: int | None = None
        self._next: int | None = None  # where the last instruction would continue without a transfer
        self._first, self.running = True, True
        self._trapped = self._transferred = False

    def pairs_of(self, items: Iterable[Block | IngressTrap]) -> Iterator[DeltaPair]:
        """Yield the entries that these make."""
        for item in items:
            if isinstance(item, IngressTrap):
                yield from self.trapped(None if item.interrupt else item.epc)
                continue
            pc, last = item.pc, len(item.lengths) - 1
            for place, halfwords in enumerate(item.lengths):
                jumps = place == last and item.itype not in (IType.NONE, IType.NOT_TAKEN)
                yield from self.executed(pc, 2 * halfwords, jumps=jumps)
                pc += 2 * halfwords

    def executed(self, pc: int, size: int, *, jumps: bool = False) -> Iterator[DeltaPair]:
        """Yield the entry that an instruction of *size* bytes makes. *jumps*: it never goes on behind itself."""
        if not self.running:
            return
        if self._last is not None and (self._transferred or pc != self._next):
            yield DeltaPair(self._last, pc, self._first, self._trapped)
            self._first = False
        self._last, self._next = pc, pc + size
        self._trapped, self._transferred = False, jumps
        self.running = pc != self.stop_pc

    def trapped(self, raised_at: int | None) -> Iterator[DeltaPair]:
        """Yield the entry that an instruction makes that raises an exception; None: an interrupt comes. What is
        executed next is the handler.
        """
        if raised_at is not None:
            yield from self.executed(raised_at, 4)
        self._transferred = self._trapped = True

    def resumed(self) -> None:
        """Note that a debugger lets the hart go on: that is a transfer, also to the next instruction."""
        self._transferred = self._last is not None
