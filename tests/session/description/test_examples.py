"""The descriptions in examples/targets and those of shipped targets, against what they say they were made from, and
those of the documentation.
"""

import re
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.session.description.devicetree import trace_components
from rvtrace_gdb.session.description.file import load, parse
from rvtrace_gdb.session.description.library.shipped import shipped, target_names
from rvtrace_gdb.session.description.model import Description
from rvtrace_gdb.session.sources.hardware import Topology
from tests.session.description.devicetrees import tree

HOME = Path(__file__).resolve().parents[3]
FOLDER = HOME / "examples" / "targets"


def example(name: str) -> Description:
    """An example, or a shipped target."""
    return load(FOLDER / "two-clusters.toml") if name == "two-clusters" else shipped(name).description()


@pytest.mark.parametrize("name", ["two-clusters", *target_names()])
def test_each_encoder_reaches_a_sink(name: str) -> None:
    topology = Topology(example(name))
    assert all(topology.routes(encoder) for encoder in topology.description.encoders)


def test_the_p550() -> None:
    """riscv-trace-umd, p550.cfg: four encoders, "outputs": ["sys-funnel"], whose "output" is "sba": its own sink."""
    found = example("hifive-premier-p550")
    assert [(e.base, e.hart, e.to) for e in found.encoders] == [
        (0x100000, 0, ("funnel0",)),
        (0x101000, 1, ("funnel0",)),
        (0x102000, 2, ("funnel0",)),
        (0x103000, 3, ("funnel0",)),
    ]
    [funnel], [sink] = found.funnels, found.sinks
    assert (funnel.base, sink.base, sink.inside) == (0x18000, 0x18000, "funnel0")
    assert {funnel.version, *(encoder.version for encoder in found.encoders)} == {0}
    # Its scripts start the funnel first, then the encoders.
    assert [component.name for component in Topology(found).start_order()][:3] == ["ram0", "funnel0", "encoder0"]


def test_qemu_with_e_trace_is_its_device_tree() -> None:
    buffers = {"ram0": (0x6001000, 0xF000), "ram1": (0x6011000, 0xF000)}
    imported = trace_components(tree("qemu_etrace"), buffers).description
    found = example("qemu-etrace")
    encoders = tuple(replace(encoder, etrace={}) for encoder in found.encoders)
    assert replace(imported, file=found.file) == replace(found, encoders=encoders)
    assert {encoder.etrace["dialect"] for encoder in found.encoders} == {"qemu"}


def test_the_clusters_have_one_top() -> None:
    topology = Topology(example("two-clusters"))
    assert [funnel.name for funnel in topology.top_funnels] == ["top"]
    last = topology.description.encoders[-1]
    assert [route.names for route in topology.routes(last)] == [("encoder6", "ram0"), ("encoder6", "top", "pib0")]


def documented() -> list[str]:
    """The indented blocks of the documentation's page."""
    page = (HOME / "docs" / "target-description.md").read_text()
    return [block for block in re.findall(r"(?:^    .*\n|^\n)+", page, re.MULTILINE) if "[[component]]" in block]


def test_the_documentation_is_right() -> None:
    """Of the last one, about version 0, only the part is shown that is new there."""
    first, several, version_0 = map(textwrap.dedent, documented())
    assert [component.kind for component in parse(first, "x").components] == ["encoder", "ram_sink"]
    topology = Topology(parse(several, "x"))
    ways = [[route.names for route in topology.routes(encoder)] for encoder in topology.description.encoders]
    assert ways == [
        [("encoder0", "pib0"), ("encoder0", "funnel0", "ram0")],
        [("encoder1", "funnel0", "ram0")],
    ]
    encoder = '[[component]]\nname = "encoder0"\ntype = "encoder"\nversion = 0\nbase = 0x100000\n'
    assert parse(encoder + version_0, "x").sinks[0].base == 0x18000
