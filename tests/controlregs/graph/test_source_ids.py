"""Messages of several encoders in one stream can be told apart: source IDs are unique, and all of one width."""

from typing import Any

import pytest

from rvtrace_gdb.controlregs.errors import SettingRefused
from rvtrace_gdb.controlregs.fields import FieldRange
from rvtrace_gdb.controlregs.trace_control import procedures
from rvtrace_gdb.controlregs.trace_control.request import GraphRequest, SinkBuffer, TraceRequest
from tests.controlregs.graph.graph_model import LOW, GraphEncoder, GraphFunnel, Models, World, ram, world
from tests.controlregs.trace_control.component_model import ENABLE

BUFFER = SinkBuffer(LOW, 0x1000)
ID, BITS = 16, 28


def fixed(number: int | None = None, bits: int | None = None) -> dict[str, int]:
    """An encoder whose source ID, or the width of it, is hard-wired."""
    mask, ones = 0xFFFF_07FF, 0
    if number is not None:
        mask, ones = mask & ~(0xFFF << ID), ones | number << ID
    if bits is not None:
        mask, ones = mask & ~(15 << BITS), ones | bits << BITS
    return {"features_mask": mask, "features_fixed": ones}


def in_one_stream(*encoders: dict[str, Any]) -> World:
    models: Models = {"ram0": ram(), "f0": GraphFunnel()}
    models |= {f"enc{n}": GraphEncoder(**e) for n, e in enumerate(encoders)}
    edges = [("f0", "ram0"), *((f"enc{n}", "f0") for n in range(len(encoders)))]
    return world(models, edges)


def chosen(w: World, **asked: int) -> list[tuple[int, int]]:
    got = procedures.start(w.graph, GraphRequest(TraceRequest(**asked), {"ram0": BUFFER}))  # type: ignore[arg-type]
    assert got.notes == ()
    return [(encoder.src_id, encoder.src_bits) for encoder in got.encoders]


@pytest.mark.parametrize(
    ("encoders", "asked", "expected"),
    [
        ([{}, {}], {}, [(0, 1), (1, 1)]),
        ([{}, {}, {}], {}, [(0, 2), (1, 2), (2, 2)]),
        ([{}] * 5, {}, [(n, 3) for n in range(5)]),
        ([{}, {}], {"src_id": 6}, [(6, 3), (7, 3)]),
        ([{}, {}], {"src_bits": 4}, [(0, 4), (1, 4)]),
        ([{}, {}], {"src_bits": 1, "src_id": 2}, [(2, 2), (3, 2)]),
        ([fixed(1), {}, {}], {}, [(1, 2), (0, 2), (2, 2)]),
        ([{}, fixed(0)], {}, [(1, 1), (0, 1)]),
        ([fixed(0x123), fixed(0x124)], {}, [(0x123, 9), (0x124, 9)]),
        ([{}, fixed(bits=6)], {}, [(0, 6), (1, 6)]),
        ([fixed(3, 12), {}], {}, [(3, 12), (1, 12)]),
        # Three bits of ID only, so high ones that were asked for are not to be had.
        ([{"features_mask": 0x3007_07FF}] * 2, {"src_id": 8}, [(0, 1), (1, 1)]),
        ([{"features_mask": 0x1FFF_07FF}] * 2, {"src_id": 2}, [(0, 1), (1, 1)]),
    ],
)
def test_ids_and_width(encoders: list[dict[str, Any]], asked: dict[str, int], expected: list[tuple[int, int]]) -> None:
    assert chosen(in_one_stream(*encoders), **asked) == expected


def test_the_most_there_are() -> None:
    """A funnel has 16 inputs."""
    got = chosen(in_one_stream(*[{"junk": n} for n in range(16)]))
    assert got == [(n, 4) for n in range(16)]


def test_streams_of_their_own_need_no_ids_in_messages() -> None:
    models: Models = {"ram0": ram(), "ram1": ram(sram=64), "enc0": GraphEncoder(), "enc1": GraphEncoder(**fixed(0, 0))}
    w = world(models, [("enc0", "ram0"), ("enc1", "ram1")])
    got = procedures.start(w.graph, GraphRequest(buffers={"ram0": BUFFER}))
    assert [encoder.src_bits for encoder in got.encoders] == [0, 0]


def test_only_the_mixed_ones_send_ids() -> None:
    models: Models = {"ram0": ram(), "ram1": ram(sram=64)}
    models |= {f"enc{n}": GraphEncoder() for n in range(3)}
    w = world(models, [("enc0", "ram1"), ("enc1", "ram0"), ("enc2", "ram0")])
    got = procedures.start(w.graph, GraphRequest(buffers={"ram0": BUFFER}))
    assert [(encoder.src_id, encoder.src_bits) for encoder in got.encoders] == [(0, 0), (1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("encoders", "refusal"),
    [
        (
            [fixed(0, 0), {}],
            "enc0 at 0x20002000: it puts no source ID into its messages (trTeSrcBits reads 0), and the trace of enc0, "
            "enc1 is mixed in ram0: trace one of them, or let each feed a sink of its own",
        ),
        (
            [{}, {"fixed_ones": 1 << 24 | 1 << 15}],
            "enc1 at 0x20003000: it puts no source ID into its messages (trTeInhibitSrc stays 1)",
        ),
        ([fixed(5), fixed(5)], "enc1 at 0x20003000: its source ID is 5 like that of enc0"),
        ([fixed(bits=3), fixed(bits=5)], "enc1 at 0x20003000: its source IDs have 5 bits, those of enc0 3"),
        ([fixed(9, 2), {}], "enc0 at 0x20002000: its source ID 9 does not fit the 2 bits of trTeSrcBits"),
        (
            [{}, {"impl": 0x0000_0101, "fixed_ones": 0, "fixed_zeros": 7 << 24, "modes": (7,)}],
            "enc1 at 0x20003000: it produces E-Trace, enc0 N-Trace",
        ),
    ],
)
def test_what_cannot_be_told_apart_is_refused(encoders: list[dict[str, Any]], refusal: str) -> None:
    """And nothing goes on: an encoder was never enabled, what was is disabled again."""
    w = in_one_stream(*encoders)
    with pytest.raises(SettingRefused) as caught:
        chosen(w)
    assert str(caught.value).startswith(refusal)
    assert w.switched == ["+ram0", "+f0", "-f0", "-ram0"]
    assert not any(model.shown & ENABLE for model in w.models.values())


def test_more_ids_than_twelve_bits_hold() -> None:
    w = in_one_stream({}, {})
    with pytest.raises(FieldRange, match="4096 does not fit trTeSrcID, which has 12 bits"):
        chosen(w, src_id=4095)
    assert w.switched == []
