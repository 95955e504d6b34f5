"""`trace native` in the real gdb: how much gdb is given and how long it waits, and what the documentation shows."""

import re
import subprocess
from pathlib import Path

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import retired_pcs
from tests.gdbext.gdb_process import AT_ONCE, HOME, PATIENT, SETTINGS, SOURCE, gdb_environ, in_time, run_gdb
from tests.gdbext.replay.test_record_btrace import ROW, beginning, recorded
from tests.gdbext.test_interrupt import PROGRAM, Gdb
from tests.helpers.amounts import thorough
from tests.helpers.cross_compiler import EXAMPLES, compile_program, demo
from tests.helpers.openocd_crash import kill_openocd


def all_retired(rig: Rig, log: Path) -> list[int]:
    """The last of what retired is in the log when the simulated target has ended, which may take a while."""
    kill_openocd(rig)
    rig.simulator.terminate()
    assert rig.simulator.wait(60) == 0
    return retired_pcs(log)


def test_the_size_guard(tmp_path: Path) -> None:
    """Of more than it takes in a few seconds gdb gets the newest, and says before how long that takes."""
    elf, log = compile_program(tmp_path, PROGRAM), tmp_path / "retired.log"
    with Rig(elf, tmp_path / "rig", "--trace-size", "32768", "--log-retired", str(log)) as rig:
        gdb = Gdb(elf)
        try:
            for command in (*SETTINGS, *beginning(rig)[:-2]):
                gdb.run(command)
            gdb.runs_until(lambda: log.exists() and log.stat().st_size >= 10 * 100_000)
            gdb.run("set trace native-limit 30000")
            said = gdb.run("trace native", 100)
            rows = ROW.findall(gdb.run("record instruction-history 29991,30000").replace("(gdb) ", ""))
        finally:
            gdb.process.kill()
            gdb.process.communicate()
        pcs = all_retired(rig, log)
    match = re.search(r"newest 30000 of (\d+) instructions .* number 1 is number (\d+) of", said)
    assert match and int(match[1]) - int(match[2]) == 29999
    assert "gdb takes up to 1 s for 30000 instructions, and cannot be interrupted." in said
    assert recorded(said)[0] == 30000
    assert [int(pc, 16) for _, pc in rows] == pcs[-10:]


@thorough("test_the_size_guard")
def test_what_takes_too_long_to_read_out_is_a_gap(tmp_path: Path) -> None:
    """gdb waits a second for an answer here, and the buffer takes longer: that is said once, and gdb goes on."""
    elf, log = compile_program(tmp_path, PROGRAM), tmp_path / "retired.log"
    with Rig(elf, tmp_path / "rig", "--trace-size", "131072", "--log-retired", str(log)) as rig:
        gdb = Gdb(elf)
        try:
            for command in (*SETTINGS, *beginning(rig)[:-2], "tbreak main", "continue"):
                gdb.run(command)
            for command in ("set remotetimeout 1", "trace native", PATIENT):  # the second is for what is read out
                gdb.run(command)
            gdb.fills_the_buffer(rig)
            missing, later = gdb.run("info record"), [gdb.run("stepi"), gdb.run("info record")]
            again = gdb.run("trace native 10", 100)
            rows = ROW.findall(gdb.run("record instruction-history 1,10").replace("(gdb) ", ""))
        finally:
            gdb.process.kill()
            gdb.process.communicate()
        pcs = all_retired(rig, log)
    assert missing.count("record btrace: what runs from here on is missing (reading trace takes longer than gdb") == 1
    assert recorded(missing)[2] == 1 and recorded(later[1])[2] == 2 and "missing" not in "".join(later)
    assert recorded(again) == (10, recorded(again)[1], 0)
    assert [int(pc, 16) for _, pc in rows] == pcs[-10:]


def run_script(script: str, elf: Path, rig: Rig, folder: Path) -> str:
    """What `gdb -batch -x` prints, of a script for a target at OpenOCD's usual port."""
    text = script.replace("localhost:3333", f"localhost:{rig.gdb_port}")
    (folder / "x.gdb").write_text(text)
    words = ["gdb-multiarch", "-q", "-nx", "-batch", "-ex", PATIENT, "-x", str(folder / "x.gdb"), str(elf)]
    environ = gdb_environ(RVTRACE_TARGET=str(rig.target_file))
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    done = subprocess.run(
        words, cwd=HOME, env=environ, stdin=nothing, stdout=pipe, stderr=subprocess.STDOUT, timeout=300
    )
    assert done.returncode == 0
    return in_time(done.stdout.decode())


@thorough("test_the_page_shows_what_gdb_prints")
def test_the_example_script(tmp_path: Path) -> None:
    elf, log = demo(tmp_path), tmp_path / "retired.log"
    with Rig(elf, tmp_path / "rig", "--log-retired", str(log)) as rig:
        said = run_script((EXAMPLES / "native.gdb").read_text(), elf, rig, tmp_path)
    pcs = retired_pcs(log)
    assert f"the last instruction ran at {pcs[-1]:#x}" in said and "gdb has 1000 instructions" in said
    assert [(int(number), int(pc, 16)) for number, pc in ROW.findall(said)] == list(enumerate(pcs[-5:], 996))


def test_the_page_shows_what_gdb_prints(tmp_path: Path) -> None:
    """docs/native.md, its first transcript: commands and answers."""
    page = (HOME / "docs" / "native.md").read_text()
    blocks = re.findall(r"(?:^    .*\n)+", page, re.M)
    [shown] = [re.sub("^    ", "", block, flags=re.M) for block in blocks if "trace connect" in block]
    exchanges = [part.partition("\n") for part in shown.split("(gdb) ")[1:]]
    elf = demo(tmp_path)
    with Rig(elf, tmp_path / "rig") as rig:
        script = [SOURCE, "set filename-display basename", "set width 0"]
        for command, _, _ in [*exchanges, ("echo", "", "")]:
            script += [f"echo \\n\x01{command}\x02\\n", command]
        said = run_script("\n".join(script), elf, rig, tmp_path)
    printed = {part.partition("\x02\n")[0]: part.partition("\x02\n")[2].strip() for part in said.split("\x01")[1:]}
    for command, _, answer in exchanges:
        if answer:
            assert printed[command] == answer.strip()


def test_without_the_proxy_or_a_trace(tmp_path: Path) -> None:
    elf = demo(tmp_path)
    connect = "going back needs rvtrace between gdb and the target: `trace connect` puts it there"
    rig = Rig(elf, tmp_path / "rig")
    rig.openocd_commands = AT_ONCE
    with rig:
        directly = [SOURCE, f"target extended-remote localhost:{rig.gdb_port}", "trace native", "disconnect"]
        nothing = [*beginning(rig)[1:3], "trace native ", "info record"]
        said = run_gdb(elf, [*directly, *nothing, *beginning(rig)[3:4], "trace native  "])
    assert said["trace native"].strip() == connect
    assert "there is no trace" in said["trace native "] and "No recording" in said["info record"]
    assert "nothing has been traced yet" in said["trace native  "]


@thorough("test_without_the_proxy_or_a_trace")
def test_the_connection_is_lost_while_gdb_records(tmp_path: Path) -> None:
    """gdb goes on without a target, and what was traced is kept."""
    elf, log = demo(tmp_path), tmp_path / "retired.log"
    with Rig(elf, tmp_path / "rig", "--log-retired", str(log)) as rig:
        gdb = Gdb(elf)
        try:
            for command in (*SETTINGS, *beginning(rig), "trace native"):
                gdb.run(command)
            kill_openocd(rig)
            lost = gdb.run("info record")
            without = [gdb.run("reverse-stepi"), gdb.run("trace native off")]
            rows = ROW.findall(gdb.run("trace history /a").replace("(gdb) ", ""))
        finally:
            gdb.process.kill()
            gdb.process.communicate()
    assert "closed the connection; what was traced is kept" in lost
    assert "does not support this command" in without[0] and "gdb does not record" in without[1]
    assert [int(pc, 16) for _, pc in rows] == retired_pcs(log)[-10:]
