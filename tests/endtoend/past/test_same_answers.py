"""The same commands of gdb in the past of one run, by an N-Trace, an E-Trace and a tandem trace of it: wherever a value
is known from the traces that have addresses alone, it is what the tandem trace says.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.endtoend.past.saved_captures import captures
from tests.gdbext.gdb_process import GDB, GDB16, NEWEST, SOURCE, run_gdb
from tests.helpers.amounts import long_only
from tests.helpers.cross_compiler import demo

LOOKS = (
    "info registers", "info locals", "info args", "bt -full", "x/8gx $sp", "x/4wx &result", "print result",
    "print $mscratch",
)  # fmt: skip


def numbered(turn: int) -> list[str]:
    """The looks, as commands that differ from those of other turns."""
    return [look + " " * turn for look in LOOKS]


SCRIPT = [
    "trace goto 300", "tbreak classify", "continue", *numbered(1),
    "up", *numbered(2), "finish", *numbered(3), "trace goto 900", *numbered(4), "reverse-stepi", *numbered(5),
    "reverse-finish", *numbered(6), "next", "step", *numbered(7), "trace goto 1500", *numbered(8),
    "watch *(long *) 0x8007fff8", "reverse-continue", *numbered(9), "delete", "trace goto 1501",
    "trace who-wrote *(long *) 0x8007fff8", "trace who-wrote $a0", "trace who-wrote -before",
]  # fmt: skip
UNTOLD = re.compile("unavailable|Cannot access memory|unreadable")


def answers(elf: Path, capture: Path, gdb: str) -> Mapping[str, str]:
    said = run_gdb(elf, [SOURCE, f"trace open {capture}", "trace replay", *SCRIPT], gdb=gdb)
    return {command: said[command] for command in SCRIPT if command in said}


def lines(text: str) -> list[str]:
    """The lines, without what a trace has besides values: groups, and the values before a store; and without the line
    that says once where the values come from.
    """
    text = re.sub(r" \(group \d+\)", "", text)
    text = re.sub(r"(?m)^(\S+): \S+ -> ", r"\1: ", text)
    return [line for line in text.splitlines() if not line.startswith("note: ")]


@pytest.mark.parametrize("name", ["ntrace", *long_only("etrace")])
@pytest.mark.parametrize("gdb", [GDB, *long_only(GDB16 or GDB, NEWEST)])
def test_gdb_answers_as_with_a_tandem_trace(name: str, gdb: str, tmp_path: Path) -> None:
    elf = demo(tmp_path)
    made = captures(elf, tmp_path, 1900, name)
    told, known = (answers(elf, made[one], gdb) for one in ("tandem", name))
    assert told.keys() == known.keys() == set(SCRIPT)
    compared = left = 0
    for command in SCRIPT:
        if UNTOLD.search(told[command]):
            continue  # not in the tandem trace
        for one, other in zip(lines(told[command]), lines(known[command]), strict=True):
            left += bool(UNTOLD.search(other))
            compared += one == other
            assert one == other or UNTOLD.search(other), (command, one, other)
    assert compared > 400 and left < 0.05 * compared


def test_the_verifier_takes_the_same_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elf = demo(tmp_path)
    made = captures(elf, tmp_path, 400, "ntrace")
    said = {}
    for name, capture in made.items():
        assert main(["tandem", "verify", str(capture), "--model", "simulated"]) == 0
        said[name] = capsys.readouterr().out
        assert "no divergence" in said[name]
    compared = [re.search(r"compared: (\d+) registers", text) for text in said.values()]
    told, known = (int(found[1]) for found in compared if found)
    assert told >= known > 0.95 * told
    kept = tmp_path / "kept.rvt"
    assert main(["tandem", "convert", str(made["ntrace"]), "--to", "tandem", "-o", str(kept)]) == 0
    assert main(["tandem", "verify", str(kept), "--model", "simulated"]) == 0
    assert f"compared: {known} registers" in re.sub(" +", " ", capsys.readouterr().out)
