"""The loads and stores of a window, in order, as columns."""

from array import array

LOAD, STORE, MAYBE, KILL, FAILED = range(5)
"""Kinds of accesses. MAYBE: a store-conditional, until it is known whether it stores; FAILED: one that does not. KILL:
anything may be stored.
"""
FORMS = "suf"
"""How what is loaded becomes a register, see `rules.extended`."""


class AccessTable:
    """The accesses of a window, in order, as columns."""

    def __init__(self) -> None:
        self.positions, self.bases, self.offsets = array("q"), array("I"), array("q")
        self.sizes, self.kinds, self.forms = bytearray(), bytearray(), bytearray()
        self.nodes = array("I")
        """What is loaded or stored."""
        self.outcomes: dict[int, int] = {}
        """Of each store-conditional, the node of its result: 0 if it stores."""
        self.debuggers: set[int] = set()
        """Which stores are those of a debugger; *breakpoints*: which of them put breakpoints in the place of code."""
        self.breakpoints: set[int] = set()

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

    def add_debuggers(
        self, position: int, zero: int, address: int, size: int, node: int, *, is_breakpoint: bool = False
    ) -> None:
        """Add what a debugger stored before the instruction at a position. *zero*: a node that is 0. *is_breakpoint*:
        the program is what it is without it.
        """
        self.debuggers.add(len(self))
        if is_breakpoint:
            self.breakpoints.add(len(self))
        self.add(STORE, position - 1, zero, address, size, node)

    def kill(self, position: int, *, accesses: bool) -> None:
        """Anything may be in memory from the instruction at a position on. *accesses*: that instruction stores it."""
        self.add(KILL, position if accesses else position - 1, 0, 0, int(accesses), 0)
