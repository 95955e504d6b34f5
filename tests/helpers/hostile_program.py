"""A program whose names and file names hold what a terminal obeys: the demo, with other bytes in its string tables."""

from pathlib import Path

from tests.helpers.cross_compiler import demo

NAMES = {
    b"classify": b"\x1b[2J\nfy\x07",
    b"on_trap": b"o\xc2\x9b31mp",
    b"demo.c": b"d\x1b[m.c",
    b"finish": b"f\n  0x",
}
"""By what a name is replaced, which is as long: clearing the screen, a row more, CSI in one character."""
SHOWN = (r"\x1b[2J\nfy\x07", r"o\x9b31mp", r"f\n  0x")


OF_TESTS = {
    b"trap_vector": b"\xff\xfeo\x9b31mp\xc2\x9bx",
    b"reset_vector": b"w\n  0x8\t\r\x7f1x",
    b"write_tohost": b"\xe2\x80\xae\x1b[2J\n1\t23",
}
"""The same in programs of riscv-tests; with bytes that are not text, and a mark that turns the direction of writing."""


def hostile(folder: Path) -> Path:
    """An ELF file that runs as the demo does."""
    return renamed(demo(folder, "rv64imac_zicsr"), NAMES, folder / "hostile.elf")


def renamed(elf: Path, names: dict[bytes, bytes], path: Path) -> Path:
    content = elf.read_bytes()
    for name, other in names.items():
        assert len(name) == len(other) and name + b"\0" in content
        content = content.replace(name + b"\0", other + b"\0")
    path.write_bytes(content)
    return path


def unfit(text: str) -> set[str]:
    """Characters that are no part of a line: all that Unicode does not call printable, but for ends of lines, tabs."""
    return {character for character in text if not character.isprintable() and character not in "\n\t"}
