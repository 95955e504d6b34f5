"""Forks of programs with floating point, in registers of their own."""

import struct
from pathlib import Path

import pytest

from rvtrace_gdb.controlregs.trace_control.encoder_registers import TeFormat
from rvtrace_gdb.session.fork.following import END, ForkFollower
from rvtrace_gdb.session.fork.fork import ForkedHart
from rvtrace_gdb.support.errors import silent
from tests.helpers.cross_compiler import compile_program, symbol_address
from tests.session.fork.runs import opened, recorded


def total(limit: int) -> float:
    """What floating.c adds up; all of it is exact in double precision."""
    x, found = 100.0, 0.0
    for _ in range(limit):
        x = x / 2 + 1.5
        found += x if x > 7.5 else -3 * x
    return found


@pytest.mark.parametrize("march", ["rv64gc", "rv32gc"])
def test_it_follows_to_the_end_and_computes_with_another_limit(march: str, tmp_path: Path) -> None:
    elf = compile_program(tmp_path, Path(__file__).with_name("floating.c"), march=march, options=("-O1",))
    it = opened(recorded(elf, tmp_path / "floating.rvt", 1500, TeFormat.N_TRACE))
    fork = ForkedHart(it.past, it.selected, it.capture, 60)
    left = ForkFollower(fork, 1500).follow(silent)
    assert (left.reason, left.position) == (END, 1500)
    limit, place = symbol_address(elf, "limit"), symbol_address(elf, "total")
    assert _double(fork, place) == total(9)
    changed = ForkedHart(it.past, it.selected, it.capture, 60)
    assert changed.write_memory(limit, struct.pack("<i", 4))
    changed.hart.advance(1000)
    assert _double(changed, place) == total(4) != total(9)


def _double(fork: ForkedHart, address: int) -> float:
    known = [byte for byte in fork.memory(address, 8) if byte is not None]
    (value,) = struct.unpack("<d", bytes(known))
    return float(value)
