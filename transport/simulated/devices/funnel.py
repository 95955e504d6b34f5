"""The trace funnel of the simulated target: several streams of messages become one.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Trace Funnel", "Timestamp Unit" and "Connections Between
Components"; fields and offsets come from the tables in `controlregs`.
"""

from collections import deque
from collections.abc import Callable, Sequence

from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.trace_control import component_registers
from rvtrace_gdb.controlregs.trace_control.component_registers import TsMode
from rvtrace_gdb.transport.simulated.devices import component
from rvtrace_gdb.transport.simulated.devices.component import UNDEFINED, ComponentBuild, TimeSource, TimestampUnit
from rvtrace_gdb.transport.simulated.devices.output import Outputs, TraceConsumer, TraceOutput


class QueuedInput:
    """One input of a funnel of any version: the `TraceOutput` of the component connected to it. While it *discards*,
    its messages are taken and dropped.
    """

    by_message = True

    def __init__(self, owner: "MessageFunnel") -> None:
        self.queue: deque[bytes] = deque()
        self._owner = owner

    @property
    def enabled(self) -> bool:
        return self._owner.enabled

    @property
    def ready(self) -> bool:
        raise NotImplementedError

    @property
    def discards(self) -> bool:
        raise NotImplementedError

    def fed_by(self, drain: Callable[[], None]) -> None:
        self._owner.fed_by(drain)

    def accept(self, data: bytes) -> int:
        """Take one whole message."""
        if not self.ready:
            return 0
        if not self.discards:
            self.queue.append(data)
        return len(data)


class MessageFunnel(TraceConsumer):
    """What funnels of all versions share: inputs hold up to *depth* messages each; when one is full, one message of
    each is sent in turn. A flush does not end before everything could be sent.
    """

    inputs: Sequence[QueuedInput]
    depth = 8  # how many messages an input can hold is up to the implementation

    @property
    def passes(self) -> bool:
        """Whether a message can be passed on now."""
        raise NotImplementedError

    def pass_on(self, message: bytes) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        """Send everything there is, at the end of a flush."""
        raise NotImplementedError

    @property
    def waiting(self) -> bool:
        """Whether an input holds a message."""
        return any(source.queue for source in self.inputs)

    def drain(self) -> None:
        """Deliver as much as is necessary."""
        self.pull()
        if any(len(source.queue) >= self.depth for source in self.inputs):
            self.forward()

    def room(self, source: QueuedInput) -> bool:
        """Return whether this input has room, after making some if possible."""
        if len(source.queue) >= self.depth:
            self.forward()
        return len(source.queue) < self.depth

    def forward(self) -> None:
        """Send one message of each input in turn, as long as they are taken."""
        while self.waiting:
            for source in self.inputs:
                if source.queue:
                    if not self.passes:
                        return
                    self.pass_on(source.queue.popleft())

    @property
    def empty(self) -> bool:
        if not self._unsettled and not self.enabled:
            self.finish()
        return super().empty and not self.waiting

    def flushed(self) -> None:
        self.finish()

    def deactivated(self) -> None:
        super().deactivated()
        for source in self.inputs:
            source.queue.clear()


class FunnelInput(QueuedInput):
    """An input of a `Funnel`, which trFunnelDisInput can cut."""

    _owner: "Funnel"

    def __init__(self, owner: "Funnel", number: int) -> None:
        super().__init__(owner)
        self._number = number
        self._filling = b"\xff"

    @property
    def filling(self) -> bytes:
        return self._filling

    @filling.setter
    def filling(self, filling: bytes) -> None:
        self._filling = filling
        self._owner.fill_with(filling)

    @property
    def ready(self) -> bool:
        return self._owner.ready and (self.discards or self._owner.room(self))

    @property
    def async_interval(self) -> int:
        return self._owner.async_interval

    @property
    def discards(self) -> bool:
        return bool(self._owner.field("trFunnelDisInput") >> self._number & 1)


class Funnel(MessageFunnel):
    """A funnel of the ratified interface, with so many *inputs*.

    *outputs*: its receivers. *clocks*: those of its timestamp unit; without any it passes on the time of *above*, or
    has no unit.
    """

    inputs: tuple[FunnelInput, ...]

    def __init__(
        self,
        outputs: Sequence[TraceOutput],
        *,
        inputs: int = 2,
        depth: int = MessageFunnel.depth,
        system_clock: TimeSource | None = None,
        external: TimeSource | None = None,
        above: TimestampUnit | None = None,
        build: ComponentBuild | None = None,
    ) -> None:
        if not 1 <= inputs <= component_registers.FUNNEL_INPUTS or depth < 1:
            raise ValueError(
                f"a funnel has up to {component_registers.FUNNEL_INPUTS} inputs that hold a message or more"
            )
        self._outputs = Outputs(outputs)
        self.depth = depth
        self.inputs = tuple(FunnelInput(self, number) for number in range(inputs))
        clocks = {TsMode.INTERNAL_SYSTEM: system_clock, TsMode.EXTERNAL: external}
        present = {int(mode): clock for mode, clock in clocks.items() if clock is not None}
        self._has_time = bool(present) or above is not None
        time = {name: bits for name, bits in component.IMPLEMENTED.items() if name != "trTsEnable"}
        super().__init__(
            component_registers.FUNNEL,
            implemented={"trFunnelDisInput": (1 << inputs) - 1} | (time if self._has_time else {}),
            constant={},
            control_default={},
            build=build,
        )
        self.timestamps = TimestampUnit(
            present,
            component.BITS if self._has_time else 0,
            above,
            lambda value: self.build.legal(component_registers.TS_CONTROL, value),
        )
        self.timestamps.powered = False
        self._outputs.connect(self.drain)

    # -- messages

    @property
    def async_interval(self) -> int:
        return self._outputs.async_interval

    def fill_with(self, filling: bytes) -> None:
        """Set the byte that may stand between messages, as its inputs require."""
        self._outputs.fill_with(filling)

    @property
    def passes(self) -> bool:
        return self._outputs.ready

    def pass_on(self, message: bytes) -> None:
        self._outputs.put(message)
        self._outputs.deliver()

    def finish(self) -> None:
        self.forward()
        if not self.waiting and self._outputs.ready:
            self._outputs.fill()
            self._outputs.deliver()

    # -- registers

    def activated(self) -> None:
        self.timestamps.powered = True
        self.timestamps.reset(self._legal[component_registers.TS_CONTROL.offset], UNDEFINED)

    def deactivated(self) -> None:
        self.timestamps.powered = False
        self.timestamps.reset()
        self._outputs.clear()
        super().deactivated()

    def load(self, register: Register) -> int:
        return (
            self.timestamps.load(register) if register in component_registers.TS_REGISTERS else super().load(register)
        )

    def store(self, register: Register, value: int) -> None:
        if register is component_registers.TS_CONTROL:
            self.timestamps.write(value, self.legal(register), UNDEFINED)
        else:
            super().store(register, value)
