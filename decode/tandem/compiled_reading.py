"""The kernel's loop that cuts groups. It is told what a byte means in a node of the automaton where it first comes."""

from array import array
from typing import TYPE_CHECKING, NamedTuple

from rvtrace_gdb.decode.kernel.loading import kernel
from rvtrace_gdb.decode.tandem.group_grammar import GrammarNode

if TYPE_CHECKING:
    from rvtrace_gdb.decode.kernel._kernel import TandemReader

_NO_SHAPE = 0xFFFF


class ReadingPlace(NamedTuple):
    """Where reading stopped: the element *at*, of the group that begins at *start*, in *node*. *unknown*: node and byte
    that the kernel does not know; None: the data ended.
    """

    at: int
    start: int
    node: GrammarNode
    unknown: tuple[GrammarNode, int] | None


class CompiledReading:
    """Cuts groups with the kernel's *reader*."""

    def __init__(self, reader: "TandemReader") -> None:
        self._reader = reader
        self._nodes: list[GrammarNode] = []

    def read(self, data: bytearray, at: int, start: int, node: GrammarNode) -> ReadingPlace:
        """Read groups, as far as the bytes and what the kernel knows of them go."""
        at, start, number, unknown = self._reader.read(data, at, start, self._number(node))
        miss = None if unknown is None else (self._nodes[unknown[0]], unknown[1])
        return ReadingPlace(at, start, self._nodes[number], miss)

    def learn(self, node: GrammarNode, byte: int) -> None:
        """Tell the kernel what a byte means. Raises InvalidBytes."""
        size, following, split, shape = node[byte]
        number = _NO_SHAPE if shape is None else shape.number
        self._reader.learn(self._number(node), byte, size, self._number(following), split, number)

    def move(self, offsets: "array[int]", shapes: "array[int]") -> None:
        """Add the groups that were read to arrays."""
        read = self._reader.take()
        offsets.frombytes(read[0])
        shapes.frombytes(read[1])

    def _number(self, node: GrammarNode) -> int:
        if node.number < 0:
            node.number = len(self._nodes)
            self._nodes.append(node)
        return node.number


def compiled_reading() -> CompiledReading | None:
    """Return the kernel's loop, None without a kernel."""
    module = kernel()
    return None if module is None else CompiledReading(module.TandemReader())
