"""The session through the real OpenOCD, over JTAG, to the simulated target."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.transport.openocd.target import OpenOcd
from tests.helpers.openocd_crash import kill_openocd

NOBODY: dict[str, str] = {}
TIMES = 10


@pytest.fixture(scope="module")
def rig(busy_elf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with Rig(busy_elf, tmp_path_factory.mktemp("rig"), "--trace-size", "0x2000") as rig:
        yield rig


@pytest.fixture
def openocd(rig: Rig) -> Iterator[OpenOcd]:
    """Another client beside the session, as gdb is one."""
    with OpenOcd(port=rig.tcl_port) as openocd:
        openocd.command("reset halt")
        yield openocd
        openocd.command("halt")


@pytest.fixture
def session(rig: Rig) -> Iterator[Session]:
    session = Session(environ=NOBODY)
    yield session
    session.close()


def context(rig: Rig) -> Context:
    return Context(str(rig.elf), str(rig.target_file))


def run_to(openocd: OpenOcd, address: int, times: int) -> int:
    """Let the program run to a breakpoint, again and again. Returns the pc."""
    for _ in range(times):
        openocd.command("step")  # else it would stop where it stands
        openocd.command(f"bp {address:#x} 2 hw; resume; wait_halt 60000; rbp {address:#x}")
    return int(re.findall(r"0x[0-9a-f]+", openocd.command("reg pc"))[-1], 16)


def most_called(reference: list[int]) -> int:
    """A place the program comes to often: where its first call goes, the function that makes random numbers."""
    return max(set(reference), key=reference.count)


def test_what_ran_between_breakpoints_is_shown(
    rig: Rig, openocd: OpenOcd, session: Session, reference: list[int]
) -> None:
    lines = session.start(context(rig))
    assert "N-Trace 1.0 HTM" in lines[0]
    pc = run_to(openocd, most_called(reference), TIMES)
    history, _ = session.decoded(context(rig))
    shown = list(history.pcs())
    assert len(shown) > 100
    assert shown == reference[: len(shown)]
    assert reference[len(shown)] == pc
    pc = run_to(openocd, most_called(reference), TIMES)
    history, _ = session.decoded(context(rig))
    more = list(history.pcs())
    assert len(more) > len(shown)
    assert more == reference[: len(more)]
    assert reference[len(more)] == pc
    assert "\nhart:     halted\n" in "\n".join(session.status(context(rig)))
    session.stop()


def test_a_running_program_can_be_looked_at(rig: Rig, openocd: OpenOcd, session: Session) -> None:
    session.start(context(rig))
    openocd.command("resume")
    deadline = time.monotonic() + 60
    while "full, 8192 bytes" not in "\n".join(session.status(context(rig))):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    listing = session.history("", 10, context(rig))
    assert listing.end - listing.begin == 10
    assert openocd.state() == "running"
    status = "\n".join(session.status(context(rig)))
    assert "\nhart:     running\n" in status
    assert "full, 8192 bytes, older trace was overwritten" in status
    lines = session.stop()
    assert lines[0] == "Tracing stopped."
    assert "warning" not in "\n".join(lines)


def test_when_openocd_ends_what_was_read_is_still_there(
    rig: Rig, session: Session, tmp_path: Path, reference: list[int]
) -> None:
    with OpenOcd(port=rig.tcl_port) as openocd:
        openocd.command("reset halt")
        session.start(context(rig))
        run_to(openocd, most_called(reference), TIMES)
    listing = session.history("", 10, context(rig))
    rows = session.rows(1, listing.end)
    kill_openocd(rig)
    again = session.history("1,+5", 10, context(rig))
    [warning] = again.lines
    assert warning.startswith("warning: the trace is not complete: ")
    assert "OpenOCD" in warning
    assert session.rows(1, listing.end) == rows
    assert "warning: " in "\n".join(session.status(context(rig)))
    saved = session.save(tmp_path / "x.rvt", context(rig))
    assert saved[0].startswith("Saved ")
    with pytest.raises(RvtraceError, match="no OpenOCD at "):
        session.start(context(rig))
    assert session.rows(1, listing.end) == rows
    rig.start_openocd()  # for the tests after this one
