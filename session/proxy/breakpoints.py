"""Breakpoints: those gdb believes inserted, and those the stub has.

In the past gdb's are kept here only, so that walking there costs the target nothing; before the target runs, the stub
gets what it lacks. What gdb removes is removed from the stub at once, wherever gdb is.

Source: GDB manual, "Packets" (z, Z: "Z type,addr,kind").
"""

from collections.abc import Callable
from typing import NamedTuple

from rvtrace_gdb.session.past import Watchpoint, Watchpoints

BREAKPOINTS = frozenset({b"0", b"1"})
_KINDS = {b"2": "watch", b"3": "rwatch", b"4": "awatch"}


class Breakpoint(NamedTuple):
    """*type*: 0 and 1 break, 2 to 4 watch. *rest*: what follows the type, which the stub gets as it is."""

    type: bytes
    rest: bytes

    @classmethod
    def of(cls, packet: bytes) -> "Breakpoint | None":
        """That of a Z or z packet; conditions and commands are not part of it."""
        head, comma, rest = packet[1:].partition(b",")
        address, _, size = rest.partition(b";")[0].partition(b",")
        try:
            int(address, 16), int(size or b"1", 16)
        except ValueError:
            return None
        return cls(head, rest.partition(b";")[0]) if comma and head in (b"0", b"1", b"2", b"3", b"4") else None

    @property
    def address(self) -> int:
        return int(self.rest.partition(b",")[0], 16)

    @property
    def watches(self) -> bool:
        return self.type not in BREAKPOINTS

    @property
    def size(self) -> int:
        """Bytes that are watched."""
        return max(int(self.rest.partition(b",")[2] or b"1", 16), 1)

    def packet(self, letter: bytes) -> bytes:
        return b"%s%s,%s" % (letter, self.type, self.rest)


class Breakpoints:
    """Of one gdb."""

    def __init__(self) -> None:
        self._of_gdb: set[Breakpoint] = set()
        self._of_stub: set[Breakpoint] = set()
        self._seen: set[int] = set()

    def inserted(self, breakpoint: Breakpoint) -> None:
        """gdb believes so."""
        self._of_gdb.add(breakpoint)
        self._seen.add(breakpoint.address)

    def seen_at(self, address: int | None) -> bool:
        """Whether gdb has ever inserted one there: it may be one that it just steps over, and has removed for that."""
        return address in self._seen

    def passed(self, packet: bytes) -> None:
        """The stub answered OK to this packet of gdb."""
        breakpoint = Breakpoint.of(packet)
        if breakpoint is not None:
            change = set.add if packet[:1] == b"Z" else set.discard
            self._seen.add(breakpoint.address)
            change(self._of_gdb, breakpoint)
            change(self._of_stub, breakpoint)

    def is_in_stub(self, breakpoint: Breakpoint) -> bool:
        return breakpoint in self._of_stub

    def removed(self, breakpoint: Breakpoint) -> None:
        """gdb removes one that the stub has not."""
        self._of_gdb.discard(breakpoint)

    def addresses(self) -> frozenset[int]:
        """Where to stop in the past."""
        return frozenset(it.address for it in self._of_gdb if it.type in BREAKPOINTS)

    def watchpoints(self) -> Watchpoints:
        """What to stop at in the past where that is accessed."""
        return frozenset(Watchpoint(_KINDS[it.type], it.address, it.size) for it in self._of_gdb if it.watches)

    def insert_missing(self, transact: Callable[[bytes], bytes]) -> list[Breakpoint]:
        """Before the target runs: those that the stub lacks. Those that it refuses."""
        refused = []
        for it in sorted(self._of_gdb - self._of_stub):
            if transact(it.packet(b"Z")) == b"OK":
                self._of_stub.add(it)
            else:
                refused.append(it)
        return refused

    def remove_all(self, transact: Callable[[bytes], bytes]) -> None:
        """gdb is gone."""
        self._of_gdb.clear()
        while self._of_stub:
            transact(self._of_stub.pop().packet(b"z"))

    def stub_lost(self) -> None:
        self._of_stub.clear()
