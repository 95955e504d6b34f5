"""Compiled device trees, from which descriptions are made: damaged as bytes, and as trees that are compiled again."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from rvtrace_gdb.session.description import devicetree, dtb
from rvtrace_gdb.session.description.dtb import MAGIC, Node
from tests.fuzz.damage import mutations
from tests.fuzz.exercise import Exercise, Input
from tests.session.description import devicetrees

_AS_BYTES = 0.2  # share of trees that are damaged as bytes
_CELLS = (0, 1, 2, 3, 4, 8, 0x1000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_NAMES = ("reg", "compatible", "#address-cells", "#size-cells", "ranges", "status", "phandle", "riscv,trace-component",
          "in-ports", "out-ports", "remote-endpoint", "cpu", "cpus", "device_type", "port", "endpoint",
          "input_port", "output_port", "memory-region")  # fmt: skip
_VALUES = (b"", b"\0", b"okay\0", b"disabled\0", b"riscv,trace-component\0", b"sifive,trace-encoder0\0", b"\xff" * 4,
           b"cpu\0", b"x" * 500, b"\0\0\0\x01", b"riscv,trace-ram-sink\0riscv,trace-component\0",
           b"xuantie_ntrace,sink-controller\0")  # fmt: skip


class DeviceTree(Exercise):
    """The trees of the tests."""

    def __init__(self) -> None:
        super().__init__()
        self.seeds = [Input("", devicetrees.blob(name)) for name in devicetrees.NAMES]

    def mutated(self, rng: random.Random, data: bytes) -> bytes:
        if rng.random() < _AS_BYTES:
            return mutations.mutated(rng, data, rng.choice(self.seeds).data)
        root = dtb.read(data, "it.dtb")
        for _ in range(rng.choice((1, 1, 2, 4))):
            rng.choice(_DAMAGES)(rng, list(root.walk()))
        return flattened(root)

    def run(self, variant: str, data: bytes) -> None:
        root = dtb.read(data, "it.dtb")
        devicetree.trace_components(root, {"": (0x8000_0000, 0x1_0000)})


def flattened(root: Node) -> bytes:
    """A tree in the flattened format (Devicetree Specification v0.4, chapter 5)."""
    strings = bytearray()
    body = _node(root, strings) + struct.pack(">I", 9)
    at = 40 + 16
    header = struct.pack(">10I", int.from_bytes(MAGIC, "big"), at + len(body) + len(strings), at, at + len(body), 40,
                         17, 16, 0, len(strings), len(body))  # fmt: skip
    return header + bytes(16) + body + bytes(strings)


def _node(node: Node, strings: bytearray) -> bytes:
    made = struct.pack(">I", 1) + _aligned(node.name.encode(errors="surrogateescape") + b"\0")
    for name, value in node.properties.items():
        made += struct.pack(">3I", 3, len(value), len(strings)) + _aligned(value)
        strings += name.encode(errors="surrogateescape") + b"\0"
    return made + b"".join(_node(child, strings) for child in node.children) + struct.pack(">I", 2)


def _aligned(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _value(rng: random.Random, nodes: list[Node]) -> None:
    """Another value of a property."""
    node = rng.choice([node for node in nodes if node.properties] or nodes)
    for name in rng.sample(sorted(node.properties), min(1, len(node.properties))):
        value = bytearray(node.properties[name])
        if len(value) >= 4 and rng.random() < 0.6:
            at = 4 * rng.randrange(len(value) // 4)
            value[at : at + 4] = struct.pack(">I", rng.choice((*_CELLS, rng.getrandbits(32))))
            node.properties[name] = bytes(value)
        else:
            node.properties[name] = rng.choice((*_VALUES, mutations.mutated(rng, bytes(value)), bytes(value) * 2))


def _property(rng: random.Random, nodes: list[Node]) -> None:
    """A property that is not there, has another name, or another's value."""
    node, other = rng.choice(nodes), rng.choice(nodes)
    name = rng.choice([*node.properties, rng.choice(_NAMES)])
    value = node.properties.pop(name, rng.choice([*other.properties.values(), *_VALUES]))
    if rng.random() < 0.6:
        node.properties[rng.choice(_NAMES)] = value


def _structure(rng: random.Random, nodes: list[Node]) -> None:
    """A node that is missing, there twice, elsewhere, or has another name."""
    node, other = rng.choice(nodes), rng.choice(nodes)
    pick = rng.random()
    if pick < 0.3 and node.children:
        node.children.remove(rng.choice(node.children))
    elif pick < 0.5 and node.children:
        node.children.append(_copied(rng.choice(node.children)))
    elif pick < 0.7:
        other.children.append(_copied(node))
    else:
        bare = node.name.partition("@")[0]
        node.name = rng.choice((*_NAMES, other.name, bare, f"{bare}@0", "x@", "@ffffffffffffffffff", "a/b", "ä"))


def _copied(node: Node) -> Node:
    return Node(node.file, node.name, None, dict(node.properties), [_copied(child) for child in node.children])


_DAMAGES: tuple[Callable[[random.Random, list[Node]], None], ...] = (_value, _value, _value, _property, _structure)
