"""Real gdb, OpenOCD and simulated target, and something breaks while a program is traced: what was captured is kept,
one line says what is wrong, and `trace start` works again. What is listed is what the hart retired.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import ROW, retired_pcs
from tests.helpers.amounts import long_only, thorough
from tests.helpers.cross_compiler import compile_program, demo
from tests.helpers.gdb_mi import GdbMi, MiError
from tests.helpers.openocd_crash import kill_openocd

ENCODER, SINK = 0x2000_0000, 0x2000_1000
ALL = "trace history /a 1,10000000"


class Debugger(GdbMi):
    """Connected to a rig, with its target description."""

    def __init__(self, rig: Rig) -> None:
        super().__init__(rig.elf)
        self._rig = rig

    def __enter__(self) -> Self:
        self.say(f"set trace target {self._rig.target_file}")
        self.say("set trust-readonly-sections on")
        self.connect()
        return self

    def connect(self) -> None:
        self.say("disconnect")
        self.cli(f"target extended-remote :{self._rig.gdb_port}")

    def say(self, command: str) -> str:
        """What it prints, and then its error: gdb may have one of its own as it goes on with a target that is gone."""
        before = len(self.records)
        try:
            return self.cli(command)
        except MiError as error:
            return f"{self.console(before)}{error}"

    def run_to(self, function: str) -> None:
        self.cli(f"tbreak {function}")
        before = len(self.records)
        self.cli("continue")
        self.stopped(before)


class Session:
    """A rig whose hart's own list is read when all is over."""

    def __init__(self, elf: Path, folder: Path) -> None:
        self._log = folder / "retired"
        self.rig = Rig(elf, folder / "rig", "--log-retired", str(self._log))

    def retired(self) -> list[int]:
        self.rig.stop()
        return retired_pcs(self._log)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo(tmp_path_factory.mktemp("program"))


@pytest.fixture
def session(program: Path, tmp_path: Path) -> Iterator[Session]:
    session = Session(program, tmp_path)
    with session.rig:
        yield session


def pcs(listing: str) -> list[int]:
    """Of the instructions; what is between them in brackets, or told above them, is looked at elsewhere."""
    return [int(pc, 16) for _, pc in ROW.findall(listing)]


def one_line(said: str) -> str:
    """An error, or a warning, as a user reads it."""
    text = said.strip()
    assert text and "\n" not in text and "Traceback" not in text and "Error occurred in Python" not in text, said
    return text


def works_again(gdb: Debugger) -> list[int]:
    """A new trace, from where the hart is to the end of the program."""
    assert "tracing:  encoder0: N-Trace" in gdb.say("trace start")
    gdb.run_to("finish")
    return pcs(gdb.say(ALL))


def test_the_hart_is_reset(session: Session) -> None:
    """`monitor reset halt`: the trace goes on over it, as the encoder is not reset with the hart. Then `monitor reset
    run`, while gdb takes it for halted.
    """
    with Debugger(session.rig) as gdb:
        gdb.say("trace start")
        gdb.run_to("classify")
        gdb.say("monitor reset halt")
        gdb.say("maintenance flush register-cache")
        before = pcs(gdb.say(ALL))
        gdb.run_to("finish")
        whole = pcs(gdb.say(ALL))
        assert "encoder0 at 0x20000000: tracing" in gdb.say("trace status")
        gdb.say("monitor reset run")
        gdb.say("monitor halt")
        gdb.say("maintenance flush register-cache")
        more = pcs(gdb.say(ALL))
        assert gdb.say("trace stop").startswith("Tracing stopped.")
    retired = session.retired()
    assert len(before) > 500 and before == retired[: len(before)]
    assert len(whole) > len(before) + 1000 and whole == retired[: len(whole)]
    assert len(more) >= len(whole) and more == retired[: len(more)]


@thorough("test_the_hart_is_reset")
@pytest.mark.parametrize("connected", [True, *long_only(False)])
def test_the_encoder_is_reset(session: Session, connected: bool) -> None:
    """As by the chip's reset, or somebody who writes trTeControl. It is not started again when the hart runs on."""
    with Debugger(session.rig) as gdb:
        if connected:
            gdb.say("trace connect")
        gdb.say("trace start")
        gdb.run_to("classify")
        if not connected:
            gdb.say("trace history")
        gdb.say(f"monitor write_memory {ENCODER:#x} 32 0")
        gdb.say("stepi")
        assert "encoder0 at 0x20000000: in reset" in gdb.say("trace status")
        said = gdb.say(ALL)
        stopped = gdb.say("trace stop")
        again = works_again(gdb)
    retired = session.retired()
    warning = one_line(said[: said.index("\n")])
    assert re.match(r"warning: the trace is not complete: encoder0 was reset or set up by other software", warning)
    assert "note:     encoder0 was reset while tracing; its trace ends there" in stopped
    kept = pcs(said)
    assert len(kept) > 500 and kept == retired[: len(kept)]
    assert len(again) > 1000 and again == retired[-len(again) :]


@thorough("test_the_hart_is_reset")
def test_the_sink_is_reset_after_something_was_read(session: Session) -> None:
    with Debugger(session.rig) as gdb:
        gdb.say("trace start")
        gdb.run_to("classify")
        kept = pcs(gdb.say(ALL))
        gdb.run_to("classify")
        gdb.say(f"monitor write_memory {SINK:#x} 32 0")
        gdb.say("stepi")
        said = gdb.say(ALL)
        stopped = gdb.say("trace stop")
        still = pcs(gdb.say(ALL))
        again = works_again(gdb)
    retired = session.retired()
    why = "ram0 at 0x20001000: is in reset, the end of its trace is no longer known (trRamControl reads 0x00000008)"
    assert f"warning: the trace is not complete: {why}; start the trace again\n" in said
    assert "note:     ram0 was reset while tracing; its trace ends there" in stopped and why in stopped
    assert len(kept) > 500 and still == pcs(said) == kept == retired[: len(kept)]
    assert len(again) > 1000 and again == retired[-len(again) :]


@thorough("test_the_hart_is_reset")
def test_the_sink_is_reset_before_anything_was_read_and_used_by_somebody_else(session: Session) -> None:
    """First nothing of a trace was read; then all of it was. The sink is then awake again, with another buffer: what is
    in that is not our trace.
    """
    with Debugger(session.rig) as gdb:
        gdb.say("trace start")
        gdb.run_to("classify")
        gdb.say(f"monitor write_memory {SINK:#x} 32 0")
        unread = one_line(gdb.say(ALL))
        kept = works_again(gdb)
        for offset, value in ((0, 0), (0, 1), (0x10, 0x3000_8000), (0x18, 0x3000_8FFC), (0x20, 0x3000_8100)):
            gdb.say(f"monitor write_memory {SINK + offset:#x} 32 {value:#x}")
        said = gdb.say(ALL)
        gdb.say("monitor reset halt")
        gdb.say("maintenance flush register-cache")
        again = works_again(gdb)
    retired = session.retired()
    assert unread.startswith("ram0 at 0x20001000: is in reset, the end of its trace is no longer known")
    assert "warning: the trace is not complete: ram0 was reset or set up by other software" in said
    assert len(kept) > 1000 and kept == pcs(said) == retired[-len(kept) - len(again) : -len(again)]
    assert len(again) > 1500 and again == retired[-len(again) :]


@pytest.mark.parametrize("read", [True, *long_only(False)])
def test_openocd_is_started_anew(session: Session, read: bool) -> None:
    """The target has gone on: what it has traced meanwhile is read by the next one."""
    with Debugger(session.rig) as gdb:
        gdb.say("trace start")
        gdb.run_to("classify")
        kept = pcs(gdb.say(ALL)) if read else []
        kill_openocd(session.rig)
        refused = gdb.say(ALL)
        assert pcs(refused) == kept
        one_line(refused if not read else refused[: refused.index("\n")])
        assert "no OpenOCD at 127.0.0.1:" in refused
        assert "hart:     cannot be reached" in gdb.say("trace status")
        session.rig.start_openocd()
        gdb.connect()
        here = pcs(gdb.say(ALL))
        gdb.run_to("finish")
        whole = pcs(gdb.say(ALL))
        assert gdb.say("trace stop").startswith("Tracing stopped.")
        assert "tracing:  encoder0: N-Trace" in gdb.say("trace start")
    retired = session.retired()
    assert here[: len(kept)] == kept and len(here) > 500 and here == retired[: len(here)]
    assert len(whole) > 1500 and whole == retired[: len(whole)]


@thorough("test_openocd_is_started_anew")
def test_openocd_is_started_anew_between_stop_and_start(session: Session) -> None:
    with Debugger(session.rig) as gdb:
        gdb.say("trace start")
        gdb.run_to("classify")
        kill_openocd(session.rig)
        stopped = gdb.say("trace stop")
        assert "no OpenOCD at 127.0.0.1:" in stopped and "Error occurred in Python" not in stopped
        session.rig.start_openocd()
        gdb.connect()
        kept = pcs(gdb.say(ALL))
        again = works_again(gdb)
    retired = session.retired()
    assert len(kept) > 500 and kept == retired[: len(kept)], "the buffer was still there"
    assert again == retired[-len(again) :]


@thorough("test_openocd_is_started_anew")
def test_the_chip_is_gone(session: Session) -> None:
    """Without power, OpenOCD cannot reach it. With a new one everything works again."""
    with Debugger(session.rig) as gdb:
        gdb.say("trace start")
        gdb.run_to("classify")
        kept = pcs(gdb.say(ALL))
        session.rig.simulator.kill()
        session.rig.simulator.wait()
        status = gdb.say("trace status")
        assert "encoder0 at 0x20000000: trTeControl (0x20000000) cannot be read: OpenOCD cannot access" in status
        assert re.search(r"^hart: +\w+ when OpenOCD saw it last$", status, re.M)
        stopped = gdb.say("trace stop")
        one_line(stopped)
        assert stopped.startswith("not stopped, tracing goes on: encoder0 at 0x20000000: trTeControl (0x20000000) ")
        one_line(gdb.say("trace start"))
        kill_openocd(session.rig)
        session.rig.start_simulator()
        session.rig.start_openocd()
        gdb.connect()
        assert pcs(gdb.say(ALL)) == kept
        again = works_again(gdb)
    assert len(kept) > 500
    assert len(again) > 1500 and again == session.retired()


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("endless")
    source = folder / "endless.c"
    source.write_text(
        "volatile unsigned n; __attribute__((noinline)) void tick(void) { n++; } int main(void) { for (;;) tick(); }"
    )
    return compile_program(folder, source)


@thorough("gdbext/commands/test_live_coverage.py::test_what_runs_is_shown_while_it_runs")
def test_the_hart_runs_when_tracing_begins(endless: Path, tmp_path: Path) -> None:
    """It need not be halted, and is not. Then it is, is traced on, and tracing ends while it runs."""
    session = Session(endless, tmp_path)
    with session.rig, Debugger(session.rig) as gdb:
        gdb.run_to("main")
        gdb.command("-exec-continue")
        assert "tracing:  encoder0: N-Trace" in gdb.say("trace start")
        assert "hart:     running" in gdb.say("trace status")
        before = len(gdb.records)
        gdb.command("-exec-interrupt")
        gdb.stopped(before)
        first = pcs(gdb.say("trace history /a 1,200"))
        gdb.command("-exec-continue")
        stopped = gdb.say("trace stop")
        running = pcs(gdb.say("trace history /a 1,200"))
        retired = session.retired()
    assert stopped.startswith("Tracing stopped.")
    assert len(first) == 200 == len(running)
    for listed in (first, running):
        assert any(retired[n : n + 200] == listed for n, pc in enumerate(retired) if pc == listed[0])
