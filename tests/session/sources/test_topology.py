"""How components hang together: the figures of the Trace Control Interface 1.0 and other graphs that it allows.

Expectations are read off its chapter "Connections Between Components" and its orders for enabling and disabling.
"""

import random
from collections.abc import Iterable, Mapping, Sequence

import pytest

from rvtrace_gdb.session.description.file import parse
from rvtrace_gdb.session.description.model import AnyComponent, Description, DescriptionError, EncoderDescription
from rvtrace_gdb.session.sources.hardware import Route, Topology
from tests.helpers.amounts import each_seed

SINKS = {"ram": ("ram_sink", 'mode = "SRAM"'), "pib": ("pib_sink", ""), "atb": ("atb_bridge", "id = 1")}


def described(graph: Mapping[str, Sequence[str]], extra: Mapping[str, str] | None = None) -> Description:
    """The description of a graph: name -> what it feeds. The first letters of a name say what it is: e, f, ram..."""
    text, hart = "", 0
    for number, (name, to) in enumerate(graph.items()):
        kind, keys = SINKS.get(name.rstrip("0123456789"), ("encoder" if name[0] == "e" else "funnel", ""))
        if kind == "encoder":
            keys, hart = f"hart = {hart}", hart + 1
        keys += f"\nto = {list(to)}" if to else ""
        keys += "\n" + (extra or {}).get(name, "")
        text += f'[[component]]\nname = "{name}"\ntype = "{kind}"\nbase = {0x1000 * number}\n{keys}\n'
    return parse(text, "t.toml")


def topology(graph: Mapping[str, Sequence[str]], extra: Mapping[str, str] | None = None) -> Topology:
    return Topology(described(graph, extra))


def names(components: Iterable[AnyComponent]) -> list[str]:
    return [component.name for component in components]


def shown(route: Route) -> str:
    """E.g. "e0 > f0[2] > ram0"."""
    return " > ".join([route.encoder.name, *(f"{h.component.name}[{h.input}]" for h in route.hops), route.sink.name])


SINGLE = {"e0": ["ram0"], "ram0": []}
MULTI = {"e0": ["f0"], "e1": ["f0"], "e2": ["f0"], "f0": ["atb0"], "atb0": []}
CLUSTERS = {
    **{f"e{n}": ["f0"] for n in range(3)},
    **{f"e{n}": ["f1"] for n in range(3, 6)},
    "top": ["pib0"],
    "f0": ["top"],
    "f1": ["top"],
    "pib0": [],
}
MIXED = {
    **{f"e{n}": ["f0"] for n in range(3)},
    "e4": ["top", "ram4"],
    "f0": ["top"],
    "top": ["ram0"],
    "ram0": [],
    "ram4": [],
}


@pytest.mark.parametrize(
    ("graph", "order", "tops"),
    [
        (SINGLE, ["ram0", "e0"], []),
        (MULTI, ["atb0", "f0", "e0", "e1", "e2"], ["f0"]),
        (CLUSTERS, ["pib0", "top", "f0", "f1", "e0", "e1", "e2", "e3", "e4", "e5"], ["top"]),
        (MIXED, ["ram0", "ram4", "top", "f0", "e0", "e1", "e2", "e4"], ["top"]),
    ],
    ids=["single", "multi", "clusters", "mixed"],
)
def test_the_figures_of_the_document(graph: dict[str, list[str]], order: list[str], tops: list[str]) -> None:
    """Enabled from the sinks on, disabled the other way round; the top-level funnel is the source of timestamps."""
    found = topology(graph)
    assert names(found.start_order()) == order
    assert names(found.stop_order()) == order[::-1]
    assert names(found.top_funnels) == tops


def test_the_extra_hart_of_the_document_has_two_ways() -> None:
    """The last figure: its trace may be combined with the others', or go to its own RAM sink alone.

    "in such a case corresponding input to Trace Funnel (top) should be disabled".
    """
    found = topology(MIXED)
    e0, _, _, e4 = found.description.encoders
    ram0, ram4 = found.description.sinks
    assert [shown(route) for route in found.routes(e4)] == ["e4 > ram4", "e4 > top[0] > ram0"]
    assert [shown(route) for route in found.routes(e0)] == ["e0 > f0[0] > top[1] > ram0"]
    assert names(found.encoders_of(ram4)) == ["e4"]
    assert names(found.encoders_of(ram0)) == ["e0", "e1", "e2", "e4"]
    with pytest.raises(DescriptionError) as caught:
        found.route(e0, ram4)
    assert str(caught.value) == 't.toml: [[component]] "e0": to: nothing leads from it to "ram4", only to ram0'


def test_only_what_is_on_the_way_is_started() -> None:
    found = topology(MIXED)
    own = found.route(found.description.encoders[3], found.description.sinks[1])
    assert names(found.start_order([own])) == ["ram4", "e4"]
    assert names(found.stop_order([own])) == ["e4", "ram4"]
    assert found.start_order([]) == ()


def test_inputs_are_numbered_in_the_order_of_the_file_or_as_it_says() -> None:
    by_order = topology({"f0": ["ram0"], "e1": ["f0"], "e0": ["f0"], "ram0": []})
    assert by_order.description.funnels[0].inputs == {"e1": 0, "e0": 1}
    said = topology({"e0": ["f0"], "e1": ["f0"], "f0": ["ram0"], "ram0": []}, {"f0": "inputs = {e0 = 15, e1 = 3}"})
    funnel, (e0, _) = said.description.funnels[0], said.description.encoders
    assert list(funnel.inputs.items()) == [("e1", 3), ("e0", 15)]
    assert names(said.senders_to(funnel)) == ["e1", "e0"]
    assert shown(said.routes(e0)[0]) == "e0 > f0[15] > ram0"


def test_sixteen_inputs_are_the_most() -> None:
    """trFunnelDisInput has 16 bits."""
    graph: dict[str, list[str]] = {f"e{n}": ["f0"] for n in range(16)} | {"f0": ["ram0"], "ram0": []}
    assert list(topology(graph).description.funnels[0].inputs.values()) == list(range(16))
    with pytest.raises(DescriptionError) as caught:
        topology({"e16": ["f0"], **graph})
    assert str(caught.value).endswith('"f0": inputs: 17 components feed it, and a funnel has 16 inputs at most')


def test_all_kinds_of_sinks_at_once() -> None:
    """A funnel sends to "one or more of the sink types", an encoder to all but other encoders."""
    graph = {"e0": ["pib0", "f0"], "f0": ["ram0", "atb0"], "ram0": [], "pib0": [], "atb0": []}
    found = topology(graph)
    ways = [shown(route) for route in found.routes(found.description.encoders[0])]
    assert ways == ["e0 > pib0", "e0 > f0[0] > ram0", "e0 > f0[0] > atb0"]
    assert names(found.receivers_of(found.description.funnels[0])) == ["ram0", "atb0"]
    assert names(found.senders_to(found.description.pib_sinks[0])) == ["e0"]
    assert names(found.start_order()) == ["ram0", "pib0", "atb0", "f0", "e0"]


def test_two_ways_to_one_sink_are_one_route() -> None:
    """Both halves of a diamond would deliver everything twice: the shorter is taken."""
    graph = {"e0": ["f0", "f1"], "f0": ["f1"], "f1": ["ram0"], "ram0": []}
    found = topology(graph)
    [route] = found.routes(found.description.encoders[0])
    assert shown(route) == "e0 > f1[0] > ram0"


def test_trees_that_do_not_touch_have_a_top_each() -> None:
    found = topology(
        {"e0": ["f0"], "e1": ["f1"], "f0": ["ram0"], "f1": ["f2", "pib0"], "f2": ["pib0"], "ram0": [], "pib0": []}
    )
    assert names(found.top_funnels) == ["f0", "f2"]


def random_graph(choose: random.Random) -> dict[str, list[str]]:
    """Encoders and funnels that feed later ones: no cycle."""
    sinks = ["ram0", "pib0", "atb0"][: choose.randint(1, 3)]
    funnels = [f"f{n}" for n in range(choose.randint(0, 6))]
    graph: dict[str, list[str]] = {}
    for number, funnel in enumerate(funnels):
        below = funnels[number + 1 :] + sinks
        graph[funnel] = choose.sample(below, choose.randint(1, min(3, len(below))))
    for number in range(choose.randint(1, 4)):
        graph[f"e{number}"] = choose.sample(funnels + sinks, choose.randint(1, min(3, len(funnels + sinks))))
    graph |= {sink: [] for sink in sinks}
    order = list(graph)
    choose.shuffle(order)
    return {name: graph[name] for name in order}


def reached(graph: Mapping[str, Sequence[str]], name: str) -> set[str]:
    return set(graph[name]).union(*(reached(graph, other) for other in graph[name]))


@each_seed(range(50))
def test_in_any_graph_what_receives_is_started_before_what_sends(seed: int) -> None:
    graph = random_graph(random.Random(seed))
    found = topology(graph)
    place = {name: n for n, name in enumerate(names(found.start_order()))}
    assert place.keys() == graph.keys()
    assert all(place[fed] < place[name] for name, to in graph.items() for fed in to)
    for encoder in found.description.encoders:
        routes = found.routes(encoder)
        assert {r.sink.name for r in routes} == {n for n in reached(graph, encoder.name) if not n.startswith("f")}
        assert all(b in graph[a] for r in routes for a, b in zip(r.names, r.names[1:], strict=False))
        for route in routes:
            assert place.keys() >= set(names(found.start_order([route]))) == set(route.names)
    assert names(found.top_funnels) == [
        f.name for f in found.description.funnels if not any(n.startswith("f") for n in graph[f.name])
    ]


def test_an_encoder_is_what_a_hart_has() -> None:
    assert [encoder.hart for encoder in described(CLUSTERS).encoders] == list(range(6))
    assert all(isinstance(encoder, EncoderDescription) for encoder in described(CLUSTERS).encoders)
