"""The system bus of the simulated target: RAM regions and memory-mapped devices.

Everything is little-endian and physically addressed. The hart's compiled code goes straight to `Bus.main`, the first
RAM region; whatever lies outside comes here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from mmap import mmap

from rvtrace_gdb.support.errors import RvtraceError

Read = Callable[[int, int], int]
Write = Callable[[int, int, int], None]


class BusError(RvtraceError):
    """Nothing answers at `address`, or what answers does not take an access of this size."""

    def __init__(self, address: int, nbytes: int = 1) -> None:
        super().__init__(f"bus error: no memory or device takes {nbytes} bytes at {address:#x}; see the memory map")
        self.address = address
        self.nbytes = nbytes


def _views(data: mmap) -> dict[int, memoryview]:
    whole = memoryview(data)
    return {1: whole, 2: whole.cast("H"), 4: whole.cast("I"), 8: whole.cast("Q")}


class Ram:
    """`size` bytes of memory at `base`; `views[n]` is the memory as an array of n-byte unsigned integers."""

    def __init__(self, base: int, size: int) -> None:
        if base % 8 or size % 8 or size <= 0:
            raise ValueError(f"RAM {base:#x}+{size:#x}: base and size must be multiples of 8 bytes")
        self.base = base
        self.size = size
        self.data = mmap(-1, size)  # anonymous memory: zero, and real only where it is touched
        self.views = _views(self.data)


@dataclass(frozen=True)
class Device:
    """A range of addresses answered by two functions that see offsets from `base`. They may raise `BusError`."""

    base: int
    size: int
    read: Read
    write: Write


class Bus:
    """Addresses to RAM and devices. RAM is looked at before devices, both in the order they were added.

    The default RAM is as large as QEMU's `virt` board's; it costs only the pages that are touched.
    """

    def __init__(self, ram_base: int = 0x8000_0000, ram_size: int = 128 << 20) -> None:
        self.main = Ram(ram_base, ram_size)
        self._rams = [self.main]
        self._devices: list[Device] = []
        self.watch: Callable[[int, bytes], None] | None = None
        """Told of what is written to RAM through here: address and bytes. Not what compiled code stores."""

    @property
    def ram_base(self) -> int:
        return self.main.base

    def add(self, base: int, size: int, read: Read, write: Write) -> None:
        """Attach a device: `read(offset, nbytes) -> value`, `write(offset, nbytes, value)`, nbytes 1, 2, 4 or 8."""
        self._devices.append(Device(base, size, read, write))

    def add_ram(self, base: int, size: int) -> Ram:
        """Attach more memory (bytes)."""
        ram = Ram(base, size)
        self._rams.append(ram)
        return ram

    def read(self, address: int, nbytes: int) -> int:
        """The unsigned value at *address*, which need not be aligned in RAM. Raises `BusError`."""
        for ram in self._rams:
            offset = address - ram.base
            if 0 <= offset <= ram.size - nbytes:
                return int.from_bytes(ram.data[offset : offset + nbytes], "little")
        device = self._device(address, nbytes)
        return device.read(address - device.base, nbytes)

    def write(self, address: int, nbytes: int, value: int) -> None:
        """Store the low *nbytes* of *value*. Raises `BusError`."""
        value &= (1 << 8 * nbytes) - 1
        for ram in self._rams:
            offset = address - ram.base
            if 0 <= offset <= ram.size - nbytes:
                ram.data[offset : offset + nbytes] = data = value.to_bytes(nbytes, "little")
                if self.watch is not None:
                    self.watch(address, data)
                return
        device = self._device(address, nbytes)
        device.write(address - device.base, nbytes, value)

    def read_bytes(self, address: int, size: int) -> bytes:
        """*size* bytes of RAM; devices are never read. Raises `BusError` when they do not lie in one RAM region."""
        ram, offset = self._ram(address, size)
        return ram.data[offset : offset + size]

    def write_bytes(self, address: int, data: bytes) -> None:
        """Fill RAM, for loaders; devices are never written. Raises `BusError` when it does not fit one RAM region."""
        ram, offset = self._ram(address, len(data))
        ram.data[offset : offset + len(data)] = data
        if self.watch is not None:
            self.watch(address, data)

    def _ram(self, address: int, size: int) -> tuple[Ram, int]:
        for ram in self._rams:
            if 0 <= address - ram.base <= ram.size - size:
                return ram, address - ram.base
        raise BusError(address, size)

    def _device(self, address: int, nbytes: int) -> Device:
        for device in self._devices:
            if 0 <= address - device.base <= device.size - nbytes:
                return device
        raise BusError(address, nbytes)
