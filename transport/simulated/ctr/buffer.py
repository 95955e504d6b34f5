"""The CTR buffer: as many entries as can be selected, the place to write next, and the registers of an entry.

Sources: CTR 1.0, "Entry Registers", sctrdepth and sctrstatus; CTR 0.1.4, chapter 3 and 2.4.
"""

from rvtrace_gdb.controlregs.ctr.entries import Entry
from rvtrace_gdb.controlregs.ctr.layout import DATA, SOURCE, TARGET
from rvtrace_gdb.controlregs.ctr.transfers import TransferType
from rvtrace_gdb.transport.simulated.ctr.build import CtrBuild
from rvtrace_gdb.transport.simulated.ctr.cycles import CycleCounter

EMPTY = Entry(0, 0, 0)
_PC = SOURCE.mask("PC")
_VALID = SOURCE.mask("V")
_Record = tuple[TransferType, int, int, int | None]
"""Type, source, target with MISP, cycles: an entry as it was recorded, which is made registers of when it is read."""


class Buffer:
    """`depth` entries are in use. `wrptr` is the physical entry to be written next, `wrap` whether it has wrapped.
    """

    def __init__(self, build: CtrBuild, cycles: CycleCounter) -> None:
        self._depths = build.depths
        self._cycles = cycles
        self._masks = Entry(
            _VALID | _PC,
            _PC if "MISP" in build.absent else _PC | TARGET.mask("MISP"),
            cycles.mask if "TYPE" in build.absent else cycles.mask | DATA.mask("TYPE"),
        )
        self._entries: list[Entry | _Record] = [EMPTY] * build.depths[-1]
        self.depth = build.depths[0]
        self.wrptr = 0
        self.wrap = False

    def select(self, depth: int) -> None:
        """The largest depth there is that is not above this one, else the smallest; WRPTR keeps the bits it has."""
        self.depth = max((d for d in self._depths if d <= depth), default=self._depths[0])
        self.wrptr &= self.depth - 1

    def clear(self) -> None:
        """All entries, also those above the present depth."""
        self._entries = [EMPTY] * len(self._entries)

    # -- recording

    def push(self, type: TransferType, source: int, target: int, cycles: int | None) -> None:
        """Bit 0 of *target* is MISP."""
        self._entries[self.wrptr] = type, source, target, cycles
        if self.wrptr == self.depth - 1:
            self.wrptr, self.wrap = 0, True
        else:
            self.wrptr += 1

    def overwrite(self, type: TransferType, source: int, target: int, cycles: int | None) -> None:
        """Logical entry 0."""
        self._entries[self._physical(0)] = type, source, target, cycles

    def pop(self) -> None:
        """Logical entry 0 is invalid and becomes entry depth-1."""
        if self.wrptr == 0:
            self.wrap = False
        self.wrptr = self._physical(0)
        youngest = self._at(self.wrptr)
        self._entries[self.wrptr] = youngest._replace(source=youngest.source & ~_VALID)

    def _at(self, place: int) -> Entry:
        """The registers of a physical entry."""
        entry = self._entries[place]
        if not isinstance(entry, Entry):
            type, source, target, cycles = entry
            made = Entry(source | _VALID, target, type | self._cycles.data(cycles))
            entry = Entry(*(value & mask for value, mask in zip(made, self._masks, strict=True)))
        return entry

    def _physical(self, logical: int) -> int:
        return (self.wrptr - logical - 1) % self.depth

    # -- the registers of the logical entries; those not below `depth` are read-only 0

    def read(self, logical: int) -> Entry:
        return self._at(self._physical(logical)) if logical < self.depth else EMPTY

    def write(self, logical: int, word: int, value: int) -> None:
        """One of an entry's registers (0 ctrsource, 1 ctrtarget, 2 ctrdata), as far as its bits exist."""
        if logical < self.depth:
            place = self._physical(logical)
            words = list(self._at(place))
            words[word] = value & self._masks[word]
            self._entries[place] = Entry(*words)
