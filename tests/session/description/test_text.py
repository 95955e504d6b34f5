"""Descriptions written down are read back the same."""

import random

import pytest

from rvtrace_gdb.session.description.file import PARALLEL, PIB_MODES, parse
from rvtrace_gdb.session.description.model import Description
from rvtrace_gdb.session.description.tables import text

EVERYTHING = """
[target]
name = "a \\"quoted\\" \\\\ name é"
xlen = 64
[openocd]
host = "::1"
tcl_port = 4711
[[component]]
name = "encoder \\"0\\""
type = "encoder"
version = 0
base = 0x1000
hart = 3
to = ["funnel.0", "ram own"]
repeat_bits = 24
[component.etrace]
iaddress_width = 39
iret_ext = true
trap_vector = "0x100"
trap_handlers = {"2" = "0x80000100", "i7" = "0x80000200"}
support = "standard"
[[component]]
name = "funnel.0"
type = "funnel"
base = 0x2000
to = ["pib", "bridge"]
inputs = {"encoder \\"0\\"" = 7}
[[component]]
name = "ram own"
type = "ram_sink"
inside = "encoder \\"0\\""
mode = "SMEM"
start = 0x100000000
size = 0x1000
[[component]]
name = "ram"
type = "ram_sink"
base = 0x3000
mode = "SRAM"
[[component]]
name = "pib"
type = "pib_sink"
base = 0x4000
mode = "parallel_16"
divider = 65536
clk_center = false
[[component]]
name = "bridge"
type = "atb_bridge"
base = 0x5000
id = 1
[[memory]]
name = "a \\"sram\\""
address = 0x80000000
size = 0x8000
kind = "ram"
private = [0, 3]
dma = true
[[memory]]
address = 0
size = 0x1_0000_0000
kind = "volatile"
[[memory]]
address = 0xffffffffffffff00
size = 0x100
kind = "rom"
"""


def again(description: Description) -> Description:
    return parse(text(description), description.file)


def test_everything_that_can_be_said_is_written() -> None:
    description = parse(EVERYTHING, "e.toml")
    assert again(description) == description


def test_what_is_not_said_is_not_written() -> None:
    encoder = '[[component]]\nname = "e"\ntype = "encoder"\nbase = 0\n'
    description = parse(encoder + '[[component]]\nname = "p"\ntype = "pib_sink"\nbase = 4096\n', "s.toml")
    assert again(description) == description
    written = text(description)
    assert [word for word in ("xlen", "etrace", "inside", "divider", "mode", "version") if word in written] == []


def test_comments_stay_comments() -> None:
    """Whatever is in them."""
    description = parse(EVERYTHING, "e.toml")
    written = text(description, "one\ntwo\x00\rthree", {"ram": "four\n[[component]]"})
    assert parse(written, "e.toml") == description
    assert written.startswith("# one\n# two\\x00\n# three\n[target]\n")
    assert "\n# four\\n[[component]]\n[[component]]\n" in written


@pytest.mark.parametrize("mode", PIB_MODES)
def test_pin_interfaces(mode: str) -> None:
    choose = random.Random(mode)
    center = f"clk_center = {choose.choice(('true', 'false'))}\n" if mode in PARALLEL else ""
    description = parse(
        '[[component]]\nname = "e"\ntype = "encoder"\nbase = 0\n'
        f'[[component]]\nname = "p"\ntype = "pib_sink"\nbase = 4096\nmode = "{mode}"\n{center}',
        "p.toml",
    )
    assert again(description) == description
