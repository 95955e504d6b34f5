"""The whole way: real gdb-multiarch, real openocd, simulated target. What gdb lists is what the hart retired."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.decode.reconstruction.facts import HartMachine, KnownState, own_ram
from rvtrace_gdb.decode.reconstruction.forward import Forward
from rvtrace_gdb.session.capture.file import load
from rvtrace_gdb.session.capture.model import SavedAt
from rvtrace_gdb.session.session import Session
from tests.endtoend.command_line import printed
from tests.endtoend.retired_instructions import listed_pcs, retired_pcs
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.amounts import long_only, thorough
from tests.helpers.cross_compiler import demo

Outcome = tuple[dict[str, str], list[int]]
"""What each gdb command printed, and the addresses the hart itself retired while traced."""
REFERENCE = Path(__file__).resolve().parents[2] / "data" / "ntrace-reference"
# t1 is linked to addresses the simulated target has no memory at
REFERENCE_PROGRAMS = ["towers", *long_only("dhrystone", "median", "mt-matmul", "multiply", "qsort", "rsort", "vvadd")]

STACK = 256
"""Bytes of the stack that are looked at."""
TO_THE_END = ["trace start", "hbreak tohost_exit", "continue", "trace history", "trace status"]


def trace(elf: Path, folder: Path, commands: list[str], *sim_options: str) -> Outcome:
    """Run gdb commands on a program under trace: what each printed, and what the hart retired while traced."""
    log = folder / "retired.log"
    with Rig(elf, folder / "rig", "--log-retired", str(log), *sim_options) as rig:
        begin = [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]
        outputs = run_gdb(elf, begin + commands)
    return outputs, retired_pcs(log)


@pytest.fixture(scope="module", params=["rv64gc", *long_only("rv32imac_zicsr", "rv64imac_zicsr", "rv32gc")])
def demo_session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("demo")
    commands = [
        "trace start", "break finish", "continue", "trace history", "trace history /a 1,1000000", "trace status",
        f"trace save {folder}/x.rvt", "trace stop", "info registers", "print/x $mcause",
        f"dump binary memory {folder}/stack $sp $sp+{STACK}",
    ]  # fmt: skip
    elf = demo(folder, request.param)
    outputs, retired = trace(elf, folder, commands)
    outputs["folder"], outputs["elf"] = str(folder), str(elf)
    outputs["decode"] = decode_elsewhere(folder / "x.rvt", elf, folder)
    return outputs, retired


def decode_elsewhere(capture: Path, elf: Path, folder: Path) -> str:
    """`rvtrace decode` in another folder, with nothing but the two files."""
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    for file in (capture, elf):
        (elsewhere / file.name).write_bytes(file.read_bytes())
    command = [sys.executable, "-m", "rvtrace_gdb", "decode", capture.name, "--elf", elf.name]
    return subprocess.run(command, cwd=elsewhere, check=True, stdout=subprocess.PIPE, text=True).stdout


def test_registers_and_memory_at_the_stop_are_saved(demo_session: Outcome) -> None:
    """As gdb has them."""
    outputs, _ = demo_session
    shown = {row.split()[0]: int(row.split()[1], 16) for row in outputs["info registers"].splitlines()}
    folder = Path(outputs["folder"])
    capture = load(folder / "x.rvt")
    began, ended = capture.registers
    assert (began.at, began.at_entry, ended.at) == (SavedAt.START, True, SavedAt.STOP)
    integers = list(shown.values())[: list(shown).index("pc")]  # gdb leaves out zero
    assert [ended.registers[0x1000 + n] for n in range(1, 32)] == integers[-31:]
    assert ended.pc == shown["pc"] and ended.privilege == 3
    assert ended.registers[0x342] == int(outputs["print/x $mcause"].rpartition("= ")[2], 16)
    stack = (folder / "stack").read_bytes()
    memory = next(it for it in capture.memory if it.at is SavedAt.STOP and 0 <= shown["sp"] - it.address < len(it.data))
    assert memory.data[shown["sp"] - memory.address :][: len(stack)] == stack != bytes(STACK)


def test_what_is_saved_at_the_stop_follows_from_the_start(demo_session: Outcome) -> None:
    """From the saved registers and data, all that ran executed again ends with the saved registers; no byte differs."""
    outputs, _ = demo_session
    session = Session(environ={})
    session.open(Path(outputs["folder"]) / "x.rvt", outputs["elf"])
    history, image = session.decoded()
    capture = session.capture()
    began, ended = capture.registers
    x, f = ([began.registers.get(first + n) for n in range(32)] for first in (0x1000, 0x1020))
    memory = [(it.address, it.data) for it in capture.memory if it.at is SavedAt.START]
    csrs = {number: value for number, value in began.registers.items() if number < 0x1000}
    machine = HartMachine(image.xlen, "IMAFDC", own_ram(capture.ranges, 0, [0]), machine_only=True)
    known = KnownState(0, [0, *x[1:]], f, csrs, began.privilege, memory)
    hart = Forward(history, session.harts().program, machine, known).hart_at(len(history))
    registers = [(hart.x[n], ended.registers[0x1000 + n]) for n in range(1, 32)]
    assert sum(one == other for one, other in registers) > 24, "what was loaded from the timer is not known"
    pairs = [
        pair
        for it in capture.memory if it.at is SavedAt.STOP
        for pair in zip(hart.memory.bytes(it.address, len(it.data)), it.data, strict=True)
    ]  # fmt: skip
    assert sum(one == other for one, other in pairs) > 90, "its variables, and what its stack has"
    assert all(one in (None, other) for one, other in [*registers, *pairs])


def test_the_listing_is_what_the_hart_retired(demo_session: Outcome) -> None:
    outputs, retired = demo_session
    assert len(retired) > 1500
    assert listed_pcs(outputs["trace history /a 1,1000000"]) == retired


def test_the_first_listing_is_the_newest_ten(demo_session: Outcome) -> None:
    outputs, retired = demo_session
    rows = outputs["trace history"].splitlines()
    assert listed_pcs("\n".join(rows)) == retired[-10:]
    assert rows[-1].split("\t")[0] == str(len(retired))


def test_the_timer_interrupt_is_in_it(demo_session: Outcome) -> None:
    outputs, _ = demo_session
    assert "<on_trap+0>:" in outputs["trace history /a 1,1000000"]
    assert " traps" in outputs["trace status"]


def test_the_capture_gives_the_same_listing_elsewhere(demo_session: Outcome) -> None:
    outputs, _ = demo_session
    # inside gdb the current pc is marked, outside there is none
    assert outputs["decode"] == outputs["trace history /a 1,1000000"].replace("\t=> ", "\t   ")


@thorough("test_the_listing_is_what_the_hart_retired")
@pytest.mark.parametrize("program", REFERENCE_PROGRAMS)
def test_reference_programs_to_their_end(program: str, tmp_path: Path) -> None:
    """Programs nobody wrote for this: they end by writing to `tohost`; the ring keeps all or the newest part."""
    capture = tmp_path / "x.rvt"
    elf = REFERENCE / f"{program}.elf"
    commands = [*TO_THE_END, f"trace save {capture}", "trace history /a 1,3000"]
    outputs, retired = trace(elf, tmp_path, commands, "--trace-size", "262144")
    assert "0 gaps" in outputs["trace status"], outputs
    listing = decode(capture, elf)
    decoded = listed_pcs(listing)
    assert len(decoded) > 5000
    assert decoded == retired
    listed = re.sub(r"<(\w+)\.\d+", r"<\1", listing)  # gdb takes the number of a static variable for one of Ada's
    assert listed.startswith(outputs["trace history /a 1,3000"].replace("\t=> ", "\t   "))


@pytest.mark.parametrize("size", [1024, *long_only(4096)])
def test_a_buffer_that_wraps_keeps_the_newest(size: int, tmp_path: Path) -> None:
    capture = tmp_path / "x.rvt"
    elf = REFERENCE / "qsort.elf"
    commands = [*TO_THE_END, f"trace save {capture}"]
    outputs, retired = trace(elf, tmp_path, commands, "--trace-size", str(size))
    assert "older trace was overwritten" in outputs["trace status"]
    decoded = listed_pcs(decode(capture, elf))
    assert len(decoded) > 1000
    assert decoded == retired[-len(decoded) :]


def decode(capture: Path, elf: Path) -> str:
    return printed("decode", capture, "--elf", elf)


def test_stop_on_wrap_keeps_the_oldest(tmp_path: Path) -> None:
    capture = tmp_path / "x.rvt"
    elf = REFERENCE / "qsort.elf"
    commands = ["trace start -stop-on-wrap", *TO_THE_END[1:], f"trace save {capture}"]
    outputs, retired = trace(elf, tmp_path, commands, "--trace-size", "1024")
    assert "stopped" in outputs["trace status"]
    decoded = listed_pcs(decode(capture, elf))
    assert len(decoded) > 1000
    assert decoded == retired[: len(decoded)]


def test_stepping_and_several_runs_are_one_history(tmp_path: Path) -> None:
    """Halts in between are not gaps, single steps are part of it, and asking for the history does not disturb it."""
    commands = ["trace start", "break fib", "continue", "trace history", "stepi 7", "trace history 1,20", "next"]
    commands += ["delete", "finish", "break finish", "continue 1", "trace stop", "trace history /a 1,1000000"]
    outputs, retired = trace(demo(tmp_path), tmp_path, [*commands, "trace status"])
    assert listed_pcs(outputs["trace history /a 1,1000000"]) == retired
    assert "0 gaps" in outputs["trace status"]
