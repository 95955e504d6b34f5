"""The trace funnel of version 0 in the simulated target, as the P550 has it: with a sink inside, or before another one.

Sources: see `controlregs.sifive_v0`; the proposal's "Trace Funnel", the P550's "Trace Funnel" tables.
"""


from rvtrace_gdb.controlregs.sifive_v0 import FUNNEL
from rvtrace_gdb.controlregs.trace_control.component_registers import TsMode
from rvtrace_gdb.transport.simulated.devices import component
from rvtrace_gdb.transport.simulated.devices.component import TimeSource, TimestampUnit
from rvtrace_gdb.transport.simulated.devices.funnel import MessageFunnel, QueuedInput
from rvtrace_gdb.transport.simulated.sifive_v0.component import Receivers, V0Build, V0Component


class V0FunnelInput(QueuedInput):
    """One input. A funnel that is not enabled takes messages and drops them."""

    filling = b"\xff"
    async_interval = 0

    @property
    def discards(self) -> bool:
        return not self.enabled

    @property
    def ready(self) -> bool:
        return not self._owner.jammed and (self.discards or self._owner.room(self))


class V0Funnel(MessageFunnel, V0Component):
    """A funnel of version 0, with so many *inputs*.

    *system_clock*: what its timestamp unit counts; without it it is the slave of
    *above*, or there is none.
    """

    inputs: tuple[V0FunnelInput, ...]

    def __init__(
        self,
        receivers: Receivers,
        *,
        inputs: int = 4,
        system_clock: TimeSource | None = None,
        above: TimestampUnit | None = None,
        build: V0Build | None = None,
    ) -> None:
        self.inputs = tuple(V0FunnelInput(self) for _ in range(inputs))
        has_time = system_clock is not None or above is not None
        no_time = {} if has_time else dict.fromkeys(("tsCount", "tsType", "tsPrescale"), 0)
        super().__init__(
            FUNNEL,
            receivers,
            fields={"tsEnable": 0, "tsBranch": 0, **no_time},
            constant={},
            reset={},
            build=build,
        )
        self._has_time = has_time
        self.timestamps = TimestampUnit(
            {} if system_clock is None else {TsMode.INTERNAL_SYSTEM: system_clock},
            component.BITS if has_time else 0,
            above,
            self.limited if has_time else lambda value: 0,
        )
        self.timestamps.powered = False
        if receivers.to is not None:
            receivers.to.fed_by(self.drain)

    # -- messages

    @property
    def passes(self) -> bool:
        return self.takes

    def pass_on(self, message: bytes) -> None:
        self.send(message)

    def finish(self) -> None:
        """Send all there is. What is left when its own memory has stopped is lost."""
        self.forward()
        if self._memory and self._memory.stopped:
            for source in self.inputs:
                source.queue.clear()
        if not self.waiting:
            V0Component.flushed(self)
