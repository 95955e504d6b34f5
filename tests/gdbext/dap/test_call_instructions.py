"""The functions that code calls: what GNU objdump says of the same code."""

import re
import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.gdbext.dap.call_instructions import call_targets

SOURCE = """
.globl _start
_start: jal first
 j second
 {compressed}
 jalr a0
 auipc ra, %pcrel_hi(second)
 jalr ra, %pcrel_lo(here)(ra)
 .option norelax
near: call first
 call second
 jal t0, third
 jal a1, first
 tail first
 ret
 .space 0x600
first: ret
 .space 0x2900
second: jal near
third: jal _start
 call second
 {compressed}
"""


@pytest.mark.parametrize("xlen", [32, 64])
def test_calls_are_those_objdump_names(tmp_path: Path, xlen: int) -> None:
    text = SOURCE.replace("auipc ra", "here: auipc ra").format(compressed="c.jal near" if xlen == 32 else "c.nop")
    (tmp_path / "x.s").write_text(text)
    tool, elf, code = "riscv64-unknown-elf-", tmp_path / "x.elf", tmp_path / "x.bin"
    arch = [f"-march=rv{xlen}imac", f"-mabi={'ilp32' if xlen == 32 else 'lp64'}"]
    words = [f"{tool}gcc", *arch, "-nostdlib", "-nostartfiles", "-Wl,-Ttext=0x80000000", str(tmp_path / "x.s")]
    subprocess.run([*words, "-o", str(elf)], check=True)
    subprocess.run([f"{tool}objcopy", "-O", "binary", "-j", ".text", str(elf), str(code)], check=True)
    printed = subprocess.run([f"{tool}objdump", "-d", str(elf)], check=True, capture_output=True, text=True).stdout
    direct = re.findall(r"^ *([0-9a-f]+):\t[0-9a-f ]+\tc?\.?jal\t(?:(?:ra|t0),)?([0-9a-f]+) <", printed, re.M)
    by_pair = re.findall(r"^ *([0-9a-f]+):\t[0-9a-f ]+\tjalr\t.*# ([0-9a-f]+) <", printed, re.M)
    wanted = sorted((int(at, 16), int(target, 16)) for at, target in [*direct, *by_pair])
    assert len(direct) >= 3 and len(by_pair) >= 3
    assert list(call_targets(0x80000000, code.read_bytes(), xlen)) == wanted
