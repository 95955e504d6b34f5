"""What components can do, in words; and a look at them that leaves everything as it was."""

from typing import Any

import pytest

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import SettingRefused, UnsupportedVersion, WrongComponent
from rvtrace_gdb.controlregs.trace_control.capabilities import capabilities
from tests.controlregs.graph.graph_model import BLOCKS, LOW, GraphBridge, GraphEncoder, GraphFunnel, GraphPib
from tests.controlregs.trace_control.component_model import ACTIVE, ENABLE, BusFault, Model, ModelSink, ModelTarget

ETRACE = {"impl": 0x0000_0101, "modes": (7,), "fixed_ones": 0, "fixed_zeros": 0x0700_8200}
BASE = 0x2000_0000


def awake(model: Model) -> Component:
    """A component that is active and not enabled, its registers as they happen to be."""
    target = ModelTarget({BASE: model})
    component = Component(target, BASE, BLOCKS[type(model)], "it", 0.02)
    model.write(0, ACTIVE)
    while not target.read32(BASE) & ACTIVE:
        pass
    return component


def sink(**options: Any) -> ModelSink:
    return ModelSink(bytearray(0x400), LOW, **options)


def state(model: Model) -> tuple[int, int, dict[int, int]]:
    """What can be read of it. What was never written reads 0."""
    return model.control, model.impl, {offset: value for offset, value in model.registers.items() if value}


ALL = [
    GraphEncoder(),
    GraphEncoder(**ETRACE),
    GraphEncoder(features_mask=0, data=0xF0073),
    sink(),
    sink(modes=(1,), width=8, high=0xFF),
    sink(modes=(0,)),
    GraphFunnel(),
    GraphFunnel(cuts=0, timestamps=0),
    GraphPib(),
    GraphPib(modes=()),
    GraphBridge(),
    GraphBridge(fixed_id=7),
]


@pytest.mark.parametrize("model", ALL, ids=[f"{type(model).__name__}-{n}" for n, model in enumerate(ALL)])
def test_nothing_is_changed(model: Model) -> None:
    component = awake(model)
    before = state(model)
    if isinstance(model, GraphEncoder):
        model.overflow = True
    found = capabilities(component)
    assert found.has or found.lacks
    assert state(model) == before
    assert not isinstance(model, GraphEncoder) or model.overflow, "a sticky flag was cleared"
    component.target.write32(BASE, 0)
    while component.target.read32(BASE):
        if component.target.read32(BASE) & (ACTIVE | ENABLE) == 0:
            break
    again = capabilities(component)
    assert again.identity.version == (1, 0)
    assert model.control & (ACTIVE | ENABLE) == 0, "it was in reset, and is again"


def words(model: Model) -> tuple[list[str], list[str]]:
    found = capabilities(awake(model))
    return list(found.has), list(found.lacks)


def test_an_encoder_with_everything() -> None:
    model = GraphEncoder(data=1, timestamps=0x28FF_837F, impl=0x0041_0101)
    model_legal = model.legal

    def legal(offset: int, value: int) -> int:
        if offset == 0x1C or 0x400 <= offset < 0x420 or 0x600 <= offset < 0x640 or offset in (0x54, 0x58):
            return value & (0xFFFF if offset == 0x1C else 0xFFFF_FFFF)
        return model_legal(offset, value) | (0x2800_0000 if offset == 0x40 else 0)

    model.legal = legal  # type: ignore[method-assign]
    has, lacks = words(model)
    assert has == [
        "N-Trace 1.4",
        "BTM",
        "HTM",
        "context and privilege",
        "stalling the hart instead of losing trace",
        "synchronisation every 16 to 524288 messages or clock cycles or halfwords",
        "trace triggers",
        "sequential jumps",
        "implicit return",
        "implicit return with a counter",
        "implicit return with a stack of partial addresses",
        "implicit return with a stack of full addresses",
        "repeated history",
        "messages for all jumps",
        "address compression",
        "source IDs of up to 12 bits",
        "16 filters",
        "2 comparators",
        "8 trigger inputs",
        "8 trigger outputs",
        "data trace",
        "timestamps of 40 bits, time: external or internal system or internal core or shared or vendor5 or vendor6 or "
        "vendor7",
    ]
    assert lacks == []


def test_the_least_an_encoder_can_be() -> None:
    """"Minimal Implementation": a mode, a unit of synchronisation, trTeInstTracing; all others tied to 0."""
    model = GraphEncoder(
        modes=(3,), sync_modes=(2,), sync_max=(5,), features_mask=0, timestamps=0, fixed_zeros=0x0600_AA00
    )
    plain = model.legal
    model.legal = lambda offset, value: plain(offset, value) if offset in (0, 8) else 0  # type: ignore[method-assign]
    has, lacks = words(model)
    assert has == ["N-Trace 1.0", "BTM", "synchronisation every 512 clock cycles"]
    assert lacks == [
        "context and privilege",
        "stalling the hart instead of losing trace",
        "trace triggers",
        "sequential jumps",
        "implicit return",
        "repeated history",
        "messages for all jumps",
        "address compression",
        "source IDs",
        "filters",
        "trigger inputs",
        "trigger outputs",
        "data trace",
        "timestamps",
    ]


def test_etrace_is_not_said_to_lack_what_is_of_ntrace() -> None:
    has, lacks = words(GraphEncoder(**ETRACE, features_mask=0xFFFF_003F))
    assert has[0] == "E-Trace 0.0"
    assert {"branch prediction", "jump target cache", "full addresses", "omission of trap addresses"} <= set(has)
    said = " ".join((*has, *lacks))
    assert not any(word in said for word in ("BTM", "HTM", "repeated history", "all jumps", "context"))


@pytest.mark.parametrize(
    ("model", "has", "lacks"),
    [
        (
            sink(modes=(0,), impl=0x1901, sram=512),
            ["its own SRAM of 512 bytes", "stopping when the buffer is full"],
            ["buffers in system memory", "alignment sequences"],
        ),
        (
            sink(modes=(1,), impl=0x2901, width=16, high=0xFF, stops=(0,), asyncs=7),
            ["buffers in system memory with addresses of 40 bits, aligned to 16 bytes", "alignment sequences"],
            ["its own SRAM", "stopping when the buffer is full"],
        ),
        (
            sink(modes=(1,), impl=0x2901, fixed={0x10: LOW, 0x18: LOW + 0x3FC}, stops=(1,)),
            ["buffers in system memory at a fixed address", "stopping when the buffer is full, always"],
            ["its own SRAM", "alignment sequences"],
        ),
        (
            GraphFunnel(timestamps=0x2F, width=48),
            ["inputs that can be cut: 0 to 15", "timestamps of 48 bits, time: internal system"],
            [],
        ),
        (GraphFunnel(cuts=0b1010, timestamps=0), ["inputs that can be cut: 1, 3"], ["timestamps"]),
        (
            GraphPib(modes=(5, 10), dividers=0xFF, asyncs=0),
            [
                "swt_uart",
                "parallel_4",
                "clock edges in the middle of a bit",
                "calibration pattern",
                "clock divided by up to 256",
            ],
            ["alignment sequences"],
        ),
        (
            GraphPib(modes=(4,), dividers=0, calibrates=0),
            ["swt_manchester", "alignment sequences"],
            ["clock edges in the middle of a bit", "calibration pattern", "clock divider"],
        ),
        (GraphBridge(), ["any ATB ID", "alignment sequences"], []),
        (GraphBridge(fixed_id=7, asyncs=0), [], ["other ATB IDs than 7", "alignment sequences"]),
    ],
)
def test_words(model: Model, has: list[str], lacks: list[str]) -> None:
    assert words(model) == (has, lacks)


def test_one_that_is_in_use_is_left_alone() -> None:
    model = GraphFunnel(timestamps=0)
    component = awake(model)
    model.control = model.shown = ACTIVE | ENABLE
    with pytest.raises(SettingRefused, match="it at 0x20000000: is in use, so its capabilities"):
        capabilities(component)
    assert model.shown == ACTIVE | ENABLE


@pytest.mark.parametrize(
    ("impl", "error"),
    [(0x0000_0800, UnsupportedVersion), (0x0000_0802, UnsupportedVersion), (0x0000_3901, WrongComponent)],
)
def test_what_is_not_what_was_thought_is_put_back_in_reset(impl: int, error: type[Exception]) -> None:
    model = GraphFunnel(impl=impl)
    component = Component(ModelTarget({BASE: model}), BASE, BLOCKS[GraphFunnel], "it", 0.02)
    with pytest.raises(error):
        capabilities(component)
    assert model.control == 0


def test_a_component_that_stops_to_answer() -> None:
    model = GraphFunnel()
    component = awake(model)
    reads = 0

    def read(offset: int) -> int:
        nonlocal reads
        reads += offset == 0x40
        if reads > 3:
            raise BusFault(offset)
        return Model.read(model, offset)

    model.read = read  # type: ignore[method-assign]
    with pytest.raises(Exception, match=r"it at 0x20000000: trTsControl \(0x20000040\) cannot be read"):
        capabilities(component)
