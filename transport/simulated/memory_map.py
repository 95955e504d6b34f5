"""Where things are in the simulated target, unless something else is said."""

from dataclasses import dataclass


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
