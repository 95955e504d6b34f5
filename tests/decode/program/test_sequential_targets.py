"""Where a jump through a constant goes, against objdump, which follows lui, c.lui and auipc into a jalr by itself."""

import random
import re
import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.decode.executed.encoder_ingress import Block
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import sequential_target
from tests.decode import assembler as asm

_JALR = re.compile(r"^ *([0-9a-f]+):\t[0-9a-f]+ *\tjalr\t.*# 0x([0-9a-f]+)", re.MULTILINE)
BASE = {32: 0x8000_0000, 64: 0xFFFF_FFFF_8000_0000}


def pair(rng: random.Random) -> bytes:
    """A constant and a jump through it."""
    register = rng.choice([1, 5, 6, 7, 15, 31])
    load = rng.choice(["lui", "auipc", "c.lui"])
    if load == "c.lui":
        code = asm.c_lui(register, rng.choice([*range(-32, 0), *range(1, 32)]))
    else:
        code = (asm.lui if load == "lui" else asm.auipc)(register, rng.getrandbits(20))
    return code + asm.jalr(rng.choice([0, 1, 5, 7]), register, rng.randrange(-2048, 2048))


@pytest.mark.parametrize("xlen", [32, 64])
def test_targets_agree_with_objdump(tmp_path: Path, xlen: int) -> None:
    rng = random.Random(xlen)
    pairs = [pair(rng) for _ in range(2000)]
    code = b"".join(one + asm.C_NOP for one in pairs)
    raw = tmp_path / "code.bin"
    raw.write_bytes(code)
    command = ["riscv64-unknown-elf-objdump", "-D", "-z", "-b", "binary", "-m", f"riscv:rv{xlen}"]
    command += ["-M", "no-aliases,numeric", f"--adjust-vma={BASE[xlen]}", str(raw)]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    expected = {int(at, 16): int(target, 16) for at, target in _JALR.findall(listing)}
    assert len(expected) == len(pairs)
    image = Image(xlen)
    image.add_code(BASE[xlen], code)
    at = BASE[xlen]
    for one in pairs:
        load, jump = image.instruction(at), image.instruction(at + len(one) - 4)
        target = expected[at + len(one) - 4] & ~1  # jalr clears bit 0, which objdump shows
        assert sequential_target(load, at, jump, xlen) == target
        assert Block.from_instructions(at, [load, jump], xlen).inferred == target
        at += len(one) + 2


def test_what_is_no_constant() -> None:
    """Another register, x0, an instruction in between."""
    image = Image(64)
    image.add_code(0, asm.lui(6, 2) + asm.jalr(0, 7) + asm.lui(0, 2) + asm.jalr(0, 0) + asm.lui(6, 2) + asm.NOP)
    for at in (0, 8):
        assert sequential_target(image.instruction(at), at, image.instruction(at + 4), 64) is None
    nop, jump = image.instruction(20), image.instruction(4)
    assert sequential_target(nop, 20, jump, 64) is None
    assert Block.from_instructions(0, [image.instruction(16), nop, jump], 64).inferred == -1
