"""E-Trace for the registers of the simulated encoder; packets come from `decode.etrace`.

`PacketStream` has the packets of one hart, of instruction and data trace, encapsulated and in order.

Sources: Efficient Trace for RISC-V 2.0, "Encoder Control" (which fields exist), "Format 3 packets", "Data Trace
Encoder Output Packets"; Unformatted Trace & Diagnostic Data Packet Encapsulation 1.0, "Packet Encapsulation for
E-Trace".
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from rvtrace_gdb.controlregs.encoder_features import ETRACE
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.trace_control import encoder_registers as te
from rvtrace_gdb.controlregs.trace_control.encoder_registers import DataAddrCompress
from rvtrace_gdb.decode.etrace.data.codec import DataEncoder
from rvtrace_gdb.decode.etrace.dialects import DEFAULTS
from rvtrace_gdb.decode.etrace.encapsulation import ContentKind, Encapsulation
from rvtrace_gdb.decode.etrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions, ResyncMode
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Parameters, SupportLayout
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.instructions import MemoryAccess
from rvtrace_gdb.transport.simulated.devices.output import Outputs
from rvtrace_gdb.transport.simulated.devices.protocol import Begin, EncoderFields, End, Ingress, TracedHart
from rvtrace_gdb.transport.simulated.hart.block import Accessed, Situation
from rvtrace_gdb.transport.simulated.hart.reports import HartItem

_SYNCHRONIZING = (0b0011, 0b0111)  # format 3, subformats 0 and 1: the low four bits of the payload
_SUPPORT = 0b1111
_KIND = 0b1111
_MOST_FRAMED = 1 << 16


class PacketStream:
    """Turns the events of an ingress into encapsulated packets, which are passed to *out*.

    Data packets come after the te_inst packets that report their instruction or an earlier one, so that a
    synchronization packet precedes the accesses of its instruction.
    """

    def __init__(
        self, out: Callable[[bytes], None], options: EncoderOptions, encapsulation: Encapsulation, sparse: int
    ) -> None:
        self._out = out
        self._sparse = sparse
        self._since = 0  # bytes since the last synchronization sequence
        self._accesses: list[Accessed] = []  # of the block that is reported next
        self._due: list[Accessed] = []  # of the instruction reported last, which has not been through the encoder yet
        self._data_enabled = self._has_accesses = False  # the second: since the encoder was enabled
        self.configure(options, encapsulation)

    def configure(
        self, options: EncoderOptions, encapsulation: Encapsulation, source: int = 0, async_interval: int = 0
    ) -> None:
        """Configure the stream when the encoder is enabled. *async_interval*: bytes between synchronization sequences,
        0: there are none.
        """
        timed = encapsulation.timestamp_bytes > 0
        self._encoder = Encoder(options, self._instruction_packet, None if timed else self._instruction_packets)
        self._data = DataEncoder(options.parameters, options.modes, self._data_packet)
        self._framer = encapsulation.framer()
        self._source, self._async_interval = source, async_interval
        self._timed = timed
        self._framed: dict[bytes, bytes] = {}  # what packets without a timestamp have become
        self._time = self._now = self._due_since = 0
        self._unstamped = 0  # packets since the last with a timestamp
        self._encoder.denable = self._data_enabled
        self._enabled = False
        self._has_accesses = self._data_enabled
        self._accesses.clear()
        self._due.clear()

    # -- what happens to the encoder

    def start(self) -> None:
        """Trace what is retired next."""
        self._encoder.start()
        self._enabled = True

    def stop(self, pc: int, *, for_good: bool) -> None:
        """Trace no more, from *pc* on. *for_good*: the encoder is switched off."""
        self._encoder.stop(pc, disable=for_good)
        self._enabled = not for_good
        self._accesses.clear()
        self._due.clear()

    def lost(self) -> None:
        """Note that packets were lost, and that the last one may be incomplete."""
        self._synchronization()
        self._encoder.lost(data=self._data_enabled)

    def notify(self) -> None:
        """Report the next instruction."""
        self._encoder.notify()

    def trace_data(self, enabled: bool) -> None:
        """Also trace accesses. A support packet reports this while the encoder is at work."""
        if enabled != self._data_enabled:
            self._data_enabled = self._encoder.denable = enabled
            self._has_accesses = self._has_accesses or enabled
            if self._enabled:
                self._encoder.enable()

    # -- what an ingress reports

    def time(self, now: int) -> None:
        """Set the clock to *now*."""
        self._now = now
        self._encoder.time(now)

    def context(self, context: ProgramContext) -> None:
        """Set the context from here on; the encoder receives what its packets have room for."""
        options = self._encoder.options
        sends_scontext, sends_hcontext = options.parameters.context_width > 0, options.hcontext_at is not None
        self._encoder.context(
            ProgramContext(
                context.prv,
                scontext=context.scontext if sends_scontext else None,
                hcontext=context.hcontext if sends_hcontext else None,
            )
        )

    def retire(self, items: Sequence[Block | IngressTrap | Accessed], next_pc: int | None = None) -> None:
        """Process what the hart did next."""
        if not self._has_accesses:
            self._encoder.retire(items, next_pc)  # type: ignore[arg-type]
            return
        for item in items:
            if isinstance(item, Accessed):
                if self._data_enabled:
                    self._accesses.append(item)
                continue
            for piece in self._pieces(item) if isinstance(item, Block) else (item,):
                self._encoder.retire([piece])
                self._report_due()
                self._now += piece.instructions if isinstance(piece, Block) else 0
        if next_pc is not None:
            self._encoder.retire((), next_pc)

    def skip(self, retired: Sequence[HartItem]) -> None:
        """Lose this. Accesses at its end may be those of a block that is not lost."""
        for item in retired:
            if isinstance(item, Accessed):
                self._accesses.append(item)
            elif not isinstance(item, Situation):
                self._accesses.clear()
        self._due.clear()

    def _pieces(self, block: Block) -> Iterator[Block]:
        """Yield *block*, cut where its accesses belong. Move those that may be reported after the next piece to `_due`.

        The encoder deals with all but the last instruction of what it is given at once, and with the last one when it
        gets the next: so an instruction with an access is the last one of a piece, and the piece after it has one
        instruction only.
        """
        begin, last = 0, block.instructions - 1
        while begin <= last:
            place = self._accesses[0].place if self._accesses else last
            end = begin if self._due else min(place, last)
            yield _piece(block, begin, end)
            self._due = [access for access in self._accesses if access.place <= end]
            self._due_since = self._now - 1
            del self._accesses[: len(self._due)]
            begin = end + 1

    def _report_due(self) -> None:
        """Report accesses of the instruction before the last one, which has been encoded."""
        due, self._due = self._due, []
        for access in due:
            self._data.access(MemoryAccess(*access[1:]))

    # -- what is sent

    def _instruction_packet(self, payload: bytes) -> None:
        kind = payload[0] & _KIND
        if kind == _SUPPORT:
            self._report_due()  # the last instruction's, at the end of a trace
        self._send(
            payload,
            ContentKind.INSTRUCTION,
            self._encoder.packet_time,
            stamped=kind == _SUPPORT or kind in _SYNCHRONIZING,
        )
        if kind in _SYNCHRONIZING:
            self._data.synchronize()

    def _instruction_packets(self, payloads: list[bytes]) -> None:
        """Send several that have no timestamp, none of them a support or a synchronization packet. Most were sent
        before.
        """
        framed = self._framed
        if len(framed) > _MOST_FRAMED:
            framed.clear()
        for payload in payloads:
            if self._async_interval and self._since >= self._async_interval:
                self._synchronization()
            frame = framed.get(payload)
            if frame is None:
                frame = framed[payload] = self._framer.packet(payload, ContentKind.INSTRUCTION, self._source, None)
            self._since += len(frame)
            self._out(frame)

    def _data_packet(self, payload: bytes) -> None:
        self._send(payload, ContentKind.DATA, self._due_since)

    def _send(self, payload: bytes, kind: ContentKind, time: int, *, stamped: bool = False) -> None:
        if self._async_interval and self._since >= self._async_interval:
            self._synchronization()
        frame = self._framer.packet(payload, kind, self._source, self._stamp(time, stamped))
        self._since += len(frame)
        self._out(frame)

    def _synchronization(self) -> None:
        self._since = 0
        self._out(self._framer.synchronization())

    def _stamp(self, time: int, required: bool) -> int | None:
        """Return the timestamp of a packet about what happened at *time*; None: it needs none."""
        if not self._timed:
            return None
        self._unstamped += 1
        if not required and self._unstamped < self._sparse:
            return None
        self._unstamped = 0
        self._time = max(self._time, time)
        return self._time


def _piece(block: Block, begin: int, end: int) -> Block:
    """Return the instructions *begin* to *end* of *block*, inclusive."""
    last = block.instructions - 1
    if begin == 0 and end == last:
        return block
    pc = block.pc + 2 * sum(block.lengths[:begin])
    lengths = block.lengths[begin : end + 1]
    if end < last:
        return Block(pc, lengths)
    return Block(pc, lengths, block.itype, block.taken_target, block.inferred, block.absolute)


SET_BY_REGISTERS = frozenset(("modes", "sync_mode", "sync_max", "dialect", "compress"))
"""Encoder options that are not a matter of how the encoder is built, or that do not fit the encapsulation used here."""

_DATA = ("trTeDataTracing", "trTeDataNoValue", "trTeDataNoAddr", "trTeDataAddrCompress")
_OF_THE_HART = Parameters().iaddress_width  # stands for as wide as the hart's
_MAX_PACKET_BITS = 31 * 8  # of srcID after its whole bytes, type and payload
_MAX_SRC_REST = 7


def _default_encoder() -> EncoderOptions:
    return EncoderOptions(
        Parameters(
            ecause_width=5, bpred_size=6, cache_size=5, return_stack_size=5, iret_ext=True, f0s_width=1,
        ),
        support=SupportLayout.STANDARD,
    )  # fmt: skip


@dataclass(frozen=True)
class ETraceBuild:
    """The properties of an E-Trace encoder. Raises ValueError for impossible ones.

    encoder           parameters and the freedoms of the document; with the default iaddress_width it is the hart's
    data_trace        loads, stores, atomics and CSR accesses can be traced
    inst_mode         what trTeInstMode reads: 7 as of E-Trace 2.0, 6 as of 2.0.5
    timestamp_sparse  synchronization packets and every n-th packet have a timestamp, if timestamps are on
    """

    encoder: EncoderOptions = field(default_factory=_default_encoder)
    data_trace: bool = True
    inst_mode: int = 7
    timestamp_sparse: int = 1

    def __post_init__(self) -> None:
        if self.inst_mode not in (6, 7):
            raise ValueError(f"inst_mode is 6 or 7, not {self.inst_mode}")
        if self.timestamp_sparse < 1:
            raise ValueError(f"timestamp_sparse is 1 or more, not {self.timestamp_sparse}")
        longest = _longest_packet(self.encoder.parameters)
        if longest + self.data_trace + _MAX_SRC_REST > _MAX_PACKET_BITS:
            raise ValueError(f"a trap packet has up to {longest} bits, more than a packet can carry: take a narrower"
                             " context_width or time_width")  # fmt: skip


def _longest_packet(parameters: Parameters) -> int:
    """Return the bits of a packet of format 3, subformat 1, on the widest hart."""
    where = parameters.privilege_width + parameters.time_width + parameters.context_width
    width = 64 if parameters.iaddress_width == _OF_THE_HART else parameters.iaddress_width
    return 2 + 2 + 1 + where + parameters.ecause_width + 2 + 2 * width - parameters.iaddress_lsb


class ETraceProtocol:
    """A `TraceProtocol` for E-Trace."""

    format = int(te.TeFormat.E_TRACE)
    filling = b"\x00"  # null.idle

    def __init__(self, hart: TracedHart, out: Outputs, build: ETraceBuild) -> None:
        self._hart = hart
        self._build = build
        self.options = self._built_for(hart, build.encoder)
        """How it is built."""
        self._absent = self._lacking()
        self.has_data_trace = build.data_trace
        self._stream = PacketStream(out.put, self.options, Encapsulation(), build.timestamp_sparse)
        self._ingress = Ingress(hart, self._stream, context=True, clock=None)

    @staticmethod
    def _built_for(hart: TracedHart, options: EncoderOptions) -> EncoderOptions:
        parameters = options.parameters
        if parameters.iaddress_width == _OF_THE_HART:
            parameters = dataclasses.replace(parameters, iaddress_width=hart.xlen)
        if not parameters.csr_width and parameters.data_width != hart.xlen:
            parameters = dataclasses.replace(parameters, csr_width=hart.xlen)
        return dataclasses.replace(options, parameters=parameters)

    @property
    def version(self) -> tuple[int, int]:
        """The version of the protocol. With the Standard Support Packet extension it is 2.1, which is 0.1 in the
        register.
        """
        return (0, 1) if self.options.support is SupportLayout.STANDARD else (0, 0)

    def _lacking(self) -> tuple[str, ...]:
        """Return the features that the encoder is not built for."""
        parameters = self.options.parameters
        needs = {
            "trTeInstEnImplicitReturn": parameters.return_stack_size or parameters.call_counter_size,
            "trTeInstEnBranchPrediction": parameters.bpred_size,
            "trTeInstEnJumpTargetCache": parameters.cache_size,
        }
        foreign = set(te.INST_FEATURES.by_name) - {*(it.field for it in ETRACE), "trTeSrcID", "trTeSrcBits"}
        return (*foreign, *(name for name, size in needs.items() if not size))

    # -- the registers

    def legalize(self, register: Register, value: int) -> int:
        if register is te.ENCODER_CONTROL:
            return register.put(value & ~register.mask("trTeContext"), "trTeInstMode", self._build.inst_mode)
        if register is te.INST_FEATURES:
            return value & ~register.mask(*self._absent)
        if not self.has_data_trace:
            return 0
        value &= register.mask(*_DATA)
        compressed = register.get(value, "trTeDataAddrCompress") != DataAddrCompress.FULL
        to = DataAddrCompress.DIFFERENTIAL if compressed else DataAddrCompress.FULL
        value = register.put(value, "trTeDataAddrCompress", to)
        if register.get(value, "trTeDataNoAddr") and register.get(value, "trTeDataNoValue"):
            return register.put(value, "trTeDataNoAddr", 0)  # packets would hold nothing
        return value

    def set_up(self, settings: EncoderFields) -> None:
        get = settings.field
        bits = 0 if get("trTeInhibitSrc") else get("trTeSrcBits")
        timed = settings.timestamps.enabled
        encapsulation = Encapsulation(
            src_bits=bits,
            timestamp_bytes=-(-settings.timestamps.bits // 8) if timed else 0,
            type_bits=int(self.has_data_trace),
        )
        if self.options.dialect is not Dialect.STANDARD:
            encapsulation = Encapsulation(str(DEFAULTS[self.options.dialect]["encapsulation"]))
        options = dataclasses.replace(
            self.options,
            modes=self._modes(settings),
            sync_mode=ResyncMode(get("trTeInstSyncMode")),
            sync_max=get("trTeInstSyncMax"),
        )
        self._stream.configure(options, encapsulation, get("trTeSrcID") & (1 << bits) - 1, settings.async_interval)
        clock = settings.timestamps if timed or self.options.parameters.time_width else None
        self._ingress = Ingress(self._hart, self._stream, context=True, clock=clock, pairs=options.modes.sijump)

    def _modes(self, settings: EncoderFields) -> Modes:
        get = settings.field
        return Modes(
            **{feature.etrace: bool(get(feature.field)) for feature in ETRACE},
            resync_disabled=get("trTeInstSyncMode") == te.SyncMode.OFF,
            data_no_address=bool(get("trTeDataNoAddr")),
            data_no_data=bool(get("trTeDataNoValue")),
            data_full_address=self.has_data_trace and get("trTeDataAddrCompress") == DataAddrCompress.FULL,
        )

    # -- the trace

    def trace_data(self, enabled: bool) -> None:
        self._hart.reports_accesses = enabled
        self._stream.trace_data(enabled)

    def begin(self, reason: Begin) -> None:
        self._ingress.begin()
        self._stream.start()

    def end(self, reason: End, pc: int) -> None:
        self._stream.stop(pc, for_good=reason is End.DISABLED)

    def tell(self, retired: Sequence[HartItem]) -> None:
        self._ingress.tell(retired)

    def skip(self, retired: Sequence[HartItem]) -> None:
        self._ingress.skip(retired)
        self._stream.skip(retired)

    def recover(self) -> None:
        self._stream.lost()
        self._ingress.resume()

    def notify(self) -> None:
        self._stream.notify()
