"""CoreSight devices of the simulated target on a bus, and the procedures' access to them; nothing else."""

import random
import struct
from collections.abc import Sequence

from rvtrace_gdb.controlregs.coresight.component import CoresightComponent
from rvtrace_gdb.controlregs.coresight.registers import BLOCKS, TMC
from rvtrace_gdb.controlregs.fields import RegisterBlock
from rvtrace_gdb.decode.coresight.formatter import FrameFormatter
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.transport.simulated.bus import Bus, BusError
from rvtrace_gdb.transport.simulated.devices.coresight.device import AtbTransfer, CoresightDevice
from rvtrace_gdb.transport.simulated.devices.coresight.tmc import TmcBuild, TraceMemoryController
from rvtrace_gdb.transport.simulated.devices.output import TraceOutput

RAM, RAM_SIZE = 0x1_0000_0000, 0x10_0000
BASE = 0x2000_0000
PAGE = 0x1000


class Refused(RvtraceError):
    def __init__(self, address: int, partial: bytes = b"") -> None:
        self.address, self.partial = address, partial
        super().__init__(f"bus error at {address:#x}")


class Bench:
    """A Target: a bus with memory at RAM and devices from BASE on. *reads*: how often each address was read."""

    def __init__(self) -> None:
        self.bus = Bus(ram_size=PAGE)
        self.bus.add_ram(RAM, RAM_SIZE)
        self.reads: dict[int, int] = {}
        self.blocks: list[tuple[int, int]] = []
        self.fails_after: int | None = None
        """Reads that are answered before one is refused."""
        self._devices = 0

    def add(self, device: CoresightDevice, *, is_link: bool = False, name: str = "") -> CoresightComponent:
        base = BASE + 0x1000 * self._devices
        self._devices += 1
        self.bus.add(base, 0x1000, device.read, device.write)
        block: RegisterBlock = next(block for block in BLOCKS.values() if block is device.block)
        name = name or ("tmc0" if block is TMC else "link0")
        return CoresightComponent(self, base, block, name, timeout=0.05, is_link=is_link)

    def tmc(
        self, made: TmcBuild, outputs: Sequence[TraceOutput] = ()
    ) -> tuple[TraceMemoryController, CoresightComponent]:
        device = TraceMemoryController(self.bus, outputs, made)
        return device, self.add(device, is_link=bool(outputs))

    def read32(self, address: int) -> int:
        self.reads[address] = self.reads.get(address, 0) + 1
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                self.fails_after = None
                raise Refused(address)
        try:
            return self.bus.read(address, 4)
        except BusError as error:
            raise Refused(address) from error

    def write32(self, address: int, value: int) -> None:
        try:
            self.bus.write(address, 4, value)
        except BusError as error:
            raise Refused(address) from error

    def read_block(self, address: int, nbytes: int, progress: Progress = silent) -> bytes:
        self.blocks.append((address, nbytes))
        try:
            return self.bus.read_bytes(address, nbytes)
        except BusError as error:
            raise Refused(address) from error


def trace(nbytes: int, seed: int = 1) -> list[AtbTransfer]:
    """Return about so many bytes of three sources, in transfers of 1 to 4 bytes."""
    draw, found = random.Random(seed), list[AtbTransfer]()
    while nbytes > 0:
        data = draw.randbytes(min(nbytes, draw.randint(1, 4)))
        found.append(AtbTransfer.with_id(draw.choice((0x10, 0x11, 0x6F)), data))
        nbytes -= len(data)
    return found


def frames_of(transfers: Sequence[AtbTransfer], width: int = 16) -> bytes:
    """Return the frames that a TMC makes of them until it is flushed, as whole words of its memory."""
    formatter = FrameFormatter(repeat_frames=8)
    data = b"".join(formatter.put(each.atid, each) for each in transfers) + formatter.flush()
    while len(data) % width:
        data += b"\1" + bytes(15)
    return data


def write_table(bus: Bus, pages: Sequence[int], at: int) -> int:
    """Write a scatter-gather table as Linux does, each of its own pages behind the one before. Return its end.

    Worked examples of entries: 0x1_0571e000 is 0x010571e2, the last page 0x1_0583d000 0x010583d1, a link to
    0x1_05738000 0x01057383.
    """
    left, place = list(pages), at
    while True:
        entries = [(address >> 12) << 4 | 2 for address in left[:1023]]
        left = left[1023:]
        if not left:
            entries[-1] += 1 - 2
        else:
            entries.append((place + PAGE >> 12) << 4 | 3)
        bus.write_bytes(place, struct.pack(f"<{len(entries)}I", *entries))
        place += PAGE
        if not left:
            return place
