"""The trace funnel of version 0 in the simulated target, as the P550 has it: with a sink inside, or before another one.

Sources: see `controlregs.sifive_v0`; the proposal's "Trace Funnel", the P550's "Trace Funnel" tables.
"""

from collections import deque
from collections.abc import Callable

from rvtrace_gdb.controlregs.sifive_v0 import FUNNEL
from rvtrace_gdb.controlregs.trace_control.component_registers import TsMode
from rvtrace_gdb.transport.simulated.devices import component
from rvtrace_gdb.transport.simulated.devices.component import Clock, TimestampUnit
from rvtrace_gdb.transport.simulated.devices.output import TraceConsumer, TraceOutput
from rvtrace_gdb.transport.simulated.devices.sinks import Probe
from rvtrace_gdb.transport.simulated.sifive_v0.component import Transfer, V0Build, V0Component, V0Memory

_DEPTH = 8  # messages; how many an input can hold is up to the implementation


class V0FunnelInput:
    """One input. A funnel that is not enabled takes messages and drops them."""

    by_message = True
    filling = b"\xff"
    async_interval = 0

    def __init__(self, owner: "V0Funnel") -> None:
        self.queue: deque[bytes] = deque()
        self._owner = owner

    @property
    def enabled(self) -> bool:
        return self._owner.enabled

    @property
    def ready(self) -> bool:
        return not self._owner.jammed and (not self.enabled or self._owner.room(self))

    def fed_by(self, drain: Callable[[], None]) -> None:
        self._owner.fed_by(drain)

    def accept(self, data: bytes) -> int:
        """Take one whole message."""
        if not self.ready:
            return 0
        if self.enabled:
            self.queue.append(data)
        return len(data)


class V0Funnel(V0Component, TraceConsumer):
    """*inputs* hold a few messages each; when one is full, one message of each goes out in turn.

    *to*: an input of the funnel above. *system_clock*: what its timestamp unit counts; without it it is the slave of
    *above*, or there is none. A flush does not end before everything could be sent.
    """

    by_message = False

    def __init__(
        self,
        *,
        inputs: int = 4,
        to: TraceOutput | None = None,
        memory: V0Memory | None = None,
        pins: Probe | None = None,
        atb: Transfer | None = None,
        system_clock: Clock | None = None,
        above: TimestampUnit | None = None,
        polls: int = 1,
        build: V0Build | None = None,
    ) -> None:
        self.inputs = tuple(V0FunnelInput(self) for _ in range(inputs))
        has_time = system_clock is not None or above is not None
        no_time = {} if has_time else dict.fromkeys(("tsCount", "tsType", "tsPrescale"), 0)
        super().__init__(
            FUNNEL,
            to=to,
            memory=memory,
            pins=pins,
            atb=atb,
            fields={"tsEnable": 0, "tsBranch": 0, **no_time},
            constant={},
            reset={},
            polls=polls,
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
        if to is not None:
            to.fed_by(self.drain)

    # -- messages

    def drain(self) -> None:
        """Deliver as much as is necessary."""
        self.pull()
        if any(len(source.queue) >= _DEPTH for source in self.inputs):
            self._forward()

    def room(self, source: V0FunnelInput) -> bool:
        """Return whether this input has room, after making some if possible."""
        if len(source.queue) >= _DEPTH:
            self._forward()
        return len(source.queue) < _DEPTH

    def _forward(self) -> None:
        """Forward one message of each input in turn, as long as they are accepted."""
        while any(source.queue for source in self.inputs):
            for source in self.inputs:
                if source.queue:
                    if not self.takes:
                        return
                    self.send(source.queue.popleft())

    # -- registers

    @property
    def empty(self) -> bool:
        if not self._unsettled and not self.enabled:
            self._finish()
        return super().empty and not any(source.queue for source in self.inputs)

    def flushed(self) -> None:
        """Send everything. What is left when its own memory has stopped is lost."""
        self._finish()

    def _finish(self) -> None:
        """Send all there is. What is left when its own memory has stopped is gone."""
        self._forward()
        if self._memory and self._memory.stopped:
            for source in self.inputs:
                source.queue.clear()
        if not any(source.queue for source in self.inputs):
            super().flushed()

    def deactivated(self) -> None:
        super().deactivated()
        for source in self.inputs:
            source.queue.clear()
