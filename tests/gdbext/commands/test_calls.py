"""`trace functions` and `trace calls` in the real gdb: lines, formats, errors, gaps.

Where functions are in the source is taken from addr2line, what ran from `trace history`.
"""

import itertools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.console.main import main
from tests.gdbext.commands.test_dump import ELF
from tests.gdbext.commands.test_find import damaged
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.gdbext.test_interrupt import Gdb
from tests.helpers.amounts import thorough
from tests.helpers.cross_compiler import demo
from tests.helpers.gdb_transcripts import FOLDER, Exchange, exchanges, history_rows

ALL = "1,1000000"
LINE = re.compile(r"(\d+)\t((?:  )*)(\w+)( \[[^\]]+\])?\tinst (\d+),(\d+)\tat (\S*)")
ROW = re.compile(r"^\d+\t(?:=> |   )0x([0-9a-f]+)", re.M)
MODIFIERS = ("", "/c ", "/i ", "/l ", "/ilc ", "/lic ")


class Demo:
    """The demo traced, and what gdb said of it."""

    def __init__(self, folder: Path) -> None:
        self.elf = demo(folder)
        with Rig(self.elf, folder / "rig") as rig:
            commands = [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]
            commands += ["trace start", "break finish", "continue", f"trace history {ALL}"]
            commands += [f"trace functions {modifiers}{ALL}" for modifiers in MODIFIERS]
            commands += ["trace functions 3 /ci", "trace functions /z", "trace functions /", "trace functions 1,2,3"]
            commands += ["trace functions", "set record function-call-history-size 3", "trace functions -"]
            commands += [
                "trace calls",
                "trace calls /n 1",
                "trace calls 3",
                "help trace functions",
                "complete trace func",
            ]
            self.said = run_gdb(self.elf, commands)
        self.pcs = [int(pc, 16) for pc in ROW.findall(self.said[f"trace history {ALL}"])]

    def lines(self, modifiers: str) -> list[str]:
        return self.said[f"trace functions {modifiers}{ALL}"].strip().splitlines()

    def places(self) -> dict[int, tuple[str, int]]:
        """File and line of each address, by addr2line."""
        pcs = sorted(set(self.pcs))
        command = ["riscv64-unknown-elf-addr2line", "-e", str(self.elf), *map(hex, pcs)]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found = (line.split(" ")[0].rpartition(":") for line in text.splitlines())
        return {
            pc: (Path(file).name, int(line) if line.isdecimal() else 0)
            for pc, (file, _, line) in zip(pcs, found, strict=True)
        }


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    yield Demo(tmp_path_factory.mktemp("calls"))


def test_the_modifiers_put_a_line_together(session: Demo) -> None:
    """Everything at once is number, indentation, name, numbers, lines, as gdb's command writes them."""
    plain, indented, numbered, placed, everything = (session.lines(m) for m in MODIFIERS[:5])
    assert len(plain) > 100 and session.lines("/lic ") == everything
    for line, *parts in zip(everything, plain, indented, numbered, placed, strict=True):
        match = LINE.fullmatch(line)
        assert match, line
        number, indent, name, trap, first, last, at = match.groups(default="")
        assert parts == [
            f"{number}\t{name}{trap}", f"{number}\t{indent}{name}{trap}",
            f"{number}\t{name}{trap}\tinst {first},{last}", f"{number}\t{name}{trap}\tat {at}",
        ]  # fmt: skip


def test_every_instruction_is_in_one_function(session: Demo) -> None:
    spans = [(int(m[5]), int(m[6])) for line in session.lines("/ilc ") if (m := LINE.fullmatch(line))]
    assert spans[0][0] == 1 and spans[-1][1] == len(session.pcs)
    assert all(before[1] + 1 == after[0] for before, after in itertools.pairwise(spans))


def test_source_lines(session: Demo) -> None:
    """Those of the function's file that its instructions belong to."""
    places, checked = session.places(), 0
    for line in session.lines("/ilc "):
        match = LINE.fullmatch(line)
        assert match
        file, _, numbers = match[7].rpartition(":")
        if file:
            mine = [places[pc] for pc in session.pcs[int(match[5]) - 1 : int(match[6])]]
            own = sorted({number for name, number in mine if name == Path(file).name and number})
            assert numbers == (f"{own[0]}" if len(own) == 1 else f"{own[0]},{own[-1]}"), line
            checked += 1
    assert checked > 50


def test_calls_are_indented_and_returns_come_back(session: Demo) -> None:
    levels = [(m[3], len(m[2]) // 2) for line in session.lines("/ilc ") if (m := LINE.fullmatch(line))]
    fib = [level for name, level in levels if name == "fib"]
    assert max(fib) - min(fib) >= 3, "recursion"
    assert len({level for name, level in levels if name == "main"}) == 1


def test_traps_are_named(session: Demo) -> None:
    said = {m[3] for line in session.lines("/ilc ") if (m := LINE.fullmatch(line)) and m[4] == " [interrupt]"}
    assert said == {"on_trap"}


def test_pages_and_sizes(session: Demo) -> None:
    """What was asked for last are numbers 3 to 12: ten more, and then the three before those."""
    commands = ["trace functions 3 /ci", "trace functions", "trace functions -"]
    shown = [[int(line.split("\t")[0]) for line in session.said[command].splitlines()] for command in commands]
    assert shown == [list(range(3, 13)), list(range(13, 23)), [10, 11, 12]]


def test_errors(session: Demo) -> None:
    assert session.said["trace functions /z"].strip() == "Invalid modifier: z."
    assert session.said["trace functions /"].strip() == "Missing modifier."
    assert session.said["trace functions 1,2,3"].strip() == "Junk after argument: ,3."
    assert session.said["trace calls 3"].strip() == "trace calls: 3 is not /n DEPTH. See `help trace calls`."


def test_the_tree_counts(session: Demo) -> None:
    """How often main called a function, from the list: calls are the lines one deeper than main's."""
    lines = [(m[3], len(m[2]) // 2) for line in session.lines("/ilc ") if (m := LINE.fullmatch(line))]
    called = sum(
        name == "classify" and before == ("main", level - 1) for before, (name, level) in itertools.pairwise(lines)
    )
    rows = [line.split(maxsplit=3) for line in session.said["trace calls"].splitlines()]
    assert rows[0] == ["calls", "instructions", "in", "it alone  function"]
    assert [row[0] for row in rows if row[3] == "classify"] == [str(called)] and called > 5
    only = session.said["trace calls /n 1"].splitlines()[1:]
    assert len(only) < len(rows) - 1 and all(re.search(r"  \w+(  \(calls \d+ more\))?$", line) for line in only)


def test_help_and_completion(session: Demo) -> None:
    usage = "Usage: trace functions [-unfolded] [-task T | -process P | -thread T]\n"
    assert usage in session.said["help trace functions"]
    assert "trace functions" in session.said["complete trace func"]


TRANSCRIPT = list(exchanges("function-call-history-rv64.txt"))
NATIVE = "record function-call-history"
ANSWERS = [exchange for exchange in TRANSCRIPT if exchange.command.startswith(NATIVE)]


def capture_of(folder: Path, times: int) -> Path:
    """What gdb recorded, so many times, as a capture."""
    [listing] = [lines for command, lines in TRANSCRIPT if command.startswith("record instruction-history")]
    pcs = [row[3:21] for _, row in history_rows(listing)]
    (folder / "pcs.txt").write_text("".join(f"{pc}\n" for pc in pcs) * times)
    words = ["encode", "--elf", str(FOLDER / "demo64.elf"), "--pcs", str(folder / "pcs.txt"), "--ntrace"]
    assert main([*words, "-o", str(folder / "x.rvt")]) == 0
    return folder / "x.rvt"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What our command says of what gdb 13.1 recorded itself, for each of gdb's commands."""
    capture = capture_of(tmp_path_factory.mktemp("native"), 1)
    commands = [exchange.command.replace(NATIVE, "trace functions") for exchange in ANSWERS]
    said = run_gdb(FOLDER / "demo64.elf", [SOURCE, f"trace open {capture}", "trace functions", *commands])
    return {command.replace("trace functions", NATIVE): text for command, text in said.items()}


def test_lines_are_those_of_gdbs_own_command(recorded: dict[str, str]) -> None:
    """But for fib, which gdb folds, and what /c adds."""
    [whole] = [exchange for exchange in ANSWERS if exchange.command == f"{NATIVE} /ilc 1,99999"]
    ours = [re.sub(r"\t *", "\t", line, count=1) for line in recorded[whole.command].strip().splitlines()]
    assert ours[:3] == whole.lines[:3]
    native = [line.partition("\t")[2] for line in whole.lines]
    texts = [line.partition("\t")[2] for line in ours]
    assert [text for text in texts if not text.startswith("fib")] == [t for t in native if not t.startswith("fib")]
    assert len(native) == 19 and len([text for text in texts if text.startswith("fib")]) == 49


@pytest.mark.parametrize("exchange", [e for e in ANSWERS if "99999" not in e.command], ids=lambda e: str(e.command))
def test_answers_are_gdbs_own(exchange: Exchange, recorded: dict[str, str]) -> None:
    """Ranges, modifiers and errors, word for word; number 4 on are others where gdb folds recursion.

    To gdb's `Range out of bounds` we add which numbers there are, to its `Bad range` why.
    """
    said = [line.replace("  leaf", "leaf") for line in recorded[exchange.command].strip().splitlines()]
    if not exchange.lines:  # at the end gdb says nothing here, and in its instruction history what we say
        assert said == ["At the end of the branch trace record."]
    elif exchange.command in (f"{NATIVE} -", f"{NATIVE} 5,-2"):
        assert len(said) == len(exchange.lines)
        if exchange.command.endswith("-"):
            assert [line.split()[1] for line in said] == [line.split()[1] for line in exchange.lines]
    elif exchange.lines == ["Range out of bounds."]:
        assert said == ["Range out of bounds: numbers go from 1 to 67."]
    elif exchange.lines == ["Bad range."]:
        assert said == ["Bad range: its end, 2, is before its beginning, 3."]
    else:
        assert said == exchange.lines


def test_a_gap_has_a_line_of_its_own(tmp_path: Path) -> None:
    """The same as in `trace history`; levels begin anew behind it."""
    capture, _ = damaged(tmp_path)
    out = run_gdb(ELF, [SOURCE, f"trace open {capture}", f"trace functions /c {ALL}", f"trace history {ALL}"])
    lines = [line for line in out[f"trace functions /c {ALL}"].splitlines() if "\t" in line]
    [gap] = [i for i, line in enumerate(lines) if "\t[" in line]
    [row] = [line for line in out[f"trace history {ALL}"].splitlines() if "\t[" in line]
    assert lines[gap].partition("\t")[2] == row.partition("\t")[2]
    assert lines[gap + 1] == f"{gap + 2}\t_start"


def test_nothing_traced() -> None:
    out = run_gdb(ELF, [SOURCE, "trace functions", "trace calls"])
    assert "there is no trace" in out["trace functions"] and "there is no trace" in out["trace calls"]


@thorough("gdbext/commands/test_find.py::test_long_lists_can_be_interrupted")
def test_a_long_list_can_be_interrupted(tmp_path: Path) -> None:
    """Lines come at once, Ctrl-C ends them, and the next command is answered."""
    capture, gdb = capture_of(tmp_path, 400), Gdb(FOLDER / "demo64.elf")
    try:
        for command in ("set height 0", "set confirm off", SOURCE, f"trace open {capture}"):
            gdb.run(command)
        count = max(map(int, re.findall(r"^(?:\(gdb\) )?(\d+)\t", gdb.run("trace functions"), re.M)))
        assert count > 20_000
        gdb.type("trace functions /ilc 1,999999")
        gdb.until("1\tmain\t")  # and all that follows does not go into the pipe, from which nobody reads any more
        gdb.interrupt()
        said = gdb.answer()
        assert "Quit" in said and f"\n{count}\t" not in said
        assert "\n2\tleaf\n3\tmain\n" in gdb.run("trace functions 1,3")
    finally:
        gdb.process.kill()
        gdb.process.communicate()
