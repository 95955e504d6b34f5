"""What leads to Arm's trace bus and along it on the simulated target: bridges, programmable funnels, replicators.

A bridge cuts its encoder's trace into transfers wherever the bus is full, also in the middle of a message. A funnel or
a replicator keeps nothing: while what it feeds has no room, it takes nothing.

Behaviour: RISC-V Trace Control Interface 1.0, "Trace ATB Bridge"; CoreSight SoC-400 Technical Reference Manual (DDI
0480), funnel and replicator.
"""

from rvtrace_gdb.controlregs.coresight import registers
from rvtrace_gdb.controlregs.coresight.registers import DevType
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.transport.simulated.devices.component import ComponentBuild
from rvtrace_gdb.transport.simulated.devices.coresight.device import (
    AtbTransfer,
    BusInput,
    BusOutputs,
    CoresightBuild,
    CoresightDevice,
)
from rvtrace_gdb.transport.simulated.devices.output import Outputs
from rvtrace_gdb.transport.simulated.devices.sinks import AtbBridge

_ROOM = 64  # bytes a bridge keeps while the bus has no room
_FUNNEL, _REPLICATOR = 0x908, 0x909


class LinkedBridge(AtbBridge):
    """An ATB bridge that feeds *outputs*: every transfer is an `AtbTransfer` of up to *width* bytes."""

    def __init__(self, outputs: BusOutputs, *, width: int = 4, build: ComponentBuild | None = None) -> None:
        super().__init__(self._send_transfer, width=width, build=build)
        self._outputs = Outputs(outputs)
        self._outputs.connect(self._pass_on)

    @property
    def ready(self) -> bool:
        return super().ready and len(self._queue) < _ROOM

    @property
    def bus_takes(self) -> bool:
        return self._outputs.ready

    @property
    def empty(self) -> bool:
        if not self._unsettled and not self.enabled:
            self.flushed()
        return super().empty

    def _pass_on(self) -> None:
        self.pull()
        self.transfer_whole()

    def _send_transfer(self, atid: int, data: bytes) -> None:
        self._outputs.put(AtbTransfer.with_id(atid, data))
        self._outputs.deliver()


class CoresightFunnel(CoresightDevice):
    """A programmable funnel. FUNCTL, with all inputs off after reset, opens `inputs`."""

    def __init__(
        self, outputs: BusOutputs, *, inputs: int = registers.FUNNEL_PORTS, variant: CoresightBuild | None = None
    ) -> None:
        super().__init__(registers.FUNNEL, (DevType.FUNNEL, _FUNNEL), variant)
        self._ports = (1 << inputs) - 1
        self._registers[registers.FUNCTL.offset] = 3 << 8
        self._outputs = Outputs(outputs)
        self._outputs.connect(self.pull)
        self.inputs = tuple(BusInput(self, self._gate(number), self._forward) for number in range(inputs))

    @property
    def is_switched_on(self) -> bool:
        return bool(self._registers[registers.FUNCTL.offset] & self._ports)

    @property
    def ready(self) -> bool:
        return super().ready and self._outputs.ready

    def store_register(self, register: Register, value: int) -> None:
        writable = self._ports | 0xF00 if register is registers.FUNCTL else 0xFF_FFFF
        super().store_register(register, value & writable)

    def _gate(self, number: int) -> "InputGate":
        return InputGate(self._registers, number)

    def _forward(self, data: bytes) -> None:
        self._outputs.put(data)
        self._outputs.deliver()


class InputGate:
    """Whether an input of a funnel is open."""

    def __init__(self, values: dict[int, int], number: int) -> None:
        self._values, self._mask = values, 1 << number

    def __call__(self) -> bool:
        return bool(self._values[registers.FUNCTL.offset] & self._mask)


class CoresightReplicator(CoresightDevice):
    """A programmable replicator: what goes to which of its two *outputs* depends on the ID. After reset nothing does.
    """

    def __init__(self, outputs: BusOutputs, *, variant: CoresightBuild | None = None) -> None:
        super().__init__(registers.REPLICATOR, (DevType.REPLICATOR, _REPLICATOR), variant)
        self._registers.update(dict.fromkeys((register.offset for register in registers.ID_FILTERS), 0xFF))
        self._outputs = tuple(outputs)
        for output in self._outputs:
            output.fed_by(self.pull)

    @property
    def is_switched_on(self) -> bool:
        return any(self._filter(number) != registers.NOTHING_PASSES for number in range(len(self._outputs)))

    @property
    def ready(self) -> bool:
        """Whether all outputs that are in use take something: a copy that has no room stops the other one, too."""
        used = [out for number, out in enumerate(self._outputs) if self._filter(number) != registers.NOTHING_PASSES]
        return super().ready and all(output.ready for output in used)

    def accept(self, data: bytes) -> int:
        if not self.ready:
            return 0
        group = 1 << (data.atid >> 4 if isinstance(data, AtbTransfer) else 0)
        for number, output in enumerate(self._outputs):
            if not self._filter(number) & group:
                output.accept(data)
        return len(data)

    def store_register(self, register: Register, value: int) -> None:
        super().store_register(register, value & 0xFF)

    def _filter(self, output: int) -> int:
        return self._registers[registers.ID_FILTERS[output].offset]
