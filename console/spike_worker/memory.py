"""Spike's RAM, which is in this process, page by page."""

import ctypes
from ctypes import c_uint64, c_void_p

from rvtrace_gdb.console.spike_worker.inside import Inside

_PAGE = 1 << 12


class Memory:
    """*sim_at*: of the C++ object that knows where the pages are. Addresses are physical."""

    def __init__(self, inside: Inside, sim_at: int) -> None:
        self._sim_at = sim_at
        self._page = inside.function("_ZN5sim_t11addr_to_memEm", c_void_p, c_void_p, c_uint64)

    def load(self, address: int, size: int) -> str | None:
        """In hex; None: not all of it is RAM."""
        places = self._places(address, size)
        return None if places is None else b"".join(ctypes.string_at(*place) for place in places).hex()

    def store(self, address: int, data: bytes) -> bool:
        """False: not all of it is RAM, and none was stored."""
        places = self._places(address, len(data))
        if places is None:
            return False
        done = 0
        for place, size in places:
            ctypes.memmove(place, data[done : done + size], size)
            done += size
        return True

    def _places(self, address: int, size: int) -> list[tuple[int, int]] | None:
        """Where the bytes are in this process: an address and a size for each page. None: not all are RAM."""
        places = []
        while size:
            here = min(size, _PAGE - address % _PAGE)
            place = self._page(self._sim_at, address)
            if place is None:
                return None
            places.append((place, here))
            address, size = address + here, size - here
        return places
