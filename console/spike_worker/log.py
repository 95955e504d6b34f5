"""Spike's log of commits: a line for each instruction that retired."""

import re

from rvtrace_gdb.console.spike_worker.registers import F, X

_LINE = re.compile(rb"core +0: \d 0x([0-9a-f]+) \(0x([0-9a-f]+)\)(.*)")
# Registers with what they hold now, and memory: an address for a load, with data for a store. Of vectors nothing.
_WRITTEN = re.compile(rb" ([xfc])(\d+)\S* +0x[0-9a-f]+| mem 0x([0-9a-f]+) 0x([0-9a-f]+)")
_FIRST = {b"x": X, b"f": F, b"c": 0}


def committed(line: bytes, mask: int) -> tuple[int, list[int], list[tuple[int, str]]]:
    """The instruction, the numbers of the registers it wrote, and its stores: address, bytes in hex."""
    found = _LINE.match(line)
    assert found is not None, line
    registers: list[int] = []
    stores: list[tuple[int, str]] = []
    for kind, number, address, data in _WRITTEN.findall(found[3]):
        if kind:
            registers.append(_FIRST[kind] + int(number))
        else:
            stores.append((int(address, 16) & mask, bytes.fromhex(data.decode())[::-1].hex()))
    return int(found[2], 16), registers, stores
