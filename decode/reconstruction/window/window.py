"""A part of a history as a whole: what its registers and its memory held, worked out from both ends and all between.

    window = Window(history, program, machine, first, last, end=edge_of_stop(stop))
    window.solve()
    window.x(position, 10), window.memory(position, address, 8)

Every value follows from the instructions that ran, from what is known at the edges, and from the assumptions in
`facts`, besides these: an address that `jalr` jumps to was even before the hart cleared bit 0, and addresses are not
translated unless satp says it. If the facts exclude each other, one of the assumptions does not hold: then memory is
not believed, and if that does not help, nothing.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.program.instructions import MemoryAccess
from rvtrace_gdb.decode.reconstruction.accesses import AccessLog
from rvtrace_gdb.decode.reconstruction.beliefs import ImpossibleInstruction
from rvtrace_gdb.decode.reconstruction.constants import NoConstants, ProgramConstants
from rvtrace_gdb.decode.reconstruction.facts import HaltWrites, HartMachine, KnownValue
from rvtrace_gdb.decode.reconstruction.window.classes import ClassesContradicted
from rvtrace_gdb.decode.reconstruction.window.construction import Construction, Impossible, StepSpan
from rvtrace_gdb.decode.reconstruction.window.edges import EdgeMemory, WindowEdge
from rvtrace_gdb.decode.reconstruction.window.links import GRANULE, Links, WrittenConstants
from rvtrace_gdb.decode.reconstruction.window.steps import CSRS, F0
from rvtrace_gdb.decode.reconstruction.window.table import FAILED, LOAD, MAYBE, STORE, AccessTable
from rvtrace_gdb.decode.reconstruction.window.traced import believe
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.extents import Extent

UNKNOWN = WindowEdge()
"""Nothing is known."""


_LONGEST = 4  # bytes of an instruction


class _WrittenCode(Exception):
    """The program has written code that ran: nothing is known."""


class Window:
    """Positions *first* to *last* - 1 of a history.

    begin, end  what is known at the edges
    halts       halts by a debugger of which is known what it wrote
    shared      other harts or devices write the memory, and synchronize by fences
    traced      accesses that the trace itself reports; None: those of the history
    """

    def __init__(
        self,
        history: History,
        program: Program,
        machine: HartMachine,
        first: int,
        last: int,
        *,
        begin: WindowEdge = UNKNOWN,
        end: WindowEdge = UNKNOWN,
        halts: Iterable[HaltWrites] = (),
        shared: bool = False,
        traced: Iterable[MemoryAccess] | None = None,
    ) -> None:
        known: dict[int, list[HaltWrites]] = {}
        for halt in halts:
            if first <= halt.position <= last:
                known.setdefault(halt.position, []).append(halt)
        self._span = StepSpan(history, program, machine, first, last, known, shared)
        self._edges = begin, end
        self._traced = history.accesses if traced is None else list(traced)
        self.contradicted: list[ImpossibleInstruction] = []
        """Where more was believed than holds."""
        self._built: Construction | None = None
        self._links: Links | None = None
        self._log: AccessLog | None = None

    # -- solving

    def solve(self, progress: Progress = silent) -> None:
        """Work out what is known. Raises Cancelled; what was known before is then still known."""
        all_rams, contradicted = self._span.machine.rams, list[ImpossibleInstruction]()
        for rams, has_constants in ((all_rams, True), ((), True), ((), False)):
            try:
                self._attempt(rams, has_constants, progress)
            except ImpossibleInstruction as error:
                contradicted.append(error)
            except _WrittenCode:
                self._built = self._links = None
                break
            else:
                break
        else:
            self._built = self._links = None
        self._log = None
        self.contradicted = contradicted

    def _attempt(self, rams: Sequence[Extent], has_constants: bool, progress: Progress) -> None:
        try:
            self._attempt_once(rams, has_constants, progress)
        except WrittenConstants:
            has_constants = False
            self._attempt_once(rams, False, progress)
        built, links = self._built, self._links
        if not has_constants and built is not None and links is not None and self._writes_code(links, built.accesses):
            raise _WrittenCode

    def _writes_code(self, links: Links, accesses: AccessTable) -> bool:
        """Return whether something is stored where an instruction runs later: a trace does not say which one it is."""
        span = self._span
        last = {pc: position for position, pc in enumerate(span.history.pcs(span.first, span.last), span.first)}
        for op, address in enumerate(links.addresses):
            if links.kinds[op] != LOAD and address is not None and op not in accesses.breakpoints:
                places = range(address - _LONGEST + 1, address + accesses.sizes[op])
                if any(last.get(at, -1) > accesses.positions[op] for at in places):
                    return True
        return False

    def _attempt_once(self, rams: Sequence[Extent], has_constants: bool, progress: Progress) -> None:
        """Solve once, with so much memory believed. Raises Contradicted, WrittenConstants."""
        built = Construction(self._span, *self._edges)
        links: Links | None = None
        try:
            built.build(progress)
            believe(self._traced, built.classes, built.accesses, self._span.first, self._span.last)
            if built.translated:
                rams = ()
            begin, end = (EdgeMemory(edge.memory, rams) for edge in self._edges)
            rom = ProgramConstants(built.images[0]) if has_constants and len(built.images) == 1 else NoConstants()
            links = Links(built.classes, built.accesses, rams, begin, end, rom)
            built.classes.propagate()
            links.solve(progress)
            self._check_code(built, links)
        except Impossible as error:
            raise self._contradicted(error.position) from None
        except ClassesContradicted as error:
            place = self._contradiction_place(error.node, built, links) if error.position is None else error.position
            raise self._contradicted(place) from None
        self._built, self._links = built, links

    def _check_code(self, built: Construction, links: Links) -> None:
        """Look whether a store hit instructions that ran: what ran is not known then. Raises Impossible."""
        for op, address in enumerate(links.addresses):
            if address is not None and links.kinds[op] == STORE and op not in built.accesses.breakpoints:
                last = address + built.accesses.sizes[op] - 1
                if not built.code.isdisjoint(range(address >> 1, (last >> 1) + 1)):
                    raise Impossible(built.accesses.positions[op])

    def _contradiction_place(self, node: int, built: Construction, links: Links | None) -> int:
        """Return where a contradiction shows: at the access that was looked at, or else where the node was written."""
        if not built.is_complete:
            return built.position
        if links is not None and links.at >= 0:
            return built.accesses.positions[links.at]
        written = [
            position - 1
            for positions, nodes in zip(built.positions, built.nodes, strict=True)
            for position, other in zip(positions, nodes, strict=True)
            if other == node
        ]
        return max(min(written, default=self._span.last - 1), self._span.first)

    def _contradicted(self, position: int) -> ImpossibleInstruction:
        position = max(min(position, self._span.last - 1), self._span.first)  # a debugger stores before the first one
        return ImpossibleInstruction(position, self._span.history.pc(position))

    # -- registers

    def x(self, position: int, register: int) -> KnownValue:
        """Return an integer register before the instruction at a position, None if it is unknown."""
        return self._register_value(position, register)

    def f(self, position: int, register: int) -> KnownValue:
        """Return a floating-point register, of 64 bits: a single has ones above it."""
        return self._register_value(position, F0 + register)

    def csr(self, position: int, number: int) -> KnownValue:
        """Return a CSR, None if it is unknown, or none of those that are followed."""
        register = CSRS.get(number)
        return None if register is None else self._register_value(position, register)

    def _register_value(self, position: int, register: int) -> KnownValue:
        built = self._built
        if built is None:
            return None
        at = bisect_right(built.positions[register], position) - 1
        return built.classes.value(built.nodes[register][at]) if at >= 0 else None

    def edge(self, position: int) -> WindowEdge:
        """Return what is known at a position: for another window that begins or ends there."""
        csrs = {number: value for number in CSRS if (value := self.csr(position, number)) is not None}
        x = [self.x(position, number) for number in range(32)]
        f = [self.f(position, number) for number in range(32)]
        return WindowEdge(x, f, csrs, lambda address, size: self.memory(position, address, size))

    # -- memory

    def memory(self, position: int, address: int, size: int) -> list[KnownValue]:
        """Return each byte as it was before the instruction at a position; None: unknown."""
        mask = (1 << self._span.machine.xlen) - 1
        return [self.byte(position, address + k & mask) for k in range(size)]

    def byte(self, position: int, address: int) -> KnownValue:
        """Return a byte of memory before the instruction at a position: what the last access to it had, or what the
        next one loads, or what the edge had, whichever no store in between may have changed.
        """
        built, links = self._built, self._links
        if built is None or links is None:
            return None
        constant = links.constant_byte(address)
        if constant is not None or not links.is_ram(address, 1):
            return constant
        here = bisect_left(built.accesses.positions, position)
        killed, until = links.kills.before(here, address, 1), links.kills.after(here, address, 1)
        until = len(built.accesses) if until is None else until
        ops = links.granules.get(address >> GRANULE, ())
        middle = bisect_left(ops, here)
        before = self._before(ops, middle, address, killed)
        return self._after(ops, middle, address, until) if before is None else before

    def _before(self, ops: Sequence[int], middle: int, address: int, killed: int) -> KnownValue:
        """Return what the last accesses to a byte had."""
        assert self._links is not None
        kinds = self._links.kinds
        for at in range(middle - 1, -1, -1):
            op = ops[at]
            if op < killed:
                return None
            if self._links.covers(op, address):
                byte = self._links.accessed_byte(op, address)
                if byte is not None or kinds[op] != LOAD:
                    return byte
        return self._links.begin.byte(address) if killed < 0 else None

    def _after(self, ops: Sequence[int], middle: int, address: int, until: int) -> KnownValue:
        """Return what the next accesses to a byte load."""
        assert self._links is not None
        kinds = self._links.kinds
        for at in range(middle, len(ops)):
            op = ops[at]
            if op > until:
                return None
            if self._links.covers(op, address):
                byte = self._links.accessed_byte(op, address) if kinds[op] == LOAD else None
                if byte is not None or kinds[op] != LOAD:
                    return byte
        return self._links.end.byte(address) if until == len(kinds) else None

    # -- accesses

    def accesses(self) -> AccessLog:
        """Return the loads and stores of the window, in order, of which some have unknown addresses. If nothing is
        known, every instruction may store anywhere.
        """
        if self._log is None:
            self._log = AccessLog()
            if self._built is None or self._links is None:
                for position in range(self._span.first, self._span.last):
                    self._log.add(position, "store", None, 0)
            else:
                self._fill(self._log, self._built, self._links)
        return self._log

    def _fill(self, log: AccessLog, built: Construction, links: Links) -> None:
        accesses = built.accesses
        for op, kind in enumerate(accesses.kinds):
            size, address = accesses.sizes[op], links.addresses[op]
            if not size or kind == FAILED or op in accesses.debuggers:
                continue  # nothing that the program accesses
            if kind == MAYBE:
                address = None
            log.add(accesses.positions[op], "load" if kind == LOAD else "store", address, size)
