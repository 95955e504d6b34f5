"""`trace regs`: registers of live components, of captures, of Control Transfer Records.

Bits and meanings are those of the Trace Control Interface 1.0 and of Control Transfer Records 1.0.
"""

import re
from pathlib import Path

import pytest

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description.model import DescriptionError
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.queries.hardware import registers
from rvtrace_gdb.session.queries.hardware.registers import RegisterRequest
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled, Progress, silent
from tests.session.board import BUFFER, ENCODER, SINK, Board, board
from tests.session.queries.hardware.register_target import Connect, Registers, Unplugged, absent, described

NOBODY: dict[str, str] = {}
E, R, F = 0x1000, 0x2000, 0x3000
ON = 0x0131_006F  # trTeControl: HTM, N-Trace, tracing, a synchronisation every 128 messages
SIMPLE = ("encoder e 0x1000", 'ram_sink r 0x2000 mode="SRAM"')
TRACING = {E: ON, E + 4: 0x0001_0101, E + 8: 0x1002_0008, R: 0x0B, R + 4: 0x0101_0901, R + 0x18: 0xFFC}


def show(
    connect: Connect, context: Context, *names: str, everything: bool = False, progress: Progress = silent
) -> list[str]:
    """As with nothing being traced."""
    wish = RegisterRequest(names, everything)
    return registers.show(Session(connect, NOBODY), context, wish, progress, connect, NOBODY).lines


def test_all_components_in_words(tmp_path: Path) -> None:
    target = Registers(dict(TRACING))
    assert show(target.connect, described(tmp_path, *SIMPLE)) == [
        "e at 0x1000: trace encoder, hart 0",
        "  trTeControl 0x0131006f: trTeActive=1 trTeEnable=1 trTeInstTracing=1 trTeEmpty=1 trTeInstMode=6 (htm) "
        "trTeContext=0 trTeInstTrigEnable=0 trTeInstStallOrOverflow=0 trTeInstStallEna=0 (drop_and_resync) "
        "trTeInhibitSrc=0 trTeInstSyncMode=1 (messages) trTeInstSyncMax=3 (every 128) trTeFormat=1 (n_trace)",
        "  trTeImpl 0x00010101: trTeVerMajor=1 trTeVerMinor=0 trTeCompType=1 (encoder) trTeProtocolMajor=1 "
        "trTeProtocolMinor=0 trTeVendor=0",
        "  trTeInstFeatures 0x10020008: trTeInstNoAddrDiff=0 trTeInstNoTrapAddr=0 trTeInstEnSequentialJump=0 "
        "trTeInstEnImplicitReturn=1 trTeInstEnBranchPrediction=0 trTeInstEnJumpTargetCache=0 "
        "trTeInstImplicitReturnMode=0 (unreported) trTeInstEnRepeatedHistory=0 trTeInstEnAllJumps=0 "
        "trTeInstExtendAddrMSB=0 trTeSrcID=2 trTeSrcBits=1",
        "",
        "r at 0x2000: RAM sink",
        "  trRamControl 0x0000000b: trRamActive=1 trRamEnable=1 trRamEmpty=1 trRamMode=0 (sram) trRamStopOnWrap=0 "
        "trRamMemFormat=0 (plain_bytes) trRamAsyncFreq=0 (off)",
        "  trRamImpl 0x01010901: trRamVerMajor=1 trRamVerMinor=0 trRamCompType=9 (ram_sink) trRamHasSRAM=0 "
        "trRamHasSMEM=0 trRamVendor=1 reserved=0x10000",
        "  trRamStartLow 0x00000000",
        "  trRamLimitLow 0x00000ffc",
        "  trRamWPLow 0x00000000: trRamWrap=0 trRamWPLow=0x0",
    ]
    assert not target.writes and target.open == 0


def test_trace_that_waits_in_the_sink_is_left_there(tmp_path: Path) -> None:
    """Reading trRamData (0x040) advances the read pointer."""
    target = Registers(dict(TRACING))
    show(target.connect, described(tmp_path, *SIMPLE), everything=True)
    assert R + 0x40 not in target.reads and R + 0x28 in target.reads


def test_a_sink_where_an_encoder_should_be_is_not_read_as_one(tmp_path: Path) -> None:
    """At 0x040 an encoder has trTsControl."""
    target = Registers({E: 0x0B, E + 4: 0x901})
    lines = show(target.connect, described(tmp_path, *SIMPLE), "e")
    assert lines[:3] == ["e at 0x1000: trace encoder, hart 0", "  0x000 0x0000000b", "  0x004 0x00000901"]
    assert lines[3].startswith("  warning: e at 0x1000: this is a ram sink, not a trace encoder")
    assert set(target.reads) == {E, E + 4} and not target.writes


@pytest.mark.parametrize("impl", [0, 0xFFFF_FFFF])
def test_where_nobody_answers(impl: int, tmp_path: Path) -> None:
    target = Registers({E: 1 | impl, E + 4: impl})
    lines = show(target.connect, described(tmp_path, *SIMPLE), "e")
    assert lines[-1].startswith("  warning: e at 0x1000: no trace encoder answers here")


def test_in_reset_other_registers_are_not_read(tmp_path: Path) -> None:
    target = Registers({E: 8, E + 4: 0x101})
    _, control, why = show(target.connect, described(tmp_path, *SIMPLE), "e")
    assert control.startswith("  trTeControl 0x00000008: trTeActive=0 ") and why.startswith("  it is in reset")
    assert set(target.reads) == {E}


def test_names_choose_and_come_once(tmp_path: Path) -> None:
    target = Registers(dict(TRACING))
    lines = show(target.connect, described(tmp_path, *SIMPLE), "r", "e", "r")
    assert [line.split()[0] for line in lines if re.match(r"\S", line)] == ["r", "e"]


def test_what_is_0_is_shown_when_everything_is_wanted(tmp_path: Path) -> None:
    """12 registers of the encoder, and of its 16 filters and 8 comparators 7 and 5 each."""
    target, context = Registers(dict(TRACING)), described(tmp_path, *SIMPLE)
    few, all_ = show(target.connect, context, "e"), show(target.connect, context, "e", everything=True)
    assert len(few) == 1 + 3 and len(all_) == 1 + 12 + 16 * 7 + 8 * 5
    assert "  trTeComp7SMatchHigh 0x00000000" in all_


def test_a_register_that_is_refused(tmp_path: Path) -> None:
    target = Registers(dict(TRACING), broken=(E + 8, R))
    lines = show(target.connect, described(tmp_path, *SIMPLE))
    assert "  trTeInstFeatures: cannot be read: bus error" in lines
    assert lines[-2:] == ["r at 0x2000: RAM sink", "  warning: cannot be read: bus error"]


def test_the_target_is_gone(tmp_path: Path) -> None:
    target, context = Registers(dict(TRACING), reads_left=9), described(tmp_path, *SIMPLE)
    with pytest.raises(Unplugged):
        show(target.connect, context)
    assert target.open == 0
    with pytest.raises(Unplugged):
        show(absent, context)


def test_it_can_be_interrupted(tmp_path: Path) -> None:
    def watch(label: str, done: int, total: int | None = None) -> None:
        assert label == "reading registers of e (registers)"
        if done:
            raise Cancelled

    target = Registers(dict(TRACING))
    with pytest.raises(Cancelled):
        show(target.connect, described(tmp_path, *SIMPLE), progress=watch)
    assert target.open == 0 and len(target.reads) < 10


def test_names_there_are_not(tmp_path: Path) -> None:
    target, context = Registers({}), described(tmp_path, *SIMPLE, name="board")
    with pytest.raises(BadOption, match=r"^there is no component 'x' in \S+board.toml: there are e, r$"):
        show(target.connect, context, "e", "x")
    assert not target.reads


def test_without_a_description() -> None:
    with pytest.raises(DescriptionError, match=r"^no target description: "):
        show(absent, Context())
    assert registers.names(Session(absent, NOBODY), Context(), NOBODY) == []


def test_names_for_completion(tmp_path: Path) -> None:
    assert registers.names(Session(absent, NOBODY), described(tmp_path, *SIMPLE), NOBODY) == ["e", "r"]


VERSION_0 = ("encoder e 0x1000 version=0 to=['f']", "funnel f 0x3000 version=0", 'ram_sink s - mode="SRAM" inside="f"')


def test_version_0_has_its_own_registers(tmp_path: Path) -> None:
    """SiFive's proposal of 2020: the sink of a funnel is part of it, at 0x010; teImpl[3:0] is 0."""
    target = Registers({E: 0x8000_0071, E + 4: 0x0204_0120, F: 0x7000_0003, F + 4: 0x10, F + 0x10: 0x8000_0000})
    context = described(tmp_path, *VERSION_0)
    lines = show(target.connect, context)
    text = "\n".join(lines)
    assert "e at 0x1000: pre-ratified trace encoder, hart 0\n  teControl 0x80000071: teActive=1 " in text
    assert "teInstruction=7 (htm_optimized)" in text and "teSink=8 (funnel)" in text
    assert "f at 0x3000: pre-ratified trace funnel\n  tfControl 0x70000003: tfActive=1 tfEnable=1 " in text
    assert "  teSinkBase 0x80000000" in text and "\ns at" not in text and "warning" not in text
    assert show(target.connect, context, "s") == lines[lines.index("") + 1 :]
    assert F + 0x24 not in target.reads  # teSinkData


def test_another_version_than_the_description_says(tmp_path: Path) -> None:
    target = Registers({E: 0x71, E + 4: 0x0204_0120, R: 0x0B, R + 4: 0x921})
    encoder, sink = "\n".join(show(target.connect, described(tmp_path, *SIMPLE))).split("\n\n")
    assert encoder.startswith("e at 0x1000: pre-ratified trace encoder, hart 0\n  teControl ")
    assert encoder.endswith("\n  warning: its interface is of version 0, the target description says 1")
    assert sink.endswith("trace control interface 1.2 is a newer one, used as 1.0 (tr??Impl reads 0x00000921)")


def test_a_version_nobody_knows(tmp_path: Path) -> None:
    target = Registers({E: 1, E + 4: 0x0001_0102})
    lines = show(target.connect, described(tmp_path, *SIMPLE), "e")
    assert lines[1:3] == ["  0x000 0x00000001", "  0x004 0x00010102"]
    assert lines[3].startswith("  warning: e at 0x1000: trace control interface 2.0, newer and not supported")


# A session with a trace


@pytest.fixture
def demo(tmp_path: Path, busy_elf: Path) -> Board:
    return board(tmp_path, busy_elf)


def of_board(demo: Board, session: Session, context: Context, *names: str, live: bool = False) -> list[str]:
    return registers.show(session, context, RegisterRequest(names, live=live), silent, demo.connect, NOBODY).lines


def value(lines: list[str], register: str) -> int:
    found = [line for line in lines if line.startswith(f"  {register} ")]
    assert len(found) == 1
    return int(found[0].split()[1].rstrip(":"), 16)


def test_a_look_does_not_disturb_a_trace(demo: Board, reference: list[int]) -> None:
    session, context = Session(demo.connect, NOBODY), demo.describe()
    session.start(context)
    ran = demo.run(500)
    written = len(demo.writes)
    lines = of_board(demo, session, context)
    assert lines[0] == f"encoder0 at {ENCODER:#x}: trace encoder, hart 0"
    assert lines[lines.index("") + 1] == f"ram0 at {SINK:#x}: RAM sink"
    assert value(lines, "trTeControl") & 0b111 == 0b111 and value(lines, "trRamStartLow") == BUFFER
    assert len(demo.writes) == written and demo.links[-1].closed
    ran += demo.run(500)
    history, _ = session.decoded(context)
    assert list(history.pcs()) == reference[:ran]


def test_after_the_trace_was_stopped(demo: Board) -> None:
    session, context = Session(demo.connect, NOBODY), demo.describe()
    session.start(context)
    session.stop()
    assert value(of_board(demo, session, context, "encoder0"), "trTeControl") & 0b111 == 0b001


def test_a_capture_has_those_that_were_read_back(demo: Board, tmp_path: Path) -> None:
    session, context = Session(demo.connect, NOBODY), demo.describe()
    session.start(context, {"timestamps": True, "implicit_return": "partial"})
    live = of_board(demo, session, context)
    demo.run(100)
    file = tmp_path / "it.rvt"
    session.save(file, context)
    session.stop()
    session.open(file, str(demo.elf))
    lines = of_board(demo, session, context)
    assert lines[0] == f"encoder0 at {ENCODER:#x}: trace encoder, hart 0, in the capture"
    for register in ("trTeControl", "trTeImpl", "trTeInstFeatures", "trTsControl", "trRamImpl", "trRamStartLow",
                     "trRamLimitLow"):  # fmt: skip
        assert value(lines, register) == value(live, register), register
    assert not any("trRamWP" in line for line in lines)
    assert value(of_board(demo, session, context, live=True), "trRamWPLow") > BUFFER
    with pytest.raises(BadOption, match="no component 'x' in this capture: there are encoder0, ram0; `trace regs -liv"):
        of_board(demo, session, context, "x")
    assert registers.names(session, context, NOBODY) == ["encoder0", "ram0"]
