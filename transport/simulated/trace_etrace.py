"""E-Trace behind the registers of the simulated encoder; packets come from `decode.etrace`.

Sources: Efficient Trace for RISC-V 2.0, "Encoder Control" (which fields exist); Unformatted Trace & Diagnostic Data
Packet Encapsulation 1.0, "Packet Encapsulation for E-Trace".
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rvtrace_gdb.controlregs import encoder as te
from rvtrace_gdb.controlregs.encoder import DataAddrCompress
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.encoder_options import EncoderOptions, SyncMode
from rvtrace_gdb.decode.etrace.options import Modes, Parameters, SupportLayout
from rvtrace_gdb.transport.simulated.hart import Retired
from rvtrace_gdb.transport.simulated.trace_ingress import Ingress, TracedHart
from rvtrace_gdb.transport.simulated.trace_packets import PacketStream
from rvtrace_gdb.transport.simulated.trace_protocol import Begin, End, Settings

SET_BY_REGISTERS = frozenset(("modes", "sync_mode", "sync_max", "dialect", "compress"))
"""Encoder options that are not a matter of how the encoder is built, or that do not fit the encapsulation used here."""

_MODES = {
    "trTeInstNoAddrDiff": "full_address",
    "trTeInstNoTrapAddr": "implicit_exception",
    "trTeInstEnSequentialJump": "sijump",
    "trTeInstEnImplicitReturn": "implicit_return",
    "trTeInstEnBranchPrediction": "branch_prediction",
    "trTeInstEnJumpTargetCache": "jump_target_cache",
}
"""The features E-Trace has, and what they are called in `Modes`."""
_DATA = ("trTeDataTracing", "trTeDataNoValue", "trTeDataNoAddr", "trTeDataAddrCompress")
_OF_THE_HART = Parameters().iaddress_width  # stands for as wide as the hart's
_MAX_PACKET_BITS = 31 * 8  # of srcID behind its whole bytes, type and payload
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
    """How the E-Trace side is built. Raises ValueError for what no encoder can be.

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
    """Bits of format 3, subformat 1, on the widest hart."""
    where = parameters.privilege_width + parameters.time_width + parameters.context_width
    width = 64 if parameters.iaddress_width == _OF_THE_HART else parameters.iaddress_width
    return 2 + 2 + 1 + where + parameters.ecause_width + 2 + 2 * width - parameters.iaddress_lsb


class ETrace:
    """See `TraceProtocol`."""

    format = int(te.Format.E_TRACE)
    filling = b"\x00"  # null.idle

    def __init__(self, hart: TracedHart, out: Callable[[bytes], None], build: ETraceBuild) -> None:
        self._hart = hart
        self._build = build
        self.options = self._built_for(hart, build.encoder)
        """How it is built."""
        self._absent = self._lacking()
        self.has_data_trace = build.data_trace
        self._stream = PacketStream(out, self.options, Encapsulation(), build.timestamp_sparse)
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
        """With the Standard Support Packet extension the version is 2.1, which is 0.1 in the register."""
        return (0, 1) if self.options.support is SupportLayout.STANDARD else (0, 0)

    def _lacking(self) -> tuple[str, ...]:
        """Features it is not built for."""
        parameters = self.options.parameters
        needs = {
            "trTeInstEnImplicitReturn": parameters.return_stack_size or parameters.call_counter_size,
            "trTeInstEnBranchPrediction": parameters.bpred_size,
            "trTeInstEnJumpTargetCache": parameters.cache_size,
        }
        foreign = set(te.INST_FEATURES.by_name) - {*_MODES, "trTeSrcID", "trTeSrcBits"}
        return (*foreign, *(name for name, size in needs.items() if not size))

    # -- the registers

    def legalize(self, register: Register, value: int) -> int:
        if register is te.CONTROL:
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

    def set_up(self, settings: Settings) -> None:
        get = settings.field
        bits = 0 if get("trTeInhibitSrc") else get("trTeSrcBits")
        timed = settings.timestamps.enabled
        encapsulation = Encapsulation(
            src_bits=bits,
            timestamp_bytes=-(-settings.timestamps.bits // 8) if timed else 0,
            type_bits=int(self.has_data_trace),
        )
        options = dataclasses.replace(
            self.options,
            modes=self._modes(settings),
            sync_mode=SyncMode(get("trTeInstSyncMode")),
            sync_max=get("trTeInstSyncMax"),
        )
        self._stream.configure(options, encapsulation, get("trTeSrcID") & (1 << bits) - 1, settings.async_interval)
        clock = settings.timestamps if timed or self.options.parameters.time_width else None
        self._ingress = Ingress(self._hart, self._stream, context=True, clock=clock, pairs=options.modes.sijump)

    def _modes(self, settings: Settings) -> Modes:
        get = settings.field
        return Modes(
            **{name: bool(get(register_field)) for register_field, name in _MODES.items()},
            resync_disabled=get("trTeInstSyncMode") == te.SyncMode.OFF,
            data_no_address=bool(get("trTeDataNoAddr")),
            data_no_data=bool(get("trTeDataNoValue")),
            data_full_address=self.has_data_trace and get("trTeDataAddrCompress") == DataAddrCompress.FULL,
        )

    # -- the trace

    def trace_data(self, wanted: bool) -> None:
        self._hart.tells_accesses = wanted
        self._stream.trace_data(wanted)

    def begin(self, reason: Begin) -> None:
        self._ingress.begin()
        self._stream.start()

    def end(self, reason: End, pc: int) -> None:
        self._stream.stop(pc, for_good=reason is End.DISABLED)

    def tell(self, retired: Sequence[Retired]) -> None:
        self._ingress.tell(retired)

    def skip(self, retired: Sequence[Retired]) -> None:
        self._ingress.skip(retired)
        self._stream.skip(retired)

    def recover(self) -> None:
        self._stream.lost()
        self._ingress.resume()

    def notify(self) -> None:
        self._stream.notify()
