"""The registers that are known at a moment, by all the names that gdb and the program's debug information have."""

from collections.abc import Callable, Iterator, Mapping

from rvtrace_gdb.decode.tandem.wording import NUMBERS, regno_of
from rvtrace_gdb.session.past.past import PC

_FLOATS = range(0x1020, 0x1040)
_BOXED = 0xFFFF_FFFF << 32  # a single-precision value in a wider register


class NamedRegisters(Mapping[str, int]):
    """Registers by name. *value* returns one by its number, `PC` included, None if it is unknown: it is asked when a
    register is requested. *flen*: bits of the floating-point registers.
    """

    def __init__(self, value: Callable[[int], int | None], flen: int) -> None:
        self._value_of, self._flen = value, flen

    def __getitem__(self, name: str) -> int:
        value = self._register_value(name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name in ("pc", *NUMBERS) if self._register_value(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _register_value(self, name: str) -> int | None:
        number = PC if name == "pc" else regno_of(name)
        value = None if number is None else self._value_of(number)
        return value | _BOXED if value is not None and self._flen == 32 and number in _FLOATS else value
