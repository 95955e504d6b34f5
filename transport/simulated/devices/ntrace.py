"""N-Trace for the registers of the simulated encoder; the messages come from `decode.ntrace.encoder.encoder`.

Source: N-Trace 1.0, "N-Trace Specific Trace Controls" (which fields exist), and its EVCODE and SYNC codes.
"""

import dataclasses
from collections.abc import Sequence

from rvtrace_gdb.controlregs.encoder_features import FEATURES, NTRACE, NTRACE_SWITCHES
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.trace_control import encoder_registers as te
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import EncoderOptions, ImplicitReturn, InstSyncMode
from rvtrace_gdb.transport.simulated.devices.component import TimestampUnit
from rvtrace_gdb.transport.simulated.devices.output import Outputs
from rvtrace_gdb.transport.simulated.devices.protocol import Begin, EncoderFields, End, Ingress, TracedHart
from rvtrace_gdb.transport.simulated.hart.reports import HartItem

SET_BY_REGISTERS = frozenset((
    "src_bits", "src_id", "sync_mode", "sync_max", *(feature.ntrace for feature in NTRACE), "context", "timestamps",
    "xlen",
))  # fmt: skip
"""The encoder options that are not a matter of how the encoder is built."""

_SYNC = {
    Begin.ENABLED: Sync.TRACE_ENABLE,
    Begin.LEFT_DEBUG: Sync.EXIT_FROM_DEBUG,
    Begin.LEFT_RESET: Sync.EXIT_FROM_RESET,
}
_EVCODE = {
    End.DISABLED: Evcode.TRACE_DISABLED,
    End.IN_DEBUG: Evcode.DEBUG_MODE,
    End.FILTERED: Evcode.TRACE_DISABLED,
}
_OF_E_TRACE = tuple(feature.field for feature in FEATURES if not feature.ntrace)


class NTraceProtocol:
    """A `TraceProtocol` for N-Trace. *built_with*: the properties no register sets; settings that contradict them
    cannot be set.
    """

    format = int(te.TeFormat.N_TRACE)
    version = (1, 0)
    filling = b"\xff"  # MSEO 11 and no data
    has_data_trace = False

    def __init__(self, hart: TracedHart, out: Outputs, built_with: EncoderOptions | None) -> None:
        self._hart = hart
        self._out = out
        self._built_with = built_with or EncoderOptions()
        self._modes = [mode for mode in (te.InstMode.HTM, te.InstMode.BTM) if self._can(btm=mode is te.InstMode.BTM)]
        self._absent = _OF_E_TRACE if self._can(repeated_history=True) else (*_OF_E_TRACE, "trTeInstEnRepeatedHistory")
        self._encoder = Encoder(self._built_with, out.put, out.put_all)
        self._ingress: Ingress[Encoder] = Ingress(hart, self._encoder, context=False, clock=None)

    def _can(self, **fields: bool) -> bool:
        """Return whether these settings are possible in this encoder."""
        try:
            dataclasses.replace(self._built_with, **fields)  # type: ignore[arg-type]
        except ValueError:
            return False
        return True

    # -- the registers

    def legalize(self, register: Register, value: int) -> int:
        if register is te.ENCODER_CONTROL and register.get(value, "trTeInstMode") not in (
            te.InstMode.OFF,
            *self._modes,
        ):
            return register.put(value, "trTeInstMode", self._modes[0])
        if register is te.INST_FEATURES:
            return value & ~register.mask(*self._absent)
        return 0 if register is te.DATA_CONTROL else value

    def set_up(self, settings: EncoderFields) -> None:
        """Take the settings of the registers, and combine them with the built-in properties."""
        options = self._options(settings)
        clock: TimestampUnit | None = settings.timestamps if options.timestamps else None
        self._encoder = Encoder(options, self._out.put, self._out.put_all)
        self._ingress = Ingress(
            self._hart, self._encoder, context=options.context, clock=clock, pairs=options.sequential_jump
        )

    def _options(self, settings: EncoderFields) -> EncoderOptions:
        """Return the options that the registers contain, in addition to those with which the encoder is built."""
        field = settings.field
        bits = 0 if field("trTeInhibitSrc") else field("trTeSrcBits")
        btm = field("trTeInstMode") == te.InstMode.BTM
        features = {feature.ntrace: bool(field(feature.field)) for feature in NTRACE_SWITCHES}
        repeated = features.pop("repeated_history")
        return dataclasses.replace(
            self._built_with,
            **features,  # type: ignore[arg-type]
            src_bits=bits,
            src_id=field("trTeSrcID") & (1 << bits) - 1,
            sync_mode=InstSyncMode(field("trTeInstSyncMode")),
            sync_max=field("trTeInstSyncMax"),
            btm=btm,
            implicit_return=_implicit_return(settings),
            repeated_history=repeated and not btm,
            repeat_branch=(repeated and btm) or self._built_with.repeat_branch,
            context=bool(field("trTeContext")),
            timestamps=settings.timestamps.enabled,
            timestamp_bits=settings.timestamps.bits,
            xlen=self._hart.xlen,
        )

    # -- the trace

    def trace_data(self, enabled: bool) -> None:
        """Do nothing: there is no data trace."""

    def begin(self, reason: Begin) -> None:
        self._ingress.begin()
        self._encoder.start(_SYNC[reason])

    def end(self, reason: End, pc: int) -> None:
        self._encoder.stop(_EVCODE[reason], pc)

    def tell(self, retired: Sequence[HartItem]) -> None:
        self._ingress.tell(retired)

    def skip(self, retired: Sequence[HartItem]) -> None:
        self._ingress.skip(retired)

    def recover(self) -> None:
        self._encoder.error()
        self._ingress.resume()

    def notify(self) -> None:
        self._encoder.mark(Sync.TRACE_EVENT)


def _implicit_return(settings: EncoderFields) -> ImplicitReturn:
    """Return the mode of implicit returns to use. Registers that do not say how the encoder follows calls have mode 0;
    the best way is used then.
    """
    if not settings.field("trTeInstEnImplicitReturn"):
        return ImplicitReturn.OFF
    return ImplicitReturn(settings.field("trTeInstImplicitReturnMode") or ImplicitReturn.FULL_STACK)
