"""The facts that programs get of a trace are those in its lines: held against a reader of words (`status_lines`)."""

from pathlib import Path

import pytest

from rvtrace_gdb.console.gdb_driver.state import TraceState, trace_state
from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.rpc.protocol import reported_facts
from rvtrace_gdb.session.rpc.server import Methods
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import silent
from rvtrace_gdb.support.text import Line, Problem, warning
from tests.console.status_lines import read
from tests.helpers import reference_streams

ELF = reference_streams.FOLDER / "median.elf"
STREAM = reference_streams.FOLDER / "median.1.nex"


def of_methods(tmp_path: Path) -> Methods:
    assert main(["import", str(STREAM), "--elf", str(ELF), "-o", str(tmp_path / "x.rvt")]) == 0
    session = Session(environ={})
    session.open(tmp_path / "x.rvt", None)
    return Methods(session)


def test_a_capture(tmp_path: Path) -> None:
    methods = of_methods(tmp_path)
    for method, params in (("status", {"context": {}}), ("open", {"path": str(tmp_path / "x.rvt")})):
        answer = methods.call(method, params, silent)
        state = trace_state(answer["state"])
        assert state == read(answer["lines"]) and state.captured == STREAM.stat().st_size
    assert methods.call("save", {"path": str(tmp_path / "y.rvt"), "context": {}}, silent).keys() == {"lines"}


def test_nothing_is_traced() -> None:
    answer = Methods(Session(environ={})).call("status", {"context": {}}, silent)
    assert answer["state"]["nothing"] and trace_state(answer["state"]) == TraceState()


@pytest.mark.parametrize(
    ("lines", "state"),
    [
        (["plain", Line("x")], {}),
        ([Line("a", filled=(5, 10)), Line("b", filled=(7, 0), unread=3)], {"captured": 12, "size": 10, "unread": 3}),
        ([Line("a", records=(1, 16)), Line("b", records=(2, 16))], {"records": {"there": 3, "depth": 32}}),
        ([Line("a", encoders=[("ctr0", "stopped")]), Line("b", encoders=[("ctr0", "frozen")])],
         {"encoders": [{"name": "ctr0", "state": "frozen"}]}),
        ([warning("it is not complete", lost="so"), Line("c", ended=True)], {"ended": 1, "lost": ["so"]}),
    ],
)  # fmt: skip
def test_facts_of_several_lines(lines: list[str], state: dict[str, object]) -> None:
    assert reported_facts(lines) == state


def test_a_problem_is_a_line_of_its_kind() -> None:
    assert isinstance(warning("x"), Problem) and warning("x") == "warning: x"
