"""The numbers of CSRs, as the assembler of binutils knows them."""

import re
import struct
import subprocess
from pathlib import Path

from rvtrace_gdb.decode.program.csrs import CSRS

NOT_KNOWN = {"jvt", "scountinhibit", "mnscratch", "mnepc", "mncause", "mntval", "mnstatus"}
"""By binutils 2.40 of Debian 12."""
AS = ["riscv64-unknown-elf-as", "-march=rv32gcvh", "-mno-arch-attr"]


def test_numbers_are_those_of_the_assembler(tmp_path: Path) -> None:
    source, made, code = (tmp_path / name for name in ("x.s", "x.o", "x.bin"))
    source.write_text("".join(f"csrr x0, {name}\n" for name in CSRS))
    refused = subprocess.run([*AS, source, "-o", made], capture_output=True, text=True, check=False).stderr
    unknown = set(re.findall(r"unknown CSR `(\w+)'", refused))
    assert unknown <= NOT_KNOWN
    names = [name for name in CSRS if name not in unknown]
    source.write_text("".join(f"csrr x0, {name}\n" for name in names))
    subprocess.run([*AS, source, "-o", made], capture_output=True, check=True)
    subprocess.run(["riscv64-unknown-elf-objcopy", "-O", "binary", made, code], check=True)
    words = struct.unpack(f"<{len(names)}I", code.read_bytes())
    assert {name: word >> 20 for name, word in zip(names, words, strict=True)} == {name: CSRS[name] for name in names}
