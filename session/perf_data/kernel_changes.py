"""Kernel code that changed while perf recorded, from TEXT_POKE records: an address, the bytes there before, and those
after (Linux, include/uapi/linux/perf_event.h).

What is in memory between two times is certain as long as nothing changed between them; where it did, the code of that
place is not known.
"""

from bisect import bisect_right
from operator import itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.perf_data.file import BadPerfData
from rvtrace_gdb.session.perf_data.records import PerfRecord, RecordReader

_LENGTHS = 12  # bytes before the texts


class _TextPoke(NamedTuple):
    time: int
    address: int
    before: bytes
    after: bytes


class PokesApplied(NamedTuple):
    """How far the changes had come: the first *done* had been made, those up to number *begun* perhaps."""

    done: int
    begun: int


class KernelChanges:
    """The changes of a file, from records in any order."""

    def __init__(self) -> None:
        self._pokes: list[_TextPoke] = []
        self._sorted = True

    def __len__(self) -> int:
        return len(self._pokes)

    def add(self, record: PerfRecord, reader: RecordReader) -> None:
        """Take a TEXT_POKE record. Raises BadPerfData."""
        address, old, new = (reader.number(record, at, form) for at, form in ((0, "Q"), (8, "H"), (10, "H")))
        content = record.body[_LENGTHS : _LENGTHS + old + new]
        if len(content) < old + new:
            raise BadPerfData(reader.file.path, record.offset, f"{old + new} bytes of code, in {len(content)}")
        self._pokes.append(_TextPoke(record.origin.time or 0, address, content[:old], content[old:]))
        self._sorted = False

    def times(self) -> list[int]:
        """Return when the changes were made."""
        return [poke.time for poke in self._pokes]

    def applied(self, begin: int, end: int) -> PokesApplied:
        """Return what had changed between two times."""
        if not self._sorted:
            self._pokes.sort(key=itemgetter(0))
            self._sorted = True
        done, begun = (bisect_right(self._pokes, time, key=itemgetter(0)) for time in (begin, end))
        return PokesApplied(done, max(done, begun))

    def changed_code(self, state: PokesApplied, xlen: int) -> Image:
        """Return the places that changed at any time, with the code that they had then: over the kernel's."""
        memory: dict[int, int | None] = {}
        for poke in reversed(self._pokes):
            memory |= dict(enumerate(poke.before, poke.address))
        for poke in self._pokes[: state.done]:
            memory |= dict(enumerate(poke.after, poke.address))
        for poke in self._pokes[state.done : state.begun]:
            for address, byte in enumerate(poke.after, poke.address):
                memory[address] = byte if memory.get(address, byte) == byte else None
        image = Image(xlen)
        for begin, content in _known_runs(memory):
            image.add_code(begin, content)
        for address in sorted(it for it, byte in memory.items() if byte is None):
            image.add_absent(address, 1, "kernel code that changed just then")
        return image


def _known_runs(memory: dict[int, int | None]) -> list[tuple[int, bytes]]:
    """Return the known bytes, joined where they are one after the other."""
    found: list[tuple[int, bytearray]] = []
    for address in sorted(memory):
        byte = memory[address]
        if byte is None:
            continue
        if found and found[-1][0] + len(found[-1][1]) == address:
            found[-1][1].append(byte)
        else:
            found.append((address, bytearray((byte,))))
    return [(begin, bytes(content)) for begin, content in found]
