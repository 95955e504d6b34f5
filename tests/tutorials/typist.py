"""Types what a page of docs/tutorials has typed: at a shell, and at `rvtrace console`, with the real gdb in it."""

import json
import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import IO

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.gdb_process import gdb_environ
from tests.helpers.cross_compiler import EXAMPLES, compile_program
from tests.helpers.started_python import Started, python_stub, rvtrace
from tests.helpers.wait import until
from tests.tutorials.page import Exchange

CXX = ("-fno-exceptions", "-fno-rtti")
RUNNING = 0.2
"""Seconds that a program runs before Ctrl-C: its bug shows within a millisecond, and the trace of that is kept."""


class Typist:
    """Somebody in *folder*, where the programs of examples/ are built, as `make examples` builds them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._console: Console | None = None
        self._rig: Rig | None = None
        (folder / "examples").symlink_to(EXAMPLES)
        (folder / "build" / "examples").mkdir(parents=True)
        (folder / "rvtrace").write_text(f'#!/bin/sh\nexec {python_stub()} -m rvtrace_gdb "$@"\n')
        (folder / "rvtrace").chmod(0o755)

    def build(self, name: str) -> None:
        """Compile the program *name*, with a start-up of its own if it has one."""
        own = EXAMPLES / name / "start.S"
        source = own.with_name(f"{name}.c") if own.exists() else next(EXAMPLES.glob(f"{name}.[cs]*"))
        if source.suffix == ".s":  # of a compiler that may not be here
            text = source.read_text(encoding="utf-8").replace("@examples@", str(EXAMPLES))
            source = self.folder / source.name
            source.write_text(text, encoding="utf-8")
        options = CXX if source.suffix == ".cpp" else ()
        start = own if own.exists() else EXAMPLES / "start.S"
        built = compile_program(self.folder, source, start=start, options=options)
        built.rename(self.folder / "build" / "examples" / f"{name}.elf")

    def types(self, exchange: Exchange) -> str:
        """Type the command; what is printed."""
        if exchange.prompt == "shell":
            said = self._shell(exchange.command)
        else:
            assert self._console is not None, "`rvtrace console` comes first"
            said = self._console.types(exchange.command, exchange.interrupted)
        return re.sub(rf"{EXAMPLES}/(?:\w+/)?", "", said).replace(f"{self.folder}/", "")

    def _shell(self, command: str) -> str:
        self._close_console()
        if command.endswith(" &"):
            return self._start(command)
        program, *words = shlex.split(command)
        if [program, *words[:1]] == ["rvtrace", "console"]:
            self._console = Console([self._there(word) for word in words[1:]], self.folder)
            return ""
        if command == "make examples":
            return ""
        if program == "rvtrace" and not set("|><;&$") & set(command):
            done = rvtrace(*words, cwd=self.folder, environ=gdb_environ())
            return done.stdout + done.stderr
        environ = gdb_environ(PATH=f"{self.folder}:{os.environ['PATH']}")
        run = subprocess.run(["sh", "-c", command], cwd=self.folder, env=environ, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)  # fmt: skip
        return run.stdout

    def _start(self, command: str) -> str:
        """A target in the background: a rig that has the ports which are free here, and its own OpenOCD."""
        if command.startswith("openocd "):
            assert self._rig is not None
            return ""
        words = shlex.split(command.removesuffix(" &"))
        assert words[:3] == ["rvtrace", "sim", "--elf"] and words[-4::2] == ["--write-openocd", "--write-target"]
        self._rig = Rig(self.folder / words[3], self.folder / "rig", *words[4:-4]).__enter__()
        return ""

    def _there(self, word: str) -> str:
        if self._rig is None:
            return word
        return {":3333": f":{self._rig.gdb_port}", "rvtrace.toml": str(self._rig.target_file)}.get(word, word)

    def _close_console(self) -> None:
        if self._console is not None:
            self._console.close()
            self._console = None

    def close(self) -> None:
        self._close_console()
        if self._rig is not None:
            self._rig.__exit__(None, None, None)


class Console:
    """A console with a pipe that says what each command printed."""

    def __init__(self, words: list[str], folder: Path) -> None:
        self._running = folder / "running"
        read, typed = os.pipe()
        said, write = os.pipe()
        self._errors = (folder / "console.log").open("wb")
        command = ["console", "--nx", "--json", *words]
        self._process = Started(command, (read, write, self._errors.fileno()), folder, gdb_environ())
        os.close(read)
        os.close(write)
        self._typed: IO[str] = os.fdopen(typed, "w")
        self._said: IO[str] = os.fdopen(said)

    def types(self, command: str, interrupted: bool) -> str:
        if interrupted:
            self.types(_made_when_it_runs(self._running), False)
        self._typed.write(command + "\n")
        self._typed.flush()
        if interrupted:
            until(self._running.exists, "the program runs")
            time.sleep(RUNNING)
            os.kill(self._process.pid, signal.SIGINT)
        for line in self._said:
            row = json.loads(line)
            if row["command"] == command:
                return str(row["output"]) + str(row["error"])
        raise AssertionError(f"the console ended before `{command}`")

    def close(self) -> None:
        self._typed.close()
        self._said.close()
        self._process.wait()
        self._errors.close()


def _made_when_it_runs(file: Path) -> str:
    """A command of gdb that makes *file* when gdb has let the program run and listens again."""
    made = f"gdb.post_event(lambda: open({str(file)!r}, 'w').close())"
    return f"python ran = lambda event: (gdb.events.cont.disconnect(ran), {made}); gdb.events.cont.connect(ran)"
