"""A program that knows nothing of CTR: a loop of calls, with a branch and a jump in what is called."""

import subprocess
from pathlib import Path

from tests.ctr_model.programs import SOURCES

SOURCE = """
    .section .text.start
    .option norelax
    .option norvc
    .globl _start, done
_start:
    li   s0, 9
again:
    jal  ra, f
    la   t0, f
    jalr ra, 0(t0)
    addi s0, s0, -1
    bnez s0, again
done:
    j    done
f:
    beq  zero, s0, over
    j    over
over:
    ret
"""


def plain(folder: Path) -> Path:
    """The ELF, in *folder*. It ends at `done`."""
    source, elf = folder / "plain.S", folder / "plain.elf"
    source.write_text(SOURCE)
    command = ["riscv64-unknown-elf-gcc", "-march=rv64imac_zicsr", "-mabi=lp64", "-nostdlib", "-nostartfiles"]
    command += ["-Wl,--no-warn-rwx-segments", "-T", str(SOURCES / "ctr.ld"), str(source), "-o", str(elf)]
    subprocess.run(command, check=True)
    return elf
