"""`rvtrace console` with a pipe: the commands of gdb, plain lines, an exit status."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.console.gdb_driver.engine import Engine
from rvtrace_gdb.console.gdb_driver.mi import GdbError, GdbGone, GdbTimeout
from rvtrace_gdb.console.gdb_driver.state import LOST
from rvtrace_gdb.console.main import main
from rvtrace_gdb.gdbext import start_options
from tests.console.interruption import busy, interrupt, meanwhile, when_it_runs
from tests.gdbext.gdb_process import GDBS, HOME, SOURCE, gdb_environ, in_time, run_gdb
from tests.helpers.amounts import long_only, thorough
from tests.helpers.cross_compiler import demo
from tests.helpers.started_python import rvtrace
from tests.helpers.wait import PATIENCE, until


def console(text: str, *words: object) -> subprocess.CompletedProcess[str]:
    """A console that begins with the modules loaded; `piped` has one that begins as a user's."""
    ours, theirs = os.pipe()
    try:
        assert os.write(theirs, text.encode()) == len(text.encode()) <= select.PIPE_BUF
        os.close(theirs)
        done = rvtrace("console", "--nx", *words, stdin=ours, environ=gdb_environ())
    finally:
        os.close(ours)
    done.stdout, done.stderr = in_time(done.stdout), in_time(done.stderr)
    return done


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("board")
    with Rig(demo(folder), folder / "rig") as rig:
        yield rig


AGAIN = ["monitor reset halt", "maintenance flush register-cache", "load"]
COMMANDS = ["trace start", "tbreak finish", "continue", "trace stop", "trace history 1,4", "trace functions 1,3",
            "help trace goto", "info line fib", "trace gaps"]  # fmt: skip


@pytest.mark.parametrize("gdb", [GDBS[0], *long_only(*GDBS[1:])])
def test_what_commands_print_is_what_gdb_prints(gdb: str, board: Rig) -> None:
    """The same commands typed at the same gdb's own prompt print the same; nothing of it is ours.

    tests/console/scripts/test_run.py has the engine with each gdb.
    """
    words = ["--gdb", gdb, "--elf", board.elf, "--target", board.target_file, "--connect", f":{board.gdb_port}"]
    done = console("\n".join([*AGAIN, *COMMANDS]), *words)
    begin = [SOURCE, f"set trace target {board.target_file}", f"trace connect :{board.gdb_port}", *AGAIN]
    said = run_gdb(board.elf, [*begin, *COMMANDS], gdb=gdb)
    expected = "".join(said[command].rstrip("\n") + "\n" for command in COMMANDS if said[command].strip())
    shown = done.stdout[done.stdout.index("tracing: ") :].replace("Continuing.\n", "")  # gdb says it to who types
    assert (done.returncode, done.stderr) == (0, "")
    assert shown.split() == expected.split()
    assert loaded(done.stdout) == [re.sub(" lma .*", "", line) for line in loaded(said["load"])] != []


def loaded(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("Loading section ", "Start address "))]


def test_an_engine_without_a_target(board: Rig) -> None:
    """The table of options is that of gdb; and a program that runs is not only gdb's to have."""
    with Engine(board.elf) as engine:
        for run in (engine.resume, lambda: engine.execute("continue"), lambda: engine.execute("stepi")):
            with pytest.raises(GdbError, match=r"^The program is not being run: gdb has no conn.* `trace usb resume`"):
                run()
        offered = {line.removeprefix("trace start ") for line in engine.complete("trace start -")}
        assert offered == {option.name for option in start_options.OPTIONS}
        for option in start_options.OPTIONS:
            assert option.name in engine.execute("help trace start")
        assert {"trace start", "trace stop", "trace status"} <= set(engine.complete("trace "))


def test_errors_and_the_exit_status(board: Rig) -> None:
    done = console("print 1\nnonsense\nprint 2\n", "--elf", board.elf)
    assert (done.returncode, done.stdout) == (1, "$1 = 1\n$2 = 2\n")
    assert done.stderr == 'Undefined command: "nonsense".  Try "help".\n'
    stopped = console("print 1\nnonsense\nprint 2\n", "--stop-on-error")
    assert (stopped.returncode, stopped.stdout) == (1, "$1 = 1\n")


@thorough("console/commands/test_lists.py::test_colours_are_asked_for_and_change_nothing_else")
def test_colours_of_lists(tmp_path: Path) -> None:
    """Those of gdb's lists, if they are asked for; texts for programs have none."""
    elf = demo(tmp_path)
    capture, pcs = tmp_path / "x.rvt", tmp_path / "pcs"
    pcs.write_text("80000000\n80000004\n")
    assert rvtrace("encode", "--elf", elf, "--pcs", pcs, "-o", capture).returncode == 0
    commands = f"trace open {capture}\ntrace history 1,1\n"
    done = console(commands, "--elf", elf, "--color=always")
    assert (done.returncode, done.stderr) == (0, "")
    assert "1\t   \x1b[34m0x0000000080000000\x1b[m <\x1b[33m_start\x1b[m+0>:" in done.stdout
    assert "\x1b" not in console(commands, "--elf", elf).stdout
    last = console(commands, "--elf", elf, "--color=always", "--json").stdout.splitlines()[-1]
    assert json.loads(last)["output"].startswith("1\t   0x0000000080000000 <_start+0>:")


@pytest.mark.parametrize(("line", "status"), [("q sizeof(int)", 4), ("nonsense\nquit", 1)])
def test_quitting(line: str, status: int, board: Rig) -> None:
    done = console(f"{line}\nprint 1\n", "--elf", board.elf)
    assert (done.returncode, done.stdout) == (status, "")


def test_commands_that_go_on_to_an_end(board: Rig) -> None:
    text = """define hello
document hello
end
if $arg0 > 1
echo many\\n
else
echo one\\n
end
end
hello 2
hello 1
python
for number in range(2):
    print("py", number)
end
set $i = 0
while $i < 3
set $i = $i + 1
nonsense
end
printf "%d, %d\\n", \\
  $i, 7
tbreak fib
commands
silent
printf "n is %d\\n", n
end
"""
    done = console(text, "--elf", board.elf)
    assert done.stdout.splitlines()[:4] == ["many", "one", "py 0", "py 1"]
    assert done.stdout.splitlines()[4] == "1, 7" and "reakpoint 1 at" in done.stdout
    # gdb names the line where a loop ends
    assert done.stderr == 'line 4: Undefined command: "nonsense".  Try "help".\n'
    unfinished = console("print 1\nif 1\nprint 2\n")
    assert (unfinished.returncode, unfinished.stdout) == (1, "$1 = 1\n")
    assert unfinished.stderr == "the last command has no `end`\n"


def test_json_for_programs(board: Rig) -> None:
    done = console("print 1\nif 1\nprint 2\nend\nnonsense\n\nshell exit 3\n", "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["command"], row["status"], row["output"], row["error"]) for row in rows] == [
        ("print 1", "ok", "$1 = 1\n", ""),
        ("if 1\nprint 2\nend", "ok", "$2 = 2\n", ""),
        ("nonsense", "error", "", 'Undefined command: "nonsense".  Try "help".'),
        ("shell exit 3", "error", "", "shell: exit status 3"),
    ]
    assert done.returncode == 1 and all(row["seconds"] >= 0 for row in rows)


def test_commands_of_its_own(board: Rig, tmp_path: Path) -> None:
    script = tmp_path / "x.rvts"
    script.write_text("reset\nload\nstart\nrun until finish\nstop\nassert ran fib\nassert ran nonsense_not\n")
    text = f"help console\nshell echo from the shell\n!cat\nscript {script}\nscript\nscript /nonsense\n"
    text += "help\nedit\nshell\n!\nmake -v\n"
    words = ["--elf", board.elf, "--target", board.target_file, "--connect", f":{board.gdb_port}"]
    done = console(text, *words)
    assert done.returncode == 1
    for part in ("script FILE.rvts", "from the shell\n", "ok       4  run until finish: at finish", "`help console`"):
        assert part in done.stdout, part
    problems = done.stderr.splitlines()
    assert problems[0] == f'failed: {script}:7: nonsense_not: No symbol "nonsense_not" in current context.'
    assert problems[1:] == [
        "script: which? `script FILE.rvts`", "/nonsense: cannot be read: No such file or directory",
        "edit needs gdb's own terminal: `shell` with your editor does the same here",
        "shell: which command? `shell COMMAND`", "shell: which command? `shell COMMAND`",
    ]  # fmt: skip
    assert not [line for line in done.stdout.splitlines() if line.startswith("Tracing stopped.")]  # the script's line


def piped(*words: object) -> "subprocess.Popen[str]":
    """A console with pipes, and with a process group of its own, as a shell gives it one."""
    command = [sys.executable, "-m", "rvtrace_gdb", "console", "--nx", *map(str, words)]
    return subprocess.Popen(
        command, cwd=HOME, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=gdb_environ(), start_new_session=True,
    )  # fmt: skip


def children(pid: int) -> list[str]:
    """The names of the programs that a process has started."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [Path(f"/proc/{child}/comm").read_text().strip() for child in found]


@thorough("test_ctrl_c_ends_the_command_and_nothing_else")
def test_ctrl_c_between_two_of_many_steps(board: Rig, tmp_path: Path) -> None:
    """Where gdb works between them, it forgets to report that it has stopped, and keeps half of a frame.

    gdb 13 then aborts at one of the next steps, or disconnects from a target that was told to stop twice.
    """
    words = ["--target", board.target_file, "--elf", board.elf]
    with piped(*words) as running, ended_in_time(running):
        assert running.stdin and running.stdout and running.stderr
        running.stdin.write(f"trace connect :{board.gdb_port}\nmonitor reset halt\n")
        stepping = [tmp_path / str(number) for number in range(5)]
        for file in stepping:
            running.stdin.write(f"{when_it_runs(file, 30)}\nstepi 100000\necho {file.name}\\n\n")
        running.stdin.flush()
        for file in stepping:
            until(lambda: file.exists() or running.poll() is not None, "gdb makes steps")  # noqa: B023 - it ends here
            assert running.poll() is None, running.stderr.read()
            os.kill(running.pid, signal.SIGINT)
            while (line := running.stdout.readline()) != f"{file.name}\n":
                assert line, running.stderr.read()
        running.stdin.close()
    assert running.returncode in (0, 1)


@contextmanager
def ended_in_time(running: "subprocess.Popen[str]") -> Iterator[None]:
    """It is ended when the time is over, so that who reads what it prints does not wait for ever."""
    timer = threading.Timer(2 * PATIENCE, running.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def test_ctrl_c_ends_the_command_and_nothing_else(board: Rig, tmp_path: Path) -> None:
    sleeps, runs = tmp_path / "sleeps", tmp_path / "runs"
    words = ["--elf", board.elf, "--connect", f":{board.gdb_port}"]
    with piped(*words) as running, ended_in_time(running):
        assert running.stdin and running.stdout and running.stderr

        def prints(line: str) -> None:
            while (read := running.stdout.readline() if running.stdout else "") != line:
                assert read, f"no {line}"

        running.stdin.write(f"python {busy(sleeps)}\necho next\\n\n{when_it_runs(runs)}\ncontinue\nprint 5\n")
        running.stdin.flush()
        until(sleeps.exists, "the first command runs")
        os.kill(running.pid, signal.SIGINT)
        prints("next\n")
        prints("Continuing.\n")
        until(runs.exists, "the program runs")
        os.kill(running.pid, signal.SIGINT)
        prints("Program received signal SIGINT, Interrupt.\n")
        prints("$1 = 5\n")
        running.stdin.write("shell exec sleep 60\nprint 6\n")
        running.stdin.flush()
        # A shell that gets the signal first would keep it to itself.
        until(lambda: "sleep" in children(running.pid), "the shell's command runs")
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does it
        prints("$2 = 6\n")
        os.kill(running.pid, signal.SIGTERM)  # an end in order
        assert running.stderr.read() == "interrupted\ninterrupted\n"
    assert running.returncode == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--gdb", "/nonsense"], "rvtrace: /nonsense: there is no such program; --gdb names the gdb to use\n"),
        (["--elf", "/"], "rvtrace: /: is a folder\n"),
        (["--sim"], "rvtrace: --sim: needs --elf, and takes no --connect\n"),
    ],
)
def test_what_is_wrong_with_the_command_line(words: list[str], problem: str) -> None:
    done = console("print 1\n", *words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", problem)


def test_a_gdb_that_dies(board: Rig) -> None:
    done = console("python import os; os._exit(1)\nprint 1\n")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.startswith("rvtrace: gdb has ended")


def test_a_gdb_that_does_not_listen(board: Rig, tmp_path: Path) -> None:
    """It is ended with the third Ctrl-C; who is only slow is waited for in the console, and given up in a script."""
    fifo, deaf = tmp_path / "fifo", tmp_path / "deaf"
    os.mkfifo(fifo)
    with Engine(board.elf) as engine:
        engine.silence = 0.3
        slow = f"python open({str(fifo)!r}).close()"  # as long as nobody writes there
        with pytest.raises(GdbTimeout, match=rf"^gdb, {re.escape(slow)}: no answer within [\d.]+ s$") as caught:
            engine.execute(slow)
        assert 0.29 <= caught.value.seconds < 30
        engine.silence = None

        def answers_later() -> None:
            time.sleep(0.3)
            fifo.write_bytes(b"")

        with meanwhile(answers_later):
            assert engine.execute("echo later\\n") == "later\n"
        stubborn = f"python import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {busy(deaf)}"

        def interrupts() -> None:
            until(deaf.exists, "gdb does not listen")
            interrupt(engine, 3)

        with (
            meanwhile(interrupts),
            pytest.raises(GdbGone, match=r"^gdb did not react to 3 interrupts, and was killed$"),
        ):
            engine.execute(stubborn)


def test_a_probe_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenOCD is there and cannot stop the program any more: the third Ctrl-C in vain is the last."""
    monkeypatch.setattr("rvtrace_gdb.console.gdb_driver.engine.INTERRUPT_SECONDS", 0.1)
    with Rig(demo(tmp_path), tmp_path / "rig") as rig, Engine(rig.elf) as engine:
        engine.execute(f"trace connect :{rig.gdb_port}")
        ended: list[str] = []

        def pulled_out() -> None:
            until(lambda: engine.state.running, "the program runs")
            rig.simulator.kill()
            rig.simulator.wait()
            for _ in range(3):
                engine.interrupt()
                until(lambda: ended or not engine._interrupt_requested, "the interrupt is heard")

        with meanwhile(pulled_out):
            try:
                engine.execute("continue")
                ended.append(engine.state.last.reason)  # OpenOCD was so slow that gdb gave it up with the second one
            except GdbGone as error:
                ended.append(str(error))
        assert ended[0] in ("gdb did not react to 3 interrupts, and was killed", LOST)


def test_bytes_that_are_no_text() -> None:
    """In lines, and in commands over several lines; and a locale that does not have what is to be printed."""
    text = b"echo \xff \xc3\xa9\\n\nif 1\necho \xfe\\n\nend\nprint 5\n"
    command = [sys.executable, "-m", "rvtrace_gdb", "console", "--nx"]
    for encoding in ("utf-8:strict", "ascii:strict"):
        environ = {**gdb_environ(), "PYTHONPATH": str(HOME), "PYTHONIOENCODING": encoding}
        done = subprocess.run(command, input=text, capture_output=True, env=environ, check=False, timeout=120)
        assert (done.returncode, done.stderr) == (0, b"")
        lines = done.stdout.splitlines()
        assert len(lines) == 3 and lines[2] == b"$1 = 5"
        assert lines[0].endswith(b" \xc3\xa9" if encoding.startswith("utf") else b" \\xe9"), lines


def test_a_terminal_without_its_library(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It is said before anything is started: this gdb does not exist."""
    monkeypatch.delitem(sys.modules, "rvtrace_gdb.console.commands.console.prompt", raising=False)
    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert main(["console", "--gdb", "/nonsense"]) == 2
    said = f"rvtrace: prompt-toolkit is not installed: {sys.executable} -m pip install prompt-toolkit\n"
    assert capsys.readouterr().err == said


def test_a_gdb_without_python(tmp_path: Path) -> None:
    """Its answer to `source`, as gdb gives it."""
    fake = tmp_path / "gdb"
    fake.write_text(f"""#!{sys.executable}
import sys
for line in sys.stdin:
    token, _, command = line.partition("-")
    refused = "Python scripting is not supported in this copy of GDB."
    print(token + (f'^error,msg="{{refused}}"' if "source" in command else "^done"), flush=True)
    if command.startswith("gdb-exit"):
        break
""")
    fake.chmod(0o755)
    done = console("print 1\n", "--gdb", fake)
    assert done.returncode == 2
    said = f"rvtrace: {fake} was built without Python: use gdb-multiarch, or name another with --gdb\n"
    assert done.stderr == said
