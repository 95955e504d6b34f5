"""Components of version 0 that are not what they should be, do not answer, or never come to an end."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import (
    ComponentAccess,
    ComponentTimeout,
    DrainFailed,
    SettingRefused,
    SinkNotReadable,
    WrongComponent,
)
from rvtrace_gdb.controlregs.generations import procedures
from rvtrace_gdb.controlregs.graph import RATIFIED, Graph
from rvtrace_gdb.controlregs.trace_control.request import GraphRequest, TraceRequest
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.transport.simulated.sifive_v0.component import V0Build
from tests.controlregs.sifive_v0.test_procedures import BUFFER, asked
from tests.transport.simulated.encoder.traces import compiled
from tests.transport.simulated.sifive_v0.chip import (
    APART,
    ENCODERS,
    FUNNELS,
    SIZE,
    TIMEOUT,
    Chip,
    decoded,
    p550,
)

DATA = 0x24


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("v0"), "rv64imac")


def all_off(chip: Chip) -> bool:
    return not any(device.enabled for device in chip.devices.values())


@pytest.mark.parametrize("name", ["enc0", "enc1", "funnel0"])
@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (V0Build(stuck={"Active": 0}), ComponentTimeout, r"did not reach t[ef]Active=1 within 0\.05 s"),
        (V0Build(stuck={"Enable": 0}), ComponentTimeout, r"did not reach t[ef]Enable=1 within"),
        (V0Build(version=(1, 0)), SettingRefused, r"its trace control interface is 1\.0, .* correct `version`"),
        (V0Build(version=(1, 15)), SettingRefused, r"its trace control interface is 1\.15, not one older than 1\.0"),
        (V0Build(version=(2, 0)), SettingRefused, r"its trace control interface is 2\.0, not"),
        (V0Build(faults={0x00}), ComponentAccess, r"t[ef]Control \(0x[0-9a-f]+\) cannot be read: bus error"),
        (V0Build(faults={0x04}), ComponentAccess, r"t[ef]Impl \(0x[0-9a-f]+\) cannot be read: bus error"),
        (V0Build(faults={0x40}), ComponentAccess, r"tsControl \(0x[0-9a-f]+\) cannot be (read|written): bus error"),
    ],
    ids=["never-active", "never-enabled", "1.0", "1.15", "2.0", "no-control", "no-impl", "no-time"],
)
def test_what_cannot_be_started(elf: Path, name: str, build: V0Build, error: type[RvtraceError], text: str) -> None:
    """One line names it, and nothing stays on."""
    builds: dict[str, Any] = {name.replace("0", "") if name == "funnel0" else name: build}
    chip = p550(elf, **builds)
    graph = chip.graph()
    with pytest.raises(error, match=rf"^{name} at 0x[0-9a-f]+: .*{text}") as caught:
        procedures(graph).start(graph, asked(timestamps=True))
    assert "\n" not in str(caught.value)
    assert all_off(chip)


@pytest.mark.parametrize("offset", [0x10, 0x14, 0x18, 0x1C])
def test_sink_registers_that_do_not_answer(elf: Path, offset: int) -> None:
    chip = p550(elf, funnel=V0Build(faults={offset}))
    graph = chip.graph()
    with pytest.raises(ComponentAccess, match=rf"^ram0 at 0x18000: teSink\w+ \({FUNNELS + offset:#x}\) cannot be"):
        procedures(graph).start(graph, BUFFER)
    assert all_off(chip)


def test_nobody(elf: Path) -> None:
    """Buses that answer for those that are not there give zeros, or ones."""

    class Zeros:
        def read(self, offset: int, nbytes: int) -> int:
            return 1 if offset == 0 else 0  # even one that seems to wake

        def write(self, offset: int, nbytes: int, value: int) -> None:
            """It is gone."""

    chip = p550(elf)
    chip.target.devices[ENCODERS] = Zeros()  # type: ignore[assignment]
    graph = chip.graph()
    with pytest.raises(WrongComponent, match=r"^enc0 at 0x100000: no pre-ratified trace encoder answers here"):
        procedures(graph).start(graph, BUFFER)


def test_each_at_the_others_address(elf: Path) -> None:
    chip = p550(elf, 1)
    devices = chip.target.devices
    devices[ENCODERS], devices[FUNNELS] = devices[FUNNELS], devices[ENCODERS]
    graph = chip.graph()
    with pytest.raises(WrongComponent, match=r"^funnel0 at 0x18000: this is a pre-ratified trace encoder, not a"):
        procedures(graph).start(graph, BUFFER)
    devices[FUNNELS] = devices[ENCODERS]
    with pytest.raises(SettingRefused, match=r"^enc0 at 0x100000: .*(is it a funnel|cannot send trace to the funnel)"):
        procedures(graph).start(graph, BUFFER)


def test_a_funnel_that_takes_nothing_any_more(elf: Path) -> None:
    """Its encoders cannot be rid of their last messages: that is loss, and what was stored before can be read."""
    chip = p550(elf)
    graph = chip.graph()
    got = procedures(graph).start(graph, BUFFER)
    chip.run(2)
    chip.devices["funnel0"].jammed = True
    chip.run(2)
    stopped = procedures(graph).stop(graph)
    assert stopped.lost == ("enc0", "enc1")
    assert procedures(graph).drain_all(graph, got).drained["ram0"].data


def sram(elf: Path, build: V0Build | None = None) -> tuple[Chip, Graph]:
    chip = Chip(elf, 1)
    chip.encoder(0, sink="ram0", memory=chip.memory(sram_size=1 << 14, system=False), build=build)
    return chip, chip.graph()


def test_sram_that_cannot_be_read(elf: Path) -> None:
    for at, text in (
        (4, "teSinkRP reads 0x10 after 0x0 was written"),
        (0, "teSinkRP stays 0x0 while teSinkData is read"),
    ):
        chip, graph = sram(elf, V0Build(fixed={"teSinkRP": at}))
        got = procedures(graph).start(graph, GraphRequest(TraceRequest()))
        chip.run(1)
        procedures(graph).stop(graph)
        (failure,) = procedures(graph).drain_all(graph, got).failures.values()
        assert str(failure) == f"ram0 at 0x100000: {text}: its SRAM cannot be read"


def test_sram_whose_window_does_not_answer(elf: Path) -> None:
    chip, graph = sram(elf, V0Build(faults={DATA}))
    got = procedures(graph).start(graph, GraphRequest(TraceRequest()))
    chip.run(1)
    procedures(graph).stop(graph)
    (failure,) = procedures(graph).drain_all(graph, got).failures.values()
    assert isinstance(failure, DrainFailed) and failure.partial == b""


def test_sram_without_size(elf: Path) -> None:
    _, graph = sram(elf, V0Build(fixed={"teSinkWP": 0}))
    with pytest.raises(SettingRefused, match=r"^ram0 at 0x100000: .*its size cannot be determined"):
        procedures(graph).start(graph, GraphRequest(TraceRequest()))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda chip: chip.target.write32(FUNNELS, 0),
            r"is in reset, its trace is lost \(tfControl reads 0x00000008\)",
        ),
        (lambda chip: chip.target.write32(FUNNELS + 0x1C, SIZE + 8), "its write pointer .* is outside the buffer"),
    ],
    ids=["reset", "pointer"],
)
def test_a_sink_without_its_trace(elf: Path, change: Callable[[Chip], None], text: str) -> None:
    chip = p550(elf)
    graph = chip.graph()
    got = procedures(graph).start(graph, BUFFER)
    chip.run(1)
    procedures(graph).stop(graph)
    change(chip)
    (failure,) = procedures(graph).drain_all(graph, got).failures.values()
    assert isinstance(failure, SinkNotReadable) and re.search(rf"^ram0 at 0x18000: {text}", str(failure))


class TestGraphs:
    def test_of_both_versions(self, elf: Path) -> None:
        chip = p550(elf, 1)
        other = Component(chip.target, 0x20_0000, RATIFIED["encoder"], "enc9", TIMEOUT)
        line = r"^enc9 at 0x200000: has the trace control interface 1\.0, ram0 has that older than 1\.0: trace with"
        with pytest.raises(SettingRefused, match=line):
            Graph.build([*chip.components, other], [*chip.edges, ("enc9", "funnel0")], chip.inputs)

    def test_the_other_way_round(self, elf: Path) -> None:
        chip = p550(elf, 1)
        sink = Component(chip.target, 0x20_0000, RATIFIED["ram_sink"], "ram9", TIMEOUT)
        encoder = chip.component("enc0")
        with pytest.raises(SettingRefused, match=r"^enc0 at 0x100000: has the trace control interface older than 1\.0"):
            Graph.build([sink, encoder], [("enc0", "ram9")])


    def test_two_places_at_once(self, elf: Path) -> None:
        chip = Chip(elf, 1)
        chip.funnel("funnel0", sink="ram0", memory=chip.memory())
        chip.encoder(0, to="funnel0", sink="ram1", memory=chip.memory())
        graph = chip.graph()
        line = r"^enc0 at 0x100000: sends its trace to one place at a time, not to funnel0 and ram1: choose one of them"
        with pytest.raises(SettingRefused, match=line):
            procedures(graph).start(graph, BUFFER)

    def test_either_of_two_places(self, elf: Path) -> None:
        """What is not in the graph gets nothing."""
        chip = Chip(elf, 1)
        chip.funnel("funnel0", sink="ram0", memory=chip.memory())
        chip.encoder(0, to="funnel0", sink="ram1", memory=chip.memory())
        graph = Graph.build([chip.component("ram1"), chip.component("enc0")], [("enc0", "ram1")])
        got = procedures(graph).start(graph, BUFFER)
        chip.run()
        assert procedures(graph).stop(graph).failures == ()
        data = procedures(graph).drain_all(graph, got).drained["ram1"].data
        assert list(decoded(chip, data, got.encoders).values()) == [chip.retired(0)]
        assert not chip.devices["funnel0"].active

    def test_a_sink_elsewhere(self, elf: Path) -> None:
        chip = p550(elf, 1)
        next(component for component in chip.components if component.name == "ram0").base += APART
        graph = chip.graph()
        with pytest.raises(SettingRefused, match=r"^ram0 at 0x19000: a sink of version 0 is inside of the"):
            procedures(graph).start(graph, BUFFER)

    def test_those_that_are_not_traced_are_kept_off(self, elf: Path) -> None:
        chip = p550(elf)
        whole = chip.graph()
        procedures(whole).start(whole, BUFFER)
        unused = chip.component("enc1")
        graph = Graph.build(
            [component for component in chip.components if component is not unused],
            [edge for edge in chip.edges if "enc1" not in edge],
            chip.inputs,
            [unused],
        )
        assert procedures(graph).start(graph, BUFFER).notes == ()
        assert not chip.devices["enc1"].enabled
        del chip.target.devices[ENCODERS + APART]
        (note,) = procedures(graph).start(graph, BUFFER).notes
        assert note.startswith("enc1 is not traced, but cannot be switched off: enc1 at 0x101000: teControl")
