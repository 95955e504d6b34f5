"""What each instruction does to return addresses, in registers and on the stack. Encodings are the assembler's."""

import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from rvtrace_gdb.decode.ctr.transfers import CodeTransfers, TransferRegisters
from rvtrace_gdb.decode.program.image import Image

RA, T0 = 0x8000_1000, 0x8000_2000
START = TransferRegisters(((1, RA), (5, T0)), 0, ((16, RA), (32, T0)))
NOTHING_BUT_T0 = ((5, T0),)

SAME = [
    "nop", "add a0, ra, t0", "sd a0, 24(sp)", "sw zero, 8(sp)", "sd ra, 0(a0)", "fadd.d ft1, ft1, ft2",
    "fld ft1, 8(sp)", "fsd ft1, 24(sp)", "c.sdsp a0, 24(sp)", "c.fsdsp ft0, 24(sp)", "c.addi4spn a0, sp, 16",
    "fmadd.d ft1, ft2, ft5, ft1", "csrw mscratch, ra", "fence", "c.lw a0, 0(a1)", "c.sd a0, 0(a1)", "lui a0, 1",
]  # fmt: skip
LOSES_RA = [
    "addi ra, ra, 4", "c.addi ra, 4", "ld ra, 8(sp)", "ld ra, 16(a0)", "lw ra, 16(sp)", "c.li ra, 1",
    "c.lui ra, 1", "auipc ra, 0", "csrr ra, mscratch", "fcvt.w.d ra, ft1", "feq.d ra, ft1, ft2",
    "fmv.x.d ra, ft1", "c.mv ra, a0", "c.add ra, a0", "c.slli ra, 1", "c.addiw ra, 1", "c.ldsp ra, 8(sp)",
    "c.lwsp ra, 16(sp)", "sc.d ra, a0, (a1)", "mul ra, ra, a0", "addi ra, a0, 0",
]  # fmt: skip
LOSES_SP = [
    "mv sp, a0", "ld sp, 0(a0)", "add sp, sp, t0", "addi sp, a0, 16", "c.mv sp, a0", "c.ldsp sp, 0(sp)",
    "csrrw sp, mscratch, sp",
]  # fmt: skip
FORGETS_SLOT = [
    "sd a0, 16(sp)", "sb a0, 23(sp)", "sw ra, 20(sp)", "sh a0, 16(sp)", "fsd ft0, 16(sp)", "fsw ft0, 20(sp)",
    "c.sdsp a0, 16(sp)", "c.swsp a0, 20(sp)", "c.fsdsp ft0, 16(sp)", "sd a0, 12(sp)",
]  # fmt: skip
FORGETS_ALL = [
    "amoadd.d a0, a1, (sp)", "sc.d a0, a1, (sp)", ".insn r 0x0B, 0, 0, a0, a1, a2", ".byte 0x1f, 0, 0, 0, 0, 0",
]  # fmt: skip
MOVES = {
    "mv ra, t0": TransferRegisters(((1, T0), (5, T0)), 0, START.slots),
    ".insn i 0x13, 0, ra, t0, 0": TransferRegisters(((1, T0), (5, T0)), 0, START.slots),
    "c.mv t0, ra": TransferRegisters(((1, RA), (5, RA)), 0, START.slots),
    "ld ra, 32(sp)": TransferRegisters(((1, T0), (5, T0)), 0, START.slots),
    "c.ldsp t0, 16(sp)": TransferRegisters(((1, RA), (5, RA)), 0, START.slots),
    "sd ra, 48(sp)": TransferRegisters(START.links, 0, (*START.slots, (48, RA))),
    "c.sdsp t0, 16(sp)": TransferRegisters(START.links, 0, ((16, T0), (32, T0))),
    "sd t0, -8(sp)": TransferRegisters(START.links, 0, ((-8, T0), *START.slots)),
    "addi sp, sp, -32": TransferRegisters(START.links, -32, START.slots),
    "c.addi16sp sp, -512": TransferRegisters(START.links, -512, START.slots),
    "c.addi16sp sp, 32": TransferRegisters(START.links, 32, ((32, T0),)),
    "addi sp, sp, 48": TransferRegisters(START.links, 48, ()),
    "c.addi sp, -8": TransferRegisters(START.links, -8, START.slots),
}
MOVES |= dict.fromkeys(SAME, START)
MOVES |= dict.fromkeys(LOSES_RA, START._replace(links=NOTHING_BUT_T0))
MOVES |= dict.fromkeys(LOSES_SP, START._replace(sp=None, slots=()))
MOVES |= dict.fromkeys(FORGETS_SLOT, START._replace(slots=((32, T0),)))
MOVES |= dict.fromkeys(FORGETS_ALL, TransferRegisters())
MOVES32 = {
    "sw ra, 48(sp)": TransferRegisters(START.links, 0, (*START.slots, (48, RA))),
    "c.swsp t0, 16(sp)": TransferRegisters(START.links, 0, ((16, T0), (32, T0))),
    "lw ra, 32(sp)": TransferRegisters(((1, T0), (5, T0)), 0, START.slots),
    "c.lwsp t0, 16(sp)": TransferRegisters(((1, RA), (5, RA)), 0, START.slots),
    "c.swsp a0, 16(sp)": START._replace(slots=((32, T0),)),
    "c.fswsp ft0, 16(sp)": START._replace(slots=((32, T0),)),
    "c.fsdsp ft0, 16(sp)": START._replace(slots=((32, T0),)),
    "c.flwsp ft1, 16(sp)": START,
    "c.fldsp ft1, 16(sp)": START,
    "sb a0, 16(sp)": START._replace(slots=((32, T0),)),
}


def assembled(folder: Path, texts: list[str], xlen: int) -> bytes:
    """The bytes of all of them, each at its own multiple of 8."""
    source, made = folder / "all.s", folder / "all.o"
    lines = [line for text in texts for line in (".balign 8", text)]
    source.write_text("\n".join([".option norelax", *lines, ".balign 8", ""]))
    command = ["riscv64-unknown-elf-as", f"-march=rv{xlen}gc", f"-mabi={'lp64d' if xlen == 64 else 'ilp32d'}"]
    subprocess.run([*command, "-o", str(made), str(source)], check=True)
    with made.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".text")
        assert section is not None
        return bytes(section.data())


@pytest.mark.parametrize(("xlen", "moves"), [(64, MOVES), (32, MOVES32)], ids=["RV64", "RV32"])
def test_instructions(tmp_path: Path, xlen: int, moves: dict[str, TransferRegisters]) -> None:
    image = Image(xlen)
    image.add_code(0x8000_0000, assembled(tmp_path, list(moves), xlen))
    code = CodeTransfers(image)
    for number, (text, expected) in enumerate(moves.items()):
        step = code.transfer_at(0x8000_0000 + 8 * number)
        assert not isinstance(step, str), text
        known = START if step.change is None else step.change(START)
        assert (text, known) == (text, expected)


def test_a_stack_that_is_not_known_keeps_nothing() -> None:
    lost = START.linked(2, None)
    assert lost.stored(8, 8, RA).loaded(1, 8).link(1) is None
    assert lost.moved(16).sp is None


def test_code_of_zcmp_and_vectors_is_not_looked_into(tmp_path: Path) -> None:
    """cm.push {ra}, -16 is c.fsdsp elsewhere; vse8.v v0, (sp)."""
    image = Image(64)
    image.add_code(0x8000_0000, bytes.fromhex("42b80000") + bytes.fromhex("27000102"))
    image.zcm = True
    push, store = CodeTransfers(image).transfer_at(0x8000_0000), CodeTransfers(image).transfer_at(0x8000_0004)
    assert not isinstance(push, str) and push.change is not None and push.change(START) == TransferRegisters()
    assert not isinstance(store, str) and store.change is not None and store.change(START) == START._replace(slots=())
