"""The device tree Spike is given, compiled: then it needs no `dtc`, and has what is said here and nothing else.

Source: Devicetree Specification 0.4, chapter 5 (Flattened Devicetree (DTB) Format); Spike's dts.cc for what it reads.
"""

import struct

_MAGIC, _BEGIN_NODE, _END_NODE, _PROP, _END = 0xD00DFEED, 1, 2, 3, 9
_HEADER, _RESERVED = 40, 16  # bytes: the header, and a reservation block without entries

Tree = dict[str, "Tree | tuple[int, ...] | str"]
"""Nodes, properties of cells, and properties of text."""


def hart_tree(isa: str, mmu: str | None, pmp: int, clint: int, plic: int) -> bytes:
    """One hart with so many PMP regions, a CLINT and a PLIC with one source, at these addresses.

    *mmu*: the largest of its modes of address translation, "sv39"; None: it has none.
    """
    cpu: Tree = {
        "device_type": "cpu", "reg": (0,), "status": "okay", "compatible": "riscv", "riscv,isa": isa,
        "riscv,pmpregions": (pmp,), "riscv,pmpgranularity": (4,),
        "interrupt-controller": {"#interrupt-cells": (1,), "interrupt-controller": (), "phandle": (1,)},
    }  # fmt: skip
    if mmu is not None:
        cpu["mmu-type"] = f"riscv,{mmu}"
    devices: Tree = {
        "#address-cells": (2,), "#size-cells": (2,), "compatible": "simple-bus", "ranges": (),
        f"clint@{clint:x}": {
            "compatible": "riscv,clint0", "interrupts-extended": (1, 3, 1, 7), "reg": (*_cells(clint), 0, 0xC_0000),
        },
        f"plic@{plic:x}": {
            "compatible": "riscv,plic0", "interrupts-extended": (1, 11, 1, 9), "reg": (*_cells(plic), 0, 0x100_0000),
            "interrupt-controller": (), "#interrupt-cells": (1,), "riscv,ndev": (1,), "riscv,max-priority": (15,),
        },
    }  # fmt: skip
    return compiled({
        "#address-cells": (2,), "#size-cells": (2,), "compatible": "ucbbar,spike-bare-dev",
        "cpus": {"#address-cells": (1,), "#size-cells": (0,), "timebase-frequency": (10_000_000,), "cpu@0": cpu},
        "soc": devices,
    })  # fmt: skip


def compiled(root: Tree) -> bytes:
    """The tree as a flattened one."""
    names: dict[str, int] = {}
    structure = _node("", root, names) + struct.pack(">I", _END)
    strings = b"".join(name.encode() + b"\0" for name in names)
    start = _HEADER + _RESERVED
    sizes = (len(strings), len(structure))
    total = start + sum(sizes)
    header = struct.pack(">10I", _MAGIC, total, start, start + sizes[1], _HEADER, 17, 16, 0, *sizes)
    return header + bytes(_RESERVED) + structure + strings


def _cells(address: int) -> tuple[int, int]:
    return address >> 32, address & 0xFFFFFFFF


def _node(name: str, node: Tree, names: dict[str, int]) -> bytes:
    """Properties come before the nodes inside."""
    parts = [struct.pack(">I", _BEGIN_NODE), _padded(name.encode() + b"\0")]
    for key, value in sorted(node.items(), key=lambda item: isinstance(item[1], dict)):
        if isinstance(value, dict):
            parts.append(_node(key, value, names))
        else:
            parts.append(_property(key, value, names))
    return b"".join(parts) + struct.pack(">I", _END_NODE)


def _property(name: str, value: tuple[int, ...] | str, names: dict[str, int]) -> bytes:
    offset = names.setdefault(name, sum(len(known) + 1 for known in names))
    data = value.encode() + b"\0" if isinstance(value, str) else struct.pack(f">{len(value)}I", *value)
    return struct.pack(">3I", _PROP, len(data), offset) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
