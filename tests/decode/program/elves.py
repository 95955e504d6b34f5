"""ELF files for tests, made by the real tools, and gdb's word on their symbols."""

import re
import subprocess
from pathlib import Path

_SYMBOL = re.compile(r"\$\d+ = 0x[0-9a-f]+(?: <(.+?)(?:\+(\d+))?>)?$")
_ET_DYN = 3
_LIBRARY = """
PHDRS { ro PT_LOAD FLAGS(4) FILEHDR PHDRS; text PT_LOAD FLAGS(5); data PT_LOAD FLAGS(6); }
SECTIONS {
  . = SIZEOF_HEADERS;
  .rodata : { *(.rodata) } :ro
  . = . + 0x1000;
  .text : { *(.text) } :text
  . = . + 0x1000;
  .data : { *(.data) } :data
}
"""


def build(folder: Path, source: str, *options: str, suffix: str = ".S", name: str = "program") -> Path:
    """An ELF from one source text."""
    path, elf = folder / f"{name}{suffix}", folder / f"{name}.elf"
    path.write_text(source)
    command = ["riscv64-unknown-elf-gcc", "-march=rv64imac", "-mabi=lp64", "-nostdlib", "-Wl,-e,0", *options]
    subprocess.run([*command, str(path), "-o", str(elf)], check=True, capture_output=True)
    return elf


def build_library(folder: Path, source: str, *options: str, name: str = "library") -> Path:
    """As `build`, laid out like a shared library: linked at 0, and further apart in memory than in the file.

    The bare-metal linker makes no shared objects, so the type is written into the header.
    """
    script = folder / "library.ld"
    script.write_text(_LIBRARY)
    elf = build(folder, source, f"-Wl,-T,{script}", *options, name=name)
    content = bytearray(elf.read_bytes())
    content[16] = _ET_DYN
    elf.write_bytes(content)
    return elf


def strip(elf: Path) -> Path:
    """The file without its symbols."""
    bare = elf.with_suffix(".stripped")
    subprocess.run(["riscv64-unknown-elf-strip", str(elf), "-o", str(bare)], check=True)
    return bare


def gdb_symbols(elf: Path, addresses: list[int], script: Path, *, bias: int = 0) -> list[tuple[str, int] | None]:
    """What gdb prints as <name+offset> when the program is in memory *bias* bytes above its addresses."""
    load = f"set architecture riscv:rv64\nadd-symbol-file {elf} -o {bias}\n" if bias else f"file {elf}\n"
    script.write_text(load + "".join(f"print/a {address}\n" for address in addresses))
    command = ["gdb-multiarch", "-nx", "-batch", "-ex", "set confirm off", "-x", str(script)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    matches = filter(None, map(_SYMBOL.match, text.splitlines()))
    return [(match[1], int(match[2] or 0)) if match[1] else None for match in matches]
