"""Machines with several harts: with hand-encoded code, or with the programs of tests/programs/harts."""

from pathlib import Path

from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.debug.debug_module import DebugSpec
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from rvtrace_gdb.transport.simulated.machine import Machine, MemoryMap
from tests.helpers.compiled import elf_bytes
from tests.helpers.cross_compiler import ABI, EXAMPLES
from tests.transport.simulated.hart.encoded_code import BASE

PROGRAMS = Path(__file__).resolve().parents[2] / "programs" / "harts"
APART = 0x1000  # from the code of one hart to that of the next
CLINT, MTIMECMP, MTIME = 0x0200_0000, 0x0200_4000, 0x0200_BFF8
DMCONTROL, DMSTATUS, DMCS2 = 0x10, 0x11, 0x32
HALTREQ, RESUMEREQ, HARTRESET, NDMRESET, DMACTIVE = 1 << 31, 1 << 30, 1 << 29, 2, 1


def compiled(
    folder: Path, source: Path = PROGRAMS / "share.c", march: str = "rv64imac_zicsr", options: tuple[str, ...] = ()
) -> Path:
    """With a start-up that gives each hart a stack, and main its number."""
    elf = folder / f"{source.stem}-{march}.elf"
    command = ["riscv64-unknown-elf-gcc", f"-march={march}", f"-mabi={ABI[march]}", "-mcmodel=medany", "-Og", "-g"]
    command += ["-specs=picolibc.specs", "-nostartfiles", "-T", str(EXAMPLES / "link.ld"), *options]
    start = EXAMPLES / "two_harts" / "start.S"
    elf.write_bytes(elf_bytes([*command, str(start), str(source)], [start, source]))
    return elf


def machine_with(*codes: list[int], spec: DebugSpec = DebugSpec.V1_0) -> Machine:
    """One hart for each of *codes*, hart n starting at BASE + n * APART, with x3 pointing to free memory of its own."""
    bus = Bus(BASE, 1 << 16)
    first, *others = (Hart(bus, 64, "IMAC", BASE + number * APART, hartid=number) for number in range(len(codes)))
    machine = Machine(first, MemoryMap(ram_size=1 << 16), spec, others=others)
    for hart, code in zip(machine.harts, codes, strict=True):
        for index, word in enumerate(code):
            bus.write(hart.pc + 4 * index, 4, word)
        hart.x[3] = hart.pc + APART // 2
    return machine


def control(machine: Machine, hart: int, bits: int = 0) -> None:
    """Write dmcontrol, *hart* selected."""
    machine.debug_module.write(DMCONTROL, hart << 16 | bits | DMACTIVE)


def cause(machine: Machine, hart: int) -> int:
    """dcsr.cause (Debug Specification 1.0, 4.9.1)."""
    return machine.harts[hart].csr_read(0x7B0, debug=True) >> 6 & 7
