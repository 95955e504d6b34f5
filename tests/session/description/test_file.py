"""Target descriptions: what is accepted, and the one line for everything that is not."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description import file, tables
from rvtrace_gdb.session.description.file import load, parse
from rvtrace_gdb.session.description.model import (
    AxiStreamSinkDescription,
    Description,
    DescriptionError,
    EncoderDescription,
    OpenOcdDescription,
    RamSinkDescription,
)

GOOD = """
[target]
name = "board"
xlen = 32
[openocd]
host = "lab"
tcl_port = 7777
[[component]]
name = "encoder0"
type = "encoder"
base = 0x20000000
hart = 1
to = ["ram0"]
[[component]]
name = "ram0"
type = "ram_sink"
base = 0x20001000
mode = "SMEM"
start = 0x30000000
size = 0x10000
"""
BOARD = Description(
    "board",
    "b.toml",
    32,
    OpenOcdDescription("lab", 7777),
    (EncoderDescription("encoder0", 0x20000000, 1, ("ram0",)),),
    (RamSinkDescription("ram0", 0x20001000, "SMEM", 0x30000000, 0x10000),),
)


def test_the_documented_example_is_accepted() -> None:
    assert file.__doc__ is not None
    lines = file.__doc__.splitlines()
    example = "\n".join(line for line in lines if line.startswith("    "))
    assert parse(example, "x.toml").sinks == BOARD.sinks


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "[target]",
            "[tarket]",
            "b.toml: tarket: unknown; known here: target, openocd, usb, component, tandem, tracer, tacit, memory, qemu",
        ),
        ("xlen = 32", "xlen = 16", "b.toml: [target]: xlen: is 16, must be 32 or 64"),
        ("xlen = 32", 'xlen = "32"', "b.toml: [target]: xlen: is '32', must be a number from 0 to 2**64 - 1"),
        ("xlen = 32", "xlne = 32", "b.toml: [target]: xlne: unknown; known here: name, xlen, power, context_notify"),
        ("tcl_port = 7777", "tcl_port = 77777", "b.toml: [openocd]: tcl_port: 77777 is not a TCP port (1 to 65535)"),
        ("tcl_port = 7777", "port = 7777", "b.toml: [openocd]: port: unknown; known here: host, tcl_port"),
        ('host = "lab"', "host = 1", "b.toml: [openocd]: host: is 1, must be one line of text"),
        ('name = "encoder0"\n', "", "b.toml: [[component]] 1: name: missing"),
        ('name = "encoder0"', 'name = "ram0"', 'b.toml: [[component]]: name: "ram0" is used by 2 components'),
        ("= 0x20000000", "= 0x20001000", "b.toml: [[component]]: base: 0x20001000 is used by encoder0 and ram0"),
        (
            "base = 0x20000000",
            "base = 0x20000010",
            'b.toml: [[component]] "encoder0": base: 0x20000010 is not a multiple of 0x1000, as all bases are',
        ),
        (
            "base = 0x20000000",
            "base = -4096",
            'b.toml: [[component]] "encoder0": base: is -4096, must be a number from 0 to 2**64 - 1',
        ),
        ("base = 0x20000000\n", "", 'b.toml: [[component]] "encoder0": base: missing'),
        (
            "hart = 1",
            "hart = true",
            'b.toml: [[component]] "encoder0": hart: is True, must be a number from 0 to 2**64 - 1',
        ),
        (
            "hart = 1",
            "core = 1",
            'b.toml: [[component]] "encoder0": core: unknown; known here: name, type, base, hart, to, etrace, version,'
            " repeat_bits",
        ),
        (
            "hart = 1",
            "hart = 1\nrepeat_bits = 33",
            'b.toml: [[component]] "encoder0": repeat_bits: 33 is not a number of bits from 1 to 32',
        ),
        (
            'to = ["ram0"]',
            'to = ["ram1"]',
            'b.toml: [[component]] "encoder0": to: there is no sink "ram1"; there is ram0',
        ),
        (
            'to = ["ram0"]',
            'to = "ram0"',
            'b.toml: [[component]] "encoder0": to: must be a list of names, as in to = ["ram0"]',
        ),
        (
            '"encoder"',
            '"encode"',
            'b.toml: [[component]] "encoder0": type: "encode" is not one of encoder, ram_sink, '
            "funnel, pib_sink, atb_bridge, axi_stream_sink, coresight_funnel, coresight_replicator, coresight_tmc",
        ),
        (
            "start = 0x30000000\n",
            "",
            'b.toml: [[component]] "ram0": start: missing: an SMEM sink writes to memory that must be reserved for it',
        ),
        (
            "size = 0x10000\n",
            "",
            'b.toml: [[component]] "ram0": size: missing: an SMEM sink writes to memory that must be reserved for it',
        ),
        ("size = 0x10000\n", "size = 0\n", 'b.toml: [[component]] "ram0": size: is 0'),
        (
            "size = 0x10000\n",
            "size = 0x10002\n",
            'b.toml: [[component]] "ram0": size: 0x10002 is not a multiple of 0x4',
        ),
        ('"SMEM"', '"smem"', 'b.toml: [[component]] "ram0": mode: "smem" is not one of SMEM, SRAM'),
        (
            "[target]",
            "[target",
            "b.toml: is not a TOML file: Expected ']' at the end of a table declaration (at line 2, column 8)",
        ),
    ],
)
def test_each_mistake_is_one_line_with_file_table_and_key(old: str, new: str, line: str) -> None:
    assert old in GOOD
    with pytest.raises(DescriptionError) as caught:
        parse(GOOD.replace(old, new, 1), "b.toml")
    assert str(caught.value) == line


def test_several_sinks_need_to() -> None:
    other = GOOD + '[[component]]\nname = "ram1"\ntype = "ram_sink"\nbase = 0x20002000\nmode = "SRAM"\n'
    assert parse(other, "b.toml").encoders[0].to == ("ram0",)
    with pytest.raises(DescriptionError, match=r'"encoder0": to: missing: name the sink it feeds, one of ram0, ram1$'):
        parse(other.replace('to = ["ram0"]\n', ""), "b.toml")


@pytest.mark.parametrize("kind", ["encoder", "ram_sink"])
def test_both_ends_are_needed(kind: str) -> None:
    parts = GOOD.split("[[component]]")
    text = "[[component]]".join(part for part in parts if f'"{kind}"' not in part)
    none = rf'\[\[component\]\]: there is none of type "{kind}"(, "pib_sink" or "atb_bridge")?'
    with pytest.raises(DescriptionError, match=f"{none}; `rvtrace init` looks for one$"):
        parse(text, "b.toml")


def test_harts_with_records_alone_need_no_components() -> None:
    """What is said of memory holds for Control Transfer Records. `trace start` says what is missing."""
    made = parse('[[memory]]\naddress = 0x80000000\nsize = 0x1000\nkind = "ram"\n', "b.toml")
    assert not made.encoders and made.memory[0].size == 0x1000
    with pytest.raises(DescriptionError, match="none of type"):
        parse('[target]\nname = "b"\n', "b.toml")


@given(
    st.text(max_size=200)
    | st.builds(lambda a, b: GOOD[:a] + b + GOOD[a:], st.integers(0, len(GOOD)), st.text(max_size=5))
)
@settings(deadline=None)
def test_no_text_does_more_than_be_refused(text: str) -> None:
    try:
        parse(text, "any.toml")
    except DescriptionError as error:
        assert "\n" not in str(error)


@pytest.fixture
def board(tmp_path: Path) -> Path:
    path = tmp_path / "board.toml"
    path.write_text(GOOD)
    return path


def beside(folder: Path) -> str:
    """An ELF with a description of its own beside it."""
    (folder / "rvtrace.toml").write_text(GOOD.replace("board", "beside"))
    return str(folder / "app.elf")


def test_the_given_file_wins_then_the_variable_then_the_one_beside_the_elf(tmp_path: Path, board: Path) -> None:
    elf = beside(tmp_path)
    other = tmp_path / "other.toml"
    other.write_text(GOOD.replace("board", "variable"))
    variable = {"RVTRACE_TARGET": str(other)}
    assert Context(elf, str(board)).description(variable).name == "board"
    assert Context(elf).description(variable).name == "variable"
    assert Context(elf).description({}).name == "beside"
    assert Context(elf).description({"RVTRACE_TARGET": ""}).name == "beside"


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff\xfe")
    with pytest.raises(DescriptionError, match=r"is not a TOML file: it is not UTF-8 text$"):
        load(tmp_path / "x")


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        ({"encoder_base": 0}, "ram_sink_base: is not set, and no target description has it"),
        ({"encoder_base": 0, "ram_sink_base": 4}, "ram_sink_base: 0x4 is not a multiple of 0x1000"),
        (
            {"encoder_base": 0, "buffer_size": 4, "ram_sink_base": 0},
            "buffer_size: is set, buffer_start is not: the buffer needs both",
        ),
        ({"buffer_size": 0}, "buffer_size: is 0"),
        ({"buffer_start": 2}, "buffer_start: 0x2 is not a multiple of 0x4"),
        ({"encoder_base": "0x10"}, "encoder_base: '0x10' is not a number from 0 to 2**64 - 1"),
        ({"openocd_port": 0}, "openocd_port: 0 is not a TCP port (1 to 65535)"),
        ({"openocd_host": ""}, "openocd_host: '' is not a host name"),
        ({"base": 1}, "base: there is no such setting"),
    ],
)
def test_a_wrong_override_is_one_line(overrides: dict[str, Any], line: str) -> None:
    with pytest.raises(DescriptionError) as caught:
        Context(None, None, overrides).description({})
    assert str(caught.value) == line


def test_an_override_that_could_mean_two_components_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text(
        GOOD + '[[component]]\nname = "encoder1"\ntype = "encoder"\nbase = 0x20002000\nhart = 0\nto = ["ram0"]\n'
    )
    with pytest.raises(
        DescriptionError, match=r"^encoder_base: the target description has 2 encoders, which one is meant\?$"
    ):
        Context(None, str(path), {"encoder_base": 0}).description({})


def test_a_sink_to_an_axi_stream() -> None:
    """AMD's MDM V: it has an address, and no settings."""
    text = '[[component]]\nname = "e"\ntype = "encoder"\nbase = 0x1000\n'
    stream = '[[component]]\nname = "s"\ntype = "axi_stream_sink"\nbase = 0x2000\n'
    found = parse(text + stream, "x")
    assert found.stream_sinks == (AxiStreamSinkDescription("s", 0x2000),)
    assert found.encoders[0].to == ("s",)
    assert parse(tables.text(found), "x") == found
    with pytest.raises(DescriptionError, match=r'^x: \[\[component\]\] "s": divider: unknown; known here: name'):
        parse(text + stream + "divider = 2\n", "x")
