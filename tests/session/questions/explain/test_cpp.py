"""What is said of a program in C++: names with their scopes, what gives up, a null object; on both sorts of trace."""

from pathlib import Path

import pytest

from rvtrace_gdb.rows.explain_rows import ExplainedFinding
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.questions.explain.explain import explanations
from rvtrace_gdb.session.session import Session
from tests.helpers.example_captures import CXX
from tests.session.questions.explain.mutants import FOLDER
from tests.session.questions.explain.test_rtos import captured

SOURCE = FOLDER / "gives_up.cpp"
PURE, NULL, CHECK = 1, 2, 3


def line(text: str) -> str:
    """Where a text is in the program."""
    rows = SOURCE.read_text().splitlines()
    [found] = [number for number, row in enumerate(rows, 1) if text in row]
    return f"{SOURCE.name}:{found}"


def findings(folder: Path, fault: int, *, etrace: bool) -> list[ExplainedFinding]:
    session = Session()
    session.open(captured(folder, SOURCE, f"-DFAULT={fault}", *CXX, etrace=etrace, run=3000), None)
    [found] = explanations(session, Context())
    session.close()
    return found.findings


@pytest.mark.parametrize("etrace", [False, True], ids=["N-Trace", "E-Trace"])
@pytest.mark.parametrize(
    ("fault", "kind", "said", "at"),
    [
        (PURE, "aborted", "the program gave up: __cxa_pure_virtual()", "known = area();"),
        (NULL, "wild-jump", "leads to 0x0: address 0", "found += it->area();"),
        (CHECK, "aborted", "the program gave up: core::panicking::panic_fmt()", "core::panicking::panic_fmt();"),
    ],
)
def test_what_gives_up_and_where(tmp_path: Path, fault: int, kind: str, said: str, at: str, etrace: bool) -> None:
    """There is no handler: the trap of the null object leads to address 0, where mtvec is after reset."""
    first = findings(tmp_path, fault, etrace=etrace)[0]
    assert first.kind == kind and said in first.text
    assert first.place is not None and first.place.line == line(at)


@pytest.mark.parametrize("etrace", [False, True], ids=["N-Trace", "E-Trace"])
def test_nothing_is_said_of_what_is_not_wrong(tmp_path: Path, etrace: bool) -> None:
    assert findings(tmp_path, 0, etrace=etrace) == []
