"""gdb driven through its machine interface, as an IDE does it: `console.gdb_driver.mi`, and all that gdb said in a
list.

What a command of rvtrace answers is gdb's own; the client in between is tested by itself
(tests/console/gdb_driver/test_mi.py).
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rvtrace_gdb.console.gdb_driver.mi import GdbError, Mi, MiRecord, quoted
from tests.gdbext.gdb_process import GDB, PATIENT, SOURCE, gdb_environ

SECONDS = 60.0
MiError = GdbError


class GdbMi(Mi):
    """`with GdbMi(elf) as gdb:` - a gdb with rvtrace loaded that talks MI and runs its target asynchronously."""

    def __init__(self, elf: Path | None, gdb: str = GDB, *commands: str, **environ: str) -> None:
        self.records: list[MiRecord] = []
        """All that came, in order."""
        words = [gdb, "-q", "-nx", *([str(elf)] if elf else [])]
        super().__init__(words, gdb_environ(**environ), self.records.append)
        for command in ("set confirm off", PATIENT, "set mi-async on", SOURCE, *commands):
            self.cli(command)

    def cli(self, text: str) -> str:
        """Return what a command of gdb's command line prints. Raises MiError, GdbTimeout."""
        before = len(self.records)
        self.command(f"-interpreter-exec console {quoted(text)}")
        return self.console(before)

    def console(self, since: int) -> str:
        """Return the console text among the records from number *since* on."""
        return "".join(it.text for it in self.records[since:] if it.kind == "console")

    def stopped(self, since: int) -> dict[str, Any]:
        """Wait for the *stopped record among the records from number *since* on, and return it. Raises TimeoutError."""
        return self.found(lambda it: (it.kind, it.name) == ("notify", "stopped"), since).fields

    def found(self, wanted: Callable[[MiRecord], bool], since: int) -> MiRecord:
        """Wait for the first matching record from number *since* on, and return it. Raises TimeoutError, GdbGone when
        gdb has ended.
        """
        deadline = time.monotonic() + SECONDS
        while True:
            for record in self.records[since:]:
                if wanted(record):
                    return record
            since = len(self.records)
            if not self.wait(lambda since=since: len(self.records) > since, seconds=deadline - time.monotonic()):  # type: ignore[misc]
                raise TimeoutError(f"not in {SECONDS} s; the last records: {self.records[-8:]}")
