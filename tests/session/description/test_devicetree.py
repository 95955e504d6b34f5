"""The trace components of device trees, as the bindings say it, read off the sources in tests/data/device-tree."""

import pytest

from rvtrace_gdb.session.description import dtb, file
from rvtrace_gdb.session.description.devicetree import DeviceTreeContents, trace_components
from rvtrace_gdb.session.description.dtb import DeviceTreeError
from rvtrace_gdb.session.description.model import (
    AtbBridgeDescription,
    AtbLinkDescription,
    CoresightFunnelDescription,
    CoresightReplicatorDescription,
    DescriptionError,
    EncoderDescription,
    FunnelDescription,
    PibSinkDescription,
    RamSinkDescription,
    TmcLinkDescription,
    TmcSinkDescription,
)
from rvtrace_gdb.session.sources.hardware import Topology
from tests.session.description.devicetrees import NAMES, compiled, tree


def found(name: str, *changes: tuple[str, str], **buffers: tuple[int, int]) -> DeviceTreeContents:
    return trace_components(tree(name, *changes), {key.removeprefix("any"): value for key, value in buffers.items()})


def test_an_encoder_and_a_sink_for_each_hart() -> None:
    said = found("per_hart").description
    assert said.encoders == (
        EncoderDescription("encoder0", 0xC000000, 0, ("ram0",)),
        EncoderDescription("encoder1", 0xC002000, 1, ("ram1",)),
    )
    assert said.sinks == (
        RamSinkDescription("ram0", 0xC001000, "SRAM", None, None),
        RamSinkDescription("ram1", 0xC003000, "SRAM", None, None),
    )
    assert (said.name, said.file, said.xlen) == ("two harts", "per_hart.dtb", 32)


def test_the_shape_that_qemu_makes() -> None:
    """The names of its nodes have the numbers of harts, not addresses; they are taken by what `cpus` leads to."""
    said = found("qemu_etrace").description
    assert said.encoders == (
        EncoderDescription("encoder0", 0x3020000, 0, ("ram0",)),
        EncoderDescription("encoder1", 0x3021000, 1, ("ram1",)),
    )
    assert [sink.base for sink in said.sinks] == [0x6000000, 0x6010000]
    assert (said.name, said.xlen) == ("riscv-virtio,qemu", 64)


def test_sifive_before_ratification() -> None:
    """Version 0 by what they are compatible with, behind `ranges`; the sink is inside of the funnel."""
    result = found("sifive_0")
    said = result.description
    assert said.encoders == (
        EncoderDescription("encoder1", 0x1_2000_0000, 1, ("funnel0",), {}, 0),
        EncoderDescription("encoder2", 0x1_2000_1000, 2, ("funnel0",), {}, 0),
    )
    assert said.funnels == (FunnelDescription("funnel0", 0x1_2000_2000, ("ram0",), {"encoder1": 0, "encoder2": 3}, 0),)
    assert said.sinks == (RamSinkDescription("ram0", 0x1_2000_2000, "SRAM", None, None, "funnel0"),)
    assert result.notes[1:] == (
        "encoder1: its hart has the ID 0x3; is it number 1 in OpenOCD's order?",
        "encoder2: its hart has the ID 0x4; is it number 2 in OpenOCD's order?",
    )


def test_an_encoder_before_ratification_that_feeds_nothing_has_a_sink_inside() -> None:
    changes = [("remote-endpoint = <&funnel_in0>;", ""), ("remote-endpoint = <&encoder0_out>;", "")]
    said = found("sifive_0", *changes, ram0=(0x8000_0000, 0x1000)).description
    assert [encoder.to for encoder in said.encoders] == [("ram0",), ("funnel0",)]
    assert [(sink.name, sink.inside, sink.mode) for sink in said.sinks] == [
        ("ram0", "encoder1", "SMEM"),
        ("ram1", "funnel0", "SRAM"),
    ]


def test_funnels_a_pin_interface_and_a_bridge() -> None:
    said = found("clusters").description
    assert said.encoders == (
        EncoderDescription("encoder0", 0x10000000, 0, ("funnel0",)),
        EncoderDescription("encoder1", 0x10001000, 1, ("funnel0",)),
        EncoderDescription("encoder2", 0x10002000, 2, ("funnel1", "ram0")),
    )
    assert said.funnels == (
        FunnelDescription("funnel0", 0x10008000, ("funnel1",), {"encoder0": 1, "encoder1": 2}),
        FunnelDescription("funnel1", 0x10009000, ("pib0", "atb0"), {"funnel0": 0, "encoder2": 7}),
    )
    assert said.sinks == (RamSinkDescription("ram0", 0x1000F000, "SRAM", None, None),)
    assert said.pib_sinks == (PibSinkDescription("pib0", 0x1000D000),)
    assert said.bridges == (AtbBridgeDescription("atb0", 0x1000E000),)
    assert said.name == "clusters.dtb", "it has no model"
    assert [funnel.name for funnel in Topology(said).top_funnels] == ["funnel1"]


def test_the_binding_of_xuantie() -> None:
    """Ports name components; `cpu` is a number; the buffer of the sink is in the tree."""
    result = found("xuantie")
    said = result.description
    assert said.encoders == (
        EncoderDescription("encoder0", 0x2000000, 0, ("funnel0",)),
        EncoderDescription("encoder1", 0x2001000, 1, ("funnel0",)),
    )
    assert said.funnels == (FunnelDescription("funnel0", 0x2002000, ("ram0",), {"encoder1": 0, "encoder0": 1}),)
    assert said.sinks == (RamSinkDescription("ram0", 0x2003000, "SMEM", 0x9000_0000, 0x40_0000),)
    assert result.notes == ()
    assert found("xuantie", any=(0xA000_0000, 0x1000)).description.sinks[0].start == 0xA000_0000


def test_an_encoder_and_a_sink_of_xuantie_without_ports() -> None:
    """Reported: "it has no trace components"."""
    result = found("xuantie_small")
    assert result.description.encoders == (EncoderDescription("encoder0", 0x2000000, 0, ("ram0",)),)
    assert result.description.sinks == (RamSinkDescription("ram0", 0x2001000, "SRAM", None, None),)
    connected, buffer = result.notes
    assert connected == "it does not say what encoder and sink are connected to: to each other, as the only ones"
    assert buffer.startswith("ram0: a device tree gives neither")


def test_the_spacemit_k3() -> None:
    """k3-trace.dtsi: encoder h = 4c+i at 0xd9002000 + 0x10000c + 0x2000i, its bridge 0x1000 after it, funnel c at
    0xd9000000 + 0x10000c, then CoreSight.
    """
    result = found("spacemit_k3", etr0=(0x1_7000_0000, 0x100_0000))
    said, harts = result.description, [(4 * c + i, c, i) for c in range(4) for i in range(4)]
    bases = {h: 0xD900_2000 + 0x1_0000 * c + 0x2000 * i for h, c, i in harts}
    assert said.encoders == tuple(EncoderDescription(f"encoder{h}", bases[h], h, (f"bridge{h}",)) for h, _, _ in harts)
    bridges = [AtbLinkDescription(f"bridge{h}", bases[h] + 0x1000, (f"funnel{c}",), h + 1, h) for h, c, _ in harts]
    assert said.links[:16] == tuple(bridges)
    for c, funnel in enumerate(said.funnels):
        inputs = {f"bridge{4 * c + i}": i for i in range(4)}
        base = 0xD900_0000 + 0x1_0000 * c
        assert funnel == FunnelDescription(f"funnel{c}", base, ("csfunnel0",), inputs, hart=4 * c)
    assert said.links[16:] == (
        CoresightFunnelDescription("csfunnel0", 0xD904_2000, ("etf0",), {f"funnel{c}": c for c in range(4)}),
        TmcLinkDescription("etf0", 0xD904_3000, ("etr0",)),
    )
    assert said.tmc_sinks == (TmcSinkDescription("etr0", 0xD904_4000, "SMEM", 0x1_7000_0000, 0x100_0000),)
    assert said.hart_power and said.name == "SpacemiT K3 Pico-ITX"
    assert [note.split(":")[0] for note in result.notes] == ["memory"]
    assert len(Topology(said).routes(said.encoders[15])[0].names) == 6


def test_the_memory_of_an_etr_that_no_tree_names() -> None:
    result = found("spacemit_k3")
    assert result.description.tmc_sinks == (TmcSinkDescription("etr0", 0xD904_4000, "SG"),)
    assert [note for note in result.notes if "etr0" in note] == [
        "etr0: written as an ETR that stores through the scatter-gather table of Linux, while Linux traces; for a"
        " buffer of your own: --buffer etr0=START:SIZE"
    ]
    plain = found("spacemit_k3", ("\t\t\tarm,scatter-gather;\n", ""))
    assert plain.description.tmc_sinks == (TmcSinkDescription("etr0", 0xD904_4000, "SRAM"),)


_ETR = "\t\tetr@d9044000"
REPLICATOR = """
    replicator@d9048000 {
        compatible = "arm,coresight-dynamic-replicator", "arm,primecell";
        reg = <0x0 0xd9048000 0x0 0x1000>;
        in-ports { port { rep_in: endpoint { remote-endpoint = <&etf_out>; }; }; };
        out-ports {
            #address-cells = <1>; #size-cells = <0>;
            port@0 { reg = <0>; rep_0: endpoint { remote-endpoint = <&etb_in>; }; };
            port@1 { reg = <1>; rep_1: endpoint { remote-endpoint = <&etr_in>; }; };
        };
    };
    etb@d9049000 {
        compatible = "arm,coresight-tmc", "arm,primecell";
        reg = <0x0 0xd9049000 0x0 0x1000>;
        in-ports { port { etb_in: endpoint { remote-endpoint = <&rep_0>; }; }; };
    };
    etb@d904f000 {
        compatible = "arm,coresight-tmc", "arm,primecell";
        reg = <0x0 0xd904f000 0x0 0x1000>;
    };
"""

def test_a_replicator_and_what_no_trace_of_a_hart_reaches() -> None:
    text = found("spacemit_k3", *_replicated()).description
    assert text.links[17:] == (
        TmcLinkDescription("etf0", 0xD904_3000, ("replicator0",)),
        CoresightReplicatorDescription("replicator0", 0xD904_8000, ("etb0", "etr0")),
    )
    assert {sink.base: sink.mode for sink in text.tmc_sinks} == {0xD904_4000: "SG", 0xD904_9000: "SRAM"}


def _replicated(*more: tuple[str, str]) -> list[tuple[str, str]]:
    """The changes that put the replicator between ETF and ETR, and *more* of the source made by them."""
    changes = [
        ("etf_out: endpoint { remote-endpoint = <&etr_in>; }", "etf_out: endpoint { remote-endpoint = <&rep_in>; }"),
        ("etr_in: endpoint { remote-endpoint = <&etf_out>; }", "etr_in: endpoint { remote-endpoint = <&rep_1>; }"),
        (_ETR, REPLICATOR + _ETR),
    ]
    return [*changes, *more]


def test_a_replicator_whose_first_output_is_not_known() -> None:
    unknown = ("port@0 { reg = <0>; rep_0: endpoint { remote-endpoint = <&etb_in>; }; };", "")
    with pytest.raises(DeviceTreeError, match=r"replicator@d9048000: out-ports: its output 0 feeds nothing that is kn"):
        found("spacemit_k3", *_replicated(unknown, ("remote-endpoint = <&rep_0>;", "")))


STATIC = """
    static {
        compatible = "arm,coresight-static-funnel";
        in-ports {
            #address-cells = <1>; #size-cells = <0>;
            port@3 { reg = <3>; st_in: endpoint { remote-endpoint = <&etf_out>; }; };
        };
        out-ports { port { st_out: endpoint { remote-endpoint = <&etr_in>; }; }; };
    };
"""


def test_a_static_funnel_is_left_out() -> None:
    changes = [
        ("etf_out: endpoint { remote-endpoint = <&etr_in>; }", "etf_out: endpoint { remote-endpoint = <&st_in>; }"),
        ("etr_in: endpoint { remote-endpoint = <&etf_out>; }", "etr_in: endpoint { remote-endpoint = <&st_out>; }"),
        (_ETR, STATIC + _ETR),
    ]
    assert found("spacemit_k3", *changes).description.components == found("spacemit_k3").description.components


def test_a_tree_with_nothing_but_arms_components_has_no_trace_components() -> None:
    kinds = ("riscv,trace-encoder", "riscv,trace-atbbridge", "riscv,trace-funnel")
    with pytest.raises(DeviceTreeError, match="it has no trace components: no node is compatible with one of riscv,tr"):
        found("spacemit_k3", *((f'"{kind}"', '"x"') for kind in kinds))


def test_inputs_that_xuantie_does_not_number() -> None:
    result = found("xuantie", ("endpoint = <&encoder0>;", ""))
    assert result.description.funnels[0].inputs == {"encoder0": 0, "encoder1": 1}
    assert result.notes == ("funnel0: its inputs have no numbers; are they in the right order?",)


def test_an_encoder_of_xuantie_that_feeds_nothing_is_refused() -> None:
    with pytest.raises(
        DeviceTreeError, match="/soc/encoder@2001000: output_port: it feeds none of the trace components"
    ):
        found("xuantie", ("endpoint = <&funnel>;", ""), ("endpoint = <&encoder1>;", ""))


@pytest.mark.parametrize("name", NAMES)
def test_the_text_is_that_description_and_names_the_nodes(name: str) -> None:
    result = found(name)
    assert file.parse(result.text, f"{name}.dtb") == result.description
    lines = result.text.splitlines()
    assert lines[0] == f"# Written by rvtrace import-dt from {name}.dtb."
    assert lines[1 : 1 + len(result.notes)] == [f"# {note}" for note in result.notes]
    node = next(line for line in lines if line.startswith("# /"))[2:]
    assert lines[lines.index(f"# {node}") + 1 :][:2] == [
        "[[component]]",
        'name = "' + result.description.encoders[0].name + '"',
    ]


def test_buffers_in_system_memory() -> None:
    assert found("sifive_0", any=(0x1_0000_0000, 0x8000)).description.sinks == (
        RamSinkDescription("ram0", 0x1_2000_2000, "SMEM", 0x1_0000_0000, 0x8000, "funnel0"),
    )
    both = found("per_hart", ram1=(0x1000, 4), ram0=(0x2000, 8))
    assert [(sink.mode, sink.start, sink.size) for sink in both.description.sinks] == [
        ("SMEM", 0x2000, 8),
        ("SMEM", 0x1000, 4),
    ]
    assert both.notes == ()
    assert found("per_hart", ram1=(0x1000, 4)).notes == (
        "ram0: a device tree gives neither the type of a sink nor the address of its buffer; written as a RAM sink with"
        " memory of its own (if its buffer is in system memory: --buffer START:SIZE)",
    )


@pytest.mark.parametrize(
    ("buffers", "line"),
    [
        ({"any": (0, 4)}, "per_hart.dtb: it has 2 RAM sinks: which one has the buffer?"),
        ({"ram2": (0, 4)}, 'per_hart.dtb: there is no RAM sink "ram2" in it; there is ram0, ram1'),
        ({"ram0": (2, 4)}, 'per_hart.dtb: [[component]] "ram0": start: 0x2 is not a multiple of 0x4'),
        ({"ram0": (4, 0)}, 'per_hart.dtb: [[component]] "ram0": size: is 0'),
    ],
)
def test_a_wrong_buffer_is_one_line(buffers: dict[str, tuple[int, int]], line: str) -> None:
    with pytest.raises((DeviceTreeError, DescriptionError)) as caught:
        found("per_hart", **buffers)
    assert str(caught.value) == line


@pytest.mark.parametrize(
    ("name", "old", "new", "line"),
    [
        (
            "per_hart",
            "cpus = <&CPU0>;",
            "",
            "/trace@c000000: cpus: missing: which hart does it trace?",
        ),
        ("per_hart", "cpus = <&CPU0>;", "cpus = <0x55>;", "/trace@c000000: cpus: names no hart of /cpus"),
        ("per_hart", "cpus = <&CPU0>;", "cpus = [01];", "/trace@c000000: cpus: has 1 byte, which is not whole cells"),
        (
            "per_hart",
            "remote-endpoint = <&ramsink1_in>;",
            "",
            "/trace@c002000: out-ports: it feeds none of the trace components",
        ),
        ("per_hart", "out-ports", "ports", "/trace@c000000: it has neither in-ports nor out-ports"),
        ("per_hart", "in-ports", "out-ports", "/trace@c000000/out-ports/port/endpoint: remote-endpoint: leads from"),
        ("per_hart", "reg = <0xc002000 0x1000>;", "", "/trace@c002000: reg: missing"),
        (
            "per_hart",
            "<0xc002000 0x1000>",
            "<0xc002100 0x1000>",
            '[[component]] "encoder1": base: 0xc002100 is not a multiple of 0x1000, as all bases are',
        ),
        ("xuantie", "cpu = <1>;", "", "/soc/encoder@2001000: cpu: missing: which hart does it trace?"),
        ("xuantie", "cpu = <1>;", "cpu = <2>;", "/soc/encoder@2001000: cpu: is 2, and /cpus has 2"),
        ("xuantie", "<&buffer>", "<0x77>", "/soc/sink@2003000: memory-region: names no memory"),
        ("clusters", "<0xf000 0x9000 0x4000>", "<0xe000 0x9000 0x1000>", "/bus/bus: ranges: none has its 0xf000 in it"),
    ],
)
def test_what_cannot_be_told_is_one_line(name: str, old: str, new: str, line: str) -> None:
    with pytest.raises((DeviceTreeError, DescriptionError)) as caught:
        found(name, (old, new))
    assert str(caught.value).startswith(f"{name}.dtb: {line}")


def test_two_encoders_of_one_hart_are_refused() -> None:
    with pytest.raises(DeviceTreeError, match=r"/trace@c002000: cpus: is hart 0, which /trace@c000000 traces$"):
        found("per_hart", ("cpus = <&CPU1>;", "cpus = <&CPU0>;"))


def test_a_sink_is_called_what_its_node_is() -> None:
    """An ETF is where the trace ends if the ETR behind it is not used."""
    result = found("spacemit_k3", ("etr@d9044000 {", 'etr@d9044000 {\n\t\t\tstatus = "disabled";'))
    assert result.description.tmc_sinks == (TmcSinkDescription("etf0", 0xD904_3000, "SRAM"),)
    assert any(note.startswith("etf0: written as a TMC with memory of its own") for note in result.notes)


def test_an_overlay_is_refused() -> None:
    encoder = 'encoder@1000 { compatible = "riscv,trace-encoder"; reg = <0x1000 0x1000>; };'
    overlay = dtb.read(compiled(f"/dts-v1/; /plugin/; &{{/soc}} {{ {encoder} }};"), "trace.dtbo")
    with pytest.raises(DeviceTreeError, match=r"^trace\.dtbo: it is an overlay: apply it to the board's dev"):
        trace_components(overlay, {})


def test_inputs_without_numbers_are_taken_in_order() -> None:
    """Ports that are all the same, or beyond what a funnel has."""
    port = "reg = <3>;\n\t\t\t\t\tfunnel_in1"
    for number in ("<0>", "<16>"):
        result = found("sifive_0", (port, port.replace("<3>", number)))
        assert result.description.funnels[0].inputs == {"encoder1": 0, "encoder2": 1}
        assert result.notes[0] == "funnel0: its inputs have no numbers; are they in the right order?"


def test_the_only_hart_needs_no_cpus() -> None:
    one = """CPU1: cpu@1 {
			device_type = "cpu";
			reg = <1>;
			riscv,isa = "rv32imac";
		};"""
    disabled = ("reg = <0xc002000 0x1000>;\n\t\tcpus = <&CPU1>;", 'reg = <0xc002000 0x1000>;\n\t\tstatus = "disabled";')
    said = found("per_hart", (one, ""), disabled, ("cpus = <&CPU1>;", ""), ("cpus = <&CPU0>;", "")).description
    assert said.encoders == (EncoderDescription("encoder0", 0xC000000, 0, ("ram0",)),)
    assert said.sinks[1].name == "ram1", "a sink that nothing feeds is described, too"


def test_harts_that_differ_have_no_xlen() -> None:
    last = 'reg = <1>;\n\t\t\triscv,isa = "rv32imac"'
    assert found("per_hart", (last, last.replace("rv32", "rv64"))).description.xlen is None
