"""Values that are equal but for a constant, as classes: a weighted union-find with what is known of each class.

Every value that a register has for a while is a *node*, and never changes. Nodes of a class differ by known constants
(modulo 2**XLEN), so that one known node makes all of them known. What else relates nodes is a *constraint*: a tuple of
a function and nodes, which is evaluated again whenever more becomes known of one of its nodes, in whatever direction
it can be.

Of a class without a value, the low bits may be known: sums, products and the like pass them on. A node has a *shape*,
which tells how the rest follows from its low bits: n > 0 for values below 2**n, n < 0 for values that are
sign-extended from -n bits, `BOXED` for singles in floating-point registers. Floating-point registers have 64 bits; on
RV32 their nodes are never in one class with those of integer registers, and no constants are added to them.
"""

from array import array
from collections.abc import Callable, Iterable
from typing import Any

from rvtrace_gdb.decode.semantics.encodings import signed
from rvtrace_gdb.decode.semantics.templates import BOX

BOXED = 127
"""The shape of a 32-bit value whose upper half is all ones."""

Constraint = tuple[Any, ...]
"""A function, and its nodes: it is called with the classes and the constraint."""
EvaluateConstraint = Callable[["Classes", Constraint], None]

_MOST_NARROWED = 4
"""So often are the constraints of a class evaluated again because its range has become smaller."""


class ClassesContradicted(Exception):
    """Two facts about a node exclude each other. *position*: of the instruction that shows it, if that is known."""

    def __init__(self, node: int, position: int | None = None) -> None:
        super().__init__(node)
        self.node, self.position = node, position


class Classes:
    """The nodes of one window. *facts*: how many things were learned, to see whether anything was."""

    def __init__(self, xlen: int) -> None:
        self.xlen, self.mask = xlen, (1 << xlen) - 1
        self.facts = 0
        self.shapes = array("b")
        self.todo: list[Constraint] = []
        """The constraints that are to be evaluated."""
        self.lows: dict[int, tuple[int, int]] = {}
        """Of roots without a value, the low bits that are known: how many, and which."""
        self.ranges: dict[int, tuple[int, int]] = {}
        """Of roots without a value, the lowest value and by how much it may be exceeded, around the circle of all."""
        self._narrowed: dict[int, int] = {}
        self._parents, self._offsets = array("I"), array("Q")
        self._values: list[int | None] = []
        self._uses: list[list[Constraint] | None] = []

    def __len__(self) -> int:
        return len(self._parents)

    # -- making nodes

    def new(self, shape: int) -> int:
        """Return a new node of which only the shape is known."""
        node = len(self._parents)
        self._parents.append(node)
        self._offsets.append(0)
        self.shapes.append(shape)
        self._values.append(None)
        self._uses.append(None)
        return node

    def known_count(self, value: int, shape: int = 0) -> int:
        """Return a new node with a value. *shape*: of one that does not fit an integer register."""
        node = self.new(shape or self.xlen)
        self._values[node] = value
        return node

    def plus(self, node: int, constant: int) -> int:
        """Return a new node whose value is that of an integer *node* plus a constant."""
        root, offset = self.find(node)
        found = self.new(self.xlen)
        self._parents[found] = root
        self._offsets[found] = offset + constant & self.mask
        return found

    def constrain(self, constraint: Constraint, nodes: Iterable[int]) -> None:
        """Add a constraint on *nodes*."""
        for node in nodes:
            root = self.find(node)[0]
            if self._values[root] is None:
                uses = self._uses[root]
                if uses is None:
                    self._uses[root] = [constraint]
                else:
                    uses.append(constraint)
        self.todo.append(constraint)

    # -- asking

    def find(self, node: int) -> tuple[int, int]:
        """Return the root of a node, and by how much the node exceeds it."""
        parents = self._parents
        root = parents[node]
        if parents[root] != root:
            root = self._shorten(node)
        return root, self._offsets[node]

    def _shorten(self, node: int) -> int:
        """Make a node, and those on its way, children of their root, and return the root."""
        parents, offsets, way = self._parents, self._offsets, []
        while parents[node] != node:
            way.append(node)
            node = parents[node]
        total = 0
        for at in reversed(way):
            total = total + offsets[at] & self.mask
            offsets[at], parents[at] = total, node
        return node

    def value(self, node: int) -> int | None:
        """Return the value of a node, None if it is unknown."""
        parents = self._parents
        root = parents[node]
        if parents[root] != root:
            root = self._shorten(node)
        value = self._values[root]
        if value is None:
            return None
        offset = self._offsets[node]
        return value + offset & self.mask if offset else value

    def low(self, node: int) -> tuple[int, int]:
        """Return how many of a node's low bits are known, and those."""
        root, offset = self.find(node)
        value = self._values[root]
        if value is not None:
            return 64, value + offset & self.mask if offset else value
        found = self.lows.get(root)
        if found is None:
            return 0, 0
        return found[0], found[1] + offset & (1 << found[0]) - 1

    def fits(self, node: int, bits: int, *, is_signed: bool) -> bool:
        """Return whether a node is its own low *bits*, extended that way."""
        shape = self.shapes[node]
        if is_signed:
            return 0 < -shape <= bits or 0 < shape < bits
        return 0 < shape <= bits

    # -- learning

    def set(self, node: int, value: int) -> None:
        """A node has this value. Raises Contradiction."""
        root, offset = self.find(node)
        if offset:
            value = value - offset & self.mask
        known = self._values[root]
        if known is not None:
            if known != value:
                raise ClassesContradicted(node)
            return
        if self.lows:
            bits, low = self.lows.pop(root, (0, 0))
            if (value ^ low) & (1 << bits) - 1:
                raise ClassesContradicted(node)
        if self.ranges:
            low, span = self.ranges.pop(root, (0, self.mask))
            if (value - low & self.mask) > span:
                raise ClassesContradicted(node)
        self._values[root] = value
        self.facts += 1
        uses = self._uses[root]
        if uses is not None:
            self.todo.extend(uses)
            self._uses[root] = None

    def set_low(self, node: int, bits: int, value: int) -> None:
        """The low *bits* of a node are those of *value*. Raises Contradiction."""
        shape = self.shapes[node]
        if 0 < shape <= bits:
            value &= (1 << min(bits, 64)) - 1
            if value >> shape:
                raise ClassesContradicted(node)
            self.set(node, value)
        elif 0 < -shape <= bits:
            self.set(node, signed(value, min(bits, self.xlen)) & self.mask)
        elif shape == BOXED and bits >= 32:
            self.set(node, value & 0xFFFFFFFF | BOX)
        elif bits > 0:
            root, offset = self.find(node)
            self._set_low_of_root(root, bits, value - offset, node)

    def _set_low_of_root(self, root: int, bits: int, value: int, node: int) -> None:
        known = self._values[root]
        have, low = (bits, known) if known is not None else self.lows.get(root, (0, 0))
        value &= (1 << bits) - 1
        if (value ^ low) & (1 << min(bits, have)) - 1:
            raise ClassesContradicted(node)
        if bits <= have:
            return
        self.lows[root] = bits, value
        self.facts += 1
        self.todo.extend(self._uses[root] or ())

    def bounds(self, node: int) -> tuple[int, int]:
        """Return the lowest value that an integer node may have, and by how much it may exceed that."""
        root, offset = self.find(node)
        low, span = self.ranges.get(root) or self._shape_bounds(root)
        return low + offset & self.mask, span

    def _shape_bounds(self, root: int) -> tuple[int, int]:
        shape = self.shapes[root]
        low = 0 if shape > 0 else -(1 << -shape - 1) & self.mask
        return low, (1 << min(abs(shape), self.xlen)) - 1

    def narrow(self, node: int, low: int, span: int) -> None:
        """An integer node has one of the values from *low* on, that exceed it by *span* at most, around the circle of
        all values. Raises Contradiction.
        """
        root, offset = self.find(node)
        mask, value = self.mask, self._values[root]
        low = low - offset & mask
        if value is not None:
            if (value - low & mask) > span:
                raise ClassesContradicted(node)
            return
        have, size = self.ranges.get(root) or self._shape_bounds(root)
        found = _common(have, size, low, span, mask)
        if found is None:
            raise ClassesContradicted(node)
        if found[1] == 0:
            self.set(root, found[0])
        elif found[1] < size:
            self.ranges[root] = found
            count = self._narrowed[root] = self._narrowed.get(root, 0) + 1
            if count <= _MOST_NARROWED:
                self.todo.extend(self._uses[root] or ())

    def union(self, a: int, b: int, delta: int = 0) -> None:
        """The value of *a* is that of *b* plus *delta*. Raises Contradiction."""
        (root_a, offset_a), (root_b, offset_b) = self.find(a), self.find(b)
        value_a, value_b = self._values[root_a], self._values[root_b]
        difference = offset_b + delta - offset_a & self.mask  # of the roots
        if root_a == root_b:
            if difference:
                raise ClassesContradicted(a)
        elif value_b is not None:
            self.set(root_a, value_b + difference & self.mask if difference else value_b)
        elif value_a is not None:
            self.set(root_b, value_a - difference & self.mask if difference else value_a)
        elif self._leads(root_a, root_b):
            self._merge(root_b, root_a, -difference & self.mask)
        else:
            self._merge(root_a, root_b, difference)

    def _leads(self, a: int, b: int) -> bool:
        """Return whether *a* is the better root: the one with fewer values, or else the one with more uses."""
        shape_a, shape_b = abs(self.shapes[a]), abs(self.shapes[b])
        if shape_a != shape_b:
            return shape_a < shape_b
        return len(self._uses[a] or ()) > len(self._uses[b] or ())

    def _merge(self, root: int, other: int, difference: int) -> None:
        """Make the class of *root* part of that of *other*. Neither has a value."""
        self.facts += 1
        self._parents[root], self._offsets[root] = other, difference
        mine, theirs = self._uses[root], self._uses[other]
        self._uses[root] = None
        if mine is not None:
            self.todo.extend(mine)
            if theirs is None:
                self._uses[other] = mine
            else:
                theirs.extend(mine)
        low = self.lows.pop(root, None)
        if low is not None:
            self._set_low_of_root(other, low[0], low[1] - difference, root)
        known = self.ranges.pop(root, None)
        if known is not None:
            self.narrow(other, known[0] - difference, known[1])

    def propagate(self) -> None:
        """Evaluate constraints until there is nothing more to learn from them. Raises Contradiction."""
        todo = self.todo
        while todo:
            constraint = todo.pop()
            constraint[0](self, constraint)


def _common(one: int, size: int, other: int, span: int, mask: int) -> tuple[int, int] | None:
    """Return the values that two pieces of the circle of all values have in common, as a piece: the first value, and by
    how much it may be exceeded. None: they have none. Where they have two pieces in common, the smaller of both.
    """
    if size >= mask:
        return other, span
    begin = other - one & mask  # seen from the first one, which is 0 to size
    end = begin + span
    if end <= mask:
        return (other, min(size, end) - begin) if begin <= size else None
    end &= mask  # it goes over 0
    if begin > size:
        return one, min(size, end)
    return (one, size) if size <= span else (other, span)
