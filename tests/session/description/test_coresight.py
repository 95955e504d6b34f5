"""CoreSight components in a target description: their keys, what may feed what, and what is refused."""

import pytest

from rvtrace_gdb.session.description.file import parse
from rvtrace_gdb.session.description.model import (
    AtbBridgeDescription,
    AtbLinkDescription,
    CoresightFunnelDescription,
    CoresightReplicatorDescription,
    Description,
    DescriptionError,
    TmcLinkDescription,
    TmcSinkDescription,
)
from rvtrace_gdb.session.description.tables import text
from rvtrace_gdb.session.sources.hardware import Topology

FILE = "board.toml"
ETR = "mode = 'SMEM'\nstart = 0x170000000\nsize = 0x10000"


def component(name: str, kind: str, base: int, more: str = "") -> str:
    return f"[[component]]\nname = '{name}'\ntype = '{kind}'\nbase = {base:#x}\n{more}\n"


def cluster(number: int, harts: int) -> str:
    """One cluster as the SpacemiT K3 has it: encoders, each with a bridge, and a funnel behind the bridges."""
    base, first = 0xD900_0000 + 0x1_0000 * number, harts * number
    made = [component(f"cluster{number}", "funnel", base, "to = ['main']")]
    for hart in range(first, first + harts):
        place = base + 0x2000 * (1 + hart - first)
        made += [
            component(f"encoder{hart}", "encoder", place, f"hart = {hart}\nto = ['bridge{hart}']"),
            component(
                f"bridge{hart}", "atb_bridge", place + 0x1000,
                f"hart = {hart}\nid = {hart + 1}\nto = ['cluster{number}']",
            ),
        ]  # fmt: skip
    return "".join(made)


BUS = "".join([
    component("main", "coresight_funnel", 0xD904_2000, "to = ['etf0']\ninputs = {cluster0 = 0, cluster1 = 3}"),
    component("etf0", "coresight_tmc", 0xD904_3000, "mode = 'FIFO'\nto = ['etr0']"),
    component("etr0", "coresight_tmc", 0xD904_4000, ETR),
])  # fmt: skip
BOARD = "[target]\npower = 'hart'\n" + cluster(0, 2) + cluster(1, 2) + BUS


def described(document: str = BOARD) -> Description:
    return parse(document, FILE)


def refused(document: str) -> str:
    with pytest.raises(DescriptionError) as error:
        parse(document, FILE)
    return str(error.value)


def test_a_board_with_coresight_is_read() -> None:
    board = described()
    links = {link.name: link for link in board.links}
    assert board.hart_power and not board.bridges and not board.sinks
    assert links["bridge3"] == AtbLinkDescription("bridge3", 0xD901_5000, ("cluster1",), 4, 3)
    assert links["main"] == CoresightFunnelDescription(
        "main", 0xD904_2000, ("etf0",), {"cluster0": 0, "cluster1": 3}
    )
    assert links["etf0"] == TmcLinkDescription("etf0", 0xD904_3000, ("etr0",))
    assert board.tmc_sinks == (TmcSinkDescription("etr0", 0xD904_4000, "SMEM", 0x1_7000_0000, 0x1_0000),)
    assert described(text(board)) == described(text(described(text(board))))


def test_the_way_of_the_trace_through_all_of_them() -> None:
    topology = Topology(described())
    route = topology.routes(topology.description.encoders[2])[0]
    assert route.names == ("encoder2", "bridge2", "cluster1", "main", "etf0", "etr0")
    assert [hop.input for hop in route.hops] == [None, 0, 3, None]
    order = [part.name for part in topology.start_order()]
    for sender, fed in (("main", "etf0"), ("cluster0", "main"), ("bridge1", "cluster0"), ("encoder1", "bridge1")):
        assert order.index(fed) < order.index(sender)
    assert order[0] == "etr0"


def test_a_bridge_that_feeds_nothing_described_is_a_sink_as_before() -> None:
    board = described(
        component("encoder0", "encoder", 0x1000) + component("atb0", "atb_bridge", 0x2000, "id = 5\nhart = 0")
    )
    assert board.bridges == (AtbBridgeDescription("atb0", 0x2000, 5, "", 0),) and not board.hart_power


def test_a_replicator_has_two_outputs_in_the_order_of_to() -> None:
    bus = component("rep0", "coresight_replicator", 0x3000, "to = ['etb0', 'etr0']")
    bus += component("etb0", "coresight_tmc", 0x4000, "mode = 'SRAM'") + component("etr0", "coresight_tmc", 0x5000, ETR)
    start = component("encoder0", "encoder", 0x1000) + component("atb0", "atb_bridge", 0x2000, "id = 1\nto = ['rep0']")
    board = described(start.replace("base = 0x1000", "base = 0x1000\nto = ['atb0']") + bus)
    assert board.links[1] == CoresightReplicatorDescription("rep0", 0x3000, ("etb0", "etr0"))
    third = bus.replace("'etr0']", "'etr0', 'etb1']") + component("etb1", "coresight_tmc", 0x6000, "mode = 'SRAM'")
    assert "has 2 outputs, and feeds etb0, etr0, etb1" in refused(
        start.replace("base = 0x1000", "base = 0x1000\nto = ['atb0']") + third
    )


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("id = 4", "id = 2", '"bridge3": id: 0x2 is also that of bridge1, and the trace of both goes into main'),
        ("id = 4", "", '"bridge3": id: missing: traces are told apart by it'),
        ("id = 4", "id = 0x70", '"bridge3": id: is 112, must be from 1 to 111'),
        (
            "mode = 'FIFO'\nto = ['etr0']", "mode = 'FIFO'\nto = ['main']",
            "a funnel cannot feed itself: main -> etf0 -> main",
        ),
        ("mode = 'FIFO'", "mode = 'SRAM'", 'with mode = "SRAM" it stores trace and feeds nothing'),
        ("mode = 'FIFO'", "mode = 'FIFO'\nsize = 64", 'size: with mode = "FIFO" it has none: leave it out'),
        ("start = 0x170000000\n", "", '"etr0": start: missing: an ETR writes to memory that must be reserved for it'),
        ("start = 0x170000000", "start = 0x170000004", "start: 0x170000004 is not a multiple of 0x10"),
        ("size = 0x10000", "size = 0x10004", "size: 0x10004 is not a multiple of 0x10, a frame of trace"),
        ("cluster1 = 3}", "cluster1 = 8}", "inputs.cluster1: is 8, must be from 0 to 7"),
        ("power = 'hart'", "power = 'cluster'", 'power: "cluster" is not one of hart, always'),
        (
            "hart = 0\nto = ['bridge0']", "hart = 0\nto = ['main']",
            "\"main\" is on Arm's trace bus, where only a bridge leads",
        ),
        ("to = ['etf0']", "to = ['cluster0']", '"cluster0" is not on Arm\'s trace bus: only what is on it can be fed'),
    ],
)  # fmt: skip
def test_what_is_refused(before: str, after: str, problem: str) -> None:
    assert before in BOARD
    assert problem in refused(BOARD.replace(before, after))


def static(name: str, to: str) -> str:
    return f"[[component]]\nname = '{name}'\ntype = 'coresight_static_funnel'\nto = ['{to}']\n"


def through_static_funnels() -> str:
    """Both clusters feed a static funnel, which another one is behind; that is at port 3."""
    document = BOARD.replace("to = ['main']", "to = ['static0']")
    document = document.replace("{cluster0 = 0, cluster1 = 3}", "{static1 = 3}")
    return document + static("static0", "static1") + static("static1", "main")


def test_static_funnels_have_no_registers_and_are_passed_over() -> None:
    board = described(through_static_funnels())
    main = next(link for link in board.links if link.name == "main")
    assert main == CoresightFunnelDescription("main", 0xD904_2000, ("etf0",), {"cluster0": 3, "cluster1": 3})
    assert [funnel.to for funnel in board.funnels] == [("main",)] * 2
    assert "static" not in text(board) and described(text(board)) == described(text(described(text(board))))


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("to = ['static1']", "", '"static0": to: missing: what it feeds'),
        ("to = ['static1']", "to = ['static1']\nbase = 0x1000", '"static0": base: unknown; known here: name, type, to'),
        (
            "name = 'static1'\ntype = 'coresight_static_funnel'\nto = ['main']",
            "name = 'static1'\ntype = 'coresight_static_funnel'\nto = ['static0']",
            "it cannot feed itself: static0 -> static1 -> static0",
        ),
        ("{static1 = 3}", "{static2 = 3}", '"static2" does not feed it'),
        ("{static1 = 3}", "{static1 = 9}", "is 9, must be from 0 to 7"),
    ],
)  # fmt: skip
def test_what_is_refused_of_static_funnels(before: str, after: str, problem: str) -> None:
    document = through_static_funnels()
    assert before in document
    assert problem in refused(document.replace(before, after))
