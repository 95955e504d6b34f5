"""Windows over a few instructions that a test writes down."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting, EventKind, Fact
from rvtrace_gdb.decode.history.history import History, Path
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import MemoryAccess
from rvtrace_gdb.decode.reconstruction.facts import HaltWrites, HartMachine, KnownValue
from rvtrace_gdb.decode.reconstruction.window.edges import WindowEdge
from rvtrace_gdb.decode.reconstruction.window.window import UNKNOWN, Window
from rvtrace_gdb.decode.semantics.encodings import _FIELDS, TABLES, _rows
from rvtrace_gdb.support.extents import Extent

BASE, DATA = 0x8000_0000, 0x8000_1000
RAM = Extent(BASE, 0x2000)
EXTENSIONS = ("I", "M", "A", "C", "F", "D", "Zba", "Zbb", "Zbs", "Zbc", "Zicond", "Zcb")

Happened = tuple[int, EventKind, Fact]
"""Before the instruction with this number."""


def encoded(name: str, xlen: int = 64, /, *, rd: int = 0, rs1: int = 0, rs2: int = 0, imm: int = 0, rm: int = 0) -> int:
    """Return the 32-bit encoding of an instruction, from the tables that the decoder has, too."""
    row = next(row for row in _rows(_groups(xlen)) if row.split()[0] == name)
    _, form, *fixed = row.split()
    word = rd << 7 | rs1 << 15 | rs2 << 20 | rm << 12
    for item in fixed:
        field, value = item.split("=")
        low, width = _FIELDS[field]
        word = word & ~((1 << width) - 1 << low) | int(value, 16) << low
    return word | _IMMEDIATES[form](imm)


def _groups(xlen: int) -> Iterable[str]:
    return [group for group in TABLES if not group.endswith(str(96 - xlen))]


_IMMEDIATES: dict[str, Callable[[int], int]] = {
    "R": lambda imm: 0,
    "I": lambda imm: (imm & 0xFFF) << 20,
    "S": lambda imm: (imm >> 5 & 0x7F) << 25 | (imm & 31) << 7,
    "B": lambda imm: (imm >> 12 & 1) << 31 | (imm >> 5 & 63) << 25 | (imm >> 1 & 15) << 8 | (imm >> 11 & 1) << 7,
    "U": lambda imm: imm & 0xFFFFF000,
    "J": lambda imm: 0,
    "H": lambda imm: imm << 20,
    "Z": lambda imm: imm << 20,
}


def history_of(pcs: Sequence[int], happened: Sequence[Happened] = ()) -> History:
    """These addresses, one entry each."""
    builder = HistoryBuilder()
    for number, pc in enumerate([*pcs, None]):
        for at, kind, fact in happened:
            if at == number:
                builder.event(kind, 0, fact)
        if pc is not None:
            builder.append(Path(((pc,),)))
    return builder.finish(Accounting(0, 0, 0, 0))


def memory_of(content: Mapping[int, int]) -> Callable[[int, int], Sequence[KnownValue]]:
    """Return what reads bytes, of which those that are not there are unknown."""
    return lambda address, size: [content.get(address + k) for k in range(size)]


def stored(address: int, size: int, value: int) -> dict[int, int]:
    """Return the bytes of a little-endian number."""
    return dict(enumerate(value.to_bytes(size, "little"), address))


def registers(known: Mapping[int, int]) -> list[KnownValue]:
    return [0, *(known.get(number) for number in range(1, 32))]


def edge(x: Mapping[int, int] | None = None, memory: Mapping[int, int] | None = None, **others: object) -> WindowEdge:
    """Return an edge with these integer registers, and these bytes of memory."""
    return WindowEdge(registers(x or {}), memory=memory_of(memory or {}), **others)  # type: ignore[arg-type]


def window(
    words: Sequence[int],
    *,
    order: Sequence[int] | None = None,
    begin: WindowEdge = UNKNOWN,
    end: WindowEdge = UNKNOWN,
    happened: Sequence[Happened] = (),
    halts: Sequence[HaltWrites] = (),
    xlen: int = 64,
    rams: Sequence[Extent] = (RAM,),
    extensions: Sequence[str] = EXTENSIONS,
    shared: bool = False,
    image: Image | None = None,
    traced: Sequence[MemoryAccess] = (),
) -> Window:
    """Return the solved window of instructions at BASE and behind. *order*: their numbers as they ran."""
    if image is None:
        image = Image(xlen)
        image.add_code(BASE, b"".join(word.to_bytes(4, "little") for word in words))
    pcs = [BASE + 4 * number for number in (range(len(words)) if order is None else order)]
    history = history_of(pcs, happened)
    machine = HartMachine(xlen, extensions, rams, machine_only=True)
    others = {"halts": halts, "shared": shared, "traced": traced}
    found = Window(history, image, machine, 0, len(pcs), begin=begin, end=end, **others)  # type: ignore[arg-type]
    found.solve()
    return found
