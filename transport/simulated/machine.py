"""The complete simulated target: harts, memory map, trace components, Debug Module, JTAG TAP.

Everything runs in one thread: the owner lets the harts run with `Machine.run_slice` and feeds the JTAG pins in between,
so whatever a debugger sees is a state between two blocks of the program. A `Core` is a hart with what belongs to it
alone, its trace encoder and its run control.

Several harts take turns, so that a program with several harts runs the same way every time: `TURN` instructions each,
one hart after the other, whatever a debugger does in between. The others see a write in their next turn.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, Unpack

from rvtrace_gdb.transport.simulated.assembly import AnyTraceEncoder, Devices, add_buffers, check_registers
from rvtrace_gdb.transport.simulated.bus import Bus, ElfFile, load_elf
from rvtrace_gdb.transport.simulated.clint import MTI, Clint, HartClint, SharedClint
from rvtrace_gdb.transport.simulated.ctr.recorder import CtrBuild
from rvtrace_gdb.transport.simulated.debug.debug_module import DebugModuleRegisters, DebugSpec, SystemBusAccess
from rvtrace_gdb.transport.simulated.debug.jtag import DtmRegisters, Tap, TapPins
from rvtrace_gdb.transport.simulated.debug.run_control import HartListener, RunControl
from rvtrace_gdb.transport.simulated.devices.component import TraceComponent
from rvtrace_gdb.transport.simulated.devices.encoder import TraceEncoder
from rvtrace_gdb.transport.simulated.devices.neorv32_tracer import Neorv32Tracer
from rvtrace_gdb.transport.simulated.devices.sinks import RamSink
from rvtrace_gdb.transport.simulated.devices.tacit import LimitedTacitSink, TacitDevice, TacitSink
from rvtrace_gdb.transport.simulated.hart.block import DebugCause, LostCause
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from rvtrace_gdb.transport.simulated.uart import SIZE as UART_SIZE
from rvtrace_gdb.transport.simulated.uart import Uart
from rvtrace_gdb.transport.simulated.wiring import EncoderProperties, MemoryMap, TacitPart, Wiring, standard

__all__ = ["Machine", "MemoryMap", "build"]

TURN = 250


class HartTracer(HartListener, Protocol):
    """A trace encoder, as its hart uses it."""

    def drain(self) -> None:
        """Encode what the hart has retired since the last call, and pass it on."""

    def triggered(self, action: int) -> None:
        """Process a trigger with one of the trace actions that has fired."""


class Untraced:
    """The tracer of a hart without trace encoder."""

    def drain(self) -> None: ...

    def triggered(self, action: int) -> None: ...

    def halted(self) -> None: ...

    def resumed(self) -> None: ...

    def hart_reset(self) -> None: ...

    def hart_started(self) -> None: ...


class Core:
    """A hart with its trace encoder and its run control. *encoder* creates the trace encoder from the hart; None:
    it has none.
    """

    def __init__(self, hart: Hart, encoder: Callable[[Hart], HartTracer | None]) -> None:
        self.hart = hart
        tracer = encoder(hart) or Untraced()
        self.control = RunControl(hart, tracer)
        hart.trigger_effects.trace_action = tracer.triggered
        self._drain = tracer.drain

    @property
    def asleep(self) -> bool:
        """Whether the hart is in WFI, and no interrupt is pending that would end it."""
        return self.hart.waiting and not self.hart.mip & self.hart.csr.trap.mie

    def run(self, instructions: int) -> None:
        """Execute about so many instructions, unless something stops the hart, and encode what it retired."""
        self.control.look_at_memory()
        cause = self.hart.run(instructions)
        self._drain()
        if cause is not None:
            self.control.halt(cause)


class Turns:
    """Several harts that take turns, and their CLINT."""

    def __init__(self, cores: Sequence[Core], bus: Bus, clint: int) -> None:
        self._cores = cores
        self.clint = SharedClint([core.hart for core in cores], bus, clint)
        self._parts = dict(zip(cores, self.clint.parts, strict=True))
        self._last = cores[0]
        for core in cores:
            core.control.before_step = partial(self._step_core, core)

    @property
    def running(self) -> list[Core]:
        """The harts that are neither halted nor in reset; they may be asleep."""
        return [core for core in self._cores if not core.control.stopped]

    @property
    def idle(self) -> bool:
        """Whether no hart executes anything, and no timer will change that."""
        running = self.running
        return all(core.asleep for core in running) and not self._timers(running)

    def run(self, instructions: int, done: Callable[[Core], None]) -> None:
        """Run whole rounds, about so many instructions of all harts together. *done* is called after each turn."""
        left = instructions
        while left > 0:
            left -= self._round(done)
            running = self.running
            if all(core.asleep for core in running):
                self.clint.skip_to_timer(self._timers(running))
                return

    def _round(self, done: Callable[[Core], None]) -> int:
        """Run one round; return the instructions there was time for."""
        self.clint.align()
        spent = 0
        for core in self._cores:
            if not core.control.stopped and not core.asleep:
                self._begin_turn(core)
                core.run(TURN)
                done(core)
                spent += TURN
        self.clint.align()
        return spent

    def _timers(self, running: Sequence[Core]) -> list[HartClint]:
        """Return the timers of sleeping harts that will wake them."""
        parts = [self._parts[core] for core in running if core.asleep and core.hart.csr.trap.mie & 1 << MTI]
        return [part for part in parts if part.wakes_after is not None]

    def _begin_turn(self, core: Core) -> None:
        """Begin a hart's turn. What another hart may have written invalidates its reservation."""
        if core is not self._last:
            core.hart.data.reset()
        self._last = core
        self.clint.reading = self._parts[core]

    def _step_core(self, core: Core) -> None:
        self.clint.align()
        self._begin_turn(core)


class Machine:
    """A simulated target: one hart or several, memory, and devices. `hart` is hart 0.

    *others*: the harts besides *hart*; all share its bus. *wiring*: the trace components, None: an encoder for each
    hart, and one RAM sink.

    `printed` is called with what the program prints (UART, HTIF), `exited` with the status it ends with; it then no
    longer runs until a debugger has halted and resumed it. `lost_cause` is called with a hart whose trap handler could
    not run, and the first such trap. `fired` is called when a trigger output of an encoder fires, with
    the encoder's name and the number of the output.

    Raises WiringError.
    """

    def __init__(
        self,
        hart: Hart,
        memory_map: MemoryMap,
        spec: DebugSpec = DebugSpec.V1_0,
        *,
        others: Sequence[Hart] = (),
        wiring: Wiring | None = None,
    ) -> None:
        bus = hart.bus
        self.harts = (hart, *others)
        self.bus = bus
        self.memory_map = memory_map
        self.spec = spec
        self.printed: Callable[[bytes], None] = lambda text: None
        self.exited: Callable[[int], None] = lambda status: None
        self.fired: Callable[[str, int], None] = lambda encoder, number: None
        self.lost_cause: Callable[[int, LostCause], None] = lambda hart, lost: None

        if not others:
            Clint(hart, bus, memory_map.clint)
        self.wiring = (wiring or standard(memory_map, len(self.harts))).checked(len(self.harts))
        devices = self._devices()
        self._cores = tuple(Core(each, devices.encoder) for each in self.harts)
        self._turns = Turns(self._cores, bus, memory_map.clint) if others else None
        devices.attach(lambda hart: self.debug_module.harts.is_off(hart))
        tracers = self.wiring.tracers
        self.branch_tracers = tuple(Neorv32Tracer(self.harts, bus, part.base, part.depth) for part in tracers)
        self.tacit_encoders = {part.hart: self._tacit_encoder(part) for part in self.wiring.tacit}
        self._lost_causes: set[LostCause] = set()
        self.uart = Uart()
        bus.add(memory_map.uart, UART_SIZE, self.uart.read, self.uart.write)  # a component at its address comes first
        self.components: Mapping[str, TraceComponent] = devices.by_name
        self._settling = devices.in_order
        self.hart, self._control = hart, self._cores[0].control
        self.debug_module = self._debug_module()
        self.dtm = DtmRegisters(self.debug_module, has_errinfo=spec is DebugSpec.V1_0)
        for part in self.wiring.encoders:
            if part.off:
                self.switch_power(part.hart, False)
        self.tap = Tap(self.dtm)

    def set_identity(self, idcode: int | None, harts: Sequence[tuple[int, int]]) -> None:
        """Answer as another chip: with its IDCODE, and with mvendorid and marchid of the kinds of harts that it has, as
        many of each.
        """
        if idcode is not None:
            self.dtm.idcode = idcode
        for number, hart in enumerate(self.harts if harts else ()):
            hart.csr.set_identity(*harts[number * len(harts) // len(self.harts)])

    def _devices(self) -> Devices:
        """Create the trace components, except the encoders, and their memory."""
        parts, clint = self.wiring.parts, self.memory_map.clint
        check_registers(self.bus, parts, clint)
        add_buffers(self.bus, parts, clint)
        return Devices(
            self.wiring, self.bus, lambda: self.harts[0].elapsed, lambda name, number: self.fired(name, number)
        )

    def _tacit_encoder(self, part: TacitPart) -> TacitDevice:
        sink = (LimitedTacitSink if part.limited else TacitSink)(self.bus, part.sink)
        hart, contexts = self.harts[part.hart], part.contexts
        return TacitDevice(
            hart, self.bus, part.base, sink, number=part.number, entries=part.entries, has_context=contexts
        )

    def _debug_module(self) -> DebugModuleRegisters:
        controls = [core.control for core in self._cores]
        system_bus = SystemBusAccess(
            self.bus, address_bits=self.harts[0].xlen, spec=self.spec, written=self._memory_written
        )
        if self._turns is None:
            return DebugModuleRegisters(controls[0], system_bus, self.spec)
        module = DebugModuleRegisters(
            controls[0], system_bus, self.spec, others=controls[1:], reset=self._turns.clint.reset
        )
        for control in controls:
            control.on_halt = partial(module.harts.has_halted, control)
        return module

    @property
    def tracers(self) -> tuple[AnyTraceEncoder, ...]:
        """All trace encoders, in the order of their harts."""
        return tuple(device for device in self._settling if isinstance(device, AnyTraceEncoder))

    @property
    def encoders(self) -> tuple[TraceEncoder, ...]:
        """The encoders of the ratified interface, in the order of their harts."""
        return tuple(device for device in self._settling if isinstance(device, TraceEncoder))

    @property
    def encoder(self) -> TraceEncoder:
        """The first encoder."""
        return self.encoders[0]

    @property
    def ram_sink(self) -> RamSink:
        """The first RAM sink."""
        return next(device for device in self._settling if isinstance(device, RamSink))

    @property
    def halted(self) -> bool:
        """Whether all harts are in Debug Mode."""
        return all(core.control.halted for core in self._cores)

    @property
    def idle(self) -> bool:
        """Whether nothing will happen until the JTAG pins change."""
        if self._turns is not None:
            return self._turns.idle
        return self._control.stopped or self._cores[0].asleep

    def pins(self, *, fast: bool = True) -> TapPins:
        """Return the TAP's pins for a newly connected adapter."""
        self.tap.reset()
        return TapPins(self.tap, self.debug_module.system_reset, fast=fast)

    def halt_at_start(self) -> None:
        """Enter Debug Mode before the first instruction, so that a debugger misses nothing."""
        for number, core in enumerate(self._cores):
            if not self.debug_module.harts.is_off(number):
                core.control.halt(DebugCause.HALTREQ)

    @property
    def off(self) -> list[int]:
        """The harts that have no power."""
        return [number for number in range(len(self.harts)) if self.debug_module.harts.is_off(number)]

    def switch_power(self, hart: int, on: bool) -> None:
        """Switch the power of a hart. Without it, it does nothing, and the registers of its components do not answer;
        what they held is lost.
        """
        self.debug_module.harts.switch_power(hart, on=on)
        for part in self.wiring.parts:
            if part.power == hart and not on:
                self.components[part.name].write(0, 4, 0)

    def run_slice(self, instructions: int) -> None:
        """Let the running harts execute about so many instructions together, and encode what they retired."""
        if self._turns is None and not self._control.stopped:
            self._settle_components()
            self._cores[0].run(instructions)
            self._host(self._cores[0])
        elif self._turns is not None and self._turns.running:
            self._settle_components()
            self._turns.run(instructions, self._host)

    def _settle_components(self) -> None:
        for component in self._settling:
            component.settle()

    def _host(self, core: Core) -> None:
        if self.uart.output:
            self.printed(bytes(self.uart.output))
            self.uart.output.clear()
        lost = core.hart.lost_cause
        if lost is not None and lost not in self._lost_causes:
            self._lost_causes.add(lost)
            self.lost_cause(core.hart.hartid, lost)
        htif = core.hart.htif
        if htif is None:
            return
        if htif.output:
            self.printed(bytes(htif.output))
            htif.output.clear()
        if core.hart.exit_code is not None:
            for each in self._cores:
                each.control.parked = True
            self.exited(core.hart.exit_code)
            core.hart.exit_code = None

    def _memory_written(self, address: int) -> None:
        for core in self._cores:
            core.control.code_changed = True


def build(
    elf: str | Path,
    *,
    xlen: int | None = None,
    extensions: str = "IMAFDC",
    spec: DebugSpec = DebugSpec.V1_0,
    memory_map: MemoryMap | None = None,
    ctr: CtrBuild | None = None,
    harts: int = 1,
    wiring: Wiring | None = None,
    **properties: Unpack[EncoderProperties],
) -> Machine:
    """Return a machine with a program loaded, all *harts* about to run its first instruction. *xlen* None: the
    program's.

    *ctr*: the Control Transfer Records of each hart, None: none. *wiring*: the trace components; without it an encoder
    for each hart, with the properties in *properties*, and a RAM sink.

    Raises ElfError and WiringError.
    """
    memory_map = memory_map or MemoryMap()
    program = ElfFile(elf)
    bus = Bus(memory_map.ram, memory_map.ram_size)
    first, *others = (
        Hart(bus, xlen or program.xlen, extensions, program.entry, ctr=ctr, hartid=number) for number in range(harts)
    )
    machine = Machine(
        first, memory_map, spec, others=others, wiring=wiring or standard(memory_map, harts, **properties)
    )
    load_elf(bus, elf)
    tohost = program.symbol("tohost")
    if tohost is not None:
        for hart in machine.harts:
            hart.watch_tohost(tohost, program.symbol("fromhost"))
    return machine
