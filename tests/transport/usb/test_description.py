"""The table [usb] of a target description."""

from pathlib import Path

import pytest

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description import tables
from rvtrace_gdb.session.description.file import parse
from rvtrace_gdb.session.description.model import DescriptionError, UsbDescription
from rvtrace_gdb.session.description.tables import text

ENCODER = '[[component]]\nname = "e"\ntype = "encoder"\nbase = 0\n'
ENCODER += '[[component]]\nname = "p"\ntype = "pib_sink"\nbase = 4096\n'


def test_the_documented_example() -> None:
    assert tables.__doc__ is not None
    example = tables.__doc__[tables.__doc__.index("    [usb]") :].partition("\n\n")[0]
    usb = parse(example.replace('"esp"', '"mpsse"') + "\n" + ENCODER, "x.toml").usb
    assert usb == UsbDescription("mpsse", "60:55:F9:00:00:01", 10000, 0, (8, 11), 0, (5,))


@pytest.mark.parametrize(
    "table",
    [
        'adapter = "esp"',
        'adapter = "esp"\nserial = "A"\nkhz = 1\ntap = 3\nir_lengths = [5, 4, 5, 5]',
        'adapter = "mpsse"\ninterface = 1\nlayout = [0x88, 0x8b]',
    ],
)
def test_what_is_written_is_read_again(table: str) -> None:
    description = parse(f"[usb]\n{table}\n{ENCODER}", "x.toml")
    assert description.usb is not None
    assert parse(text(description), "x.toml") == description
    assert description.way.startswith("USB (")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", r"x.toml: \[usb\]: adapter: missing"),
        ('adapter = "jlink"', r'\[usb\]: adapter: "jlink" is not one of esp, mpsse'),
        ('adapter = "esp"\nspeed = 1', r"\[usb\]: speed: unknown; known here: adapter, serial, khz,"),
        ('adapter = "esp"\nkhz = 0', r"\[usb\]: khz: is 0, must be from 1 to 100000"),
        ('adapter = "esp"\nlayout = [1, 2]', r'\[usb\]: layout: only adapter = .*"mpsse".* has it'),
        ('adapter = "mpsse"\nlayout = [1]', r"\[usb\]: layout: must be two numbers, as in layout = "),
        ('adapter = "mpsse"\nlayout = [1, "2"]', r"\[usb\]: layout: is \[1, '2'\], must be two numbers"),
        ('adapter = "esp"\nir_lengths = []', r"\[usb\]: ir_lengths: is empty: a length in bits"),
        ('adapter = "esp"\nir_lengths = 5', r"\[usb\]: ir_lengths: is 5, must be a length in bits"),
        ('adapter = "esp"\ntap = -1', r"\[usb\]: tap: is -1, must be"),
        ('adapter = "esp"\n[openocd]', r"\[usb\]: there is also \[openocd\]: remove one"),
    ],
)
def test_each_mistake_is_one_line(table: str, said: str) -> None:
    with pytest.raises(DescriptionError, match=said):
        parse(f"[usb]\n{table}\n{ENCODER}", "x.toml")


def test_an_openocd_that_the_user_names_is_used_instead(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(f'[usb]\nadapter = "esp"\n{ENCODER}')
    assert Context(target_file=str(file)).description({}).usb == UsbDescription("esp")
    assert Context(target_file=str(file), overrides={"openocd_port": 7000}).description({}).usb is None
