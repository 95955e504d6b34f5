"""The memory that a tandem trace determines.

It comes from, in this order: stores; later loads within the program's memory, which is not a device; code and constants
of the program that no store has changed.
"""

from bisect import bisect_right
from collections.abc import Iterator

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem
from rvtrace_gdb.decode.tandem.memory import PAGE, Store
from rvtrace_gdb.decode.tandem.state import TandemState
from rvtrace_gdb.session.past.program_memory import ProgramMemory

_EBREAK = 4  # bytes
_BREAKPOINTS = {(4, 0x0010_0073), (2, 0x9002), (2, 0x0073), (2, 0x0010)}
"""Size and value of stores that write an ebreak, whole or in halves, or a c.ebreak."""


class TandemMemory:
    """The memory of a tandem trace. *image*: the program."""

    def __init__(self, tandem: DecodedTandem, image: Image) -> None:
        self.tandem, self.image = tandem, image
        self._ram = ProgramMemory(image)
        self._breakpoints = _breakpoints(tandem)

    def read(self, position: int, address: int, size: int) -> list[int | None]:
        """Return *size* bytes at *address*, None for unknown ones."""
        state = self.tandem.before(position)
        found = self._without_breakpoints(state, address, state.memory(address, size))
        found = self._without_what_changed(state, address, found)
        if None in found:
            found = self._with_loads(state, address, found)
        return self._with_constants(state, address, found) if None in found else found

    def _without_breakpoints(self, state: TandemState, address: int, content: list[int | None]) -> list[int | None]:
        """Replace a debugger's breakpoints by the program's code: gdb would take them for
        breakpoints in the program.
        """
        end = address + len(content)
        for begin in self._breakpoints[bisect_right(self._breakpoints, address - _EBREAK) :]:
            if begin >= end:
                break
            last = state.memory_writer(begin, 1)
            code = self.image.constant(begin, _EBREAK)
            by_debugger = last is not None and not self.tandem.index.retired[last.group]
            if last is None or not by_debugger or not code or (last.size, last.value) not in _BREAKPOINTS:
                continue
            for at in range(max(begin, address), min(begin + min(last.size, len(code)), end)):
                content[at - address] = code[at - begin]
        return content

    def _without_what_changed(self, state: TandemState, address: int, content: list[int | None]) -> list[int | None]:
        """Remove bytes for which a load read another value than was stored: another hart's, or a device's."""
        loads = self.tandem.index.loads.get(state.space)
        if loads is None:
            return content
        stores = list(_stores(state, address, len(content)))
        for at, load in enumerate(loads.last(state.group, address, len(content))):
            store = stores[at]
            if load is None or load.value is None or store is None or load.group <= store.group or content[at] is None:
                continue
            loaded = load.value >> 8 * (address + at - load.address) & 0xFF
            if loaded != content[at]:
                content[at] = loaded if address + at in self._ram else None
        return content

    def _with_loads(self, state: TandemState, address: int, content: list[int | None]) -> list[int | None]:
        if not any(address + at in self._ram for at, byte in enumerate(content) if byte is None):
            return content
        loaded = state.memory(address, len(content), loads=True)
        return [
            other if byte is None and address + at in self._ram else byte
            for at, (byte, other) in enumerate(zip(content, loaded, strict=True))
        ]

    def _with_constants(self, state: TandemState, address: int, content: list[int | None]) -> list[int | None]:
        """Add bytes of the program that it does not write, except those that were written nevertheless."""
        written = list(_stores(state, address, len(content)))
        constants = self._ram.constants(address, len(content))
        return [
            constant if byte is None and store is None else byte
            for byte, store, constant in zip(content, written, constants, strict=True)
        ]


def _breakpoints(tandem: DecodedTandem) -> list[int]:
    """Return where a debugger stored breakpoints, in increasing order."""
    stores = (store for group in tandem.index.initializations for _, store in tandem.stored(group))
    return sorted({store.address for store in stores if (store.size, store.value) in _BREAKPOINTS})


def _stores(state: TandemState, address: int, size: int) -> Iterator[Store | None]:
    """Yield the last store to each byte, even if its value is unknown or may not have lasted."""
    end = address + size
    while address < end:
        stop = min(end, (address // PAGE + 1) * PAGE)
        place = state.place(address)
        yield from place.writes.last(state.group, place.address, stop - address)
        address = stop
