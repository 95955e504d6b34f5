"""What `make fuzz` has found, each with the input that showed it: one clear line each, or what is right."""

import struct
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.commands.decode.request import DecodeError, _hart_argument
from rvtrace_gdb.console.commands.sim.devices import _document
from rvtrace_gdb.console.options.etrace import BadParametersFile, read_parameters
from rvtrace_gdb.console.scripts.language import ScriptError, parse
from rvtrace_gdb.console.scripts.verbs import read
from rvtrace_gdb.decode.etrace.esp32.snapshot import BadSnapshot
from rvtrace_gdb.decode.program.debug_info import CallFrameInformation
from rvtrace_gdb.decode.program.elf import BadElf
from rvtrace_gdb.decode.program.image import Image, read_elf
from rvtrace_gdb.decode.program.source.source_lines import SourceLines
from rvtrace_gdb.decode.tandem.wording import number_of
from rvtrace_gdb.session.description.file import parse as parse_description
from rvtrace_gdb.session.description.model import DescriptionError
from rvtrace_gdb.session.rpc.protocol import BadRequest
from rvtrace_gdb.session.rpc.server import Methods
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.verify.masks import masks_of
from rvtrace_gdb.support.errors import silent
from rvtrace_gdb.support.text import is_number
from rvtrace_gdb.transport.qemu.launch import hart_count
from tests.decode.etrace.esp32 import images
from tests.fuzz.kinds.requests import Requests

LONG = "9" * 5000
"""More digits than `int` takes."""
PARTS = """
[[component]]
name = "r"
type = "ram_sink"
base = 4096
mode = "SRAM"
[[component]]
name = "a"
type = "encoder"
"""


@pytest.mark.parametrize(("text", "number"), [("08", 8), ("0010", 10), ("0x08", 8), ("7", 7), ("9" * 20, None)])
def test_a_register_by_a_number_with_zeros_before_it(text: str, number: int | None) -> None:
    """`rvtrace tandem verify --mask 08` ended with a traceback."""
    assert number_of(text) == number


def test_bits_of_a_mask_with_zeros_before_them() -> None:
    assert masks_of(["x5:08", "0005:010"]).ignored == {0x1005: 8, 5: 10}


@pytest.mark.parametrize("text", ["\N{SUPERSCRIPT TWO}", "\N{ARABIC-INDIC DIGIT THREE}", LONG, "", "-1", "1_0", " 1"])
def test_what_looks_like_a_number_and_is_none(text: str) -> None:
    assert not is_number(text)


def test_numbers() -> None:
    assert is_number("0") and is_number("007") and is_number(str((1 << 64) - 1))


@pytest.mark.parametrize("text", ["\N{SUPERSCRIPT TWO}", LONG])
def test_wherever_a_number_is_taken(text: str) -> None:
    with pytest.raises(DecodeError, match=r"^--hart .*: give the number of a hart, or all$"):
        _hart_argument(text)
    with pytest.raises(ScriptError, match="expected: delete"):
        parse(f"delete {text}\n", "it.rvts", read)
    assert hart_count(["-smp", text]) == hart_count(["-smp", f"cpus={text}"]) == 1


def test_numbers_that_are_too_long_in_files(tmp_path: Path) -> None:
    file = tmp_path / "it.toml"
    file.write_text(f"[target]\nxlen = {LONG}\n")
    line = rf"^{file}: is not a TOML file that can be read: a number has too many digits$"
    with pytest.raises(DescriptionError, match=line):
        parse_description(file.read_text(), str(file))
    with pytest.raises(DescriptionError, match=line):
        _document(file)
    file.write_text(f"iaddress_width = {LONG}\n")
    with pytest.raises(BadParametersFile, match="is not a number"):
        read_parameters(str(file))


@pytest.mark.parametrize(
    "text",
    [
        "base = 0\n[target]\nxlen = {}",
        "base = {}",
        "base = 0\nhart = {}",
        'base = 0\nto = ["s"]\nversion = {}',
        'base = 0\n[[component]]\nname = "f"\ntype = "funnel"\nbase = 0\ninputs = {{a = {}}}',
        'base = 0\n[usb]\nadapter = "esp"\nir_lengths = [5, {}]',
    ],
)
def test_a_hexadecimal_number_that_is_too_long_in_a_description(text: str) -> None:
    """TOML's reader takes it, and Python does not write it in decimal."""
    with pytest.raises(DescriptionError, match=r"^it\.toml: .* must be "):
        parse_description(PARTS + text.format("0x" + "f" * 5000), "it.toml")


def test_an_elf_file_with_a_note_whose_name_does_not_end(tmp_path: Path) -> None:
    file = tmp_path / "it.elf"
    file.write_bytes(_with_note(struct.pack("<3I", 4, 0, 3) + b"GNUX"))
    with pytest.raises(BadElf, match="is not a readable ELF file"):
        read_elf(file)
    file.write_bytes(_with_note(struct.pack("<3I", 4, 2, 3) + b"GNU\0\xab\xcd\0\0"))
    assert read_elf(file).build_id == "abcd"


def _with_note(note: bytes) -> bytes:
    """An ELF file that has nothing but a note, at its end (System V gABI)."""
    names = b"\0.note\0.shstrtab\0"
    sections = [(0,) * 10, (1, 7, 0, 0, 64 + 192 + len(names), len(note), 0, 0, 4, 0),
                (7, 3, 0, 0, 64 + 192, len(names), 0, 0, 1, 0)]  # fmt: skip
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<2HI3QI6H", 2, 243, 1, 0, 0, 64, 0, 64, 56, 0, 64, 3, 2)
    return header + b"".join(struct.pack("<2I4Q2I2Q", *section) for section in sections) + names + note


@pytest.mark.parametrize("count", [1 << 63, 1 << 64])
def test_more_frames_than_python_counts(count: int) -> None:
    requests = Requests()
    session = requests.session(requests.captures[0])
    methods = Methods(session)
    all_of_them = methods.call("frames", {"number": 3, "first": 0, "count": 100}, silent)
    assert methods.call("frames", {"number": 3, "first": 0, "count": count}, silent) == all_of_them
    assert methods.call("frames", {"number": 3, "first": count, "count": 1}, silent)["frames"] == []
    requests.close()


PAGES: dict[str, dict[str, Any]] = {"functions": {}, "calls": {"depth": 0}, "events": {}, "messages": {}, "history": {}}


@pytest.mark.parametrize("what", PAGES)
def test_a_page_beyond_the_end_of_a_list_is_empty(what: str) -> None:
    """It was an internal error of functions and of messages."""
    requests = Requests()
    session = requests.session(requests.captures[0])
    methods = Methods(session)
    methods.call("page", {"what": what, **PAGES[what]}, silent)
    for begin, end in ((1000, 1000), (1000, 1001), (1 << 64, (1 << 64) + 9)):
        assert methods.call("rows", {"what": what, "begin": begin, "end": end}, silent)["rows"] == []
    requests.close()


@pytest.mark.parametrize("number", [0, 1 << 64])
def test_registers_are_not_known_at_a_number_that_the_history_does_not_have(number: int) -> None:
    """Number 0 was an internal error of `registers_known`, with a tandem trace."""
    requests = Requests()
    methods = [Methods(requests.session(capture)) for capture in requests.captures if capture.tandem]
    for each in methods:
        each.call("goto", {"to": "begin"}, silent)
        assert each.call("registers_known", {"number": number, "registers": ["pc"]}, silent) == {"known": False}
    assert methods
    requests.close()


def test_memory_of_a_chip_that_is_not_what_was_asked_for() -> None:
    session = Session()
    methods = Methods(session)
    begun = {"context": {"elf": str(images.ELF)}, "address": 0x4080_0000}
    ((_, size),) = methods.call("snapshot", begun, silent)["need"]
    with pytest.raises(BadRequest, match=r"^snapshot: the answer has 0 pieces of memory, and 1 were asked for$"):
        methods.call("snapshot", {"answer": []}, silent)
    methods.call("snapshot", begun, silent)
    with pytest.raises(BadSnapshot, match=f"no {size} bytes of memory at 0x40800000"):
        methods.call("snapshot", {"answer": ["00"]}, silent)


@pytest.mark.parametrize("name", ["recursive-cie.elf", "segmented-aranges.elf"])
def test_debug_information_that_refers_to_itself_or_has_segments(name: str) -> None:
    """A CIE pointer without an end, and a segment_size in .debug_aranges: addr2line has the lines all the same."""
    image = Image.from_elf(Path(__file__).parent / "inputs" / name)
    frames, lines = CallFrameInformation(image), SourceLines(image)
    assert lines.line_at(0x1000) == "program.S:5"
    for address in range(0x1000, 0x1020, 2):
        frames.rules_at(address)
