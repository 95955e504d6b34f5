"""A past of which only some values are known.

Which ones depends on the register, or the word of memory, and on the place: a value is known for some dozens of
instructions, and then it is not.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from rvtrace_gdb.session.past.named_registers import NamedRegisters
from rvtrace_gdb.session.past.past import PC, Past

_INTEGERS = 0x1000
_NAMES = {number: f"x{number - _INTEGERS}" for number in range(_INTEGERS, _INTEGERS + 32)}


def _is_hidden(share: int, what: int, position: int, length: int = 32) -> bool:
    place = f"{what} {(position + what) // length}".encode()
    return what != _INTEGERS and zlib.crc32(place) % 100 < share


class HidingPast:
    """Values of *past*, *share* % of them hidden."""

    def __init__(self, past: Past, share: int) -> None:
        self._past, self._share = past, share

    def __getattr__(self, name: str) -> Any:
        return getattr(self._past, name)

    def registers(self, position: int) -> Mapping[str, int]:
        known = self._past.registers(position)

        def value(number: int) -> int | None:
            if number == PC:
                return known.get("pc")
            return known.get(_NAMES.get(number, "")) if not _is_hidden(self._share, number, position) else None

        return NamedRegisters(value, 64)

    def integers(self, position: int, *, trapped: bool = False) -> dict[int, int]:
        known = self._past.integers(position, trapped=trapped)
        at = position + trapped
        return {number: value for number, value in known.items() if not _is_hidden(self._share, _INTEGERS + number, at)}

    def values_stay_known(self, position: int, names: Sequence[str]) -> bool:
        return False

    def memory(self, position: int, address: int, size: int) -> list[int | None]:
        found = self._past.memory(position, address, size)
        words = ((address + at) >> 3 for at in range(size))
        hidden = (_is_hidden(self._share, word, position, 200) for word in words)
        return [None if is_hidden else byte for byte, is_hidden in zip(found, hidden, strict=True)]
