"""The settings of components of version 0: their registers as read back, in the terms of the ratified interface.

Ref: see the package. The documents do not define teInstruction 7 ("full optimizations"). SiFive's own captures show it:
runs of branches are counted, and returns to where a counted call came from are not reported.
"""

from dataclasses import dataclass

from rvtrace_gdb.controlregs.fields import RegisterField, one_more
from rvtrace_gdb.controlregs.sifive_v0 import component_registers
from rvtrace_gdb.controlregs.sifive_v0.component_registers import SYNC_OFF, SinkType, SliceFormat, V0InstMode
from rvtrace_gdb.controlregs.trace_control import request
from rvtrace_gdb.controlregs.trace_control.component_registers import RamMode
from rvtrace_gdb.controlregs.trace_control.encoder_registers import ImplicitReturnMode, InstMode, SyncMode, TeFormat
from rvtrace_gdb.controlregs.trace_control.request import BridgeSettings as Bridge
from rvtrace_gdb.controlregs.trace_control.request import FunnelSettings as Funnel
from rvtrace_gdb.controlregs.trace_control.request import PibSettings as Pib

SYNC_BTM_LOWEST_UNIT = 5
"""The exponent of the shortest period: it is 2**(teSyncMaxBTM + 5) messages."""
_FORMATS = {int(SliceFormat.NEXUS): int(TeFormat.N_TRACE), int(SliceFormat.E_TRACE): int(TeFormat.E_TRACE)}
_MODES = {int(V0InstMode.BTM): InstMode.BTM, int(V0InstMode.HTM): InstMode.HTM}
_OPTIMIZED = {
    "trTeInstEnImplicitReturn": 1,
    "trTeInstImplicitReturnMode": int(ImplicitReturnMode.DEPTH_COUNTER),
    "trTeInstEnRepeatedHistory": 1,
}
"""The features that teInstruction 7 enables, in the terms of 1.0."""


@dataclass(frozen=True)
class V0EncoderSettings(request.EncoderSettings):
    """*control* is teControl, *impl* is teImpl, *ts_control* is tsControl. The other registers have no counterpart and
    are 0.
    """

    @property
    def version(self) -> int:
        return 0

    @property
    def dialect(self) -> str:
        return "sifive"

    instruction = RegisterField(component_registers.ENCODER_CONTROL, "teInstruction", "control", int)
    """teInstruction."""

    @property
    def format(self) -> int:
        code = component_registers.ENCODER_CONTROL.get(self.control, "teSliceFormat")
        return _FORMATS.get(code, code)

    @property
    def protocol_version(self) -> tuple[int, int]:
        """A fixed version: no register has it, as N-Trace had no versions yet."""
        return 0, 0

    @property
    def inst_mode(self) -> int:
        if self.instruction == V0InstMode.HTM_OPTIMIZED:
            return InstMode.HTM
        return _MODES.get(self.instruction, self.instruction)

    @property
    def sync(self) -> tuple[int, int]:
        """The unit and the exponent of the period, coded as in 1.0: in messages if that is not off, else in halfwords.
        """
        messages, halfwords = (
            component_registers.ENCODER_CONTROL.get(self.control, f"teSyncMax{unit}") for unit in ("BTM", "Inst")
        )
        if messages != SYNC_OFF:
            return SyncMode.MESSAGES, messages + 1
        return (SyncMode.OFF, 0) if halfwords == SYNC_OFF else (SyncMode.HALFWORDS, halfwords)

    stall = RegisterField(component_registers.ENCODER_CONTROL, "teStallEnable", "control", bool)

    @property
    def src_bits(self) -> int:
        inhibited = component_registers.ENCODER_CONTROL.get(self.control, "teInhibitSrc")
        return 0 if inhibited else component_registers.ENCODER_IMPL.get(self.impl, "nSrcBits")

    src_id = RegisterField(component_registers.ENCODER_IMPL, "srcID", "impl", int)

    @property
    def context(self) -> bool:
        """False: only software makes Ownership messages, and rvtrace leaves them disabled."""
        return (
            component_registers.ENCODER_CONTROL.get(self.control, "teInstrumentation")
            >= component_registers.Instrumentation.OWNERSHIP
        )

    timestamps = RegisterField(component_registers.TS_CONTROL, "tsEnable", "ts_control", bool)
    ts_mode = RegisterField(component_registers.TS_CONTROL, "tsType", "ts_control", int)
    """tsType, whose codes are those of trTsMode."""
    timestamp_bits = RegisterField(component_registers.TS_CONTROL, "tsWidth", "ts_control", int)

    def feature(self, field: str) -> int:
        """Return what this field of trTeInstFeatures would hold."""
        if field == "trTeSrcID":
            return self.src_id
        if field == "trTeSrcBits":
            return component_registers.ENCODER_IMPL.get(self.impl, "nSrcBits")
        return _OPTIMIZED.get(field, 0) if self.instruction == V0InstMode.HTM_OPTIMIZED else 0

    def data(self, field: str) -> int:
        """Return 0: there is no data trace."""
        return 0


@dataclass(frozen=True)
class V0SinkSettings(request.SinkSettings):
    """A sink inside a *host*, "encoder" or "funnel". *control* and *impl* are the host's teControl or tfControl, teImpl
    or tfImpl.
    """

    host: str = "funnel"

    @property
    def registers(self) -> dict[str, int]:
        return {self.control_name: self.control, self.impl_name: self.impl}

    @property
    def version(self) -> int:
        return 0

    @property
    def control_name(self) -> str:
        """The name of the register in *control*."""
        return _HOSTS[self.host].name

    @property
    def impl_name(self) -> str:
        return self.control_name.replace("Control", "Impl")

    @property
    def mode(self) -> RamMode:
        """The storage mode. A host with only one sink may have 0 for it."""
        host = _HOSTS[self.host]
        chosen = host.get(self.control, f"{host.name[:2]}Sink")
        if chosen == SinkType.DEFAULT:
            return RamMode.SRAM if component_registers.ENCODER_IMPL.get(self.impl, "hasSRAMSink") else RamMode.SMEM
        return RamMode.SRAM if chosen == SinkType.SRAM else RamMode.SMEM

    @property
    def async_freq(self) -> int:
        """0: there are no alignment sequences."""
        return 0

    @property
    def stop_on_wrap(self) -> bool:
        host = _HOSTS[self.host]
        return bool(host.get(self.control, f"{host.name[:2]}StopOnWrap"))


_HOSTS = {"encoder": component_registers.ENCODER_CONTROL, "funnel": component_registers.FUNNEL_CONTROL}


@dataclass(frozen=True)
class V0FunnelSettings(Funnel):
    """Its registers are tfControl, tfImpl and tsControl. All inputs are always open."""

    @property
    def cut(self) -> int:
        return 0

    ts_mode = RegisterField(component_registers.TS_CONTROL, "tsType", "ts_control", int)
    timestamp_bits = RegisterField(component_registers.TS_CONTROL, "tsWidth", "ts_control", int)


@dataclass(frozen=True)
class V0PibSettings(Pib):
    """Its registers are pibControl, and the tfImpl or teImpl of its host."""

    mode = RegisterField(component_registers.PIB_CONTROL, "pibMode", "control", int)
    divider = RegisterField(component_registers.PIB_CONTROL, "pibDivider", "control", one_more)
    clk_center = RegisterField(component_registers.PIB_CONTROL, "pibRefCenter", "control", bool)

    @property
    def async_freq(self) -> int:
        """0: there are no alignment sequences."""
        return 0


@dataclass(frozen=True)
class V0BridgeSettings(Bridge):
    """Its registers are atbControl, and the tfImpl or teImpl of its host."""

    atb_id = RegisterField(component_registers.ATB_CONTROL, "atbId", "control", int)

    @property
    def async_freq(self) -> int:
        """0: there are no alignment sequences."""
        return 0
