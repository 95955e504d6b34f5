"""A simulated hart with a tandem port, and its own state after every step, read from the hart itself."""

from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, decode
from rvtrace_gdb.decode.tandem.encoder import Forms
from rvtrace_gdb.decode.tandem.protocol import SPECIFICATION, TandemDialect, TandemParameters
from rvtrace_gdb.transport.simulated.bus import ElfFile
from rvtrace_gdb.transport.simulated.devices.tandem import Addresses, TandemBuild, attach
from rvtrace_gdb.transport.simulated.hart.csr import IllegalCsr
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from rvtrace_gdb.transport.simulated.machine import Machine, build
from rvtrace_gdb.transport.simulated.wiring import MemoryMap

# Privileged Architecture 20240411, "CSR Listing", of a hart with M and U mode; Debug Specification 1.0, "Triggers".
CSRS = {
    "fflags": 0x001, "frm": 0x002, "fcsr": 0x003, "mstatus": 0x300, "misa": 0x301, "mie": 0x304, "mtvec": 0x305,
    "mcounteren": 0x306, "menvcfg": 0x30A, "mcountinhibit": 0x320, "mscratch": 0x340, "mepc": 0x341, "mcause": 0x342,
    "mtval": 0x343, "mip": 0x344, "tselect": 0x7A0, "tdata1": 0x7A1, "tdata2": 0x7A2,
    "mhartid": 0xF14, "marchid": 0xF12,
}  # fmt: skip


_SELDOM = 3  # what is wrong stays so: not all registers need be looked at after each step


class Snapshot(NamedTuple):
    """The hart after a step; *retired*: instructions so far; *size*: bytes of the trace then."""

    pc: int
    privilege: int
    x: tuple[int, ...]
    f: tuple[int, ...]
    csrs: dict[str, int]
    retired: int
    size: int


class Ported:
    """*elf* on a machine whose harts have tandem ports. `traces`: their bytes."""

    def __init__(
        self, elf: Path, dialect: TandemDialect = SPECIFICATION, forms: Forms | None = None,
        addresses: Addresses = Addresses.EFFECTIVE, extensions: str = "IMAFDC", harts: int = 1,
        pc_physical: bool = False,
    ) -> None:  # fmt: skip
        self.elf = ElfFile(elf)
        self.image = Image.from_elf(elf)
        low = min(part.address for part in self.elf.segments())
        memory = MemoryMap() if low >= 0x8000_0000 and low < 0x8800_0000 else MemoryMap(ram=low)
        self.machine: Machine = build(elf, extensions=extensions, harts=harts, memory_map=memory)
        flen = 64 if "D" in extensions else 32 if "F" in extensions else 0
        self.parameters = TandemParameters(self.elf.xlen, flen, dialect=dialect, supervisor=False)
        made = TandemBuild(self.parameters, forms or Forms(), addresses, pc_physical)
        self.traces = [bytearray() for _ in range(harts)]
        parts = self.elf.segments()
        self.loaded = [(part.address, part.data + bytes(part.memory_size - len(part.data))) for part in parts]
        writes: list[Callable[[bytes], object]] = [trace.extend for trace in self.traces]
        attach(self.machine.harts, [made] * harts, writes, self.loaded, memory.clint)

    @property
    def hart(self) -> Hart:
        return self.machine.hart

    def decoded(self, hart: int = 0) -> DecodedTandem:
        return decode(bytes(self.traces[hart]), self.image, self.parameters)

    def snapshot(self, hart: int = 0) -> Snapshot:
        return snapshot(self.machine.harts[hart], len(self.traces[hart]))


def snapshot(hart: Hart, size: int) -> Snapshot:
    flen = (1 << (64 if "D" in hart.extensions else 32)) - 1
    csrs = {}
    for name, number in CSRS.items():
        try:
            csrs[name] = hart.csr_read(number, debug=True)
        except IllegalCsr:
            continue
    floating = tuple(value & flen for value in hart.f) if "F" in hart.extensions else ()
    return Snapshot(hart.pc, hart.privilege, tuple(hart.x), floating, csrs, hart.instret, size)


def differences(found: DecodedTandem, snapshots: list[Snapshot], seldom: int = _SELDOM) -> list[str]:
    """Where the decoded state after steps is not the hart's own: a line each. What it leaves open counts, too."""
    lines = []
    for step, expected in enumerate(snapshots):
        group = bisect_left(found.trace.offsets, expected.size) - 1
        state = found.after(group)
        pairs = [("pc", state.pc, expected.pc), ("privilege", state.privilege, expected.privilege)]
        pairs += [(f"x{n}", value, expected.x[n]) for n, value in enumerate(state.xs())]
        if step % seldom == 0 or step == len(snapshots) - 1:
            pairs += [(f"f{n}", state.f(n), value) for n, value in enumerate(expected.f)]
            pairs += [(name, state.csr(CSRS[name]), value) for name, value in expected.csrs.items()]
        lines += [f"step {step}, group {group}: {name} is {a}, must be {b}" for name, a, b in pairs if a != b]
    return lines


def memory_differences(found: DecodedTandem, ported: Ported, group: int) -> list[str]:
    """Where memory after a group is not what the bus has now: the program's own, which is all known."""
    state, lines = found.after(group), []
    for address, data in ported.loaded:
        there = ported.machine.bus.read_bytes(address, len(data))
        known = state.memory(address, len(data))
        lines += [f"{address + n:#x}: {a} {b}" for n, (a, b) in enumerate(zip(known, there, strict=True)) if a != b]
    return lines
