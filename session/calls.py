"""The functions of a history for who shows pages of them: `trace functions`, `trace calls`."""

from typing import NamedTuple

from rvtrace_gdb.decode.calls.edges import UNKNOWN, Kind
from rvtrace_gdb.decode.calls.index import CallHistory, Function
from rvtrace_gdb.decode.calls.lines import addresses
from rvtrace_gdb.decode.calls.tree import Node, rows, tree
from rvtrace_gdb.decode.contexts import ContextImages
from rvtrace_gdb.decode.history import GAP, History
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.session.ranges import Cursor, Selection
from rvtrace_gdb.support.progress import Progress, silent

_TRAP = "trap"
_ALL = 1 << 62


class FunctionRow(NamedTuple):
    """A line: its number, the numbers of its first and last instruction, its first address, None for a gap.

    level      how far it is indented
    what       why there is a gap; which trap led here, "" for none
    name       of the function, where it is not in the ELF that was traced; None: gdb knows
    addresses  of all its instructions, if they were asked for
    """

    number: int
    first: int
    last: int
    pc: int | None
    level: int
    what: str
    name: str | None
    addresses: list[int]


class CallRow(NamedTuple):
    """A line of the tree. *calls*: how often. *own*: instructions that ran in it, *total*: and in what it called.

    *pc* is where the function starts, None where there is no symbol; *hidden*: how many it called that are not shown.
    """

    level: int
    pc: int | None
    name: str | None
    trap: bool
    calls: int
    own: int
    total: int
    hidden: int


class Functions:
    """The functions that ran in *history*, numbered from 1. *calls*: of the same history, if there is one already."""

    def __init__(
        self,
        history: History,
        program: ContextImages,
        progress: Progress = silent,
        calls: CallHistory | None = None,
    ) -> None:
        self._history, self._program = history, program
        self.calls = CallHistory(history, program, progress) if calls is None else calls
        """Where they are from."""
        self._cursor = Cursor(listing="function-call-history")
        self._tree: Node | None = None
        self._images: list[Image] = []
        self._rows: list[CallRow] = []

    def __len__(self) -> int:
        return len(self.calls)

    def select(self, args: str, size: int | None) -> Selection:
        """Which of them `trace functions ARGS` shows, as `record function-call-history` does. Raises RangeError."""
        return self._cursor.select(args, size, len(self))

    def rows(self, begin: int, end: int, *, lines: bool = False) -> list[FunctionRow]:
        """Those numbered *begin* to *end* - 1. *lines*: with their addresses."""
        return [self._row(function, lines) for function in self.calls.functions(begin, end)]

    def tree(self, depth: int, progress: Progress = silent) -> int:
        """How many rows the tree of calls has down to *depth* levels, 0 for all; `tree_rows` gives them."""
        self._rows = [self._call(level, node, depth) for level, node in rows(self.root(progress), depth or _ALL)]
        return len(self._rows)

    def root(self, progress: Progress = silent) -> Node:
        """Of the whole tree, which is made once."""
        if self._tree is None:
            self._tree = tree(self.calls, progress)
            found = (self._program.image_of(context) for _, context in self._history.contexts)
            self._images = [self._program.base, *{id(image): image for image in found}.values()]
        return self._tree

    def tree_rows(self, begin: int, end: int) -> list[CallRow]:
        """Rows *begin* to *end* - 1 of the tree, from 1 on."""
        return self._rows[max(begin, 1) - 1 : end - 1]

    def _row(self, function: Function, lines: bool) -> FunctionRow:
        begin, end = function.begin, function.end
        if function.pc == GAP:
            text = self._history.gap_at(begin).as_gap
            return FunctionRow(function.number, begin + 1, end, None, 0, text, None, [])
        what = (self.calls.trap_at(begin) or _TRAP) if function.kind is Kind.TRAP else ""
        name = self._name(self._program.image_of(self._history.context_at(begin)), function.pc)
        pcs = sorted(addresses(self._history, begin, end)) if lines else []
        return FunctionRow(function.number, begin + 1, end, function.pc, function.level, what, name, pcs)

    def _call(self, level: int, node: Node, depth: int) -> CallRow:
        known = node.function != UNKNOWN
        place = next((image for image in self._images if known and image.symbol(node.function)), self._program.base)
        name = self._name(place, node.function) if known else None
        hidden = len(node.children) if level + 1 == depth else 0
        pc = node.function if known else None
        return CallRow(level, pc, name, node.trap, node.calls, node.own, node.total, hidden)

    def _name(self, image: Image, pc: int) -> str | None:
        """Of a function that gdb may not know, or know another one in its place."""
        found = image.symbol(pc)
        if found is None or (image is self._program.base and image.path and not image.is_added(pc)):
            return None
        return found[0]
