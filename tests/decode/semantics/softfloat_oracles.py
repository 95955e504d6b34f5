"""Two independent floating-point units for `test_softfloat`: the host's (through a C program) and Spike's.

Both read operand records of three 64-bit words and answer, per rounding mode and record, the result's bits and fflags.
"""

import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.decode.semantics.softfloat_operands import Triple
from tests.helpers.spike import spike_program
from tests.transport.simulated.hart.spike import device_tree

HOST_MODES = (0, 1, 2, 3)  # RNE, RTZ, RDN, RUP: C has no RMM

Answers = list[list[tuple[int, int]]]
"""answers[i][j]: (bits, fflags) of operand record j in the i-th rounding mode"""

_SOURCE = Path(__file__).with_name("softfloat_host.c")
_SPIKE_ISA = "rv64imafdc_zicsr"


@dataclass(frozen=True)
class Batch:
    """One Spike instruction over a table of operands, in some rounding modes.

    `instruction` reads fa0, fa1, fa2 (or a0 when `integer_operand`) and writes fa3 (or a0 when `integer_result`).
    """

    instruction: str
    operand_bits: int
    result_bits: int
    operands: Sequence[Triple]
    modes: Sequence[int]
    integer_operand: bool = False
    integer_result: bool = False


def build_host(folder: Path) -> Path:
    """Compile the host's program."""
    program = folder / "softfloat_host"
    # The flags keep the compiler from computing at compile time, contracting a * b + c and ignoring the rounding mode.
    strict = ["-frounding-math", "-ftrapping-math", "-ffp-contract=off", "-fno-builtin"]
    command = ["gcc", "-std=gnu11", "-O1", *strict, "-o", str(program), str(_SOURCE), "-lm"]
    subprocess.run(command, check=True)
    return program


def run_host(program: Path, operation: str, width: int, operands: Sequence[Triple]) -> Answers:
    """Run one operation on the host's unit, in `HOST_MODES`."""
    command = [str(program), operation, str(width)]
    output = subprocess.run(command, input=_packed(operands), stdout=subprocess.PIPE, check=True).stdout
    return _answers(output, len(HOST_MODES), len(operands))


def run_spike(folder: Path, batches: Sequence[Batch]) -> list[Answers]:
    """Assemble one program for all batches and run it in Spike; its results come from standard output."""
    for index, batch in enumerate(batches):
        (folder / f"operands{index}").write_bytes(_packed(batch.operands))
    (folder / "program.S").write_text(_program(batches))
    build = ["riscv64-unknown-elf-gcc", f"-march={_SPIKE_ISA}", "-mabi=lp64d", "-mcmodel=medany", "-nostdlib"]
    build += ["-static", "-Wl,-N,--no-warn-rwx-segments,-Ttext=0x80000000,--build-id=none"]
    build += ["-o", "program.elf", "program.S"]
    subprocess.run(build, cwd=folder, check=True)
    spike = spike_program()
    (folder / "spike.dtb").write_bytes(device_tree(64, "IMAFDC"))  # else Spike wants a device tree compiler
    command = [spike, "-m64", f"--isa={_SPIKE_ISA}", "--dtb=spike.dtb", "program.elf"]
    output = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, timeout=60, check=True).stdout
    answers, start = [], 0
    for batch in batches:
        size = 16 * len(batch.modes) * len(batch.operands)
        answers.append(_answers(output[start : start + size], len(batch.modes), len(batch.operands)))
        start += size
    assert start == len(output)
    return answers


def _packed(operands: Sequence[Triple]) -> bytes:
    return b"".join(struct.pack("<3Q", *triple) for triple in operands)


def _answers(output: bytes, modes: int, operands: int) -> Answers:
    pairs = [(bits, flags) for bits, flags in struct.iter_unpack("<2Q", output)]
    assert len(pairs) == modes * operands
    return [pairs[i * operands : (i + 1) * operands] for i in range(modes)]


def _program(batches: Sequence[Batch]) -> str:
    """Loops over the batches, then one HTIF write of all results to standard output and an exit."""
    loops = "".join(_loop(index, batch, rm) for index, batch in enumerate(batches) for rm in batch.modes)
    tables = "".join(f'operands{index}: .incbin "operands{index}"\n' for index in range(len(batches)))
    size = sum(16 * len(batch.modes) * len(batch.operands) for batch in batches)
    return f"""
    .globl _start, tohost, fromhost
_start:
    li t0, 0x2000               # mstatus.FS = Initial
    csrs mstatus, t0
    la s2, results
{loops}
    la t0, syscall
    la t1, tohost
    sd t0, 0(t1)
    la t2, fromhost
1:  ld t0, 0(t2)
    beqz t0, 1b
    li t0, 1                    # exit code 0
    sd t0, 0(t1)
2:  j 2b
    .data
    .balign 64
syscall: .dword 64, 1, results, {size}, 0, 0, 0, 0   # write(stdout, results, size)
    .balign 64
tohost: .dword 0
    .balign 64
fromhost: .dword 0
    .balign 64
{tables}
    .bss
    .balign 64
results: .space {size}
"""


def _loop(index: int, batch: Batch, rm: int) -> str:
    single = batch.operand_bits == 32
    load = "flw" if single else "fld"
    reads = f"{load} fa0, 0(s0)\n{load} fa1, 8(s0)\n{load} fa2, 16(s0)"
    if batch.integer_operand:
        reads = "ld a0, 0(s0)"
    write = "sd a0" if batch.integer_result else "fsw fa3" if batch.result_bits == 32 else "fsd fa3"
    return f"""
    fsrmi {rm}
    la s0, operands{index}
    li s1, {len(batch.operands)}
1:
    {reads}
    csrw fflags, zero
    {batch.instruction}
    csrr t0, fflags
    {write}, 0(s2)
    sd t0, 8(s2)
    addi s0, s0, 24
    addi s2, s2, 16
    addi s1, s1, -1
    bnez s1, 1b
"""
