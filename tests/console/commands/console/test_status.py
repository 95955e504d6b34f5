"""The status line of `rvtrace console`, from what `trace status` says of all kinds of targets (docs/*.md show them)."""

import pytest

from rvtrace_gdb.console.commands.console.shell import ConsoleStatus
from rvtrace_gdb.console.gdb_driver.mi import GdbError
from rvtrace_gdb.console.gdb_driver.state import Running, TraceState
from tests.console.status_lines import read

CHIP = """target:   demo, OpenOCD at localhost:6666, hart 0
hart:     halted
encoder:  encoder0 at 0x20000000: tracing, N-Trace 1.0 HTM, sync every 128 messages
sink:     ram0 at 0x20001000: SMEM 0x30000000, 1116 of 65536 bytes
history:  2006 instructions, 0 gaps"""
CLUSTER = """harts:    0 halted, 1 running
encoder:  encoder0 at 0x20000000: off, N-Trace 1.0 HTM, full addresses
encoder:  encoder1 at 0x20004000: waits for a trigger, N-Trace 1.0 HTM
sink:     ram0 at 0x20001000: SMEM 0x30000000, full, 65536 bytes, older trace was overwritten
sink:     ram1 at 0x20002000: SRAM, 100 of 4096 bytes
lost:     ram0: bytes were dropped"""
QEMU = """target:   QEMU 10.0 (rvtrace.toml), hart 0
encoder:  encoder0, hart 0, in software: {}N-Trace 1.0 HTM
sink:     hart0: 12 instructions, 9 bytes, 8284 bytes of the ring are not read yet
history:  not read yet: `trace history` reads it"""
QEMU_START = """encoder:  encoder0, hart 0, in software: N-Trace 1.0 HTM
sink:     a ring of 4194304 bytes, keeps the newest 1048576 blocks or so"""
CTR = """target:   CSRs by gdb
ctr0:     CTR 1.0, 16 entries, records M-mode
state:    not frozen; 12 of 16 entries have records, WRPTR 12"""
CTR_STOPPED = """Tracing stopped.
ctr0:     3 of 16 entries have records"""
OPENED = """capture:  /tmp/a b.rvt
trace:    RV64 of demo.elf on QEMU 7.2, 2026-11-22T11:54:02Z, by rvtrace 0.1.0
encoder:  encoder0, hart 0: N-Trace 1.0 HTM
sink:     hart0: 1111 bytes"""


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Nothing is being traced.\ntarget:   demo", "no trace"),
        ("$1 = 5", "no trace"),
        (CHIP, "trace tracing, 1116 of 65536 bytes"),
        (CLUSTER, "trace off / waits for a trigger, 65636 of 69632 bytes, not complete"),
        (QEMU.format(""), "trace tracing, 9 bytes, 8284 not read yet"),
        (QEMU.format("off, "), "trace off, 9 bytes, 8284 not read yet"),
        (QEMU_START, "trace tracing"),
        (CTR, "trace recording, 12 of 16 records"),
        (CTR.replace("not frozen", "frozen: nothing is recorded"), "trace frozen, 12 of 16 records"),
        (CTR_STOPPED, "trace, 3 of 16 records"),
        (OPENED, "capture a b.rvt, 1111 bytes"),
    ],
)
def test_what_is_traced(said: str, shown: str) -> None:
    assert str(read(said.splitlines())) == shown


class Gone:
    """An engine whose trace goes away; *problem*: what the next question is answered."""

    def __init__(self, problem: str) -> None:
        self.state = Running()
        self.problem = problem
        self.said_to_user: list[tuple[str, str]] = []

    def listener(self, kind: str, text: str) -> None:
        self.said_to_user.append((kind, text))

    def reported_state(self) -> dict[str, object]:
        return {"encoders": [{"name": "encoder0", "state": "tracing"}], "captured": "1116", "size": "65536"}

    def trace_state(self) -> TraceState:
        raise GdbError(self.problem)


@pytest.mark.parametrize(
    ("problem", "shown", "told"),
    [
        ("the rvtrace session has ended unexpectedly, killed by signal 9; ...", "no trace", 1),
        ("the target does not answer", "trace tracing, 1116 of 65536 bytes", 0),
    ],
)
def test_what_is_said_once_is_not_lost(problem: str, shown: str, told: int) -> None:
    """Looking at the trace for the status line is told that the session is gone: who types would not be, any more."""
    engine = Gone(problem)
    status = ConsoleStatus(engine)  # type: ignore[arg-type]
    status.heard("trace status", "")
    status.refresh()
    assert str(status) == f"not connected | {shown}"
    assert engine.said_to_user == [("log", f"{problem}\n")] * told


def test_when_it_is_worth_to_look_again() -> None:
    states = [read(said.splitlines()).tracing for said in (CHIP, CLUSTER, QEMU.format("off, "), OPENED, CTR)]
    assert states == [True, True, False, False, True]
