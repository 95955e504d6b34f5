"""CSRs through a real gdb and the session: what a test asks for, and how gdb is connected."""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.gdbext.gdb_process import SOURCE, KeptGdb, run_gdb

SISELECT, SIREG, SIREG2, SIREG3 = 0x150, 0x151, 0x152, 0x153
MCTRCTL, SCTRCTL, SCTRDEPTH, SCTRSTATUS = 0x34E, 0x14E, 0x15F, 0x14F
Batch = Sequence[Any]
_SESSION = Path(__file__).resolve().parent / "csr_session.py"


def entries(numbers: range) -> Batch:
    """What it takes to read entries: each is selected, and that is read back."""
    return [one for n in numbers for one in ([SISELECT, 0x200 + n], [SISELECT, None], *_SHOWN)]


_SHOWN: Batch = [[SIREG, None], [SIREG2, None], [SIREG3, None]]


class Asked:
    """What gdb printed, and what the session answered: {xlen, name, answers, asked} or a line."""

    def __init__(self, outputs: dict[str, str]) -> None:
        self.outputs = outputs

    def answer(self, number: int = 0) -> dict[str, Any]:
        output = self.line(number)
        assert output.startswith("{"), self.outputs
        found: dict[str, Any] = json.loads(output)
        return found

    def line(self, number: int = 0) -> str:
        """The last of what request *number* printed: of an error, its text."""
        output = self.outputs[f"python request_{number}()"].strip()
        last = output.replace("\nError while executing Python code.", "").split("\n")[-1]
        return re.sub(r"^(?:\w+\.)+(?:GdbError|SessionRefusal): ", "", last)

    def printed(self, command: str) -> str:
        return self.outputs[command].strip()


class Request:
    """One request of gdb's to the session: *batches* of accesses, one after the other."""

    def __init__(self, *batches: Batch, way: str = "auto", hart: int | None = None) -> None:
        self.batches, self.way, self.hart = batches, way, hart

    def commands(self, number: int) -> list[str]:
        batches = [list(batch) for batch in self.batches]
        wanted = f"access=csrs.access_params({self.way!r}), hart={self.hart}, batches={{'of': {batches!r}}}"
        body = f"print(json.dumps(tracer.tracer().request('csrs', {wanted})))"
        return [f"python exec({f'def request_{number}(): {body}'!r})", f"python request_{number}()"]


_PREPARED = [SOURCE, "python import json; from rvtrace_gdb.gdbext import csr_access as csrs, tracer"]


def _interpreter(folder: Path) -> str:
    """The Python that gdb starts the session with: one with the method `csrs`."""
    interpreter = folder / "python"
    interpreter.write_text(f"#!/bin/sh\nexec {sys.executable} {_SESSION}\n")
    interpreter.chmod(0o755)
    return str(interpreter)


def asking_gdb(gdb: str, elf: Path, folder: Path) -> KeptGdb:
    """A gdb for many `ask`."""
    kept = KeptGdb(elf, gdb, RVTRACE_PYTHON=_interpreter(folder))
    kept.run(_PREPARED)
    return kept


def ask(gdb: str | KeptGdb, elf: Path | None, folder: Path, connect: str, *steps: Request | str) -> Asked:
    """Requests and gdb's own commands, one after the other; *connect*: the command that connects.

    A gdb that is kept has its *elf* already, and needs no *folder*.
    """
    commands = [connect]
    number = 0
    for step in steps:
        if isinstance(step, Request):
            commands += step.commands(number)
            number += 1
        else:
            commands.append(step)
    commands.append("disconnect")  # else gdb detaches, and the program runs
    if isinstance(gdb, KeptGdb):
        return Asked(gdb.run(commands))
    return Asked(run_gdb(elf, [*_PREPARED, *commands], gdb=gdb, RVTRACE_PYTHON=_interpreter(folder)))
