"""Which trace components take part: what a user chooses of a description, and what is made of it.

The expectations are the wording of docs/target-description.md, written out for one board.
"""

import pytest

from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode
from rvtrace_gdb.controlregs.trace_control.request import PibPins, SinkBuffer, TraceRequest
from rvtrace_gdb.session.description.file import parse
from rvtrace_gdb.session.description.model import Description
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.sources.hardware import Hardware

BOARD = """
[[component]]
name = "e0"
type = "encoder"
base = 0x1000
to = ["low"]
[[component]]
name = "e1"
type = "encoder"
base = 0x2000
hart = 1
to = ["low", "own"]
[[component]]
name = "e2"
type = "encoder"
base = 0x3000
hart = 2
to = ["pins"]
[[component]]
name = "low"
type = "funnel"
base = 0x4000
to = ["top"]
inputs = {e0 = 3, e1 = 1}
[[component]]
name = "top"
type = "funnel"
base = 0x5000
to = ["big", "pins", "bridge"]
[[component]]
name = "big"
type = "ram_sink"
base = 0x6000
mode = "SMEM"
start = 0x80000000
size = 0x1000
[[component]]
name = "own"
type = "ram_sink"
base = 0x7000
mode = "SRAM"
[[component]]
name = "pins"
type = "pib_sink"
base = 0x8000
mode = "parallel_4"
divider = 2
[[component]]
name = "bridge"
type = "atb_bridge"
base = 0x9000
id = 5
"""


class Nowhere:
    """Nothing may be read or written to make a graph."""


@pytest.fixture
def board() -> Description:
    return parse(BOARD, "b.toml")


@pytest.mark.parametrize(
    ("sinks", "harts", "line"),
    [
        (["ram7"], [], "there is no sink 'ram7' in the target description, it has big, own, pins, bridge"),
        ([], [3], "hart 3 has no encoder in the target description, it has those of harts 0 to 2"),
        (["own"], [0, 2], "no trace of hart 0 or 2 leads to own"),
    ],
)
def test_what_cannot_be_chosen(board: Description, sinks: list[str], harts: list[int], line: str) -> None:
    with pytest.raises(BadOption) as caught:
        Hardware.from_description(board, sinks, harts)
    assert str(caught.value) == line


def test_the_graph(board: Description) -> None:
    graph = Hardware.from_description(board, ["big", "pins"], [0]).graph(Nowhere(), {})  # type: ignore[arg-type]
    assert [component.name for component in graph.start_order] == ["big", "pins", "top", "low", "e0"]
    assert graph.edges == {("e0", "low"), ("low", "top"), ("top", "big"), ("top", "pins")}
    assert graph.inputs == {"low": {"e0": 3, "e1": 1}, "top": {"low": 0}}
    assert {component.name for component in graph.unused} == {"e1", "e2", "bridge"}, "e2 feeds the pins as well"


def test_what_the_sinks_are_asked_for(board: Description) -> None:
    request = Hardware.from_description(board, ["big", "own", "pins", "bridge"]).request(TraceRequest(stall=True))
    assert request.trace.stall
    assert request.buffers == {"big": SinkBuffer(0x8000_0000, 0x1000), "own": SinkBuffer(None, None)}
    assert request.pins == {"pins": PibPins(PibMode.PARALLEL_4, 2, None)}
    assert request.atb_ids == {"bridge": 5}
