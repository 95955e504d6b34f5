"""`trace ctr` on a target with [usb] and no connection of gdb's: what is shown is what the hart executed, and what
OpenOCD's way shows of the same hart.

The expectation is a second simulated hart, stepped instruction by instruction; OpenOCD has its own USB driver.
"""

import itertools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.session.capture.file import load
from rvtrace_gdb.session.capture.model import SavedAt
from rvtrace_gdb.session.errors import NoWay
from rvtrace_gdb.session.rpc.server import Methods
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.target.csr_access import UsbAccess, open_access, resolved
from rvtrace_gdb.support.errors import RvtraceError, silent
from rvtrace_gdb.transport.simulated.ctr.recorder import CtrBuild
from rvtrace_gdb.transport.simulated.hart.block import DebugCause
from rvtrace_gdb.transport.simulated.machine import Machine, build
from rvtrace_gdb.transport.usb.errors import NoSuchDevice, Unplugged
from tests.gdbext.gdb_process import GDB, SOURCE, gdb_environ
from tests.helpers.amounts import sparse, thorough
from tests.session.board import DEMO, SMALL_RAM, executed
from tests.transport.usb import umockdev
from tests.transport.usb.rig import Rig, esp
from tests.transport.usb.test_session import described, no_connection_is_left, plug
from tests.transport.usb.test_umockdev import OPENOCD

__all__ = ["no_connection_is_left", "plug"]

DEPTH = 16
AUTO, USB = {"way": "auto", "version": None, "connection": None}, {"way": "usb", "version": None, "connection": None}
EXPOSED = (
    "334=sctrctl,335=sctrstatus,336=siselect,337=sireg,338=sireg2,339=sireg3,351=sctrdepth,590=vsctrctl,846=mctrctl"
)
ROW = re.compile(r"^(\d+)\t0x([0-9a-f]+) .* -> 0x([0-9a-f]+) ", re.MULTILINE)
Ask = Callable[..., Any]


def halted() -> Machine:
    machine = build(DEMO, memory_map=SMALL_RAM, ctr=CtrBuild("1.0"))
    machine.halt_at_start()
    return machine


def transfers(ran: int) -> list[tuple[int, int]]:
    """Of the first *ran* instructions, (from, to) of those that did not lead to the next one, youngest first."""
    pcs = list(itertools.islice(executed(), ran + 1))
    return [(a, b) for a, b in itertools.pairwise(pcs) if b - a not in (2, 4)][::-1]


def go(machine: Machine, instructions: int) -> int:
    """How many ran."""
    before = machine.hart.instret
    machine._control.resume()
    machine.run_slice(instructions)
    machine._control.halt(DebugCause.HALTREQ)
    return machine.hart.instret - before


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """What the session says to gdb's requests; *access* None: gdb's way as it has no target."""
    context = described(tmp_path, "esp")
    methods = Methods(Session(environ={}))

    def asked(method: str, access: object = AUTO, **params: object) -> Any:
        given: dict[str, object] = {"elf": context.elf, "target_file": context.target_file, "overrides": {}}
        return methods.call(method, {"context": given, "access": access, **params}, silent)

    return asked


def test_the_records_are_what_ran(ask: Ask, plug: Callable[[Rig], Rig], tmp_path: Path) -> None:
    """Each request lets go of the adapter; the hart records without it."""
    machine = halted()
    rig = plug(esp(machine, 0))
    first = machine.hart.pc
    before = [machine.hart.csr_read(number, debug=True) for number in (0x34E, 0x15F)]
    said = ask("ctr_start", options={"depth": DEPTH})
    assert "CTR 1.0, 16 entries" in str(said) and rig.port.opened == 0
    assert first == next(executed())
    for instructions in (40, 100):
        go(machine, instructions)
        ask("page", what="records", args="1,16")
        rows = ask("rows", what="records", begin=1, end=DEPTH + 1)["rows"]
        ran = machine.hart.instret
        found = [tuple(place and place[0] for place in row[1:3]) for row in rows if row[3] is not None]
        assert found == transfers(ran)[:DEPTH] and len(found) > 2
        assert rig.port.opened == 0
    for request in ({"method": "values"}, {"method": "save", "path": str(tmp_path / "x.rvt")}):
        ask(**request)
        assert rig.port.opened == 0, "nor do those that read registers and memory where the records end"
    assert [it.at for it in load(tmp_path / "x.rvt").registers] == [SavedAt.START, SavedAt.STOP]
    assert "16 entries" in str(ask("ctr_status"))
    assert ask("ctr_stack")["frames"][0]["pc"] == machine.hart.pc
    ask("ctr_stop")
    assert [machine.hart.csr_read(number, debug=True) for number in (0x34E, 0x15F)] == before
    assert rig.port.opened == 0


def test_a_hart_that_runs_and_a_hart_that_there_is_not(ask: Ask, plug: Callable[[Rig], Rig]) -> None:
    machine = halted()
    plug(esp(machine))
    ask("ctr_start", options={"depth": DEPTH})
    assert "hart 0: running" in str(ask("usb_resume"))
    for method in ("page", "ctr_stop", "ctr_clear"):
        with pytest.raises(RvtraceError, match=r"^hart 0 runs: halt it first \(`trace usb halt`, or in a shell `rvtr"):
            ask(method, USB, what="records")
    assert "hart 0: halted at 0x8" in str(ask("usb_halt"))
    ask("ctr_stop")
    with pytest.raises(RvtraceError, match=r"hart 3 cannot be reached: the debug module has 1"):
        ask("ctr_start", options={"harts": [3]})


def test_all_harts_are_those_of_the_debug_module(ask: Ask, plug: Callable[[Rig], Rig]) -> None:
    """`-all` where gdb has no threads; `trace regs ctr1` lets go of the adapter, too."""
    machine = build(DEMO, memory_map=SMALL_RAM, ctr=CtrBuild("1.0"), harts=2)
    machine.halt_at_start()
    rig = plug(esp(machine, 0))
    first, second = ask("ctr_start", options={"harts": [], "depth": DEPTH})["lines"]
    assert first.startswith("ctr0:") and second.startswith("ctr1:")
    assert ask("regs", names=["ctr1"])["lines"][0] == "ctr1: Control Transfer Records 1.0, hart 1"
    assert rig.port.opened == 0
    assert all(hart.csr_read(0x34E, debug=True) & 7 == 7 for hart in machine.harts)
    ask("ctr_stop")
    assert all(hart.csr_read(0x34E, debug=True) & 7 == 0 for hart in machine.harts)


def test_unplugged_while_records_are_read_and_again(ask: Ask, plug: Callable[[Rig], Rig]) -> None:
    """At any transfer: the next request has them, and `stop` puts the hart's registers back."""
    machine = halted()
    rig = plug(esp(machine, 0))
    before = machine.hart.csr_read(0x34E, debug=True)
    ask("ctr_start", options={"depth": DEPTH})
    go(machine, 100)
    for transfer in range(1, 60, sparse(7)):
        ask("ctr_connected")  # nothing
        go(machine, 5)
        rig.wire.unplug_after = rig.wire.transfers + transfer
        with pytest.raises((NoSuchDevice, Unplugged)):
            ask("page", what="records", args="1,16")
            ask("ctr_clear")
            raise AssertionError("it should be gone by now")
        rig.wire.plugged, rig.wire.unplug_after = True, None
        ask("page", what="records", args="1,16")
        rows = ask("rows", what="records", begin=1, end=DEPTH + 1)["rows"]
        found = [tuple(place and place[0] for place in row[1:3]) for row in rows if row[3] is not None]
        assert found == transfers(machine.hart.instret)[:DEPTH]
    ask("ctr_stop")
    assert machine.hart.csr_read(0x34E, debug=True) == before


def test_which_way(tmp_path: Path) -> None:
    session, context = Session(environ={}), described(tmp_path, "esp")
    named = {"way": "named"}
    assert resolved(named, context) is named and resolved(None, context) is None
    for way in (AUTO, USB):
        found = resolved(way, context)
        assert found is not None and found["way"] == "usb"
        assert isinstance(open_access(found, session, None), UsbAccess)
    file = tmp_path / "board.toml"
    file.write_text(file.read_text().replace('[usb]\nadapter = "esp"', ""))
    assert resolved(AUTO, context) is None
    with pytest.raises(NoWay, match=r"board\.toml has no table \[usb\], so no USB adapter leads to the CSRs: add it"):
        resolved(USB, context)
    file.write_text("[usb")
    for way in (AUTO, USB):
        with pytest.raises(RvtraceError, match=r"board\.toml"):
            resolved(way, context)


@thorough("test_the_records_are_what_ran")
def test_gdb_without_a_connection_and_openocd_show_the_same(tmp_path: Path) -> None:
    """Through the real libusb; then OpenOCD and its own driver lead another gdb to the hart, which still records."""
    machine = halted()
    begun = machine.hart.instret
    rig = esp(machine, 12)
    described(tmp_path, "esp")
    usb = ["set trace target board.toml", f"trace ctr start -depth {DEPTH}", "trace usb resume", "trace usb",
           "trace usb halt", "trace ctr show 0,15", "trace ctr stack", "trace usb reg pc"]  # fmt: skip
    script = (
        f"{OPENOCD[esp]}; adapter speed 10000; jtag newtap sim cpu -irlen 5; "
        "target create sim.cpu riscv -chain-position sim.cpu; gdb_port pipe; telnet_port disabled; tcl_port disabled; "
        f"log_output openocd.log; riscv expose_csrs {EXPOSED}; gdb_report_register_access_error enable; init; halt"
    )
    openocd = [f"target extended-remote | openocd -c '{script}'", "trace ctr show 0,15"]
    ours, theirs = (_printed(rig, tmp_path, commands) for commands in (usb, openocd))
    rows = ROW.findall(ours)
    assert len(rows) == DEPTH and "hart 0: halted at 0x8" in ours, ours
    assert rows == ROW.findall(theirs), ours + theirs
    found = [(int(source, 16), int(target, 16)) for _, source, target in rows]
    assert found == transfers(machine.hart.instret - begun)[:DEPTH]
    assert "trace connect" not in ours


def _printed(rig: Rig, folder: Path, commands: list[str]) -> str:
    """By a gdb, up to its last command."""
    done = umockdev.run(rig, folder, "env", *_environment(), *_gdb(commands))
    return done.stdout.partition("== ended\n")[0] + done.stderr


def _gdb(commands: list[str]) -> list[str]:
    words = [GDB, "-q", "-nx", "-batch", str(DEMO)]
    for command in (SOURCE, "set height 0", "set width 0", *commands, "echo == ended\\n", "disconnect"):
        words += ["-ex", command]
    return words


def _environment() -> list[str]:
    return [f"{key}={value}" for key, value in gdb_environ().items() if key in ("TERM", "LC_ALL")] + [
        f"RVTRACE_PYTHON={sys.executable}"
    ]
