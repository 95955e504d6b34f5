"""What is said of several encoders alike is one line."""

from dataclasses import replace

from rvtrace_gdb.decode.coresight.frames import FrameForm
from rvtrace_gdb.session import report
from rvtrace_gdb.session.capture.model import CapturedEncoder
from rvtrace_gdb.session.rpc.protocol import reported_facts
from rvtrace_gdb.support.numbered import folded
from rvtrace_gdb.support.text import warning
from tests.session.captures import SMALL


def test_equal_notes_of_encoders_that_follow_each_other_are_one() -> None:
    notes = [text for hart in range(3) for text in (f"encoder{hart} has no HTM; using BTM", f"encoder{hart}: slow")]
    assert report.notes([*notes, "encoder4: slow", "ram0: 4 bytes are left out"]) == [
        "note:     encoder0 to encoder2: no HTM; using BTM",
        "note:     encoder0 to encoder2: slow",
        "note:     encoder4: slow",
        "note:     ram0: 4 bytes are left out",
    ]


def test_what_differs_stays() -> None:
    kept = ["encoder0 has no HTM; using BTM", "encoder1 has no data trace", "encoder2 has no HTM; using BTM"]
    assert folded(kept) == kept
    problems = [warning("encoder0: gone"), warning("encoder1: gone")]
    assert report.notes(problems) == problems


def encoder(number: int, hart: int) -> CapturedEncoder:
    [one] = SMALL.encoders
    return replace(one, hart=hart, in_force=replace(one.in_force, name=f"encoder{number}"))


def test_encoders_whose_harts_have_their_numbers_are_one() -> None:
    """Programs are told the state of each."""
    lines = report.encoders([encoder(number, number + 4) for number in range(3)], lambda _: ": N-Trace", "tracing")
    assert lines == ["encoder:  encoder0 to encoder2, harts 4 to 6: N-Trace"]
    each = [{"name": f"encoder{number}", "state": "tracing"} for number in range(3)]
    assert reported_facts(lines) == {"encoders": each}
    crossed = [encoder(number, 2 - number) for number in range(3)]
    assert len(report.encoders(crossed, lambda _: ": N-Trace")) == 3, "which is of which hart is said"


def test_atb_ids() -> None:
    """Those that follow each other as the encoders do."""
    [sink] = SMALL.sinks
    for ids, text in (
        ({"encoder0": 1, "encoder1": 2, "encoder2": 3}, "encoder0 to encoder2 0x01 to 0x03"),
        ({"encoder0": 1, "encoder1": 2, "encoder2": 4}, "encoder0 0x01, encoder1 0x02, encoder2 0x04"),
        ({"own": 0x10}, "own 0x10"),
    ):
        framed = replace(sink, frames=FrameForm.MEMORY, atb_ids=ids)
        [line] = (line for line in report.opened(replace(SMALL, sinks=(framed,))) if line.startswith("sink:"))
        assert line.endswith(f", CoreSight frames (ATB IDs: {text})")
