"""In which order the components of a trace through CoreSight are set up, stopped and given back.

Receivers before senders at the start, or trace has nowhere to go; senders before receivers at the end, or what is under
way in them is lost. What is expected is the graph of the description, K3's in small.
"""

from pathlib import Path

import pytest

from rvtrace_gdb.controlregs.errors import UnsupportedVersion
from tests.session.sources.coresight_chip import Chip, chip, program

UPWARDS = ("etr0", "etf0", "main", "cluster", "bridge", "encoder")
"""From the sink to the harts."""
CLAIMCLR, LSR = 0xFA4, 0xFB4


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program(tmp_path_factory.mktemp("order"))


def written(board: Chip, begin: int) -> list[int]:
    """The places in `UPWARDS` of the components that were written to, from write number *begin* on, in order."""
    bases = {part.base: next(n for n, name in enumerate(UPWARDS) if part.name.startswith(name))
             for part in board.machine.wiring.parts}  # fmt: skip
    return [bases[address & ~0xFFF] for address in board.writes[begin:] if address & ~0xFFF in bases]


def test_started_from_the_sink_up_and_stopped_from_the_harts_down(tmp_path: Path, elf: Path) -> None:
    board, session, context = chip(tmp_path, elf, ())
    session.start(context)
    order = written(board, 0)
    last = [max(n for n, place in enumerate(order) if place == each) for each in range(len(UPWARDS))]
    assert last == sorted(last)  # the last write of each, which lets it go, comes after that of what it feeds
    board.go_on(3000)
    begin = len(board.writes)
    session.decoded(context)
    stopped = written(board, begin)
    first = [stopped.index(each) for each in range(len(UPWARDS))]
    assert first == sorted(first, reverse=True)
    read = stopped[first[0] :]
    assert read.index(1) > 0 and session.capture().sinks[0].data  # and then all go on, from the sink up
    session.stop()
    bus = board.machine.bus
    for part in board.machine.wiring.parts:
        if part.kind.startswith("coresight"):
            assert bus.read(part.base + CLAIMCLR, 4) == 0 and bus.read(part.base + LSR, 4) == 3


def test_what_was_started_is_given_back_when_the_rest_fails(tmp_path: Path, elf: Path) -> None:
    board, session, context = chip(tmp_path, elf, ())
    board.machine.components["encoder2"]._impl = 0x107  # version 7
    with pytest.raises(UnsupportedVersion, match=r"^encoder2 at 0xd9012000: trace control interface 7\.0"):
        session.start(context)
    for name in ("etr0", "etf0", "main"):
        base = next(part.base for part in board.machine.wiring.parts if part.name == name)
        assert board.machine.bus.read(base + CLAIMCLR, 4) == 0 and board.machine.bus.read(base + LSR, 4) == 3
