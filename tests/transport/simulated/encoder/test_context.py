"""Privilege and context: what the hart's CSRs say, the Ownership messages, and what a history knows of it."""

from pathlib import Path

import pytest

from rvtrace_gdb.decode.ntrace.options import EncoderOptions
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.transport.simulated.bus import ElfFile
from tests.transport.simulated.devices.test_component import start, stop
from tests.transport.simulated.encoder.traces import (
    BTM,
    CONTEXT,
    EVERYTHING,
    HTM,
    RARE_SYNC,
    compiled,
    machine_with,
    trace,
)
from tests.transport.simulated.hart.encoded_code import MRET, hart_with
from tests.transport.simulated.nexus import OWNERSHIP, SYNCHRONIZING, messages

SCONTEXT, MCONTEXT = 0x5A8, 0x7A8
MODES = pytest.mark.parametrize("mode", [HTM, BTM], ids=["HTM", "BTM"])
# PROCESS without its context: FORMAT in bits 1:0, PRV in bits 3:2, V in bit 4 ("Encoding of PROCESS field")
IN_U_MODE, IN_M_MODE = 0b0_00_00, 0b0_11_00
WITH_SCONTEXT, WITH_HCONTEXT = 0b10, 0b11


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("rv64"), "rv64imac")


def owners(data: bytes) -> list[int]:
    return [m.variable[0] for m in messages(data) if m.tcode == OWNERSHIP]


def truth(elf: Path, retired: list[int]) -> list[ProgramContext]:
    """In what context each instruction ran, by what kernel.S does: it sets mcontext once, and scontext in turn."""
    image = Image.from_elf(elf)
    trap = ElfFile(elf).symbol("trap")
    contexts = []
    privilege, scontext, mcontext = 3, 0, 0
    for pc in retired:
        if pc == trap:
            privilege = 3
        contexts.append(ProgramContext(privilege, False, scontext, mcontext))
        word = int.from_bytes(image.read(pc, image.instruction(pc).length), "little")
        if word == MRET:
            privilege = 0
        elif word & 0x7F == 0x73 and word >> 12 & 3 == 1:  # csrrw, csrrwi
            mcontext = 5 if word >> 20 == MCONTEXT else mcontext
            scontext = (17 if scontext != 17 else 4242) if word >> 20 == SCONTEXT else scontext
    assert {ProgramContext(3, False, 17, 5), ProgramContext(0, False, 17, 5), ProgramContext(0, False, 4242, 5)} <= set(
        contexts
    )
    return contexts


# CSRs (RISC-V Debug Specification 1.0, 5.7.7 to 5.7.10)


@pytest.mark.parametrize(("xlen", "supervisor", "machine"), [(32, 16, 6), (64, 34, 13)])
def test_context_csrs_have_the_recommended_widths(xlen: int, supervisor: int, machine: int) -> None:
    hart = hart_with(xlen=xlen)
    for number, bits in ((SCONTEXT, supervisor), (MCONTEXT, machine)):
        assert hart.csr_read(number) == 0
        hart.csr_write(number, (1 << xlen) - 1)
        assert hart.csr_read(number) == (1 << bits) - 1
    hart.reset()
    assert hart.csr_read(SCONTEXT) == hart.csr_read(MCONTEXT) == 0


# Messages


def test_ownership_follows_every_synchronization(elf: Path) -> None:
    """hcontext first, then scontext ("Ownership Message")."""
    found = messages(trace(machine_with(elf), elf, HTM | CONTEXT | 3 << 16 | 2 << 20).data)
    syncs = [i for i, m in enumerate(found) if m.tcode in SYNCHRONIZING]
    assert len(syncs) > 80
    for i in syncs:
        assert [m.tcode for m in found[i + 1 : i + 3]] == [OWNERSHIP, OWNERSHIP]
        assert [m.variable[0] & 3 for m in found[i + 1 : i + 3]] == [WITH_HCONTEXT, WITH_SCONTEXT]


def test_the_start_of_the_program(elf: Path) -> None:
    """mcontext and scontext are written in machine mode, then user mode is entered, and a timer interrupt leaves it."""
    told = owners(trace(machine_with(elf), elf, HTM | CONTEXT | RARE_SYNC).data)
    assert told[:8] == [
        0 << 5 | IN_M_MODE | WITH_HCONTEXT, 0 << 5 | IN_M_MODE | WITH_SCONTEXT,  # after the first synchronization
        5 << 5 | IN_M_MODE | WITH_HCONTEXT, 0 << 5 | IN_M_MODE | WITH_SCONTEXT,
        5 << 5 | IN_M_MODE | WITH_HCONTEXT, 17 << 5 | IN_M_MODE | WITH_SCONTEXT,
        IN_U_MODE, IN_M_MODE,
    ]  # fmt: skip
    assert 4242 << 5 | IN_M_MODE | WITH_SCONTEXT in told


@MODES
def test_what_a_debugger_changes_is_told_when_the_program_goes_on(mode: int, elf: Path) -> None:
    machine = machine_with(elf)
    te, ram = start(machine, mode | CONTEXT | RARE_SYNC)
    machine.run_slice(300)
    machine.debug_module.write(0x10, 1 << 31 | 1)
    machine.hart.csr_write(SCONTEXT, 99, debug=True)
    machine.debug_module.write(0x10, 1 << 30 | 1)
    machine.run_slice(100)
    assert 99 << 5 | IN_U_MODE | WITH_SCONTEXT in owners(stop(te, ram))


def test_what_changed_during_a_loss_is_told_after_it(elf: Path) -> None:
    machine = machine_with(elf, trace_size=64)
    te, ram = start(machine, HTM | CONTEXT | RARE_SYNC, sink_options=1 << 8)
    machine.run_slice(3000)
    ram[0x20] = 0x3000_0000
    ram[0] = ram[0] | 2
    ram.poll(2, 2)
    scontext, privilege = machine.hart.csr_read(SCONTEXT, True), machine.hart.privilege
    machine.run_slice(30)
    told = owners(ram.bus.read_bytes(0x3000_0000, (ram[0x20] & ~1) - 0x3000_0000))
    assert scontext << 5 | privilege << 2 | WITH_SCONTEXT in told[:2]
    assert te[0] & 1


# Histories


@MODES
@pytest.mark.parametrize("features", [0, EVERYTHING], ids=["nothing", "everything"])
def test_the_context_of_every_instruction_is_known(mode: int, features: int, elf: Path) -> None:
    """From an encoder that tells how far the hart came when it tells of another context."""
    machine = machine_with(elf, built_with=EncoderOptions(exact_context=True))
    traced = trace(machine, elf, mode | CONTEXT | RARE_SYNC, features)
    traced.check()
    found = [traced.history.context_at(i) for i in range(len(traced.retired))]
    assert found == truth(elf, traced.retired)
