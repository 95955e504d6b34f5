"""The simulated target put together: hart, memory map, trace components, Debug Module, JTAG TAP.

Everything runs in one thread: the owner lets the hart run with `Machine.run_slice` and feeds the JTAG pins in between,
so whatever a debugger sees is a state between two blocks of the program.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from controlregs.encoder import Format
from decode.ntrace.encoder import EncoderOptions
from transport.simulated.bitbang import Pins
from transport.simulated.block import HartBlock
from transport.simulated.bus import Bus
from transport.simulated.clint import Clint
from transport.simulated.ctr.build import CtrBuild
from transport.simulated.debug_module import DebugModule, NoSuchRegister
from transport.simulated.debug_spec import DebugSpec
from transport.simulated.hart import DebugCause, Hart, IllegalCsr
from transport.simulated.loader import ElfFile, load_elf
from transport.simulated.system_bus import SystemBusAccess
from transport.simulated.tap import Dtm, Tap
from transport.simulated.trace_devices import BLOCK_SIZE
from transport.simulated.trace_encoder import TraceEncoder
from transport.simulated.trace_etrace import ETraceBuild
from transport.simulated.trace_ram_sink import RamSink

DCSR, DCSR_STEP = 0x7B0, 1 << 2
GPR, FPR, END_OF_REGISTERS = 0x1000, 0x1020, 0x1040  # abstract register numbers
_NAN_BOX = 0xFFFF_FFFF << 32


@dataclass(frozen=True)
class MemoryMap:
    """Where things are; sizes in bytes. The CLINT and the main memory are where QEMU's `virt` board has them."""

    clint: int = 0x0200_0000
    encoder: int = 0x2000_0000
    ram_sink: int = 0x2000_1000
    trace_ram: int = 0x3000_0000
    trace_ram_size: int = 0x1_0000
    ram: int = 0x8000_0000
    ram_size: int = 128 << 20


class RunControl:
    """What a Debug Module does to the hart, with the trace encoder told of it."""

    def __init__(self, hart: Hart, encoder: TraceEncoder) -> None:
        self._hart = hart
        self._encoder = encoder
        self.halted = False
        self.held = False
        """In reset: neither halted nor running."""
        self.parked = False
        """The program has ended itself; the hart counts as running but does nothing."""
        self.code_changed = False
        """Memory was written behind the hart's back."""

    def halt(self, cause: DebugCause) -> None:
        self._encoder.halted()
        self._hart.enter_debug(cause)
        self.halted = True

    def resume(self) -> None:
        self._hart.leave_debug()
        self.halted = self.parked = False
        self._encoder.resumed()
        if self._hart.csr_read(DCSR, debug=True) & DCSR_STEP:
            self.look_at_memory()
            self.halt(self._hart.step() or DebugCause.STEP)

    def hold_in_reset(self) -> None:
        if not self.halted:
            self._encoder.hart_reset()
        self._hart.reset()
        self.halted = self.parked = False
        self.held = True

    def leave_reset(self, halt: DebugCause | None) -> None:
        self.held = False
        if halt is not None:
            self.halt(halt)
        else:
            self._encoder.hart_started()

    def look_at_memory(self) -> None:
        """Before the hart runs: forget translated code that may have been overwritten."""
        if self.code_changed:
            self._hart.flush_blocks()
            self.code_changed = False

    def register_bits(self, regno: int) -> int:
        if FPR <= regno < END_OF_REGISTERS:
            if "F" not in self._hart.extensions:
                raise NoSuchRegister(regno)
            return 64 if "D" in self._hart.extensions else 32
        if regno >= END_OF_REGISTERS:
            raise NoSuchRegister(regno)
        return self._hart.xlen

    def read_register(self, regno: int) -> int:
        if regno >= FPR:
            return self._hart.f[regno - FPR] & (1 << self.register_bits(regno)) - 1
        if regno >= GPR:
            return self._hart.x[regno - GPR]
        try:
            return self._hart.csr_read(regno, debug=True)
        except IllegalCsr:
            raise NoSuchRegister(regno) from None

    def write_register(self, regno: int, value: int) -> None:
        if regno >= FPR:
            self._hart.f[regno - FPR] = value if self.register_bits(regno) == 64 else value | _NAN_BOX
        elif regno > GPR:
            self._hart.x[regno - GPR] = value
        elif regno < GPR:
            try:
                self._hart.csr_write(regno, value, debug=True)
            except IllegalCsr:
                raise NoSuchRegister(regno) from None


class Machine:
    """A hart and everything around it.

    *formats*, *built_with*, *etrace*, *absent*: see `TraceEncoder`; *polls*: see `TraceComponent`.

    `printed` is called with what the program prints (HTIF), `exited` with the status it ends with; it then no longer
    runs until a debugger has halted and resumed it.
    """

    def __init__(
        self,
        hart: Hart,
        memory_map: MemoryMap,
        spec: DebugSpec = DebugSpec.V1_0,
        *,
        formats: Sequence[int] = (Format.N_TRACE,),
        built_with: EncoderOptions | None = None,
        etrace: ETraceBuild | None = None,
        absent: Collection[str] = (),
        polls: int = 1,
    ) -> None:
        bus = hart.bus
        self.hart = hart
        self.bus = bus
        self.memory_map = memory_map
        self.spec = spec
        self.printed: Callable[[bytes], None] = lambda text: None
        self.exited: Callable[[int], None] = lambda status: None
        self._executing = False
        Clint(hart, bus, memory_map.clint)
        bus.add_ram(memory_map.trace_ram, memory_map.trace_ram_size)
        self.ram_sink = RamSink(bus, sram_size=memory_map.trace_ram_size, polls=polls)
        self.encoder = TraceEncoder(
            hart, self.ram_sink, self._in_progress,
            formats=formats, built_with=built_with, etrace=etrace, absent=absent, polls=polls,
        )  # fmt: skip
        hart.trace_trigger = self.encoder.triggered
        bus.add(memory_map.encoder, BLOCK_SIZE, self.encoder.read, self.encoder.write)
        bus.add(memory_map.ram_sink, BLOCK_SIZE, self.ram_sink.read, self.ram_sink.write)
        self._control = RunControl(hart, self.encoder)
        system_bus = SystemBusAccess(bus, address_bits=hart.xlen, spec=spec, written=self._memory_written)
        self.debug_module = DebugModule(self._control, system_bus, spec)
        self.tap = Tap(Dtm(self.debug_module, has_errinfo=spec is DebugSpec.V1_0))

    @property
    def halted(self) -> bool:
        """In Debug Mode."""
        return self._control.halted

    @property
    def idle(self) -> bool:
        """Nothing will happen before somebody writes to the JTAG pins."""
        control, hart = self._control, self.hart
        asleep = hart.waiting and not hart.mip & hart.csr.mie
        return control.halted or control.held or control.parked or asleep

    def pins(self, *, fast: bool = True) -> Pins:
        """The TAP's pins for a newly connected adapter."""
        self.tap.reset()
        return Pins(self.tap, self.debug_module.system_reset, fast=fast)

    def halt_at_start(self) -> None:
        """Enter Debug Mode before the first instruction, so that a debugger misses nothing."""
        self._control.halt(DebugCause.HALTREQ)

    def run_slice(self, instructions: int) -> None:
        """Let the hart, if it runs, execute about so many instructions, and encode what it retired."""
        control = self._control
        if control.halted or control.held or control.parked:
            return
        control.look_at_memory()
        self.encoder.settle()
        self.ram_sink.settle()
        self._executing = True
        cause = self.hart.run(instructions)
        self._executing = False
        self.encoder.drain()
        if cause is not None:
            control.halt(cause)
        if self.hart.htif is not None:
            self._host()

    def _host(self) -> None:
        htif = self.hart.htif
        assert htif is not None
        if htif.output:
            self.printed(bytes(htif.output))
            htif.output.clear()
        if self.hart.exit_code is not None:
            self._control.parked = True
            self.exited(self.hart.exit_code)
            self.hart.exit_code = None

    def _in_progress(self) -> tuple[HartBlock, int] | None:
        """The block under execution and how much of it has retired, when a device is accessed by the program itself."""
        return (self.hart.block, self.hart.position) if self._executing else None

    def _memory_written(self, address: int) -> None:
        self._control.code_changed = True


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
) -> Machine:
    """A machine with a program loaded, about to run its first instruction. *xlen* None: the program's.

    *ctr*: what Control Transfer Records the hart has, None: none.

    Raises ElfError.
    """
    memory_map = memory_map or MemoryMap()
    program = ElfFile(elf)
    bus = Bus(memory_map.ram, memory_map.ram_size)
    hart = Hart(bus, xlen or program.xlen, extensions, program.entry, ctr=ctr)
    machine = Machine(
        hart, memory_map, spec,
        formats=formats, built_with=built_with, etrace=etrace, absent=absent, polls=polls,
    )  # fmt: skip
    load_elf(bus, elf)
    tohost = program.symbol("tohost")
    if tohost is not None:
        machine.hart.watch_tohost(tohost, program.symbol("fromhost"))
    return machine
