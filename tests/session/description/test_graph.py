"""Target descriptions with more than an encoder and a RAM sink: what may feed what, and what each may say of itself.

Ref: RISC-V Trace Control Interface 1.0, "Allowed Connections Between Components".
"""


import pytest

from rvtrace_gdb.session.description.file import parse
from rvtrace_gdb.session.description.model import (
    DescriptionError,
    EncoderDescription,
    FunnelDescription,
    RamSinkDescription,
)

GOOD = """
[[component]]
name = "encoder0"
type = "encoder"
base = 0x1000
hart = 0
to = ["funnel0"]
[[component]]
name = "encoder1"
type = "encoder"
base = 0x2000
hart = 1
to = ["funnel0", "atb0"]
[[component]]
name = "funnel0"
type = "funnel"
base = 0x3000
to = ["funnel1"]
inputs = {encoder1 = 2, encoder0 = 5}
[[component]]
name = "funnel1"
type = "funnel"
base = 0x4000
to = ["ram0", "pib0"]
[[component]]
name = "ram0"
type = "ram_sink"
base = 0x5000
mode = "SRAM"
[[component]]
name = "pib0"
type = "pib_sink"
base = 0x6000
mode = "parallel_4"
divider = 2
clk_center = true
[[component]]
name = "atb0"
type = "atb_bridge"
base = 0x7000
id = 0x6f
"""
VERSION_0 = """
[[component]]
name = "encoder0"
type = "encoder"
version = 0
base = 0x1000
[[component]]
name = "funnel0"
type = "funnel"
version = 0
base = 0x2000
[[component]]
name = "ram0"
type = "ram_sink"
inside = "funnel0"
mode = "SRAM"
"""


def test_sinks_before_ratification_are_inside_of_what_feeds_them() -> None:
    """There the sink's registers are the funnel's or the encoder's, and what it feeds follows from that."""
    found = parse(VERSION_0, "v.toml")
    assert found.encoders == (EncoderDescription("encoder0", 0x1000, 0, ("funnel0",), {}, 0),)
    assert found.funnels == (FunnelDescription("funnel0", 0x2000, ("ram0",), {"encoder0": 0}, 0),)
    assert found.sinks == (RamSinkDescription("ram0", 0x2000, "SRAM", None, None, "funnel0"),)


def refused(text: str) -> str:
    with pytest.raises(DescriptionError) as caught:
        parse(text, "g.toml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            'to = ["ram0", "pib0"]',
            'to = ["funnel0"]',
            '"funnel0": to: a funnel cannot feed itself: funnel0 -> funnel1 -> funnel0',
        ),
        (
            'to = ["ram0", "pib0"]',
            'to = ["ram0", "funnel1"]',
            '"funnel1": to: a funnel cannot feed itself: funnel1 -> funnel1',
        ),
        (
            'to = ["ram0", "pib0"]',
            'to = ["ram0", "ram0"]',
            '"funnel1": to: "ram0" is named twice',
        ),
        (
            'to = ["ram0", "pib0"]\n',
            "",
            '"funnel1": to: missing: name what it feeds, one of funnel0, ram0, pib0, atb0',
        ),
        (
            'to = ["ram0", "pib0"]\n',
            "to = []\n",
            '"funnel1": to: missing: name what it feeds, one of funnel0, ram0, pib0, atb0',
        ),
        ('to = ["funnel1"]', 'to = ["encoder1"]', '"funnel0": to: "encoder1" is an encoder, which only a hart feeds'),
        ('to = ["funnel1"]', 'to = ["ram"]', '"funnel0": to: there is no sink or funnel "ram"; there is funnel1, '),
        (
            'to = ["funnel0", "atb0"]',
            'to = ["encoder0"]',
            '"encoder1": to: "encoder0" is an encoder, which only a hart feeds',
        ),
        ("id = 0x6f", 'to = ["ram0"]', '"atb0": id: missing: traces are told apart by it in what the bridge feeds'),
        ("id = 0x6f", 'id = 1\nto = ["ram0"]', '"atb0": to: "ram0" is not on Arm\'s trace bus: only what is on it can'),
        ("hart = 1", "hart = 0", ": hart: 0 is traced by encoder0 and encoder1; a hart has one encoder"),
        ("encoder1 = 2", "encoder1 = 16", '"funnel0": inputs.encoder1: is 16, must be from 0 to 15'),
        ("encoder1 = 2", "encoder1 = true", '"funnel0": inputs.encoder1: is True, must be from 0 to 15'),
        ("encoder1 = 2", "encoder1 = 5", '"funnel0": inputs: 2 components feed input 5'),
        ("encoder1 = 2, ", "", '"funnel0": inputs: "encoder1" feeds it as well: at which input?'),
        ("encoder1 = 2", "ram0 = 2", '"funnel0": inputs: "ram0" does not feed it; encoder0, encoder1 does'),
        (
            "inputs = {encoder1 = 2, encoder0 = 5}",
            "inputs = [0, 1]",
            '"funnel0": inputs: must be a table of names and numbers, as in inputs = {encoder0 = 0}',
        ),
        ("base = 0x4000", "base = 0x3000", ": base: 0x3000 is used by funnel0 and funnel1"),
        ("base = 0x4000", "base = 0x4004", '"funnel1": base: 0x4004 is not a multiple of 0x1000, as all bases are'),
        (
            '"parallel_4"',
            '"parallel_3"',
            '"pib0": mode: "parallel_3" is not one of swt_manchester, swt_uart, parallel_1, parallel_2, parallel_4,'
            " parallel_8, parallel_16",
        ),
        (
            '"parallel_4"',
            '"swt_uart"',
            '"pib0": clk_center: needs a mode with a clock: parallel_1, parallel_2, parallel_4, parallel_8,'
            " parallel_16",
        ),
        ("clk_center = true", "clk_center = 1", '"pib0": clk_center: is 1, must be true or false'),
        ("divider = 2", "divider = 0", '"pib0": divider: is 0, must be from 1 to 65536'),
        ("id = 0x6f", "id = 0", '"atb0": id: is 0, must be from 1 to 111'),
        ("id = 0x6f", "id = 0x70", '"atb0": id: is 112, must be from 1 to 111'),
        ("hart = 1", "hart = 1\nversion = 2", '"encoder1": version: is 2, must be from 0 to 1'),
        (
            'base = 0x5000\nmode = "SRAM"',
            'inside = "funnel1"\nmode = "SRAM"',
            '"ram0": inside: "funnel1" has version = 1: since ratification a sink has registers of its own',
        ),
    ],
)
def test_each_mistake_is_one_line(old: str, new: str, line: str) -> None:
    assert old in GOOD
    said = refused(GOOD.replace(old, new, 1))
    assert said.startswith("g.toml: [[component]]")
    assert line in said


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('inside = "funnel0"', 'inside = "funnel"', '"ram0": inside: there is no encoder or funnel "funnel"'),
        ('inside = "funnel0"', 'inside = "ram0"', '"ram0": inside: there is no encoder or funnel "ram0"'),
        (
            'inside = "funnel0"',
            'inside = "funnel0"\nbase = 0x2000',
            '"ram0": base: is that of "funnel0", which it is inside of: leave it out',
        ),
        (
            "base = 0x1000",
            'base = 0x1000\nto = ["ram0"]',
            '"encoder0": to: "ram0" is inside of "funnel0", which alone feeds it',
        ),
        (
            "base = 0x2000",
            'base = 0x2000\nto = ["ram1"]',
            '"ram0": inside: "funnel0" does not feed it',
        ),
        (
            'mode = "SRAM"',
            'mode = "SMEM"\nstart = 0xfffff000\nsize = 0x1004',
            '"ram0": inside: its buffer crosses a multiple of 4 GiB, and version 0 has one register for all bits 63:32',
        ),
    ],
)
def test_each_mistake_about_sinks_inside_is_one_line(old: str, new: str, line: str) -> None:
    assert refused(VERSION_0.replace(old, new, 1)) == f"g.toml: [[component]] {line}"


def test_names_with_control_characters_do_not_break_the_line() -> None:
    assert refused(GOOD + '"a\\nb" = 1\n') == (
        'g.toml: [[component]] "atb0": a\\nb: unknown; known here: name, type, base, id, inside, to, hart'
    )


def test_a_long_row_of_funnels_is_no_problem() -> None:
    """Each feeds the two after it: as many ways as there are Fibonacci numbers."""
    count = 200
    text = '[[component]]\nname = "e"\ntype = "encoder"\nbase = 0\nto = ["f0"]\n'
    for n in range(count):
        to = [f"f{m}" for m in (n + 1, n + 2) if m < count] or ["ram"]
        text += f'[[component]]\nname = "f{n}"\ntype = "funnel"\nbase = {0x1000 * (n + 1)}\nto = {to}\n'
    text += '[[component]]\nname = "ram"\ntype = "ram_sink"\nbase = 0x1000000\nmode = "SRAM"\n'
    assert len(parse(text, "g.toml").funnels) == count
