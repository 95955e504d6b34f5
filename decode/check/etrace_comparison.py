"""The comparison of E-Trace packets, and the choices that an encoder has.

What the history does not determine is not compared: causes, contexts and times. Two things that encoders do differently
are not compared either: updiscon of an ecall or ebreak that retires, which the reference encoder reports before it
knows of the exception, and irreport where irdepth is 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from sys import maxsize
from typing import NamedTuple

from rvtrace_gdb.decode.check.comparison import CheckedPart, Interval, IntervalComparison, Notify, ReportedMessage
from rvtrace_gdb.decode.check.intervals import PERIODS
from rvtrace_gdb.decode.etrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.etrace.encoder.options import ContextType, EncoderOptions, EndReport
from rvtrace_gdb.decode.etrace.encoder.state import Resync
from rvtrace_gdb.decode.etrace.layout import MalformedPacket, Packet, SyncSubformat, TeInstFormat
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Options, Parameters, Setup, SupportLayout
from rvtrace_gdb.decode.etrace.packet import PacketCodec, codec
from rvtrace_gdb.decode.etrace.state_table import packet_name
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.program.csrs import ProgramContext

UNKNOWN = -2
"""The EPC of a trap of which it is not known where it hit."""

_UNDETERMINED = frozenset({"privilege", "context", "time", "ecause", "interrupt", "tval"})
_ECALLS = (3, 8, 9, 11)


class Opening(NamedTuple):
    """What begins an interval: the format 3 packet, the trap it reports, the context, and the encoder's setup."""

    packet: ReportedMessage
    trap: IngressTrap | None
    context: ProgramContext
    setup: Setup


class ClosingKind(Enum):
    """How an interval ends."""

    SYNCHRONIZED = "synchronized"
    TRAPPED = "trapped"
    AT_TARGET = "trapped at the target of a jump"
    STOPPED = "stopped"


class Resyncing(Enum):
    """The state of the resync timer at the last instruction, where its period is not known."""

    REACHED = "reached"
    DUE = "due"
    ELAPSED = "elapsed"
    """Reached, and the timer counts no packets."""
    IDLE = "idle"


class Epc(Enum):
    """Where a trap hit: as its packet says, or after the last instruction, at its target, or at itself.

    The packet of a trap whose handler was hit by a second trap has the address of that handler.
    """

    TOLD = "told"
    FALL = "after the last instruction"
    TARGET = "at its target"
    SAME = "at itself"


class Closing(NamedTuple):
    """What ends an interval.

    block    the instruction of the packet, if there is one
    context  that of the next instruction
    trap     the trap that was taken
    packet   the support packet that reports the stop
    free     whether the packet may have come for a reason that does not show
    resync   see `Resyncing`
    stop     whether the encoder knows in advance that tracing stops
    taken    whether a branch at the end was taken
    epc      see `Epc`
    """

    kind: ClosingKind
    block: Block | None = None
    context: ProgramContext = ProgramContext()
    trap: IngressTrap | None = None
    packet: ReportedMessage | None = None
    free: bool = False
    resync: Resyncing = Resyncing.REACHED
    stop: EndReport = EndReport.LATE
    taken: bool = False
    epc: Epc = Epc.TOLD


class Build(NamedTuple):
    """How an encoder is built. *period*: the packets after which it synchronizes, 0: not compared."""

    shortest: bool = True
    epc_after_inferred: bool = False
    compress: bool = True
    context: ContextType = ContextType.PRECISE
    period: int = 0


class Follower(Encoder):
    """An encoder that synchronizes where it is told."""

    def __init__(self, options: EncoderOptions, encoded: list[bytes], period: int) -> None:
        super().__init__(options, encoded.append)
        self._timer.period = period or maxsize

    @property
    def synchronizes(self) -> bool:
        """Whether the instruction that was retired last has a synchronization packet."""
        return self._synchronizes() or self._trap is not None

    def forget_period(self) -> None:
        """Do not synchronize after a number of packets any more."""
        self._timer.period = maxsize
        self._timer.state = Resync.COUNTING

    def resync(self, state: Resyncing) -> None:
        """Set the resync timer before the last instruction goes through the flow chart."""
        self._timer.counts_packets = state is not Resyncing.ELAPSED
        if state is not Resyncing.IDLE:
            self._timer.state = Resync.DUE if state is Resyncing.DUE else Resync.REACHED

    def traps(self, trap: IngressTrap, epc: Epc, kind: ClosingKind) -> list[Block | IngressTrap | ProgramContext]:
        """Return the trap that ends an interval, and the one that hits its handler if it was reported so."""
        last = self._pending.block
        if epc is Epc.TOLD or last is None:
            return [trap]
        own = last.fall - 2 * last.lengths[-1]
        first = trap._replace(epc={Epc.FALL: last.fall, Epc.TARGET: last.taken_target, Epc.SAME: own}[epc])
        return [first, trap] if kind is ClosingKind.AT_TARGET else [first]

    def end(self, *, taken: bool, stop: EndReport) -> None:
        """Stop tracing."""
        self.options = replace(self.options, stop=stop)
        last = self._pending.block
        self.stop(last.taken_target if taken and last is not None else None)


class EtraceComparison(IntervalComparison):
    """The comparison of one interval."""

    def __init__(self, options: Options, build: Build, opening: Opening) -> None:
        super().__init__()
        self._build, self._setup = build, opening.setup
        self._context = opening.context
        self._codec = _codec(options, opening.setup)
        self._packets: list[bytes] = []
        encoding = _encoding(*opening.setup, options.dialect, options.support, build)
        self._encoder = Follower(encoding, self._packets, build.period)
        self._encoder.context(opening.context)
        self._encoder.start(opening.trap)
        self._packets.clear()  # the support packet
        self._sent.append(opening.packet)
        self._lenient = False
        self._foreign = False

    def encode(self, part: CheckedPart) -> None:
        if part.foreign and self._build.period and not self._foreign:
            self._foreign = True
            self._encoder.forget_period()
        items: list[Block | IngressTrap | ProgramContext] = []
        for item in part.items:
            if isinstance(item, Notify):
                self._encoder.retire(items)
                items.clear()
                self._encoder.notify()
            else:
                items.append(item)
        self._encoder.retire(items)
        self._take_packets()

    def close(self, closing: Closing) -> bool:
        encoder = self._encoder
        if closing.kind is ClosingKind.STOPPED:
            encoder.end(taken=closing.taken, stop=closing.stop)
            if closing.packet is not None:
                self._sent.append(closing.packet)
        elif closing.trap is not None:
            self._lenient = not closing.trap.interrupt and closing.trap.cause in _ECALLS
            encoder.retire(encoder.traps(closing.trap, closing.epc, closing.kind))
            if closing.kind is ClosingKind.AT_TARGET and closing.packet is not None:
                self._sent.append(closing.packet)
        elif closing.block is not None:
            self._resync(closing, closing.block)
        self._take_packets()
        return True

    def _resync(self, closing: Closing, block: Block) -> None:
        if closing.context != self._context:
            self._encoder.context(closing.context)
        elif not self.is_timed(closing):
            self._encoder.resync(closing.resync)
        self._encoder.retire([block])

    def is_timed(self, closing: Closing | None) -> bool:
        if closing is None or closing.kind is not ClosingKind.SYNCHRONIZED or closing.context != self._context:
            return False
        return bool(self._build.period) and not self._foreign and not closing.free

    def mistimed(self, closing: Closing) -> bool:
        return self.is_timed(closing) and not self._encoder.synchronizes

    def _take_packets(self) -> None:
        self._made.extend(self._packets)
        self._packets.clear()

    def is_same(self, encoded: bytes, sent: bytes) -> bool:
        try:
            ours, theirs = self._codec.parse(encoded), self._codec.parse(sent)
        except MalformedPacket:
            return False
        if ours[:2] != theirs[:2]:
            return False
        if ours.format == TeInstFormat.SYNC and ours.subformat == SyncSubformat.SUPPORT:
            return ours.fields.get("qual_status") == theirs.fields.get("qual_status")
        return self._determined(ours) == self._determined(theirs)

    def _determined(self, packet: Packet) -> dict[str, int]:
        fields = {name: value for name, value in packet.fields.items() if name not in _UNDETERMINED}
        if not fields.get("irdepth", 0):
            fields.pop("irdepth", None)
            fields.pop("irreport", None)
        if self._lenient and self._setup.parameters.ecall_retires:
            fields.pop("updiscon", None)
        return fields

    def name_of(self, raw: bytes) -> str:
        try:
            return packet_name(self._codec.parse(raw))
        except MalformedPacket:
            return "no packet"

    def name(self, closing: Closing) -> str:
        return "te_inst format 3"


@lru_cache(maxsize=64)
def _encoding(
    parameters: Parameters, modes: Modes, dialect: Dialect, support: SupportLayout, build: Build
) -> EncoderOptions:
    return EncoderOptions(
        parameters, modes, dialect, support, shortest=build.shortest, compress=build.compress, context=build.context,
        epc_after_inferred=build.epc_after_inferred,
    )  # fmt: skip


def can_encode(options: Options, setup: Setup) -> bool:
    """Return whether there is an encoder with these settings: support packets of a damaged trace say anything."""
    try:
        _encoding(*setup, options.dialect, options.support, Build())
    except ValueError:
        return False
    return True


def _codec(options: Options, setup: Setup) -> PacketCodec:
    return codec(replace(options, parameters=setup.parameters), setup.modes)


class EtraceScheme:
    """See `Scheme`."""

    evidence = 4
    exact = True

    def __init__(self, options: Options) -> None:
        self._options = options

    def comparison(self, build: Build, opening: Opening) -> IntervalComparison:
        return EtraceComparison(self._options, build, opening)

    def base(self, intervals: Sequence[Interval]) -> Build:
        return Build()

    def choices(self, build: Build) -> Iterator[Build]:
        yield build._replace(shortest=not build.shortest)
        yield build._replace(epc_after_inferred=not build.epc_after_inferred)
        yield build._replace(compress=not build.compress)
        yield from (build._replace(context=context) for context in ContextType)

    def relaxed(self, build: Build) -> Build | None:
        return None

    def timed(self, build: Build) -> Iterator[Build]:
        period = self._options.sync_packets
        if period:
            yield from (build._replace(period=period + more) for more in PERIODS)

    def placements(self, build: Build) -> Iterator[Build]:
        yield from ()

    def delayed(self, build: Build) -> Iterator[Build]:
        yield from ()

    def untimed(self, build: Build) -> Build:
        return build._replace(period=0)

    def closings(self, closing: Closing) -> Sequence[Closing]:
        if closing.kind is ClosingKind.SYNCHRONIZED:
            return [closing._replace(resync=state) for state in Resyncing]
        if closing.kind is ClosingKind.STOPPED:
            return [closing._replace(stop=stop, taken=taken) for stop in EndReport for taken in (False, True)]
        if closing.kind is ClosingKind.TRAPPED and closing.trap is not None and closing.trap.epc != UNKNOWN:
            return [closing]
        return [closing._replace(epc=epc) for epc in Epc]
