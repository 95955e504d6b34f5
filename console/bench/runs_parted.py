"""Where the run of a test and that of a capture part. The type is one of the Python API."""

from typing import NamedTuple

from rvtrace_gdb.console.gdb_driver.engine import Engine
from rvtrace_gdb.console.gdb_driver.mi import quoted


class RunsParted(NamedTuple):
    """What `trace diff` says of two runs.

    same            how many instructions (or source lines, of another build) both ran
    differences     how many stretches differ, 0: none that is known; *lost*: how often lost trace hides whether they do
    number, other_number  of the last instruction that both ran before they part first, None: they do not
    line            its source line, "" if that is not known
    """

    same: int
    differences: int
    lost: int
    number: int | None
    other_number: int | None
    line: str


def runs_parted(engine: Engine, file: str, hart: int | None = None, elf: str | None = None) -> RunsParted:
    """Return where the trace and that in a capture part. Raises RvtraceError."""
    options = [] if hart is None else [f"--hart {hart}"]
    options += [] if elf is None else [f"--elf {quoted(elf)}"]
    answer = engine.query(f"-rvtrace-diff {' '.join([*options, '--count 0', '--', quoted(file)])}")["diff"]
    first = answer.get("first")
    return RunsParted(
        same=int(answer["same"]),
        differences=int(answer["differences"]),
        lost=int(answer["lost"]),
        number=None if first is None else int(first.get("number", 0)),
        other_number=None if first is None else int(first.get("other-number", 0)),
        line="" if first is None else first.get("line", ""),
    )
