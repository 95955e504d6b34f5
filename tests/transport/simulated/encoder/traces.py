"""The programs of tests/programs/everything on the simulated target, traced without a debugger in between.

Registers and bits are numbers here, from the Trace Control Interface 1.0.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.controlregs.trace_control.request import EncoderSettings
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.ntrace.options import EncoderOptions
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.formats.ntrace import ntrace_options
from rvtrace_gdb.transport.simulated.hart.block import Accessed, HartBlock, Situation, TrapEntry
from rvtrace_gdb.transport.simulated.hart.reports import HartItem
from rvtrace_gdb.transport.simulated.machine import Machine, MemoryMap, build
from tests.helpers.amounts import LONG
from tests.transport.simulated.devices.test_component import CONTROL, IMPL, INST_FEATURES, TE, Registers, start, stop
from tests.transport.simulated.hart.programs import build as compile_for_hart

PROGRAMS = Path(__file__).resolve().parents[3] / "programs" / "everything"
LOW, HIGH32, HIGH64 = 0x8000_0000, 0xC000_0000, 0xFFFF_FFFF_8000_0000

TS_CONTROL, COUNTER_LOW, COUNTER_HIGH = 0x40, 0x48, 0x4C
HTM, BTM = 6 << 4, 3 << 4
CONTEXT, TRIGGERS = 1 << 9, 1 << 11
SEQUENTIAL, REPEATED, ALL_JUMPS, ADDRESS_MSB = 1 << 2, 1 << 8, 1 << 9, 1 << 10
IMPLICIT_RETURN = {mode: 1 << 3 | mode << 6 for mode in range(4)}
EVERYTHING = SEQUENTIAL | IMPLICIT_RETURN[3] | REPEATED | ALL_JUMPS | ADDRESS_MSB
TS_ACTIVE, TS_COUNT, TS_RESET, TS_ENABLE = 1, 2, 4, 1 << 15
TS_SYSTEM, TS_CORE = 2 << 4, 3 << 4
TIME = TS_ENABLE | TS_SYSTEM | TS_COUNT | TS_ACTIVE
RARE_SYNC = 1 << 16 | 8 << 20  # every 4096 messages
INSTRUCTIONS = 7000 if LONG else 4000  # both tasks, system calls, exceptions and timer interrupts, each several times

# Where programs run: an architecture, and where they are linked.
PLACES = {
    "rv64": ("rv64imac", LOW),
    "rv32": ("rv32imac", LOW),
    "rv64-high": ("rv64imac", HIGH64),
    "rv32-high": ("rv32imac", HIGH32),
}


def compiled(folder: Path, march: str, origin: int = LOW, user: str = "user.c", *options: str) -> Path:
    """kernel.S with a program in user mode."""
    return compile_for_hart(
        folder, PROGRAMS / "kernel.S", PROGRAMS / user, march=march, origin=origin, options=options
    )


class Traced(NamedTuple):
    """*retired*: what the hart says it retired while traced. *history*: what the trace says, decoded as the registers
    read back say. *data*: the trace."""

    retired: list[int]
    history: History
    data: bytes

    def check(self) -> None:
        """The trace says what the hart says."""
        assert list(self.history.pcs(0, len(self.history))) == self.retired
        assert len(self.retired) > 3000


def machine_with(
    elf: Path,
    *,
    base: int = LOW,
    trace_size: int = 1 << 18,
    built_with: EncoderOptions | None = None,
    absent: Collection[str] = (),
) -> Machine:
    memory_map = MemoryMap(ram=base, ram_size=1 << 20, trace_ram_size=trace_size)
    return build(elf, extensions="IMAC", memory_map=memory_map, built_with=built_with, absent=absent)


def told_to(log: list[int], retired: Sequence[HartItem]) -> None:
    for item in retired:
        if isinstance(item, HartBlock):
            log += item.pcs
        elif not isinstance(item, TrapEntry | Situation | Accessed):
            log += item[0].pcs[: item[1]]


def in_force(te: Registers) -> EncoderSettings:
    return EncoderSettings("encoder", TE, te[CONTROL], te[IMPL], te[INST_FEATURES], te[TS_CONTROL])


def trace(
    machine: Machine,
    elf: Path,
    control: int = HTM | RARE_SYNC,
    features: int = 0,
    timestamps: int = 0,
    *,
    instructions: int = INSTRUCTIONS,
    slice_length: int = 1111,
) -> Traced:
    """Run the program, all of it under trace."""
    log: list[int] = []
    machine.encoder.watch = lambda retired: told_to(log, retired)
    te, ram = start(machine, control, features=features, timestamps=timestamps)
    options = ntrace_options(in_force(te), alone=True)
    while machine.hart.instret < instructions:
        machine.run_slice(slice_length)
    data = stop(te, ram)
    return Traced(log, decode(data, Image.from_elf(elf), options), data)
