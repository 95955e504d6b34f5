"""The simulated target put together: harts, memory map, trace components, Debug Module, JTAG TAP.

Everything runs in one thread: the owner lets the harts run with `Machine.run_slice` and feeds the JTAG pins in between,
so whatever a debugger sees is a state between two blocks of the program.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from controlregs.encoder import Format
from decode.ntrace.encoder import EncoderOptions
from transport.simulated.bitbang import Pins
from transport.simulated.bus import Bus
from transport.simulated.clint import Clint
from transport.simulated.core import Core, InProgress, Turns
from transport.simulated.ctr.build import CtrBuild
from transport.simulated.debug_module import DebugModule
from transport.simulated.debug_spec import DebugSpec
from transport.simulated.hart import DebugCause, Hart
from transport.simulated.loader import ElfFile, load_elf
from transport.simulated.system_bus import SystemBusAccess
from transport.simulated.tap import Dtm, Tap
from transport.simulated.trace_devices import BLOCK_SIZE
from transport.simulated.trace_encoder import TraceEncoder
from transport.simulated.trace_etrace import ETraceBuild
from transport.simulated.trace_ram_sink import RamSink


@dataclass(frozen=True)
class MemoryMap:
    """Where things are; sizes in bytes. The CLINT and the main memory are where QEMU's `virt` board has them.

    `encoder` is that of hart 0, that of hart i is i times `encoder_stride` further up.
    """

    clint: int = 0x0200_0000
    encoder: int = 0x2000_0000
    encoder_stride: int = 0x1_0000
    ram_sink: int = 0x2000_1000
    trace_ram: int = 0x3000_0000
    trace_ram_size: int = 0x1_0000
    ram: int = 0x8000_0000
    ram_size: int = 128 << 20

    def encoder_of(self, hart: int) -> int:
        return self.encoder + hart * self.encoder_stride


class Machine:
    """One hart or several, and everything around them. `hart` and `encoder` are those of hart 0.

    *others*: the harts besides *hart*; all share its bus. *formats*, *built_with*, *etrace*, *absent*: see
    `TraceEncoder`; *polls*: see `TraceComponent`.

    `printed` is called with what the program prints (HTIF), `exited` with the status it ends with; it then no longer
    runs until a debugger has halted and resumed it.
    """

    def __init__(
        self,
        hart: Hart,
        memory_map: MemoryMap,
        spec: DebugSpec = DebugSpec.V1_0,
        *,
        others: Sequence[Hart] = (),
        formats: Sequence[int] = (Format.N_TRACE,),
        built_with: EncoderOptions | None = None,
        etrace: ETraceBuild | None = None,
        absent: Collection[str] = (),
        polls: int = 1,
    ) -> None:
        bus = hart.bus
        self.harts = (hart, *others)
        self.bus = bus
        self.memory_map = memory_map
        self.spec = spec
        self.printed: Callable[[bytes], None] = lambda text: None
        self.exited: Callable[[int], None] = lambda status: None

        def encoder(hart: Hart, in_progress: InProgress) -> TraceEncoder:
            return TraceEncoder(
                hart, self.ram_sink, in_progress,
                formats=formats, built_with=built_with, etrace=etrace, absent=absent, polls=polls,
            )  # fmt: skip

        if not others:
            Clint(hart, bus, memory_map.clint)
        self.ram_sink = RamSink(bus, sram_size=memory_map.trace_ram_size, polls=polls)
        self._cores = tuple(Core(each, encoder) for each in self.harts)
        self._turns = Turns(self._cores, bus, memory_map.clint) if others else None
        self._add_devices()
        self.hart, self.encoder, self._control = hart, self.encoders[0], self._cores[0].control
        self.debug_module = self._debug_module()
        self.tap = Tap(Dtm(self.debug_module, has_errinfo=spec is DebugSpec.V1_0))

    def _add_devices(self) -> None:
        bus, memory_map = self.bus, self.memory_map
        bus.add_ram(memory_map.trace_ram, memory_map.trace_ram_size)
        for number, encoder in enumerate(self.encoders):
            bus.add(memory_map.encoder_of(number), BLOCK_SIZE, encoder.read, encoder.write)
        bus.add(memory_map.ram_sink, BLOCK_SIZE, self.ram_sink.read, self.ram_sink.write)

    def _debug_module(self) -> DebugModule:
        controls = [core.control for core in self._cores]
        system_bus = SystemBusAccess(
            self.bus, address_bits=self.harts[0].xlen, spec=self.spec, written=self._memory_written
        )
        if self._turns is None:
            return DebugModule(controls[0], system_bus, self.spec)
        module = DebugModule(controls[0], system_bus, self.spec, others=controls[1:], reset=self._turns.clint.reset)
        for control in controls:
            control.on_halt = partial(module.harts.has_halted, control)
        return module

    @property
    def encoders(self) -> tuple[TraceEncoder, ...]:
        """In the order of their harts."""
        return tuple(core.encoder for core in self._cores)

    @property
    def halted(self) -> bool:
        """All in Debug Mode."""
        return all(core.control.halted for core in self._cores)

    @property
    def idle(self) -> bool:
        """Nothing will happen before somebody writes to the JTAG pins."""
        if self._turns is not None:
            return self._turns.idle
        return self._control.stopped or self._cores[0].asleep

    def pins(self, *, fast: bool = True) -> Pins:
        """The TAP's pins for a newly connected adapter."""
        self.tap.reset()
        return Pins(self.tap, self.debug_module.system_reset, fast=fast)

    def halt_at_start(self) -> None:
        """Enter Debug Mode before the first instruction, so that a debugger misses nothing."""
        for core in self._cores:
            core.control.halt(DebugCause.HALTREQ)

    def run_slice(self, instructions: int) -> None:
        """Let the harts that run execute about so many instructions together, and encode what they retired."""
        if self._turns is None and not self._control.stopped:
            self._settle()
            self._cores[0].run(instructions)
            self._host(self._cores[0])
        elif self._turns is not None and self._turns.running:
            self._settle()
            self._turns.run(instructions, self._host)

    def _settle(self) -> None:
        for core in self._cores:
            core.encoder.settle()
        self.ram_sink.settle()

    def _host(self, core: Core) -> None:
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
    formats: Sequence[int] = (Format.N_TRACE,),
    built_with: EncoderOptions | None = None,
    etrace: ETraceBuild | None = None,
    absent: Collection[str] = (),
    polls: int = 1,
    ctr: CtrBuild | None = None,
    harts: int = 1,
) -> Machine:
    """A machine with a program loaded, all *harts* about to run its first instruction. *xlen* None: the program's.

    *ctr*: what Control Transfer Records each hart has, None: none.

    Raises ElfError.
    """
    memory_map = memory_map or MemoryMap()
    program = ElfFile(elf)
    bus = Bus(memory_map.ram, memory_map.ram_size)
    first, *others = (
        Hart(bus, xlen or program.xlen, extensions, program.entry, ctr=ctr, hartid=number) for number in range(harts)
    )
    machine = Machine(
        first, memory_map, spec, others=others,
        formats=formats, built_with=built_with, etrace=etrace, absent=absent, polls=polls,
    )  # fmt: skip
    load_elf(bus, elf)
    tohost = program.symbol("tohost")
    if tohost is not None:
        for hart in machine.harts:
            hart.watch_tohost(tohost, program.symbol("fromhost"))
    return machine
