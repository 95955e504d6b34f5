"""What gdb is connected to stays until another connection stands: pipes, unix sockets, two OpenOCDs, no target."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.session.target.link import MARK
from tests.gdbext.gdb_process import SOURCE, run_gdb, some_gdbs
from tests.helpers.amounts import long_only, thorough
from tests.helpers.cross_compiler import HOME, demo
from tests.helpers.wait import until
from tests.transport.simulated.openocd import Tcl


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("connections")
    with Rig(demo(folder), folder / "rig") as rig:
        yield rig


@some_gdbs
def test_a_mistyped_place_leaves_everything(rig: Rig, gdb: str) -> None:
    """Before and after `trace connect`: the connection, the trace and the breakpoints are as they were."""
    direct = [f"target extended-remote :{rig.gdb_port}", "monitor reset halt", "trace connect :9", "info threads"]
    ours = [f"trace connect :{rig.gdb_port}", "trace start", "break finish", "trace connect :9 ", "continue"]
    ours += ["reverse-stepi", "trace position"]
    said = run_gdb(rig.elf, [SOURCE, f"set trace target {rig.target_file}", *direct, *ours], gdb=gdb)
    for command in ("trace connect :9", "trace connect :9 "):
        assert said[command].startswith("no OpenOCD and no other gdb stub at localhost:9"), said[command]
    assert "* 1 " in said["info threads"]
    assert "Breakpoint 1, finish" in said["continue"]
    assert "instruction 2006 of 2006" in said["trace position"]


def test_a_pipe_is_refused_before_anything_is_cut(rig: Rig) -> None:
    """The pipe is to OpenOCD's port, as `openocd -c "gdb_port pipe"` would be to OpenOCD."""
    relay = f"{sys.executable} {HOME / 'tests' / 'gdbext' / 'replay' / 'relay.py'} {rig.gdb_port}"
    commands = [f"target extended-remote | {relay}", "trace connect", "info threads", "print $pc != 0"]
    said = run_gdb(rig.elf, [SOURCE, *commands])
    refused = r"trace connect: gdb is connected through a pipe \(.*Nothing has changed\."
    assert re.fullmatch(refused, said["trace connect"].strip())
    assert "* 1 " in said["info threads"] and said["print $pc != 0"].strip() == "$1 = 1"


def test_a_unix_socket_goes_through_the_proxy(tmp_path: Path) -> None:
    """QEMU's manual recommends one."""
    elf, place = demo(tmp_path), tmp_path / "q.sock"
    command = ["qemu-system-riscv64", "-M", "virt", "-bios", "none", "-kernel", str(elf), "-display", "none"]
    command += ["-serial", "null", "-S", "-chardev", f"socket,path={place},server=on,wait=off,id=gdb0"]
    with subprocess.Popen([*command, "-gdb", "chardev:gdb0"], stdin=subprocess.DEVNULL) as qemu:
        try:
            until(lambda: place.exists() or qemu.poll() is not None, "QEMU listens")
            commands = [f"target extended-remote {place}", "trace connect", "info registers pc", "tbreak main"]
            commands += ["continue", f"trace connect unix:{place}", "disconnect", f"trace connect {place}"]
            said = run_gdb(elf, [SOURCE, *commands])
        finally:
            qemu.kill()
    assert "0x1000" in said["info registers pc"] and "main () at" in said["continue"]
    assert "already between" not in said[f"trace connect {place}"] and "main () at" in said[f"trace connect {place}"]


@pytest.mark.parametrize("way", ["trace connect", *long_only("target extended-remote")])
def test_a_trace_is_not_the_past_of_another_openocd(way: str, rig: Rig, tmp_path: Path) -> None:
    """gdb connects to another chip while a trace is made: that one's hardware stays as it is, and it has no past."""
    with Rig(rig.elf, tmp_path / "second") as second, closing(Tcl(second.tcl_port)) as tcl:
        before = tcl("mdw 0x20000000")
        commands = [f"set trace target {rig.target_file}", f"{way} :{rig.gdb_port}", "monitor reset halt"]
        commands += ["maintenance flush register-cache", "trace start", "tbreak finish", "continue", "disconnect"]
        commands += [f"{way} :{second.gdb_port}", "trace status", "trace history", "reverse-stepi", "trace goto 5"]
        commands += ["trace native", "info registers pc", "disconnect ", f"{way} :{rig.gdb_port} ", "trace status "]
        commands += ["trace history 2005,2006", "reverse-stepi ", "trace live", "trace stop"]
        said = run_gdb(rig.elf, [SOURCE, *commands])
        assert tcl("mdw 0x20000000") == before
    note = "note:     gdb is connected to another OpenOCD than the one of this trace, which is of the target there\n"
    assert note in said["trace status"] and said["trace history"].startswith(note) and "2006\t" in said["trace history"]
    assert "<_start>" in said["info registers pc"] and "another OpenOCD" not in said["trace status "]
    assert "note:" not in said["trace history 2005,2006"] and said["trace stop"].startswith("Tracing stopped.")
    if way == "trace connect":
        refused = "gdb is connected to another OpenOCD than the one of this trace: there is no way"
        for command in ("reverse-stepi", "trace goto 5", "trace native"):
            assert said[command].startswith(refused), said[command]
        assert "[2006 of 2006]" in said["reverse-stepi "]


@thorough("test_a_trace_is_not_the_past_of_another_openocd")
def test_the_other_openocd_is_not_touched(rig: Rig, tmp_path: Path) -> None:
    """gdb is at one chip, the description has the Tcl port of the other, whose encoder stays as it is."""
    with Rig(rig.elf, tmp_path / "second") as second, closing(Tcl(second.tcl_port)) as tcl:
        before = tcl("mdw 0x20000000")
        commands = [f"set trace target {second.target_file}", f"trace connect :{rig.gdb_port}", "trace start"]
        commands += ["trace info", "trace regs", f"set trace openocd-port {rig.tcl_port}", "trace start "]
        said = run_gdb(rig.elf, [SOURCE, *commands])
        for command in ("trace start", "trace regs"):
            assert said[command].startswith("gdb is connected to another OpenOCD than the one whose Tcl port is"), said
            assert str(second.tcl_port) in said[command]
        assert "another OpenOCD" in said["trace info"]
        assert tcl("mdw 0x20000000") == before and tcl(f"info exists {MARK}") == "0"
        assert "tracing:" in said["trace start "]


@some_gdbs
def test_going_back_in_a_capture_replays_it(rig: Rig, tmp_path: Path, gdb: str) -> None:
    from tests.gdbext.test_programs import OTHER

    commands = [SOURCE, f"trace open {OTHER / 'hb-Og.rvt'}", "trace goto 1236", "print/x $pc"]
    said = run_gdb(OTHER / "hb-Og.elf", commands, gdb=gdb)
    assert "There is no target: this is `trace replay`." in said["trace goto 1236"]
    assert said["print/x $pc"].strip() == "$1 = 0x80000332"


@thorough("endtoend/reverse/test_session.py::test_the_past_outlives_openocd")
def test_the_code_is_known_while_openocd_is_gone(rig: Rig, tmp_path: Path) -> None:
    """It is in the ELF. gdb notices the end of the connection when it asks for something."""
    with Rig(rig.elf, tmp_path / "third") as third:
        kill = f"shell kill -9 {third.openocd.pid}; sleep 0.3"
        commands = [f"set trace target {third.target_file}", f"trace connect :{third.gdb_port}", "trace start"]
        commands += ["break finish", "continue", "trace history", kill, "trace status", "trace history 1,2"]
        said = run_gdb(rig.elf, [SOURCE, *commands])
    assert "Cannot access memory" not in said["trace history 1,2"]
    assert said["trace history 1,2"].strip().endswith("add\tgp,gp,-2048 # 0x80002800"), said["trace history 1,2"]
