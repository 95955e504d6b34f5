"""Tables [[memory]] of target descriptions, and what they say of addresses."""

import pytest

from rvtrace_gdb.decode.reconstruction.facts import MemoryKind, MemoryRange
from rvtrace_gdb.session.description import memory
from rvtrace_gdb.session.description.file import parse
from rvtrace_gdb.session.description.model import DescriptionError
from tests.session.description.test_file import GOOD

RAM = """
[[memory]]
name = "sram"
address = 0x80000000
size = 0x8000
kind = "ram"
"""


def ranges(text: str) -> tuple[MemoryRange, ...]:
    return parse(GOOD + text, "b.toml").memory


def test_the_documented_example_is_accepted() -> None:
    assert memory.__doc__ is not None
    example = "\n".join(line for line in memory.__doc__.splitlines() if line.startswith("    "))
    assert ranges(example) == (MemoryRange(0x8000_0000, 0x800_0000, MemoryKind.RAM, (0,), True, "sram"),)


def test_qemu_has_memory_too() -> None:
    assert parse('[qemu]\nfolder = "/x"\n' + RAM, "q.toml").memory == ranges(RAM)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("[[memory]]", "[memory]", "b.toml: memory: must be written [[memory]], once for each"),
        ("address = 0x80000000\n", "", 'b.toml: [[memory]] "sram": address: missing'),
        ("0x8000\n", "0\n", 'b.toml: [[memory]] "sram": size: is 0'),
        (
            "0x80000000", "0xffffffffffff8001",
            'b.toml: [[memory]] "sram": size: 0xffffffffffff8001 + 0x8000 is beyond 2**64',
        ),
        ('"ram"', '"flash"', 'b.toml: [[memory]] "sram": kind: "flash" is not one of ram, rom, volatile'),
        (
            'name = "sram"', "shared = true",
            "b.toml: [[memory]] 1: shared: unknown; known here: name, address, size, kind, private, dma",
        ),
        (
            '"ram"', '"ram"\nprivate = 0',
            'b.toml: [[memory]] "sram": private: must be a list of the harts that write it, as in private = [0]',
        ),
        (
            '"ram"', '"ram"\nprivate = []',
            'b.toml: [[memory]] "sram": private: must be a list of the harts that write it, as in private = [0]',
        ),
        ('"ram"', '"ram"\ndma = 1', 'b.toml: [[memory]] "sram": dma: is 1, must be true or false'),
        (
            '"ram"', '"rom"\ndma = true',
            'b.toml: [[memory]] "sram": dma: only kind = "ram" has it: remove it, or is this RAM, not rom?',
        ),
    ],
)  # fmt: skip
def test_each_mistake_is_one_line(old: str, new: str, line: str) -> None:
    assert old in RAM
    with pytest.raises(DescriptionError) as caught:
        ranges(RAM.replace(old, new, 1))
    assert str(caught.value) == line
