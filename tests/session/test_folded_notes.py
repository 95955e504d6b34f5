"""What is said of several encoders alike is one line."""

from rvtrace_gdb.session import report
from rvtrace_gdb.support.text import warning


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
    assert report.folded(kept) == kept
    problems = [warning("encoder0: gone"), warning("encoder1: gone")]
    assert report.notes(problems) == problems
