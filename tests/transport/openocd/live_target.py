"""Small programs on the simulated target, running at once, with the real openocd as its default settings make it."""

import struct
from contextlib import ExitStack
from pathlib import Path

from rvtrace_gdb.console.bench.rig import Rig, held_port
from rvtrace_gdb.transport.openocd.target import OpenOcd

ENTRY = 0x8000_0000
EBREAK = ENTRY + 0x10
CODE = (
    0x000012B7,  # lui  t0, 1          4096 rounds
    0x010000EF,  # jal  ra, 0x14
    0xFFF28293,  # addi t0, t0, -1
    0xFE029CE3,  # bnez t0, 0x4
    0x00100073,  # ebreak
    0x00008067,  # ret
)
LOOP_FOREVER = (0x0000006F,)  # j 0


def write_elf(path: Path, code: tuple[int, ...] = CODE) -> Path:
    """An ELF64 for RISC-V with one segment, loaded and entered at ENTRY."""
    text = struct.pack(f"<{len(code)}I", *code)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 243, 1, ENTRY, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 120, ENTRY, ENTRY, len(text), len(text), 4)
    path.write_bytes(header + segment + text)
    return path


class Live(Rig):
    """Use as a context: the program runs, unless it ended. `connect()` gives connections; logs are in *folder*."""

    def __init__(self, folder: Path, code: tuple[int, ...] = CODE) -> None:
        super().__init__(write_elf(folder / "program.elf", code), folder, "--run")

    def hold_ports(self, held: ExitStack) -> None:
        super().hold_ports(held)
        self.telnet_port = held.enter_context(held_port())
        # virt2phys: OpenOCD's default, the harder case for memory accesses while the hart runs
        self.openocd_commands = f"telnet_port {self.telnet_port}; riscv set_enable_virt2phys on; init"

    def connect(self, port: int | None = None, timeout: float = 60.0) -> OpenOcd:
        return OpenOcd(port=port or self.tcl_port, timeout=timeout)

    def start_openocd(self) -> None:
        """As Rig, and until it answers: then its telnet port is open, too."""
        super().start_openocd()
        with self.connect() as openocd:
            assert openocd.state() in ("running", "halted")
