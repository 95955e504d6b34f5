"""Calls under way in a program of the simulated hart, at every instruction it says it retired, against its own log."""

import subprocess
from itertools import islice
from pathlib import Path

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.reverse_search import AddressSearch
from rvtrace_gdb.decode.program.image import Image
from tests.decode.calls.naive_calls import NaiveCalls
from tests.decode.calls.test_frames import told
from tests.helpers.amounts import sparse
from tests.transport.simulated.encoder.traces import compiled, machine_with, trace


def starts_of(elf: Path) -> list[int]:
    """Of the functions, by nm."""
    text = subprocess.run(["riscv64-unknown-elf-nm", elf], check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in text.splitlines()]
    return sorted({int(line[0], 16) for line in lines if line[-2] in "tTwW"})


def test_everything(tmp_path: Path) -> None:
    """Recursion, tail calls, co-routines, interrupts in user mode: kernel.S and user.c."""
    elf = compiled(tmp_path, "rv64imac")
    traced = trace(machine_with(elf), elf, instructions=30000)
    assert list(traced.history.pcs()) == traced.retired
    image = Image.from_elf(elf)
    traps: dict[int, list[tuple[int | None, int]]] = {}
    for event in traced.history.events:
        if event.kind is EventKind.TRAP and event.next_pc is not None and 0 < event.position < len(traced.retired):
            traps.setdefault(event.position, []).append((event.last_pc, event.next_pc))
    assert len(traps) > 10
    naive = NaiveCalls(image, starts_of(elf), traps)
    frames = CallFrames(traced.history, CallHistory(traced.history, image))
    deepest = 0
    for position, expected in enumerate(naive.frames(traced.retired)):
        if position % sparse(1):
            continue
        assert told(list(islice(frames.frames(position), 5))) == expected[:5]
        if position % 51 == 0:
            assert told(list(frames.frames(position))) == expected
        deepest = max(deepest, len(expected))
        for frame in expected[1:]:
            assert frame.left is not None and frame.left[0] < position
    assert deepest > 40


def test_breakpoints(tmp_path: Path) -> None:
    """All places where functions begin, one after the other, both ways."""
    elf = compiled(tmp_path, "rv32imac")
    traced = trace(machine_with(elf), elf)
    addresses, retired = frozenset(starts_of(elf)), traced.retired
    nearest = AddressSearch(traced.history)
    expected = [position for position, pc in enumerate(retired) if pc in addresses]
    assert len(expected) > 100
    forth, back = list[int](), list[int]()
    found = nearest.find(-1, 1, addresses)
    while found is not None:
        forth.append(found)
        found = nearest.find(found, 1, addresses)
    found = nearest.find(len(retired), -1, addresses)
    while found is not None:
        back.append(found)
        found = nearest.find(found, -1, addresses)
    assert forth == expected and back == expected[::-1]
