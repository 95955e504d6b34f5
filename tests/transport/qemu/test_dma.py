"""Memory that a device writes while a program runs: what is declared so is not believed, and what is not shows."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.decode.reconstruction.facts import MemoryKind, MemoryRange
from rvtrace_gdb.session.capture.file import load
from rvtrace_gdb.session.capture.model import Capture
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.past.choice import past_of
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from tests.helpers.cross_compiler import HOME, compile_program, symbol_address
from tests.helpers.qemu10 import NAMES, X, register_dumps
from tests.transport.qemu.machine import arguments, recorded

RAM = MemoryRange(0x8000_0000, 64 << 20, MemoryKind.RAM)
PAGE = 4096


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dma")
    return compile_program(folder, HOME / "tests" / "programs" / "qemu" / "dma.c")


@pytest.fixture(scope="module")
def capture(elf: Path) -> Capture:
    recorded(elf, elf.parent)
    found = load(elf.parent / "recorded.rvt")
    assert found.ranges == (RAM,)
    return found


@pytest.fixture(scope="module")
def truth(elf: Path) -> list[dict[str, int]]:
    """The registers before each instruction, by QEMU's log of another run."""
    log = elf.parent / "registers.log"
    one = ["-accel", "tcg,one-insn-per-tb=on,thread=single", "-d", "exec,nochain,int,cpu", "-D", str(log)]
    subprocess.run(arguments(elf, *one), stdin=subprocess.DEVNULL, timeout=120, check=True)
    return list(register_dumps(log.read_text(encoding="latin-1")))


def past(capture: Capture, *ranges: MemoryRange) -> tuple[Past, SelectedHistory]:
    session = Session()
    session.open_capture(replace(capture, ranges=ranges), "dma", None)
    selected = session.selected(Context())
    found = past_of(session, selected)
    assert found is not None
    found.prepare()
    return found, selected


def compared(past: Past, selected: SelectedHistory, truth: list[dict[str, int]]) -> Iterator[tuple[int, str, bool]]:
    """Yield (position, register, whether it is right) of each known register of which the log says something."""
    dumps = iter(truth)
    for position, pc in enumerate(selected.history.pcs()):
        before = next((it for it in dumps if it["pc"] == pc), None)
        if before is None:
            return
        registers = past.registers(position)
        yield from (
            (position, name, registers[name] == before[number])
            for name, number in zip(NAMES, X, strict=True)
            if name in registers
        )


def test_what_a_device_may_write_is_not_known(elf: Path, capture: Capture, truth: list[dict[str, int]]) -> None:
    """Everything else is."""
    page = MemoryRange(symbol_address(elf, "written"), PAGE, MemoryKind.RAM, dma=True)
    found, selected = past(capture, RAM, page)
    claims = list(compared(found, selected, truth))
    assert not found.disagreements and all(right for *_, right in claims)
    asked = 31 * (claims[-1][0] + 1)
    assert 0.9 * asked < len(claims) < asked
    end = len(selected.history)
    assert found.memory(end, page.address, 2) == [None, None]
    assert found.memory(end, symbol_address(elf, "sum") + 4, 2) == [0, 0]


def test_a_device_that_is_not_declared_is_noticed(elf: Path, capture: Capture, truth: list[dict[str, int]]) -> None:
    """The program waits for the device, and goes on: with what it had stored itself, it would have waited on."""
    found, selected = past(capture, RAM)
    [(position, pc)] = {(it.position, it.pc) for it in found.disagreements}
    main = symbol_address(elf, "main")
    assert main < pc < main + 128 and selected.history.pc(position) == pc
    assert all(right for *_, right in compared(found, selected, truth)), "no memory is believed then"
