"""A session on a live target: what it shows is what the hart executed, whatever happens on the way.

The expectation is a second simulated hart, stepped instruction by instruction and never traced (which tests/simulated
compares with other simulators).
"""

import re
from pathlib import Path

import pytest

from rvtrace_gdb.console.gdb_driver.state import trace_state
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.errors import Busy, NotStopped
from rvtrace_gdb.session.rpc.protocol import reported_facts
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled, silent
from rvtrace_gdb.transport.openocd.errors import OpenOcdRefused
from rvtrace_gdb.transport.simulated.devices.component import EMPTY
from tests.console.status_lines import read
from tests.controlregs.interruptions import no_waiting
from tests.session.board import BUFFER, ENCODER, SINK, Board, CableOut, board

NOBODY: dict[str, str] = {}


@pytest.fixture
def demo(tmp_path: Path, busy_elf: Path) -> Board:
    return board(tmp_path, busy_elf)


@pytest.fixture
def session(demo: Board) -> Session:
    return Session(demo.connect, NOBODY)


def pcs(session: Session, context: Context) -> list[int]:
    history, _ = session.decoded(context)
    return list(history.pcs())


def text(lines: list[str]) -> str:
    """The lines, which programs are told the same by."""
    assert trace_state(reported_facts(lines)) == read(lines)
    return "\n".join(lines)


def test_status_does_not_disturb_and_does_not_decode_while_tracing(demo: Board, session: Session) -> None:
    context = demo.describe()
    session.start(context)
    demo.run(1000)
    lines = text(session.status(context))
    assert "target:   board (" in lines
    assert "\nhart:     halted\n" in lines
    assert "encoder:  encoder0 at 0x20000000: tracing, N-Trace 1.0 HTM, sync every " in lines
    assert re.search(r"sink:     ram0 at 0x20001000: SMEM 0x30000000, \d+ of 65536 bytes\n", lines)
    assert lines.endswith("history:  not read yet: `trace history` reads it")
    assert demo.blocks == []
    ran = len(pcs(session, context))
    assert f"history:  {ran} instructions, 0 gaps; " in text(session.status(context))


def test_a_wrapped_ring_shows_the_newest_part(demo: Board, session: Session, reference: list[int]) -> None:
    context = demo.describe(size=512)
    session.start(context)
    ran = 0
    for slice_ in (1000, 900, 15_000, 400, 3):
        ran += demo.run(slice_)
        shown = pcs(session, context)
        assert shown == reference[ran - len(shown) : ran]
    assert len(shown) > 300
    lines = text(session.status(context))
    assert "full, 512 bytes, older trace was overwritten" in lines
    assert "0 gaps" in lines


def test_stop_on_wrap_keeps_the_beginning(demo: Board, session: Session, reference: list[int]) -> None:
    context = demo.describe(size=512)
    lines = session.start(context, {"stop_on_wrap": True})
    assert "512 bytes, stops when full" in text(lines)
    for _ in range(3):
        demo.run(12_000)
        shown = pcs(session, context)
        assert 500 < len(shown) < 36_000
        assert shown == reference[: len(shown)]
    assert "full, 512 bytes, and stopped" in text(session.status(context))
    assert session.stop()[0] == "The trace had ended already."


def test_a_sink_with_its_own_memory(demo: Board, session: Session, reference: list[int]) -> None:
    context = demo.describe(mode="SRAM")
    assert "ram0: SRAM, 65536 bytes" in text(session.start(context))
    ran = demo.run(700)
    assert pcs(session, context) == reference[:ran]
    ran += demo.run(700)
    assert pcs(session, context) == reference[:ran]


def test_a_period_is_rounded_up_to_what_the_hardware_has(demo: Board, session: Session, reference: list[int]) -> None:
    context = demo.describe()
    assert "sync every 128 halfwords" in text(session.start(context, {"sync_period": 100}))
    ran = demo.run(5000)
    assert pcs(session, context) == reference[:ran]


def test_what_was_not_granted_is_said(demo: Board, session: Session) -> None:
    context = demo.describe()
    lines = session.start(context, {"stall": True})
    assert any(line.startswith("note:     ") and "stall" in line for line in lines)
    assert any("stall" in line for line in session.status(context))


# When the target is lost


def cut_after(demo: Board, reads: int, first: int, size: int = 0x1000) -> None:
    """From the *reads*-th access to [first, first + size) on, every access fails."""
    left = iter(range(reads))

    def broken(address: int) -> None:
        if first <= address < first + size and next(left, None) is None:
            raise CableOut

    demo.broken = broken


def mend(demo: Board) -> None:
    demo.broken = lambda address: None


@pytest.mark.parametrize("whole_blocks", [0, 1, 3])
def test_a_read_out_that_breaks_off_keeps_what_was_read(
    demo: Board, session: Session, reference: list[int], whole_blocks: int
) -> None:
    context = demo.describe()
    session.start(context)
    first = demo.run(500)
    assert pcs(session, context) == reference[:first]
    ran = first + demo.run(20_000)
    cut_after(demo, whole_blocks, BUFFER, 0x1_0000)
    listing = session.history("", 10, context)
    assert re.search(
        r"^warning: the trace is not complete: .* bytes of trace were read .*the cable is out", text(listing.lines)
    )
    shown = listing.end - 1
    assert shown >= first
    if whole_blocks:
        assert first < shown < ran
    assert [row[1] for row in session.rows(1, shown + 1)] == reference[:shown]
    lines = text(session.status(context))
    assert "the cable is out" in lines
    assert "bytes of ram0 could not be read" in lines
    mend(demo)
    assert pcs(session, context) == reference[:ran]
    assert "the cable is out" not in text(session.status(context))


@pytest.mark.parametrize("base", [ENCODER, SINK])
@pytest.mark.parametrize("accesses", range(0, 40, 3))
def test_a_target_lost_at_any_moment_loses_nothing_that_was_read(
    demo: Board, session: Session, reference: list[int], base: int, accesses: int
) -> None:
    context = demo.describe()
    session.start(context)
    first = demo.run(500)
    session.history("", 10, context)
    ran = first + demo.run(700)
    cut_after(demo, accesses, base)
    shown = pcs(session, context)
    assert shown in (reference[:first], reference[:ran])
    session.status(context)
    mend(demo)
    assert pcs(session, context) == reference[:ran]
    after = demo.run(300)
    assert pcs(session, context) == reference[: ran + after]


def test_an_interrupted_read_out_goes_on_tracing(demo: Board, session: Session, reference: list[int]) -> None:
    context = demo.describe()
    session.start(context)
    first = demo.run(500)
    session.history("", 10, context)
    ran = first + demo.run(20_000)

    def interrupt(label: str, done: int, total: int | None = None) -> None:
        if label == "reading trace" and done > 500:
            raise Cancelled

    with pytest.raises(Cancelled):
        session.history("", 10, context, interrupt)
    assert demo.machine.encoder.enabled
    ran += demo.run(500)
    assert pcs(session, context) == reference[:ran]


def test_a_trace_that_cannot_be_stopped_goes_on_and_is_stopped_later(
    demo: Board, session: Session, reference: list[int]
) -> None:
    """Reported of chips whose memory a debugger cannot reach while the hart runs or sleeps."""
    context = demo.describe()
    session.start(context)
    ran = demo.run(1000)

    def refuse(address: int) -> None:
        raise OpenOcdRefused("read_memory", "read_memory: failed to read memory", address)

    demo.broken = refuse
    with pytest.raises(NotStopped, match=r"^not stopped, tracing goes on: encoder0 at 0x20000000: trTeControl "):
        session.stop()
    assert demo.machine.encoder.enabled
    demo.broken = lambda address: None
    assert "encoder0 at 0x20000000: tracing, " in text(session.status(context))
    ran += demo.run(1000)
    assert session.stop()[0] == "Tracing stopped."
    assert pcs(session, context) == reference[:ran]
    assert "encoder0 at 0x20000000: off" in text(session.status(context))
    assert "cannot be" not in text(session.status(context))


def test_a_trace_that_cannot_be_stopped_does_not_keep_others_from_being_opened(
    demo: Board, session: Session
) -> None:
    context = demo.describe()
    session.start(context)
    demo.run(100)
    with pytest.raises(Busy):
        session.check_idle()

    def gone(address: int) -> None:
        raise CableOut

    demo.broken = gone
    with pytest.raises(NotStopped, match="the cable is out"):
        session.stop()
    session.check_idle()


def test_an_interrupted_stop_can_be_repeated(demo: Board, session: Session, reference: list[int]) -> None:
    context = demo.describe()
    session.start(context)
    ran = demo.run(20_000)

    def interrupt(label: str, done: int, total: int | None = None) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        session.stop(interrupt)
    assert session.stop(silent)[0] == "The trace had ended already."
    assert pcs(session, context) == reference[:ran]


def test_a_start_that_fails_half_way_leaves_the_trace_before(
    demo: Board, session: Session, reference: list[int]
) -> None:
    context = demo.describe()
    session.start(context)
    ran = demo.run(300)
    session.stop()
    cut_after(demo, 5, ENCODER)
    with pytest.raises(CableOut):
        session.start(context)
    assert demo.links[1].closed
    mend(demo)
    assert pcs(session, context) == reference[:ran]


def test_gaps_have_rows_of_their_own(demo: Board, session: Session, reference: list[int]) -> None:
    """The program runs on while nothing is traced: the encoder was switched off behind our back."""
    context = demo.describe()
    session.start(context)
    first = demo.run(200)
    session.history("", 10, context)
    demo.machine.encoder.write(0, 4, demo.machine.encoder.read(0, 4) & ~6)
    missed = demo.run(1000)
    session.history("", 10, context)  # which switches it on again
    second = demo.run(200)
    session.history("", 10, context)
    rows = session.rows(1, first + 1 + second + 1)
    [gap] = [row for row in rows if row[1] is None]
    assert gap[0] == first + 1 and len(gap) == 3 and gap[2]
    expected = [*reference[:first], GAP, *reference[first + missed : first + missed + second]]
    assert pcs(session, context) == expected


def test_what_was_not_sent_is_said_with_the_history_once(demo: Board, session: Session, reference: list[int]) -> None:
    """The sink never says that it is done."""
    context = demo.describe()
    session.start(context)
    demo.run(1000)
    demo.machine.ram_sink._never |= EMPTY
    note = "note:     ram0 at 0x20001000: trRamControl did not reach trRamEnable=0 trRamEmpty=1 within 1 s"
    with no_waiting():
        said = [line for line in session.history("", 10, context).lines if line.startswith(note)]
        assert len(said) == 1
        assert not any(line.startswith(note) for line in session.history("", 10, context).lines)
        shown = pcs(session, context)
    assert shown == reference[: len(shown)]


def test_a_buffer_where_no_memory_is(demo: Board, session: Session) -> None:
    """Not found out only when there is trace in it."""

    def refuse(address: int) -> None:
        if BUFFER <= address < BUFFER + 0x1_0000:
            raise OpenOcdRefused("read_memory", "failed to read memory", address)

    demo.broken = refuse
    said = text(session.start(demo.describe()))
    buffer = f"{BUFFER:#x} to {BUFFER + 0x1_0000:#x}"
    assert f"note:     ram0 at {SINK:#x}: its buffer {buffer} cannot be read: OpenOCD" in said
    assert said.endswith("; correct `start` and `size` in the target description")
