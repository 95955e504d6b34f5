"""gdb driven through its machine interface, as an IDE does it: commands with tokens, waits with a deadline.

pygdbmi's parser takes the records apart. Its controller is not used: it ends each read after a silence, so that a late
answer is taken for the next command's.
"""

import contextlib
import itertools
import os
import select
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pygdbmi.gdbmiparser import parse_response

from tests.gdb.running import GDB, SOURCE, gdb_environ

Record = dict[str, Any]
"""As pygdbmi gives it: type, message, payload, token."""
SECONDS = 20.0


class MiError(Exception):
    """gdb answered ^error; the text is its msg."""


class GdbMi:
    """`with GdbMi(elf) as gdb:` - a gdb with rvtrace loaded that talks MI and runs its target asynchronously."""

    def __init__(self, elf: Path | None, gdb: str = GDB, *commands: str, **environ: str) -> None:
        words = [gdb, "-q", "-nx", "--interpreter=mi3", *([str(elf)] if elf else [])]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=gdb_environ(**environ)
        )
        self._tokens = itertools.count(1)
        self._buffer = b""
        self.records: list[Record] = []
        """All that came, in order."""
        for command in ("set confirm off", "set mi-async on", SOURCE, *commands):
            self.cli(command)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin and self._process.stdout
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(b"-gdb-exit\n")
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def command(self, text: str, seconds: float = SECONDS) -> dict[str, Any]:
        """The result of an MI command. Raises MiError, TimeoutError."""
        token = next(self._tokens)
        before = len(self.records)
        assert self._process.stdin
        self._process.stdin.write(f"{token}{text}\n".encode())
        self._process.stdin.flush()
        record = self.wait(lambda it: it["type"] == "result" and it["token"] == token, before, seconds)
        if record["message"] == "error":
            raise MiError(record["payload"]["msg"])
        payload: dict[str, Any] = record["payload"] or {}
        return payload

    def cli(self, text: str, seconds: float = SECONDS) -> str:
        """What a command of gdb's command line prints. Raises MiError, TimeoutError."""
        before = len(self.records)
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        self.command(f'-interpreter-exec console "{quoted}"', seconds)
        return self.console(before)

    def console(self, since: int) -> str:
        """The console text among the records from number *since* on."""
        return "".join(it["payload"] or "" for it in self.records[since:] if it["type"] == "console")

    def stopped(self, since: int, seconds: float = SECONDS) -> dict[str, Any]:
        """The *stopped record among the records from number *since* on, awaited. Raises TimeoutError."""
        found = self.wait(lambda it: it["type"] == "notify" and it["message"] == "stopped", since, seconds)
        payload: dict[str, Any] = found["payload"]
        return payload

    def wait(self, wanted: Callable[[Record], bool], since: int, seconds: float = SECONDS) -> Record:
        """The first wanted record from number *since* on. Raises TimeoutError, EOFError when gdb has ended."""
        deadline = time.monotonic() + seconds
        while True:
            for record in self.records[since:]:
                if wanted(record):
                    return record
            since = len(self.records)
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"not in {seconds} s; the last records: {self.records[-8:]}")
            self._read(left)

    def _read(self, seconds: float) -> None:
        assert self._process.stdout
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            return
        data = os.read(self._process.stdout.fileno(), 1 << 16)
        if not data:
            raise EOFError(f"gdb has ended; its last records: {self.records[-8:]}")
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        texts = (line.decode(errors="replace").rstrip("\r") for line in lines)
        self.records += [parse_response(text) for text in texts if text and not text.startswith("(gdb)")]
