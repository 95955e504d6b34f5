"""Harts that lose their power behind real gdb and a real OpenOCD 0.12, which keeps the state that it saw last.

Each bus error at a register without power would be said, and would end the command. What is expected of the harts that
are on is the list of what they retired.
"""

import re
import struct
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import listed_pcs, retired_pcs
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.session.sources.coresight_chip import DESCRIBED, HARTS
from tests.transport.simulated.harts import PROGRAMS, compiled

SWITCH = (
    "import socket, sys; s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(sys.argv[1]);"
    " s.sendall((' '.join(sys.argv[2:]) + chr(10)).encode()); print(s.recv(100).decode())"
)
BRIDGE_3, NOWHERE = 0xD901_5000, 0xD9F0_0000
REFUSED = "OpenOCD cannot access address"
LISTED = "trace history /at 2,100000"
HART_3 = "hart 3 is off (unavailable): it is not traced, and encoder3 and bridge3 are not touched"
WENT_OFF = "hart 3 went off while it was traced: its trace ends there, what was stored is kept"


class Outcome(NamedTuple):
    """*said*: what gdb printed. *retired*: of each hart."""

    said: dict[str, str]
    retired: list[list[int]]


def again(command: str, number: int) -> str:
    """A command in a spelling of its own."""
    return command + " " * number


def init(port: int, output: Path) -> str:
    """The command that describes a board, and may look at the first cluster alone."""
    options = "--probe 0xd9000000-0xd9004000 --no-wake --known none --device-tree none --yes"
    return f"shell {sys.executable} -m rvtrace_gdb init --openocd 127.0.0.1:{port} {options} -o {output} 2>&1"


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("power")
    elf = compiled(folder, PROGRAMS / "meet.c", options=(f"-DHARTS={HARTS}",))
    board, wrong, door = folder / "board.toml", folder / "wrong.toml", folder / "door"
    switch, log = folder / "switch.py", folder / "log"
    board.write_text(DESCRIBED)
    wrong.write_text(DESCRIBED.replace(f"{BRIDGE_3:#x}", f"{NOWHERE:#x}"))
    switch.write_text(SWITCH)
    with Rig(elf, folder / "rig", "--target", str(board), "--side-door", str(door), "--log-retired", str(log)) as rig:

        def power(hart: int, state: str) -> str:
            return f"shell {sys.executable} {switch} {door} POWER {hart} {state}"

        said = run_gdb(elf, [
            SOURCE, f"set trace target {wrong}", f"set trace openocd-port {rig.tcl_port}",
            f"target extended-remote :{rig.gdb_port}", init(rig.tcl_port, folder / "asleep"),
            again("trace start", 9), f"set trace target {rig.target_file}",
            "trace start", "break met", "continue",
            power(3, "OFF"), "monitor sim.cpu3 curstate", "trace status", "set trace hart 1", LISTED, "trace stop",
            again("trace start", 1), "trace info", "trace regs encoder3", again("trace stop", 1),
            init(rig.tcl_port, folder / "awake"),
            power(0, "OFF"), again("trace start", 2), again("trace status", 2), again("trace stop", 2),
        ])  # fmt: skip
    return Outcome(said, [retired_pcs(Path(f"{log}.{hart}")) for hart in range(HARTS)])


def test_openocd_keeps_an_older_state(outcome: Outcome) -> None:
    """Else this file would prove nothing."""
    assert re.search("^(halted|running)$", outcome.said["monitor sim.cpu3 curstate"], re.M)


def test_what_does_not_answer_although_its_hart_is_on(outcome: Outcome) -> None:
    said = outcome.said[again("trace start", 9)]
    assert f"bridge3 at {NOWHERE:#x}" in said and REFUSED in said and "check the base address" in said
    assert "is off" not in said


def test_it_goes_off_while_it_is_traced(outcome: Outcome) -> None:
    """Its trace ends, and that of the others is read out."""
    status, stopped = outcome.said["trace status"], outcome.said["trace stop"]
    assert "3 unavailable" in status and WENT_OFF in status
    assert REFUSED not in status
    listed = listed_pcs(re.sub("^(warning|note): .*\n", "", outcome.said[LISTED], flags=re.M))
    assert len(listed) > 25
    whole, part = (struct.pack(f"<{len(pcs)}Q", *pcs) for pcs in (outcome.retired[1], listed))
    assert whole.find(part) % 8 == 0
    assert "Tracing stopped." in stopped and REFUSED not in stopped


def test_it_is_left_out_of_a_trace_that_starts(outcome: Outcome) -> None:
    started = outcome.said[again("trace start", 1)]
    assert f"note:     {HART_3}\n" in started and "encoder0 to encoder2: N-Trace" in started
    assert "Tracing stopped." in outcome.said[again("trace stop", 1)]


def test_its_registers_are_not_touched(outcome: Outcome) -> None:
    info, registers = outcome.said["trace info"], outcome.said["trace regs encoder3"]
    assert "hart 3 (sim.cpu3, unavailable)" in info
    for said in (info, registers):
        assert "not read: hart 3 is off (unavailable)" in said and REFUSED not in said


def test_a_board_that_is_described(outcome: Outcome) -> None:
    """Before a trace all its components are in reset; and when hart 3 is off."""
    asleep, awake = (said for command, said in outcome.said.items() if " init " in command)
    assert "hart 3: sim.cpu3, unavailable" not in asleep
    assert "hart 3: sim.cpu3, unavailable, check power, reset and OpenOCD's log\n" in awake
    wake = "what is at 0xd9000000, 0xd9002000 to 0xd9003000 may be in reset: --wake finds out; or allow other addresses"
    assert wake in asleep.splitlines()[-1]


def test_the_hart_that_gdb_has_selected(outcome: Outcome) -> None:
    """gdb itself cannot read its registers any more; the lines of the trace are printed."""
    started = outcome.said[again("trace start", 2)]
    assert "hart 0 is off (unavailable): it is not traced, and encoder0 and bridge0 are not touched" in started
    assert "tracing:  encoder1: N-Trace" in started and "Error occurred in Python" not in started
    assert "0 unavailable" not in outcome.said[again("trace status", 2)]
    assert "Tracing stopped." in outcome.said[again("trace stop", 2)]
