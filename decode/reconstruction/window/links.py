"""Loads and stores of a window, and which of them have the same bytes.

What a load loads was stored, or loaded, by the last access to its bytes before it, if every store in between has a
known address; so was what memory holds at the end. Links are made in passes: a store whose address is not known (yet)
may have changed everything. More known addresses only mean more links, so it is no error to stop after any pass.
"""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.reconstruction.facts import Value
from rvtrace_gdb.decode.reconstruction.known_memory import Rom
from rvtrace_gdb.decode.reconstruction.window.classes import BOXED, Classes, Constraint
from rvtrace_gdb.decode.reconstruction.window.edges import EdgeMemory
from rvtrace_gdb.decode.reconstruction.window.rules import extended, extension_rule
from rvtrace_gdb.support.errors import Progress

LOAD, STORE, MAYBE, KILL, FAILED = range(5)
"""Kinds of accesses. MAYBE: a store-conditional, until it is known whether it stores; FAILED: one that does not. KILL:
anything may be stored.
"""
FORMS = "suf"
"""How what is loaded becomes a register, see `rules.extended`."""
GRANULE = 3
"""Accesses are found by their addresses shifted to the right by this."""
_FARTHEST = 64
"""So many accesses in a granule are looked through for what provides a byte."""
_PASSES = 60


class WrittenConstants(Exception):
    """The program stores to what is read-only in its file."""


class Piece(NamedTuple):
    """Consecutive bytes of a load: bytes *begin* and so on of what a node was stored from, or loaded to.

    node  -1: it is one byte, and *begin* is its value
    """

    node: int
    begin: int
    size: int


class Accesses:
    """The accesses of a window, in order, as columns."""

    def __init__(self) -> None:
        self.positions, self.bases, self.offsets = array("q"), array("I"), array("q")
        self.sizes, self.kinds, self.forms = bytearray(), bytearray(), bytearray()
        self.nodes = array("I")
        """What is loaded or stored."""
        self.outcomes: dict[int, int] = {}
        """Of each store-conditional, the node of its result: 0 if it stores."""
        self.debuggers: set[int] = set()
        """Which stores are those of a debugger."""

    def __len__(self) -> int:
        return len(self.positions)

    def add(self, kind: int, position: int, base: int, offset: int, size: int, node: int, form: str = "u") -> None:
        """Add an access to the address that is the value of *base* plus *offset*."""
        self.positions.append(position)
        self.bases.append(base)
        self.offsets.append(offset)
        self.sizes.append(size)
        self.kinds.append(kind)
        self.nodes.append(node)
        self.forms.append(FORMS.index(form))

    def add_conditional(self, position: int, base: int, size: int, node: int, outcome: int) -> None:
        """Add a store-conditional."""
        self.outcomes[len(self)] = outcome
        self.add(MAYBE, position, base, 0, size, node)

    def add_debuggers(self, position: int, zero: int, address: int, size: int, node: int) -> None:
        """Add what a debugger stored before the instruction at a position. *zero*: a node that is 0."""
        self.debuggers.add(len(self))
        self.add(STORE, position - 1, zero, address, size, node)

    def kill(self, position: int, *, accesses: bool) -> None:
        """Anything may be in memory from the instruction at a position on. *accesses*: that instruction stores it."""
        self.add(KILL, position if accesses else position - 1, 0, 0, int(accesses), 0)


class Links:
    """Links the accesses of a window. *rom*: what is never written."""

    def __init__(
        self,
        classes: Classes,
        accesses: Accesses,
        rams: Sequence[tuple[int, int]],
        begin: EdgeMemory,
        end: EdgeMemory,
        rom: Rom,
    ) -> None:
        self._classes, self._accesses = classes, accesses
        self._rams = sorted(rams)
        self._main = max(self._rams, key=lambda ram: ram[1], default=(0, 0))
        self.begin, self.end, self._constant = begin, end, rom.constant
        self._constants: dict[int, Sequence[Value]] = {}
        self.addresses: list[int | None] = [None] * len(accesses)
        self.granules: dict[int, list[int]] = {}
        """The accesses of RAM with known addresses, in order."""
        self._linked, self._ended = bytearray(len(accesses)), bytearray(len(accesses))
        self._incomplete: set[int] = set()
        self.at = -1
        """The access that is looked at, -1 before the first pass."""
        self.kinds = accesses.kinds

    # -- passes

    def solve(self, progress: Progress) -> None:
        """Link what can be linked. Raises Contradiction, WrittenConstants."""
        for _ in range(_PASSES):
            progress("reconstructing values (accesses)", 0, None)
            self._pass()
            self._classes.propagate()
            if not self._may_learn():
                return

    def _may_learn(self) -> bool:
        """Return whether an address, or the outcome of a store-conditional, has become known since the pass."""
        value, kinds, bases = self._classes.value, self.kinds, self._accesses.bases
        if any(kinds[op] == MAYBE and value(outcome) is not None for op, outcome in self._accesses.outcomes.items()):
            return True
        unknown = (op for op, address in enumerate(self.addresses) if address is None)
        return any(kinds[op] != KILL and value(bases[op]) is not None for op in unknown)

    def _pass(self) -> None:
        accesses, classes, addresses = self._accesses, self._classes, self.addresses
        kinds, bases, sizes = accesses.kinds, accesses.bases, accesses.sizes
        offsets, mask = accesses.offsets, classes.mask
        granules = self.granules = {}
        self._incomplete.clear()
        low, high = self._main[0], sum(self._main)
        killed = -1
        for op, kind in enumerate(kinds):
            if kind == MAYBE:
                kind = self._decided(op)
            if kind == FAILED:
                continue
            address = addresses[op]
            if address is None:
                base = classes.value(bases[op]) if kind != KILL else None
                if base is None:
                    if kind != LOAD:
                        killed = op
                    continue
                address = addresses[op] = base + offsets[op] & mask
            self.at = op
            size = sizes[op]
            if not low <= address <= high - size and not self.is_ram(address, size):
                if self._outside(op, kind, address, size):
                    killed = op
                continue
            if kind:
                if self._writes_constants(address, size):
                    raise WrittenConstants
            elif not self._linked[op]:
                self._link(op, address, size, killed)
                if classes.todo:
                    classes.propagate()  # what is stored further on may have its address from this
            first, last = address >> GRANULE, address + size - 1 >> GRANULE
            found = granules.get(first)
            if found is None:
                granules[first] = [op]
            else:
                found.append(op)
            if first != last:
                granules.setdefault(last, []).append(op)
        self._link_end(killed)

    def _decided(self, op: int) -> int:
        """Return the kind of a store-conditional, as far as it is known now whether it stores."""
        outcome = self._classes.value(self._accesses.outcomes[op])
        if outcome is not None:
            self.kinds[op] = FAILED if outcome else STORE
        return self.kinds[op]

    def is_ram(self, address: int, size: int) -> bool:
        """Return whether some bytes are RAM."""
        return any(base <= address and address + size <= base + length for base, length in self._rams)

    def _outside(self, op: int, kind: int, address: int, size: int) -> bool:
        """Look at an access that is not in RAM, or not all of it. Return whether it kills what is known of RAM."""
        if kind == LOAD:
            content = self._constant(address, size)
            if len(content) == size and not self._linked[op]:
                self._linked[op] = 1
                self._set_loaded(op, int.from_bytes(content, "little"), size)
                self._classes.propagate()
        elif self._writes_constants(address, size):
            raise WrittenConstants
        elif any(base < address + size and address < base + length for base, length in self._rams):
            self._accesses.kinds[op] = KILL
            self.addresses[op] = None
            return True
        return False

    def constant_byte(self, address: int) -> Value:
        """Return a byte that is never written, None if it may be."""
        granule = self._constant_granule(address >> GRANULE)
        return granule[address & (1 << GRANULE) - 1] if granule else None

    def _constant_granule(self, number: int) -> Sequence[Value]:
        """Return the bytes of a granule that are never written, () if all may be."""
        found = self._constants.get(number)
        if found is None:
            found = self._constants[number] = self._constants_of(number << GRANULE)
        return found

    def _constants_of(self, begin: int) -> Sequence[Value]:
        found: list[Value] = []
        while len(found) < 1 << GRANULE:
            content = self._constant(begin + len(found), (1 << GRANULE) - len(found))
            found += content or [None]
        return found if any(byte is not None for byte in found) else ()

    def _writes_constants(self, address: int, size: int) -> bool:
        first, last = address >> GRANULE, address + size - 1 >> GRANULE
        if not self._constant_granule(first) and (first == last or not self._constant_granule(last)):
            return False
        return any(self.constant_byte(at) is not None for at in range(address, address + size))

    # -- asking

    def covers(self, op: int, address: int) -> bool:
        """Return whether an access of RAM with a known address has a byte."""
        return 0 <= address - (self.addresses[op] or 0) < self._accesses.sizes[op]

    def accessed_byte(self, op: int, address: int) -> Value:
        """Return a byte that an access stored or loaded, None if it is unknown."""
        if self.kinds[op] == MAYBE:
            return None
        shift = 8 * (address - (self.addresses[op] or 0))
        bits, value = self._classes.low(self._accesses.nodes[op])
        return value >> shift & 0xFF if bits >= shift + 8 else None

    # -- what a load has loaded

    def _link(self, op: int, address: int, size: int, killed: int) -> None:
        accesses = self._accesses
        found = self.granules.get(address >> GRANULE)
        if found is not None and address >> GRANULE == address + size - 1 >> GRANULE:
            last = found[-1]
            if (
                last > killed
                and self.addresses[last] == address
                and accesses.sizes[last] == size
                and accesses.kinds[last] != MAYBE
                and last not in self._incomplete
            ):
                self._linked[op] = 1
                self._link_whole(op, accesses.nodes[last], size)
                return
        pieces = [self._piece(at, killed) for at in range(address, address + size)]
        if None in pieces:
            if any(pieces):
                self._incomplete.add(op)
            return
        self._linked[op] = 1
        self._link_pieces(op, _joined(pieces), size)  # type: ignore[arg-type]

    def _piece(self, at: int, killed: int) -> "Piece | None":
        """Return what the byte at an address was stored from, or loaded to, None if that is unknown.

        A load of which nobody knows all bytes is the second choice: what was stored before may be known.
        """
        accesses, second = self._accesses, None
        for count, op in enumerate(reversed(self.granules.get(at >> GRANULE, ()))):
            if op <= killed:
                break
            if count >= _FARTHEST:
                return second
            byte = at - (self.addresses[op] or 0)
            if 0 <= byte < accesses.sizes[op]:
                if accesses.kinds[op] == MAYBE:
                    return second
                piece = Piece(accesses.nodes[op], byte, 1)
                if op not in self._incomplete:
                    return piece
                second = second or piece
        known = self.constant_byte(at)
        if known is None and killed < 0:
            known = self.begin.byte(at)
        return second if known is None else Piece(-1, known, 1)

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

    def _link_pieces(self, op: int, pieces: Sequence[Piece], size: int) -> None:
        d, form = self._accesses.nodes[op], FORMS[self._accesses.forms[op]]
        if len(pieces) == 1 and pieces[0].node >= 0 and pieces[0].begin == 0:
            self._link_whole(op, pieces[0].node, size)
        elif all(piece.node < 0 for piece in pieces):
            value = int.from_bytes(bytes(piece.begin for piece in pieces), "little")
            self._set_loaded(op, value, size)
        else:
            nodes = [d, *(piece.node for piece in pieces if piece.node >= 0)]
            self._classes.constrain((_concatenate, d, tuple(pieces), 8 * size, form), dict.fromkeys(nodes))

    def _set_loaded(self, op: int, value: int, size: int) -> None:
        form = FORMS[self._accesses.forms[op]]
        self._classes.set(self._accesses.nodes[op], extended(value, 8 * size, form, self._classes.mask))

    # -- what memory holds at the end

    def _link_end(self, killed: int) -> None:
        """What was accessed last is what memory holds at the end."""
        found: dict[int, dict[int, int]] = {}
        for number, ops in self.granules.items():
            if ops[-1] > killed:
                self._at_end(number << GRANULE, ops, killed, found)
        for op, content in found.items():
            self.at = op
            count = next((k for k in range(len(content)) if k not in content), len(content))
            value = sum(content[k] << 8 * k for k in range(count))
            self._ended[op] = count == self._accesses.sizes[op]
            if self._ended[op] and self._accesses.kinds[op] == LOAD:
                self._set_loaded(op, value, count)
            else:
                self._classes.set_low(self._accesses.nodes[op], 8 * count, value)

    def _at_end(self, base: int, ops: Sequence[int], killed: int, found: dict[int, dict[int, int]]) -> None:
        accesses, rest = self._accesses, set(range(1 << GRANULE))
        for op in reversed(ops):
            if op <= killed or not rest:
                return
            begin = (self.addresses[op] or 0) - base
            mine = rest.intersection(range(begin, begin + accesses.sizes[op]))
            rest -= mine
            if accesses.kinds[op] == MAYBE or self._ended[op]:
                continue
            for k in mine:
                byte = self.end.byte(base + k)
                if byte is not None:
                    found.setdefault(op, {})[k - begin] = byte


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Join neighbours that are bytes of one node."""
    found: list[Piece] = []
    for piece in pieces:
        last = found[-1] if found else None
        if last is not None and piece.node >= 0 and last.node == piece.node and last.begin + last.size == piece.begin:
            found[-1] = last._replace(size=last.size + 1)
        else:
            found.append(piece)
    return found


def _concatenate(classes: Classes, constraint: Constraint) -> None:
    """The constraint (it, d, pieces, bits, form): d is the pieces one behind the other, in a form."""
    _, d, pieces, bits, form = constraint
    low, known, at = 0, 0, 0
    have, value = classes.low(d)
    for node, begin, size in pieces:
        if node < 0:
            there, part = 64, begin
        else:
            there, part = classes.low(node)
            there, part = there - 8 * begin, part >> 8 * begin
            if begin == 0 and have > at and there < 8 * size:
                classes.set_low(node, min(8 * size, have - at), value >> at)
        if known == at:
            low |= (part & (1 << 8 * size) - 1) << at
            known += max(min(there, 8 * size), 0)
        at += 8 * size
    if known == bits:
        classes.set(d, extended(low, bits, form, classes.mask))
    elif known > have:
        classes.set_low(d, known, low)
