"""A session whose pasts know only some of their values: `python hiding_session.py SHARE`, of which SHARE % are hidden.

Which ones depends on the register, or the word of memory, and on the place: a value is known for some dozens of
instructions, and then it is not.
"""

import sys
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from rvtrace_gdb.session.__main__ import main
from rvtrace_gdb.session.past import choice
from rvtrace_gdb.session.past.named_registers import NamedRegisters
from rvtrace_gdb.session.past.past import PC, Past
from rvtrace_gdb.session.selected_history import SelectedHistory

SHARE = int(sys.argv.pop())
_INTEGERS = 0x1000
_NAMES = {number: f"x{number - _INTEGERS}" for number in range(_INTEGERS, _INTEGERS + 32)}


def is_hidden(what: int, position: int, length: int = 32) -> bool:
    place = f"{what} {(position + what) // length}".encode()
    return what != _INTEGERS and zlib.crc32(place) % 100 < SHARE


class HidingPast:
    """Values of *past*, some of them hidden."""

    def __init__(self, past: Past) -> None:
        self._past = past

    def __getattr__(self, name: str) -> Any:
        return getattr(self._past, name)

    def registers(self, position: int) -> Mapping[str, int]:
        known = self._past.registers(position)

        def value(number: int) -> int | None:
            if number == PC:
                return known.get("pc")
            return known.get(_NAMES.get(number, "")) if not is_hidden(number, position) else None

        return NamedRegisters(value, 64)

    def integers(self, position: int, *, trapped: bool = False) -> dict[int, int]:
        known = self._past.integers(position, trapped=trapped)
        at = position + trapped
        return {number: value for number, value in known.items() if not is_hidden(_INTEGERS + number, at)}

    def values_stay_known(self, position: int, names: Sequence[str]) -> bool:
        return False

    def memory(self, position: int, address: int, size: int) -> list[int | None]:
        known = self._past.memory(position, address, size)
        return [None if is_hidden((address + at) >> 3, position, 200) else byte for at, byte in enumerate(known)]


whole = choice.new_past


def hiding(
    selected: SelectedHistory,
    facts: choice.Facts = lambda: None,
    states_name: choice.StatesName = lambda facts: None,
) -> Past | None:
    past = whole(selected, facts, states_name)
    return None if past is None else HidingPast(past)


choice.new_past = hiding

if __name__ == "__main__":
    main()
