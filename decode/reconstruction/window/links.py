"""Which loads and stores of a window have the same bytes.

What a load loads was stored, or loaded, by the last access to its bytes before it, if every store in between has a
known address; so was what memory holds at the end. A store whose address is not known (yet) may have changed
everything, or all that its address can be. When an address becomes known, links are made that were not certain before;
none is ever taken back, so it is not an error to stop at any time.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping, Sequence

from rvtrace_gdb.decode.reconstruction.facts import KnownValue
from rvtrace_gdb.decode.reconstruction.known_memory import Rom
from rvtrace_gdb.decode.reconstruction.window.classes import BOXED, Classes, Constraint
from rvtrace_gdb.decode.reconstruction.window.edges import EdgeMemory
from rvtrace_gdb.decode.reconstruction.window.kills import KilledRegion, Kills
from rvtrace_gdb.decode.reconstruction.window.pieces import LoadPiece, concatenate, joined
from rvtrace_gdb.decode.reconstruction.window.rules import extended, extension_rule
from rvtrace_gdb.decode.reconstruction.window.table import FAILED, FORMS, KILL, LOAD, MAYBE, STORE, AccessTable
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.extents import Extent

GRANULE = 3
"""Accesses are found by their addresses shifted to the right by this."""
_FARTHEST = 64
"""So many accesses in a granule are looked through for what provides a byte."""
_WIDEST = 1 << 16
"""By so much may an address exceed the least one that it can be, for its store to change a region only."""
_EVERY = 16
_BUDGET = 32
"""So often, for each access, is a load looked at again; what would be learned afterwards stays unknown."""


class WrittenConstants(Exception):
    """The program stores to what is read-only in its file, or memory at an edge shows that something did."""


class Links:
    """Links the accesses of a window. *rom*: what is never written."""

    def __init__(
        self,
        classes: Classes,
        accesses: AccessTable,
        rams: Sequence[Extent],
        begin: EdgeMemory,
        end: EdgeMemory,
        rom: Rom,
    ) -> None:
        self._classes, self._accesses = classes, accesses
        self._rams = sorted(rams)
        self._main = max(self._rams, key=lambda ram: ram[1], default=(0, 0))
        self.begin, self.end, self._constant = begin, end, rom.constant
        self._constants: dict[int, Sequence[KnownValue]] = {}
        self._are_written = False
        self.kinds = accesses.kinds
        self.kills = Kills()
        self.addresses: list[int | None] = [None] * len(accesses)
        self.granules: dict[int, list[int]] = {}
        """The accesses of RAM with known addresses, in order."""
        self._linked, self._ended = bytearray(len(accesses)), bytearray(len(accesses))
        self._incomplete: set[int] = set()
        self._open: list[int] = []
        """Loads of RAM with known addresses that are not linked, in order."""
        self._budget = 0
        self._news: list[int] = []
        """Accesses of which more has become known."""
        self.at = -1
        """The access that is looked at, -1 before the first one."""

    # -- all accesses once, and those again of which more becomes known

    def solve(self, progress: Progress) -> None:
        """Link what can be linked. Raises Contradiction, WrittenConstants, Cancelled."""
        for op in range(len(self.kinds)):
            self._look(op)
            if not op % 4096:
                progress("reconstructing values (accesses)", op, len(self.kinds))
        self._link_end(self.granules)
        self._classes.propagate()
        rounds, self._budget = 0, _BUDGET * len(self.kinds)
        while self._news and self._budget >= 0:
            news, self._news = sorted(set(self._news)), []
            self._learn(news)
            rounds += 1
            if not rounds % _EVERY:
                progress("reconstructing values", 0, None)
        if self._are_written:
            raise WrittenConstants

    def _look(self, op: int) -> None:
        """Look at an access for the first time."""
        kind = self.kinds[op]
        if kind == KILL:
            self.kills.add(op)
            return
        if kind == MAYBE and self._decided(op) == FAILED:
            return
        self.at = op
        accesses = self._accesses
        base = self._classes.value(accesses.bases[op])
        if base is None:
            if kind != LOAD:
                self.kills.add(op, self._region(op))
            self._classes.constrain((self._becomes_known, op, accesses.bases[op]), (accesses.bases[op],))
            return
        self._link_access(op, base + accesses.offsets[op] & self._classes.mask)

    def _becomes_known(self, classes: Classes, constraint: Constraint) -> None:
        """The constraint (it, access, node): the node is what the access waits for."""
        _, op, node = constraint
        if classes.value(node) is not None:
            self._news.append(op)

    def _decided(self, op: int) -> int:
        """Return the kind of a store-conditional, as far as it is known now whether it stores."""
        node = self._accesses.outcomes[op]
        outcome = self._classes.value(node)
        if outcome is None:
            self._classes.constrain((self._becomes_known, op, node), (node,))
        else:
            self.kinds[op] = FAILED if outcome else STORE
        return self.kinds[op]

    def _region(self, op: int) -> KilledRegion | None:
        """Return the region in which the unknown address of an access must be, None for any."""
        accesses, classes = self._accesses, self._classes
        low, span = classes.bounds(accesses.bases[op])
        low = low + accesses.offsets[op] & classes.mask
        high = low + span - 1 + accesses.sizes[op]
        return (low, high) if span < _WIDEST and high <= classes.mask else None

    def _link_access(self, op: int, address: int) -> None:
        """Look at an access whose address has become known, in order of the window."""
        self.addresses[op] = address
        size, kind = self._accesses.sizes[op], self.kinds[op]
        if not self.is_ram(address, size):
            self._outside(op, kind, address, size)
            return
        if kind != LOAD and self._writes_constants(address, size):
            raise WrittenConstants
        if kind == LOAD:
            self._link(op)
        for number in range(address >> GRANULE, (address + size - 1 >> GRANULE) + 1):
            found = self.granules.get(number)
            if found is None:
                self.granules[number] = [op]
            elif found[-1] < op:
                found.append(op)
            else:
                insort(found, op)
        if self._classes.todo:
            self._classes.propagate()  # what is stored further on may have its address from this

    # -- what becomes known later

    def _learn(self, news: Sequence[int]) -> None:
        """Look again at accesses of which more has become known, and at those for which that makes a difference."""
        affected: set[int] = set()
        changed: set[int] = set()
        was_last = self._last_kill()
        for op in news:
            region = self.kills.region(op)
            if region is not None:
                changed.update(range(region[0] >> GRANULE, (region[1] >> GRANULE) + 1))
            if self.kinds[op] != LOAD:
                affected |= self._behind(op)
            if self.addresses[op] is None:
                self._address_again(op)
            elif self.kinds[op] == MAYBE:
                self._outcome_again(op)
            changed |= self._granules_of(op)
            if self.kinds[op] == LOAD:
                affected |= self._next_loads(op)
        self._budget -= len(affected)
        for op in sorted(affected):
            if not self._linked[op]:
                self._link(op)
        for op in range(self._last_kill() + 1, was_last):
            changed |= self._granules_of(op)
        self._link_end({number: self.granules[number] for number in changed if number in self.granules})
        self._classes.propagate()

    def _last_kill(self) -> int:
        everywhere = self.kills.everywhere
        return everywhere[-1] if everywhere else -1

    def _next_loads(self, op: int) -> set[int]:
        """Return the loads without a link behind another one, of the same granules."""
        found: set[int] = set()
        for number in self._granules_of(op):
            ops = self.granules[number]
            at = bisect_right(ops, op)
            found.update(other for other in ops[at : at + _FARTHEST] if self.kinds[other] == LOAD)
        return {other for other in found if not self._linked[other]}

    def _address_again(self, op: int) -> None:
        """The address of an access, or whether a store-conditional stores, has become known."""
        base = self._classes.value(self._accesses.bases[op])
        if self.kinds[op] == MAYBE and self._decided(op) == FAILED:
            self.kills.remove(op)
        elif base is not None:
            self.kills.remove(op)
            self.at = op
            self._link_access(op, base + self._accesses.offsets[op] & self._classes.mask)

    def _outcome_again(self, op: int) -> None:
        """It has become known whether a store-conditional with a known address stores."""
        if self._decided(op) == FAILED:
            for number in self._granules_of(op):
                self.granules[number].remove(op)

    def _behind(self, op: int) -> set[int]:
        """Return the loads without a link that an access was in the way of: those until memory is unknown anyway."""
        everywhere = self.kills.everywhere
        at = bisect_right(everywhere, op)
        until = everywhere[at] if at < len(everywhere) else len(self.kinds)
        return set(self._open[bisect_right(self._open, op) : bisect_left(self._open, until)])

    def _granules_of(self, op: int) -> set[int]:
        address = self.addresses[op]
        if address is None or not self.is_ram(address, self._accesses.sizes[op]):
            return set()
        return set(range(address >> GRANULE, (address + self._accesses.sizes[op] - 1 >> GRANULE) + 1))

    # -- which memory it is

    def is_ram(self, address: int, size: int) -> bool:
        """Return whether some bytes are RAM."""
        base, length = self._main
        if base <= address and address + size <= base + length:
            return True
        return any(base <= address and address + size <= base + length for base, length in self._rams)

    def _outside(self, op: int, kind: int, address: int, size: int) -> None:
        """Look at an access that is not in RAM, or not all of it: of loads, what is constant is known."""
        if kind == LOAD:
            content = self._constant(address, size)
            if len(content) == size:
                self._set_loaded(op, int.from_bytes(content, "little"), size)
                self._classes.propagate()
        elif self._writes_constants(address, size):
            raise WrittenConstants
        elif any(base < address + size and address < base + length for base, length in self._rams):
            self.kinds[op] = KILL
            self.addresses[op] = None
            self.kills.add(op)

    def constant_byte(self, address: int) -> KnownValue:
        """Return a byte that is never written, None if it may be."""
        granule = self._constant_granule(address >> GRANULE)
        return granule[address & (1 << GRANULE) - 1] if granule else None

    def _constant_granule(self, number: int) -> Sequence[KnownValue]:
        """Return the bytes of a granule that are never written, () if all may be."""
        found = self._constants.get(number)
        if found is None:
            found = self._constants[number] = self._constants_of(number << GRANULE)
        return found

    def _constants_of(self, begin: int) -> Sequence[KnownValue]:
        found: list[KnownValue] = []
        while len(found) < 1 << GRANULE:
            content = self._constant(begin + len(found), (1 << GRANULE) - len(found))
            found += content or [None]
        if any(self._differs(at, byte) for at, byte in enumerate(found, begin)):
            self._are_written = True
            return ()
        return found if any(byte is not None for byte in found) else ()

    def _differs(self, address: int, byte: KnownValue) -> bool:
        """Return whether memory at an edge has another byte than a constant."""
        return byte is not None and any(edge.byte(address) not in (byte, None) for edge in (self.begin, self.end))

    def _writes_constants(self, address: int, size: int) -> bool:
        first, last = address >> GRANULE, address + size - 1 >> GRANULE
        if not self._constant_granule(first) and (first == last or not self._constant_granule(last)):
            return False
        return any(self.constant_byte(at) is not None for at in range(address, address + size))

    # -- asking

    def covers(self, op: int, address: int) -> bool:
        """Return whether an access of RAM with a known address has a byte."""
        return 0 <= address - (self.addresses[op] or 0) < self._accesses.sizes[op]

    def accessed_byte(self, op: int, address: int) -> KnownValue:
        """Return a byte that an access stored or loaded, None if it is unknown."""
        if self.kinds[op] == MAYBE:
            return None
        shift = 8 * (address - (self.addresses[op] or 0))
        bits, value = self._classes.low(self._accesses.nodes[op])
        return value >> shift & 0xFF if bits >= shift + 8 else None

    # -- what a load has loaded

    def _link(self, op: int) -> None:
        """Link a load with what has its bytes, if that is known."""
        accesses, address = self._accesses, self.addresses[op] or 0
        size = accesses.sizes[op]
        killed = self.kills.before(op, address, size)
        if address >> GRANULE == address + size - 1 >> GRANULE:
            last = self._last_access(address >> GRANULE, op)
            is_same = last > killed and self.addresses[last] == address and accesses.sizes[last] == size
            if is_same and self.kinds[last] != MAYBE and last not in self._incomplete:
                self._close(op)
                self._link_whole(op, accesses.nodes[last], size)
                return
        pieces = [self._piece(op, at, killed) for at in range(address, address + size)]
        if None not in pieces:
            self._close(op)
            self._link_pieces(op, joined(pieces), size)  # type: ignore[arg-type]
            return
        if any(pieces):
            self._incomplete.add(op)
        at = bisect_left(self._open, op)
        if at == len(self._open) or self._open[at] != op:
            self._open.insert(at, op)

    def _close(self, op: int) -> None:
        """A load is linked now."""
        self._linked[op] = 1
        self._incomplete.discard(op)
        at = bisect_left(self._open, op)
        if at < len(self._open) and self._open[at] == op:
            del self._open[at]

    def _last_access(self, granule: int, op: int) -> int:
        """Return the last access of a granule before another one, -1 without one."""
        ops = self.granules.get(granule)
        if not ops:
            return -1
        if ops[-1] < op:
            return ops[-1]
        at = bisect_left(ops, op)
        return ops[at - 1] if at else -1

    def _piece(self, load: int, at: int, killed: int) -> "LoadPiece | None":
        """Return what the byte at an address was stored from, or loaded to, before a load; None if that is unknown.

        A load of which nobody knows all bytes is the second choice: what was stored before may be known.
        """
        accesses, second = self._accesses, None
        ops = self.granules.get(at >> GRANULE, ())
        end = bisect_left(ops, load)
        for number in range(end - 1, -1, -1):
            op = ops[number]
            if op <= killed:
                break
            if end - number > _FARTHEST:
                return second
            byte = at - (self.addresses[op] or 0)
            if 0 <= byte < accesses.sizes[op]:
                if self.kinds[op] == MAYBE:
                    return second
                piece = LoadPiece(accesses.nodes[op], byte, 1)
                if op not in self._incomplete:
                    return piece
                second = second or piece
        known = self.constant_byte(at)
        if known is None and killed < 0:
            known = self.begin.byte(at)
        return second if known is None else LoadPiece(-1, known, 1)

    def _link_whole(self, op: int, node: int, size: int) -> None:
        """The node of a load is what was stored from, or loaded to, another one with the same bytes."""
        classes, bits = self._classes, 8 * size
        d, form = self._accesses.nodes[op], FORMS[self._accesses.forms[op]]
        shape = classes.shapes[node]
        if bits == 64 or (bits == classes.xlen and form != "f" and shape <= bits):
            classes.union(d, node)
            if form != "f":
                classes.shapes[d] = shape
        elif shape == BOXED if form == "f" else classes.fits(node, bits, is_signed=form == "s"):
            classes.union(d, node)
        else:
            classes.constrain((extension_rule(bits, form), d, node), (d, node))

    def _link_pieces(self, op: int, pieces: Sequence[LoadPiece], size: int) -> None:
        d, form = self._accesses.nodes[op], FORMS[self._accesses.forms[op]]
        if len(pieces) == 1 and pieces[0].node >= 0 and pieces[0].begin == 0:
            self._link_whole(op, pieces[0].node, size)
        elif all(piece.node < 0 for piece in pieces):
            value = int.from_bytes(bytes(piece.begin for piece in pieces), "little")
            self._set_loaded(op, value, size)
        else:
            nodes = [d, *(piece.node for piece in pieces if piece.node >= 0)]
            self._classes.constrain((concatenate, d, tuple(pieces), 8 * size, form), dict.fromkeys(nodes))

    def _set_loaded(self, op: int, value: int, size: int) -> None:
        form = FORMS[self._accesses.forms[op]]
        self._classes.set(self._accesses.nodes[op], extended(value, 8 * size, form, self._classes.mask))

    # -- what memory holds at the end

    def _link_end(self, granules: Mapping[int, Sequence[int]]) -> None:
        """What was accessed last is what memory holds at the end, in these granules."""
        found: dict[int, dict[int, int]] = {}
        for number, ops in granules.items():
            if ops:
                killed = self.kills.before(len(self.kinds), number << GRANULE, 1 << GRANULE)
                if ops[-1] > killed:
                    self._at_end(number << GRANULE, ops, killed, found)
        for op, content in sorted(found.items()):
            self._know_at_end(op, content)

    def _at_end(self, base: int, ops: Sequence[int], killed: int, found: dict[int, dict[int, int]]) -> None:
        accesses, rest = self._accesses, set(range(1 << GRANULE))
        for op in reversed(ops):
            if op <= killed or not rest:
                return
            begin = (self.addresses[op] or 0) - base
            mine = rest.intersection(range(begin, begin + accesses.sizes[op]))
            rest -= mine
            if self.kinds[op] == MAYBE or self._ended[op]:
                continue
            for k in mine:
                byte = self.end.byte(base + k)
                if byte is not None:
                    found.setdefault(op, {})[k - begin] = byte

    def _know_at_end(self, op: int, content: Mapping[int, int]) -> None:
        """Bytes of an access are those that memory holds at the end."""
        self.at = op
        count = next((k for k in range(len(content)) if k not in content), len(content))
        value = sum(content[k] << 8 * k for k in range(count))
        self._ended[op] = count == self._accesses.sizes[op]
        if self._ended[op] and self.kinds[op] == LOAD:
            self._set_loaded(op, value, count)
        else:
            self._classes.set_low(self._accesses.nodes[op], 8 * count, value)
