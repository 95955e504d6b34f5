"""Harts that are off: what needs their power is not touched, and the others are traced.

The simulated components of a hart without power answer no access, and the test counts accesses to them.
"""

from pathlib import Path

import pytest

from rvtrace_gdb.session.errors import BadOption, HartUnreachable
from rvtrace_gdb.session.queries.hardware import info, registers
from rvtrace_gdb.session.queries.hardware.registers import RegisterRequest
from tests.session.sources import coresight_chip
from tests.session.sources.coresight_chip import NOBODY, chip, program


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program(tmp_path_factory.mktemp("power"))


def test_harts_that_are_off_are_left_out_with_a_line_each(tmp_path: Path, elf: Path) -> None:
    board, session, context = chip(tmp_path, elf, (0, 3))
    lines = session.start(context)
    assert [line for line in lines if "is off" in line] == [
        "note:     hart 0 is off (unavailable): it is not traced, and encoder0 and bridge0 are not touched",
        "note:     hart 3 is off (unavailable): it is not traced, and encoder3 and bridge3 are not touched",
    ]
    assert [line.split(":")[1].strip() for line in lines if line.startswith("tracing")] == ["encoder1", "encoder2"]
    board.go_on(4000)
    assert set(session.capture().sinks[0].atb_ids) == {"encoder1", "encoder2"}
    session.status(context)
    session.stop()
    assert board.touched == []


def test_a_hart_that_goes_off_ends_its_own_trace_alone(tmp_path: Path, elf: Path) -> None:
    board, session, context = chip(tmp_path, elf, ())
    session.start(context)
    board.go_on(4000)
    history, _ = session.decoded(context)
    assert history.instructions > 100
    before = len(session.capture().sinks[0].data)
    board.machine.switch_power(1, False)
    board.go_on(4000)
    said = "\n".join(session.status(context))
    assert "hart 1 went off while it was traced: its trace ends there, what was stored is kept" in said
    session.decoded(context)
    board.go_on(4000)
    session.decoded(context)
    assert len(session.capture().sinks[0].data) > before
    session.stop()
    assert board.touched == []
    assert session.live is not None and session.live.failure is None


def test_no_hart_that_is_on(tmp_path: Path, elf: Path) -> None:
    board, session, context = chip(tmp_path, elf, (2,))
    with pytest.raises((BadOption, HartUnreachable)):
        session.start(context, {"harts": [2]})
    assert board.touched == [] and board.writes == []


def test_registers_and_info_do_not_touch_them(tmp_path: Path, elf: Path) -> None:
    board, session, context = chip(tmp_path, elf, (3,))
    lines = info.info(session, context, connect=board.connect, environ=NOBODY)
    assert any("not read: hart 3 is off (unavailable)" in line for line in lines)
    shown = registers.show(session, context, RegisterRequest(), connect=board.connect, environ=NOBODY).lines
    assert "  warning: not read: hart 3 is off (unavailable)" in shown
    assert board.touched == []


def test_a_hart_that_powers_what_others_need(tmp_path: Path, elf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the funnels of the SpacemiT K3, which have the power of the first hart of their cluster."""
    powered = coresight_chip.DESCRIBED.replace("name = 'cluster1'\n", "name = 'cluster1'\nhart = 2\n")
    monkeypatch.setattr(coresight_chip, "DESCRIBED", powered)
    board, session, context = chip(tmp_path, elf, ())
    session.start(context)
    board.go_on(4000)
    board.machine.switch_power(2, False)
    said = "\n".join(session.status(context))
    assert "hart 2 went off while it was traced: its trace ends there, what was stored is kept" in said
    assert "the trace of encoder3 ends there, too: it went through what hart 2 powers" in said
    session.stop()
    assert board.touched == []
