"""Espressif's chips that have a RISC-V trace encoder: their numbers and where its registers are.

Sources: ESP-IDF, esp_app_format.h (chip IDs), and of each chip reg_base.h, trace_reg.h and soc.h.
"""

import struct
from typing import NamedTuple

_CODE = range(0x4000_0000, 0x5000_0000)
"""ROM, RAM and flash."""


class Chip(NamedTuple):
    """*encoders*: base addresses of the trace encoders, by core. *code*: where code can be, and no peripheral is."""

    name: str
    encoders: tuple[int, ...]
    code: tuple[range, ...] = (_CODE,)


CHIPS = {
    0x0D: Chip("ESP32-C6", (0x600C_0000,)),
    0x10: Chip("ESP32-H2", (0x600C_0000,)),
    0x12: Chip("ESP32-P4", (0x3FF0_4000, 0x3FF0_5000)),
    0x14: Chip("ESP32-C61", (0x600C_0000,)),
    0x17: Chip("ESP32-C5", (0x600C_0000,)),
    0x19: Chip("ESP32-H21", (0x600C_0000,)),
    0x1C: Chip("ESP32-H4", (0x6000_0000, 0x6000_1000)),
    0x20: Chip("ESP32-S31", (0x2D00_0000, 0x2D00_1000), (_CODE, range(0x2F00_0000, 0x2F85_0000))),
}
"""By the chip ID of firmware images."""

_MEMORY = struct.Struct("<4I")  # TRACE_MEM_START_ADDR, _END_ADDR, _CURRENT_ADDR, _ADDR_UPDATE
_STATUS = struct.Struct("<3I")  # TRACE_FIFO_STATUS, _INTR_ENA, _INTR_RAW
REGISTERS = _MEMORY.size + _STATUS.size
"""Bytes of an encoder's registers that `Registers.parse` takes; reading them changes nothing."""
_FIFO_EMPTY = 1 << 0
_FIFO_OVERFLOW, _MEM_FULL = 1 << 0, 1 << 1


class Registers(NamedTuple):
    """An encoder's state now. *current*: where it writes next."""

    start: int
    end: int
    current: int
    fifo_status: int
    intr_raw: int

    @classmethod
    def parse(cls, data: bytes) -> "Registers":
        """From the first `REGISTERS` bytes of the encoder."""
        start, end, current, _ = _MEMORY.unpack_from(data)
        fifo_status, _, intr_raw = _STATUS.unpack_from(data, _MEMORY.size)
        return cls(start, end, current, fifo_status, intr_raw)

    @property
    def fifo_empty(self) -> bool:
        return bool(self.fifo_status & _FIFO_EMPTY)

    @property
    def fifo_overflow(self) -> bool:
        return bool(self.intr_raw & _FIFO_OVERFLOW)

    @property
    def memory_full(self) -> bool:
        return bool(self.intr_raw & _MEM_FULL)


def may_be_code(target_id: int, address: int, size: int) -> bool:
    """Whether these bytes can be code: reading others may change something in a peripheral."""
    chip = CHIPS.get(target_id)
    places = chip.code if chip else (_CODE,)
    return any(address in place and address + size - 1 in place for place in places)


def name_of(target_id: int) -> str:
    """E.g. "ESP32-C6"."""
    chip = CHIPS.get(target_id)
    return chip.name if chip else f"an Espressif chip with ID 0x{target_id:04x}"
