"""What the instruction at a position was made of: for each register and each piece of memory that it read, who wrote it
last.

The writers of registers follow from the instructions that ran. Those of memory are known where addresses are: of loads
and of stores. A link is certain if nothing that is not known may have written in between; else its doubts say what.
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.program.csrs import MIP, SIP, X
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.code import word_at
from rvtrace_gdb.decode.semantics.reads import Operand, ReadSet, ReadTable
from rvtrace_gdb.session.past.past import OUTSIDE, RESET, TRAP, NoWrite, WantedAccess
from rvtrace_gdb.session.questions.why.trace import TracedPast

_ANYWHERE = 1 << 64
_INPUTS = frozenset({MIP, SIP})
"""CSRs whose bits hardware sets."""


class Origin(Enum):
    """Where a value comes from. INSTRUCTION: from one that ran; the others are where what is known ends."""

    INSTRUCTION = "instruction"
    TRAP = "trap"
    OUTSIDE = "outside"
    """A debugger, a loader, a reset."""
    BEGINNING = "beginning"
    """Nothing in the trace wrote it."""
    CONSTANT = "constant"
    """The program has it in memory that is never written."""
    INPUT = "input"
    """A device, or a CSR that changes by itself."""
    NO_ADDRESS = "no-address"
    """A load whose address is not known."""
    UNDECODED = "undecoded"
    """The instruction is not known here."""


class UseRole(Enum):
    """What an instruction uses a value for."""

    VALUE = "value"
    ADDRESS = "address"


class ValueLink(NamedTuple):
    """A value that an instruction used, and where it comes from.

    origin    what wrote it last; *position*: of that instruction, of a TRAP that of the next one
    register  the number of the register; None: memory, *size* bytes at *address*
    doubts    why something else may have written it since
    """

    origin: Origin
    position: int | None = None
    register: int | None = None
    address: int | None = None
    size: int = 0
    role: UseRole = UseRole.VALUE
    doubts: tuple[str, ...] = ()


class Access(NamedTuple):
    """The bytes that an instruction loads or stores; an *address* of None: not known."""

    address: int | None
    size: int


class ValueLinks:
    """The links of a history."""

    def __init__(self, trace: TracedPast) -> None:
        self._trace, self.history, self._past = trace, trace.history, trace.past
        self._tables: dict[int, tuple[Image, ReadTable, dict[int, ReadSet]]] = {}
        self._writers: dict[tuple[int, int], ValueLink] = {}
        self._links: dict[tuple[int, int | None], list[ValueLink]] = {}
        self._disagreed = 0  # how often more was believed than holds when those were found

    # -- instructions

    def reads(self, position: int) -> ReadSet:
        """Return what the instruction at a position reads and writes; a gap is none."""
        pc = self.history.pc(position)
        if pc == GAP:
            return ReadSet(is_known=False)
        image = self._trace.image_at(position)
        found = self._tables.get(id(image))
        if found is None:
            found = self._tables[id(image)] = image, ReadTable(image.xlen, zcm=image.zcm), {}
        _, table, known = found
        other = self.history.code(position, position + 1)
        if other:
            return table.reads_of(word_at(image, pc, other[position]))
        reads = known.get(pc)
        if reads is None:
            reads = known[pc] = table.reads_of(word_at(image, pc))
        return reads

    def links_of(self, position: int, result: int | None = None) -> list[ValueLink]:
        """Return what the instruction at a position was made of. *result*: what one of its results was made of."""
        disagreed = 0 if self._past is None else len(self._past.disagreements)
        if disagreed != self._disagreed or len(self._links) > _KEPT:
            self._links.clear()
            self._disagreed = disagreed
        found = self._links.get((position, result))
        if found is None:
            found = self._links[position, result] = self._found_links(position, result)
        return found

    def _found_links(self, position: int, result: int | None) -> list[ValueLink]:
        reads = self.reads(position)
        if not reads.is_known:
            return [ValueLink(Origin.UNDECODED, position)]
        found: dict[tuple[object, ...], ValueLink] = {}
        for it in reads.results_of(result):
            for link in self._of_result(position, it.registers, it.base, it.loaded):
                found.setdefault((link.register, link.address, link.role, link.position), link)
        return list(found.values())

    def _of_result(
        self, position: int, registers: Sequence[int], base: int | None, loaded: Operand | None
    ) -> Iterator[ValueLink]:
        for number in registers:
            yield self.register(position, number)
        if loaded is not None:
            yield from self._loaded(position, loaded)
        if base is not None:
            yield self.register(position, base)._replace(role=UseRole.ADDRESS)

    # -- registers

    def register(self, position: int, number: int) -> ValueLink:
        """Return who wrote a register last before a position."""
        key = position, number
        found = self._writers.get(key)
        if found is None:
            if len(self._writers) > _KEPT:
                self._writers.clear()
            found = self._writers[key] = self._register(position, number)
        return found

    def _register(self, position: int, number: int) -> ValueLink:
        if number in _INPUTS or csrs.is_counter(number):
            return ValueLink(Origin.INPUT, register=number)
        written = self._trace.last_register_write(position, number)
        if isinstance(written, NoWrite):
            return ValueLink(Origin.BEGINNING, register=number, doubts=self._lost_trace(0, position, written.notes))
        origin = {TRAP: Origin.TRAP, OUTSIDE: Origin.OUTSIDE, RESET: Origin.OUTSIDE}.get(
            written.kind, Origin.INSTRUCTION
        )
        return ValueLink(origin, written.position, number, doubts=written.doubts)

    def _lost_trace(self, first: int, last: int, notes: Sequence[str]) -> tuple[str, ...]:
        return (*notes, *(it for it in self._trace.lost_between(first, last) if it not in notes))

    # -- memory

    def access(self, position: int, *, stores: bool) -> Access | None:
        """Return what the instruction at a position stores, or loads; of several, all if they are beside each other.
        None: nothing.
        """
        wanted = [it.stored if stores else it.loaded for it in self.reads(position).results]
        operands = [it for it in wanted if it is not None]
        if not operands:
            return None
        base = self._base(position, operands[0])
        low, high = min(it.offset for it in operands), max(it.offset + it.size for it in operands)
        return Access(None if base is None else base + low & self._mask(position), high - low)

    def _loaded(self, position: int, operand: Operand) -> Iterator[ValueLink]:
        first = next(it.loaded for it in self.reads(position).results if it.loaded is not None)
        base = self._base(position, first)
        if base is None:
            yield ValueLink(Origin.NO_ADDRESS, size=operand.size)
        else:
            yield from self.memory(position, base + operand.offset & self._mask(position), operand.size)

    def _base(self, position: int, operand: Operand) -> int | None:
        """Return the content of the base register of an access. *operand*: the first one of the instruction."""
        past = self._past
        if operand.base == X:
            return 0
        if past is None:
            return None
        if past.is_reconstructed or past.traced_registers() is None:
            query = WantedAccess(0, _ANYWHERE, forward=True, stores=True, loads=True)
            found = past.nearest_access(position, query, self._trace.progress) if past.has_accesses else None
            if found is not None and found.position == position:
                return found.address - operand.offset
        return self._trace.register_value(position, operand.base)

    def _mask(self, position: int) -> int:
        return (1 << self._trace.image_at(position).xlen) - 1

    def memory(self, position: int, address: int, size: int) -> list[ValueLink]:
        """Return who wrote some bytes last before a position: a link for each piece with another writer."""
        found: list[ValueLink] = []
        for link in sorted(self._written_pieces(position, address, address + size), key=lambda it: it.address or 0):
            last = found[-1] if found else None
            if last is not None and last._replace(address=0, size=0) == link._replace(address=0, size=0):
                found[-1] = last._replace(size=last.size + link.size)
            else:
                found.append(link)
        return found

    def _written_pieces(self, position: int, low: int, high: int) -> Iterator[ValueLink]:
        """Yield a link for each piece: what the latest store to any of the bytes has written, then the others."""
        if low >= high:
            return
        at = self._last_store(position, low, high - low)
        if at is None:
            yield from self._unwritten(position, low, high)
            return
        written, begin, end = at
        yield self._by_store(position, written, max(begin, low), min(end, high))
        yield from self._written_pieces(position, low, begin)
        yield from self._written_pieces(position, end, high)

    def _last_store(self, position: int, address: int, size: int) -> tuple[int, int, int] | None:
        """Return the position of the last store to any of some bytes, and the bytes that it certainly wrote of them."""
        past = self._past
        if past is None or not past.has_accesses:
            return None
        query = WantedAccess(address, size, forward=False, stores=True, loads=False)
        found = past.nearest_access(position, query, self._trace.progress)
        if found is None or found.position < 0:
            return None
        stored = self.access(found.position, stores=True)
        begin = None if stored is None else stored.address
        if stored is None or begin is None or not begin <= found.address < begin + stored.size:
            return found.position, found.address, found.address + 1
        return found.position, begin, begin + stored.size

    def _by_store(self, position: int, written: int, low: int, high: int) -> ValueLink:
        halted = self._trace.written_at_halt(written, position, low, high - low)
        if halted is not None:
            return ValueLink(Origin.OUTSIDE, halted, address=low, size=high - low)
        doubts = tuple(self._memory_doubts(written, position, low))
        return ValueLink(Origin.INSTRUCTION, written, address=low, size=high - low, doubts=doubts)

    def _unwritten(self, position: int, low: int, high: int) -> Iterator[ValueLink]:
        """Yield links of bytes that no known store has written."""
        halted = self._trace.written_at_halt(-1, position, low, high - low)
        if halted is not None:
            yield ValueLink(Origin.OUTSIDE, halted, address=low, size=high - low)
            return
        image = self._trace.image_at(position)
        at = low
        for begin, content in (*image.constants(low, high - low), (high, b"")):
            if at < begin:
                origin = Origin.INPUT if self._trace.is_device(at) else Origin.BEGINNING
                doubts = () if origin is Origin.INPUT else tuple(self._memory_doubts(-1, position, at))
                yield ValueLink(origin, address=at, size=begin - at, doubts=doubts)
            if content:
                yield ValueLink(Origin.CONSTANT, address=begin, size=len(content))
            at = begin + len(content)

    def _memory_doubts(self, written: int, position: int, address: int) -> Iterator[str]:
        """Yield why something else may have written to memory since a store; -1: since the beginning."""
        past = self._past
        if past is None:
            yield "No store has an address in this trace."
            return
        yield from self._trace.lost_between(max(written, 0), position)
        unknown = len(past.unknown_accesses(written + 1, position, loads=False))
        if unknown:
            since = "since" if written >= 0 else "before"
            yield f"The address of {unknown} store{'s' * (unknown != 1)} {since} is not known."
        if past.has_unmapped_stores(max(written, 0), position):
            yield "Addresses may be translated: stores through other addresses may be to this memory."
        doubt = self._trace.memory_doubt(address)
        if doubt:
            yield doubt


_KEPT = 1 << 16
