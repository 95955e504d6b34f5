"""What docs/ide.md says: its configurations are JSON, its commands and options those there are, its script does what it
should, and gdb 16's server of the Debug Adapter Protocol takes gdb commands.
"""

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from rvtrace_gdb.console.bench.rig import Rig, held_port
from tests.endtoend.retired_instructions import listed_pcs, retired_pcs
from tests.gdbext.gdb_process import GDB, GDB16, HOME, PATIENT, SOURCE, gdb_environ
from tests.helpers.cross_compiler import demo
from tests.helpers.gdb_mi import GdbMi, MiError

PAGE = (HOME / "docs" / "ide.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```json\n(.*?)^```", PAGE, re.M | re.S)
EXAMPLES = [block for block in BLOCKS if "configurations" in json.loads(block)]
ROWS = dict(re.findall(r"^\| `(-rvtrace-[a-z-]+)`(.*)$", PAGE, re.M))
SECONDS = 90
LISTS = ["history", "find", "events", "gaps", "functions", "calls"]


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_configurations_are_what_vs_code_reads(example: str) -> None:
    [configuration] = json.loads(example)["configurations"]
    assert {"name", "type", "request", "cwd"} <= set(configuration)
    text = json.dumps(configuration)
    assert "localhost:3334" in text or '"host": "localhost", "port": "3334"' in text  # through rvtrace
    assert "trace start" in text or configuration["type"] == "rvtrace-gdb"  # gdb's own server has no commands for it


def test_there_is_one_for_each_adapter() -> None:
    types = [json.loads(example)["configurations"][0]["type"] for example in EXAMPLES]
    assert types == ["cortex-debug", "cppdbg", "gdb", "gdbtarget", "rvtrace-gdb"]


@pytest.fixture(scope="module")
def alone() -> Iterator[GdbMi]:
    with GdbMi(None, GDB) as mi:
        yield mi


def test_each_command_is_documented(alone: GdbMi) -> None:
    assert sorted(ROWS) == sorted(f"-{name}" for name in alone.command("-rvtrace-info")["commands"])


@pytest.mark.parametrize("name", LISTS)
def test_options_are_those_documented(name: str, alone: GdbMi) -> None:
    """gdb's own text for a wrong option names them all."""
    with pytest.raises(MiError) as caught:
        alone.command(f"-rvtrace-{name} --nonsense")
    documented = re.findall(r"`(--[a-z]+)", ROWS[f"-rvtrace-{name}"].split("|")[1])
    assert re.findall(r"\[(--[a-z]+)", str(caught.value)) == documented


def test_the_script_lets_an_ide_connect(tmp_path: Path) -> None:
    """The lines of the page as gdb's -x has them, and then what an IDE does by itself."""
    [script] = re.findall(r"^    source .*\n    set trace target .*\n    trace connect .*$", PAGE, re.M)
    with held_port() as port, Rig(demo(tmp_path), tmp_path / "rig") as rig:
        script = script.replace("/path/to/rvtrace.py", str(HOME / "rvtrace.py"))
        script = script.replace("/path/to/rvtrace.toml", str(rig.target_file))
        script = script.replace("3334", str(port)).replace("3333", str(rig.gdb_port))
        (tmp_path / "rvtrace.gdb").write_text(re.sub("^ +", "", script, flags=re.M))
        words = [GDB, "-q", "-nx", "-batch", "-ex", PATIENT, "-x", str(tmp_path / "rvtrace.gdb")]
        words += ["-ex", f"file {rig.elf}"]
        for command in (f"target remote localhost:{port}", "trace start", "stepi 5", "reverse-stepi", "p $trace_pos"):
            words += ["-ex", command]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, env=gdb_environ(), check=False)
    assert "$1 = 5" in done.stdout.splitlines(), done


class Dap:
    """gdb's own server of the Debug Adapter Protocol, over its standard input and output. Ended after `SECONDS`."""

    def __init__(self, *words: str) -> None:
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=gdb_environ()
        )
        self._deadline = threading.Timer(SECONDS, self._process.kill)
        self._deadline.start()
        self._last = 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._deadline.cancel()
        self._process.kill()
        self._process.wait()
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()

    def request(self, command: str, **arguments: Any) -> dict[str, Any]:
        """The response of a request that succeeds. Raises EOFError."""
        number = self.send(command, **arguments)
        while True:
            message = self.read()
            if message["type"] == "response" and message["request_seq"] == number:
                assert message["success"], message
                return message

    def send(self, command: str, **arguments: Any) -> int:
        self._last += 1
        body = json.dumps({"seq": self._last, "type": "request", "command": command, "arguments": arguments}).encode()
        assert self._process.stdin
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()
        return self._last

    def read(self) -> dict[str, Any]:
        assert self._process.stdout
        length = 0
        while line := self._process.stdout.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        if not length:
            raise EOFError(f"gdb has ended, or was ended after {SECONDS} s; its last events: {self.events[-3:]}")
        message: dict[str, Any] = json.loads(self._process.stdout.read(length))
        if message["type"] == "event":
            self.events.append(message)
        return message

    def repl(self, command: str) -> str:
        """What a gdb command prints."""
        return str(self.request("evaluate", expression=command, context="repl")["body"]["result"])

    def stopped(self) -> None:
        """Wait for the next stop."""
        while not any(event["event"] == "stopped" for event in self.events):
            self.read()
        self.events.clear()


if GDB16 is not None:  # gdb 13 has no DAP

    def test_the_debug_adapter_protocol(tmp_path: Path) -> None:
        assert GDB16 is not None
        log = tmp_path / "retired.log"
        words = (GDB16, "-q", "-nx", "-i", "dap", "-ex", PATIENT, "-ex", SOURCE)
        rig = Rig(demo(tmp_path), tmp_path / "rig", "--log-retired", str(log))
        with held_port() as port, rig, Dap(*words) as dap:
            dap.request("initialize", adapterID="rvtrace", linesStartAt1=True)
            dap.repl(f"set trace target {rig.target_file}")
            dap.repl(f"trace connect -listen {port} localhost:{rig.gdb_port}")
            dap.send("attach", program=str(rig.elf), target=f"localhost:{port}")
            dap.request("configurationDone")
            dap.stopped()
            assert "N-Trace" in dap.repl("trace start")
            dap.repl("tbreak finish")
            dap.request("continue", threadId=1)
            dap.stopped()
            listing = dap.repl("trace history /a")
            dap.repl("trace goto fib")
            position = int(dap.repl("p $trace_pos").split(" = ")[1])
            [frame] = dap.request("stackTrace", threadId=1, levels=1)["body"]["stackFrames"]
        retired = retired_pcs(log)
        assert listed_pcs(listing) == retired[-10:]
        assert frame["name"] == "fib"
        assert int(frame["instructionPointerReference"], 16) == retired[position - 1]
