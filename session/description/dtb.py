"""Compiled device trees (DTB): nodes, their properties, and the addresses of their registers.

Ref: Devicetree Specification v0.4: chapter 5 (the flattened format, DTB), 2.3 (standard properties), 2.2 (names). The
format consists of five tokens and does not change any more, so it is read here instead of by a library: the only
maintained one, libfdt's, would have to be compiled on every user's machine.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import counted, printable

MAGIC = b"\xd0\x0d\xfe\xed"
_HEADER = struct.Struct(">10I")
_READABLE = range(16, 18)  # last_comp_version is 16 for all versions in use; 17 is the newest version
_BEGIN_NODE, _END_NODE, _PROP, _NOP, _END = 1, 2, 3, 4, 9
_CELL = 4  # bytes
_MOST_CELLS = 4  # of an address or a size


class DeviceTreeError(RvtraceError):
    """A device tree that cannot be used. *file*, *node* and *key* (a property) say where, as far as known."""

    def __init__(self, problem: str, file: str, node: str = "", key: str = "") -> None:
        super().__init__(printable(": ".join(part for part in (file, node, key, problem) if part)))
        self.problem, self.file, self.node, self.key = problem, file, node, key


@dataclass(eq=False)
class Node:
    """A node of the tree in *file*. *properties* are bytes, whose type depends on the property's name."""

    file: str
    name: str
    parent: "Node | None"
    properties: dict[str, bytes] = field(default_factory=dict)
    children: list["Node"] = field(default_factory=list)

    @cached_property
    def path(self) -> str:
        names, node = [self.name], self
        while node.parent is not None:
            node = node.parent
            names.append(node.name)
        return "/".join(reversed(names)) or "/"

    def error(self, problem: str, key: str = "") -> DeviceTreeError:
        return DeviceTreeError(problem, self.file, self.path, key)

    def walk(self) -> Iterator["Node"]:
        """Yield this node and all nodes below it."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.children)

    def child(self, name: str) -> "Node | None":
        return next((child for child in self.children if child.name == name), None)

    def cells(self, key: str) -> tuple[int, ...]:
        """Return a property that consists of 32-bit numbers, () if it is missing. Raises `DeviceTreeError`."""
        value = self.properties.get(key, b"")
        if len(value) % _CELL:
            are = "is" if len(value) == 1 else "are"
            raise self.error(f"has {counted(len(value), 'byte')}, which {are} not whole cells", key)
        return struct.unpack(f">{len(value) // _CELL}I", value)

    def strings(self, key: str) -> tuple[str, ...]:
        """Return a property that consists of texts, () if it is missing."""
        value = self.properties.get(key, b"")
        return (
            tuple(part.decode("utf-8", "replace") for part in value.removesuffix(b"\0").split(b"\0")) if value else ()
        )

    @property
    def okay(self) -> bool:
        """Whether the status is okay, which is the default (2.3.4)."""
        return (self.strings("status") or ("okay",))[0] in ("okay", "ok")

    @property
    def phandle(self) -> int | None:
        """The number by which other nodes refer to this node."""
        cells = self.cells("phandle") or self.cells("linux,phandle")
        return cells[0] if cells else None

    @property
    def address(self) -> int:
        """Return the address of the first registers of `reg`, on the root's bus. Raises `DeviceTreeError`."""
        bus = self.parent
        reg = self.cells("reg")
        if bus is None or len(reg) < bus.address_cells or not reg:
            raise self.error("has no address" if reg else "missing", "reg")
        address = joined(reg[: bus.address_cells])
        while bus.parent is not None:
            address = bus.translated(address)
            bus = bus.parent
        return address

    def translated(self, address: int) -> int:
        """Convert an address on this bus to one on the parent's bus (2.3.8). Raises `DeviceTreeError`."""
        if "ranges" not in self.properties:
            raise self.error(f"missing, so the address of its {address:#x} on the parent bus is not known", "ranges")
        above = self.parent.address_cells if self.parent else 0
        widths = self.address_cells, above, self.size_cells
        ranges = self.cells("ranges")
        for at in range(0, len(ranges) - sum(widths) + 1, sum(widths) or 1):
            child, parent, size = _split(ranges[at:], widths)
            if child <= address < child + size:
                return address - child + parent
        if ranges:
            raise self.error(f"none has its {address:#x} in it", "ranges")
        return address  # an empty one: the same addresses

    @property
    def address_cells(self) -> int:
        return self._width("#address-cells", 2)

    @property
    def size_cells(self) -> int:
        return self._width("#size-cells", 1)

    def _width(self, key: str, default: int) -> int:
        cells = self.cells(key) or (default,)
        if cells[0] > _MOST_CELLS:
            raise self.error(f"is {cells[0]}, must be {_MOST_CELLS} at most", key)
        return cells[0]


def joined(cells: Sequence[int]) -> int:
    """Return a number that is stored in several cells."""
    value = 0
    for cell in cells:
        value = value << 32 | cell
    return value


def _split(cells: Sequence[int], widths: Sequence[int]) -> Iterator[int]:
    at = 0
    for width in widths:
        yield joined(cells[at : at + width])
        at += width


def read(data: bytes, file: str) -> Node:
    """Return the root of the device tree in the DTB *data*; *file* is its name in messages. Raises
    `DeviceTreeError`.
    """
    try:
        return _StructureReader(data, file).root()
    except (struct.error, IndexError):
        raise DeviceTreeError("is a damaged device tree: it ends too early", file) from None


class _StructureReader:
    """Reads the structure block of one DTB."""

    def __init__(self, data: bytes, file: str) -> None:
        self._data, self._file = data, file
        if not data.startswith(MAGIC):
            raise DeviceTreeError(f"is not a compiled device tree: it does not begin with 0x{MAGIC.hex()}", file)
        _, total, structure, strings, _, _, compatible, _, _, _ = _HEADER.unpack_from(data)
        if compatible not in _READABLE:
            raise DeviceTreeError(f"is a device tree of a format that is not known, {compatible}", file)
        if total > len(data):
            raise DeviceTreeError(f"is a damaged device tree: {len(data)} of {total} bytes", file)
        self._at, self._strings = structure, strings

    def root(self) -> Node:
        root = node = None
        while (token := self._cell()) != _END:
            if token == _BEGIN_NODE:
                if root is not None and node is None:
                    raise self._damaged("a second root")
                child = Node(self._file, self._zero_ended_text(self._at, advance=True), node)
                if node is None:
                    root = child
                else:
                    node.children.append(child)
                node = child
            elif token == _END_NODE and node is not None:
                node = node.parent
            elif token == _PROP and node is not None:
                size, name = self._cell(), self._cell()
                node.properties[self._zero_ended_text(self._strings + name)] = self._bytes(size)
            elif token != _NOP:
                raise self._damaged(f"token {token}")
        if root is None or node is not None:
            raise self._damaged("no end of its nodes")
        return root

    def _cell(self) -> int:
        (value,) = struct.unpack_from(">I", self._data, self._at)
        self._at += _CELL
        return int(value)

    def _bytes(self, size: int) -> bytes:
        value = self._data[self._at : self._at + size]
        if len(value) != size:
            raise IndexError
        self._at += -(-size // _CELL) * _CELL
        return value

    def _zero_ended_text(self, at: int, advance: bool = False) -> str:
        """Return the text that ends with a zero byte; *advance*: it is in the structure, and the
        next cell follows it.
        """
        end = self._data.find(b"\0", at)
        if end < 0:
            raise IndexError
        if advance:
            self._at += -(-(end + 1 - at) // _CELL) * _CELL
        return self._data[at:end].decode("utf-8", "replace")

    def _damaged(self, what: str) -> DeviceTreeError:
        return DeviceTreeError(f"is a damaged device tree: it has {what}", self._file)
