"""`trace start` with filters: what the options ask for, and that the history then holds that and nothing else.

What ran comes from the hart's own list, which no filter sees; where functions are, from nm.
"""

import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.controlregs.trace_control.filters_and_triggers import Filter
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.sources.options import filter_of
from rvtrace_gdb.transport.simulated.devices.filters import FilterUnits
from rvtrace_gdb.transport.simulated.machine import build
from tests.helpers.amounts import LONG
from tests.helpers.cross_compiler import demo
from tests.session.board import DEMO, SMALL_RAM, Board
from tests.transport.simulated.devices.rig import Log
from tests.transport.simulated.encoder.traces import compiled

M = 3
Places = dict[str, tuple[int, int]]


def symbols(elf: Path) -> Places:
    """Functions with their sizes."""
    out = subprocess.run(["riscv64-unknown-elf-nm", "-S", elf], check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in out.splitlines()]
    return {f[3]: (int(f[0], 16), int(f[0], 16) + int(f[1], 16)) for f in lines if len(f) == 4 and f[2] in "tT"}


# Options


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"range": True}, "range is True, it must be a list"),
        ({"range": [5]}, "range has 5, it must have pairs of addresses"),
        ({"range": [[5, "6"]]}, "range has [5, '6'], it must have pairs of addresses"),
        ({"range": [[True, 6]]}, "range has [True, 6], it must have pairs of addresses"),
        ({"range": [[8, 8]]}, "the range 0x8,0x8 has no address in it: give FROM,TO with TO after the last one"),
        ({"range": [[-2, 8]]}, "the range -0x2,0x8 has no address in it: give FROM,TO with TO after the last one"),
        ({"priv": ["x"]}, "priv has 'x', it must have some of u, s, m, vu, vs"),
        ({"priv": [["u"]]}, "priv has ['u'], it must have some of u, s, m, vu, vs"),
        ({"function": ["main"]}, "function has 'main', it must have pairs of a name and an address"),
        ({"function": [["main", 16]]}, "main: the program has no symbol at 0x10 that gives its end: give -range"
         " FROM,TO"),
    ],
)  # fmt: skip
def test_what_is_no_filter(options: dict[str, Any], line: str) -> None:
    for image in (None, Image.from_elf(DEMO)):
        with pytest.raises(BadOption) as caught:
            filter_of(options, image)
        assert str(caught.value) == line


def test_functions_end_where_their_symbols_do(tmp_path: Path) -> None:
    elf = demo(tmp_path)
    image = Image.from_elf(elf)
    known = {name: place for name, place in symbols(elf).items() if name in ("main", "fib", "on_trap", "classify")}
    assert len(known) == 4
    for name, (start, end) in known.items():
        assert filter_of({"function": [[name, start]]}, image) == Filter(((start, end),))
        with pytest.raises(BadOption, match="has no symbol at"):
            filter_of({"function": [[name, start + 2]]}, image)


# The whole session


ARCHITECTURES = ["rv64imac", "rv32imac"]
RUNS = [("rv64imac", "ntrace", 1), ("rv64imac", "etrace", 7), ("rv32imac", "ntrace", 7), ("rv32imac", "etrace", 1)]
"""Any two of architecture, format, and how often the trace is read; in the long run all three with each other."""
if LONG:
    RUNS = [*product(ARCHITECTURES, ["ntrace", "etrace"], [1, 7])]
each_run = pytest.mark.parametrize(("kernel", "format_", "pauses"), RUNS, indirect=["kernel"])
each_architecture = pytest.mark.parametrize("kernel", ARCHITECTURES, indirect=True)


@pytest.fixture
def kernel(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A kernel in machine mode under tasks in user mode."""
    return compiled(tmp_path, request.param)


def board_with(elf: Path, folder: Path, units: int) -> Board:
    """A board whose encoder has so many filters and comparators."""
    machine = build(elf, memory_map=SMALL_RAM, filters=FilterUnits(filters=units, comparators=units))
    machine.halt_at_start()
    return Board(machine, elf, folder)


def listed(board: Board, pauses: int = 1, **options: Any) -> tuple[list[int], Log]:
    """The instructions in the history, and what ran. *pauses*: how often the hart halts and the trace is read."""
    log = Log(M, 0)
    board.machine.encoder.watch = log
    session, context = Session(board.connect, {}), board.describe()
    session.start(context, options)
    for _ in range(pauses):
        board.run(12_000 // pauses)
        history, _ = session.decoded(context)
    assert not [event for event in history.events if event.kind.value in ("mismatch", "loss", "overflow")]
    return [pc for pc in history.pcs(0, len(history)) if pc != GAP], log


def ran(log: Log, *ranges: tuple[int, int], privileges: tuple[int, ...] = (0, 3)) -> list[int]:
    """Of what the hart ran, what was asked for."""
    inside = [step.pc for step in log.steps if step.trap is None and step.privilege in privileges]
    return [pc for pc in inside if not ranges or any(start <= pc < end for start, end in ranges)]


@each_run
def test_privilege_modes(kernel: Path, tmp_path: Path, format_: str, pauses: int) -> None:
    for word, number in (("u", 0), ("m", 3)):
        board = board_with(kernel, tmp_path, 2)
        pcs, log = listed(board, pauses, priv=[word], format=format_)
        wanted = ran(log, privileges=(number,))
        assert 400 < len(wanted) < len(log.steps) - 400
        assert pcs == wanted


@each_architecture
def test_what_is_in_force_is_said(kernel: Path, tmp_path: Path) -> None:
    board = board_with(kernel, tmp_path, 2)
    session, context = Session(board.connect, {}), board.describe()
    line = "note:     encoder0 traces only 0x80000000 to 0x800000ff in mode U"
    assert line in session.start(context, {"range": [[0x8000_0000, 0x8000_0100]], "priv": ["u"]})
    assert line in session.status(context)
    assert not [line for line in session.start(context, {}) if "only" in line]
    assert board.machine.bus.read(0x2000_000C, 4) == 0
