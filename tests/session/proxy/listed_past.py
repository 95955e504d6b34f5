"""A past that is a list of addresses, as simple as can be: what the proxy is tested with."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from rvtrace_gdb.session.past.past import TracedRegisters
from rvtrace_gdb.session.proxy.backend import NO_WATCHPOINTS, Hit, MemoryPart, MovementStop, Watchpoints
from rvtrace_gdb.support.errors import Progress, RvtraceError

_KINDS = {"load": "rwatch", "store": "watch"}
HERE = -1  # in place of the last address: where the hart stands now


class NoPast(RvtraceError):
    """There is none."""


class ListedPast:
    """*fetch* gives the addresses of a hart when it enters: all that have run, and last where it stands now.

    code: what is known of memory, by the address where it begins. slow: seconds for each thousandth of a run.
    """

    def __init__(
        self,
        fetch: Callable[[int | None], Sequence[int]],
        code: Mapping[int, bytes] | None = None,
        slow: float = 0.0,
        lines: tuple[str, ...] = (),
    ) -> None:
        self._fetch, self._code, self.slow, self._lines = fetch, code or {}, slow, lines
        self.pcs: dict[int | None, Sequence[int]] = {}
        self.places: dict[int | None, int] = {}
        self.entered = self.left = 0
        self.takes_several = False
        self.working = threading.Event()
        """That it works on something was told, since this was cleared."""
        self.accesses: list[tuple[int, str, int]] | None = None
        """(position, "load" or "store", address of a byte) where they are known."""

    def enter(self, hart: int | None, progress: Progress) -> None:
        self.pcs[hart] = self._fetch(hart)
        self.places[hart] = len(self.pcs[hart]) - 1
        self.entered += 1
        self._work(progress)

    def is_forked(self, hart: int | None) -> bool:
        return False

    def write_register(self, hart: int | None, name: str, value: int) -> bool:
        return False

    def write_memory(self, hart: int | None, address: int, data: bytes) -> bool:
        return False

    def leave(self) -> None:
        self.places.clear()
        self.left += 1

    def position(self, hart: int | None) -> int | None:
        return self.places.get(hart)

    def away(self) -> bool:
        return bool(self.places)

    def is_at_end(self, hart: int | None) -> bool:
        return hart in self.places and self.places[hart] == len(self.pcs[hart]) - 1

    def go_to(self, hart: int | None, position: int) -> None:
        if hart not in self.pcs or not 0 <= position < len(self.pcs[hart]):
            raise NoPast(f"no position {position}")
        self.places[hart] = position

    def sees_accesses(self, hart: int | None) -> bool:
        return self.accesses is not None

    def step(self, hart: int | None, direction: int, watchpoints: Watchpoints = NO_WATCHPOINTS) -> MovementStop:
        made_at = self.places[hart] - (direction < 0)
        hits = [
            (it.kind, address)
            for position, kind, address in self.accesses or ()
            for it in sorted(watchpoints)
            if position == made_at and it.kind in (_KINDS[kind], "awatch") and 0 <= address - it.address < it.size
        ]
        if hits:
            others = hits[1:] if self.takes_several else ()
            return MovementStop(hit=Hit(self.places[hart], *hits[0], tuple(others)))
        position = self.places[hart] + direction
        if position < 0:
            return MovementStop("begin")
        self.places[hart] = min(position, len(self.pcs[hart]) - 1)
        return MovementStop("end" if self.is_at_end(hart) else "", self._lines)

    def step_along(
        self, hart: int | None, direction: int, breakpoints: frozenset[int], progress: Progress
    ) -> MovementStop:
        return self.step(hart, direction)

    def step_within(
        self,
        hart: int | None,
        direction: int,
        addresses: range,
        progress: Progress,
        watchpoints: Watchpoints = NO_WATCHPOINTS,
    ) -> MovementStop:
        while True:
            stop = self.step(hart, direction, watchpoints)
            if stop.hit or stop.at_end or self.pcs[hart][self.places[hart]] not in addresses:
                return stop

    def run(
        self,
        hart: int | None,
        direction: int,
        breakpoints: frozenset[int],
        progress: Progress,
        watchpoints: Watchpoints = NO_WATCHPOINTS,
    ) -> MovementStop:
        self._work(progress)
        while True:
            stop = self.step(hart, direction, watchpoints)
            if stop.hit or stop.at_end or self.pcs[hart][self.places[hart]] in breakpoints:
                return stop

    def pc(self, hart: int | None) -> int | None:
        return None if hart not in self.places or self.is_at_end(hart) else self.pcs[hart][self.places[hart]]

    def registers(self, hart: int | None) -> Mapping[str, int]:
        pc = self.pcs[hart][self.places[hart]]
        return {} if pc == HERE else {"pc": pc}

    def traced_registers(self, hart: int | None) -> TracedRegisters | None:
        return None

    def memory(self, hart: int | None, address: int, size: int) -> bytes:
        for begin, data in self._code.items():
            if begin <= address < begin + len(data):
                return data[address - begin :][:size]
        return b""

    def partly_known_lines(self, hart: int | None) -> Sequence[MemoryPart]:
        return list((self._code or {}).items())

    def joins(self, hart: int | None, pc: int) -> str:
        return "" if self.pcs[hart][-1] in (pc, HERE) else f"the trace does not lead to {pc:#x}"

    def _work(self, progress: Progress) -> None:
        for done in range(1000 if self.slow else 1):
            progress("decoding", done, 1000)
            self.working.set()
            time.sleep(self.slow)
