"""`trace coverage` in the real gdb, against gcov, binutils, and a count of the list of what the hart retired."""

import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.commands.coverage_output import (
    LINE,
    PROGRAMS,
    ROW,
    SOURCES,
    Lines,
    count,
    gcov,
    lines,
)
from tests.gdbext.commands.test_dump import ELF
from tests.gdbext.commands.test_find import damaged, run
from tests.gdbext.gdb_process import SOME_GDBS, SOURCE, ask_gdb, run_gdb
from tests.gdbext.runs_in_turn import Run, in_turn
from tests.helpers.cross_compiler import compile_program

FILES = {"main.c": SOURCES[0], "coverage/parts.c": SOURCES[1], "other/parts.c": SOURCES[2]}
FILES["shared.h"] = PROGRAMS / "shared.h"
FUNCTIONS = ("collatz", "letter", "deep", "never", "main", "elsewhere", "finish", "same_name_elsewhere")


TEMPLATES = ["trace coverage templates.cpp", "trace coverage add", "trace coverage add<2>"]
INLINED = ["trace coverage main.c", "trace coverage helper", "trace coverage"]
WITHOUT = ["trace coverage collatz", "trace coverage", "trace coverage main.c"]
GONE = "trace coverage main"


class Session(NamedTuple):
    elf: Path
    said: dict[str, str]
    retired: list[int]


class Programs(NamedTuple):
    """Programs by their names, and the run of each of them, one after the other on one target."""

    elfs: dict[str, Path]
    runs: dict[str, Run]


@pytest.fixture(scope="module", params=SOME_GDBS)
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    folder = tmp_path_factory.mktemp("coverage")
    named = {name: folder / name for name in ("plain", "templates", "inlined", "without", "gone")}
    for path in named.values():
        path.mkdir()
    source = folder / "gone.c"
    source.write_text(SOURCES[2].read_text().replace("same_name_elsewhere", "main"))
    options = ("-O1", "-finline-functions", "-finline-small-functions")
    cpp = ("-O0", "-fno-exceptions", "-fno-rtti")
    elfs = {
        "plain": compile_program(named["plain"], *SOURCES, options=("-O0",)),
        "templates": compile_program(named["templates"], PROGRAMS / "templates.cpp", options=cpp),
        "inlined": compile_program(named["inlined"], *SOURCES, options=options),
        "without": compile_program(named["without"], *SOURCES, options=("-O0",)),
        "gone": compile_program(named["gone"], source),
    }
    source.unlink()
    subprocess.run(["riscv64-unknown-elf-objcopy", "-g", elfs["without"]], check=True)
    asked = {"plain": of_plain(), "templates": TEMPLATES, "inlined": INLINED, "without": WITHOUT, "gone": [GONE]}
    runs = {
        name: [f"file {elfs[name]}", "load", "trace start", "break _exit", "continue", *commands]
        for name, commands in asked.items()
    }
    rig = Rig(elfs["plain"], folder / "rig", "--log-retired", str(folder / "log"))
    return Programs(elfs, in_turn(rig, folder / "log", runs, request.param))


def of_plain() -> list[str]:
    places = [*FILES, *FUNCTIONS, "clamp", "helper", "main.c:helper", "main.c:21", "main.c:20,25", "_start", "*_exit"]
    wrong = ["parts.c", "nothing", "nothing.c:7", "main.c:9,8", "main.c 99999999", "main.c -", "main.c 5,4"]
    commands = ["trace coverage", "trace coverage -all", *[f"trace coverage {place}" for place in [*places, *wrong]]]
    commands += ["trace coverage main.c 1,500", "trace coverage main.c 501", "trace coverage -all 101,+400"]
    commands += ["set listsize 4", "trace coverage main.c:40", "set listsize 10"]
    return commands + [f"trace find {name} 1,100000" for name in FUNCTIONS]


@pytest.fixture(scope="module")
def session(programs: Programs) -> Session:
    return Session(programs.elfs["plain"], *programs.runs["plain"])


def symbols(elf: Path) -> dict[str, list[range]]:
    """Functions and where they are, by nm."""
    text = subprocess.run(["riscv64-unknown-elf-nm", "-S", elf], check=True, capture_output=True, text=True).stdout
    found: dict[str, list[range]] = {}
    for row in (line.split() for line in text.splitlines()):
        if len(row) == 4 and row[2] in "tT":
            found.setdefault(row[3], []).append(range(int(row[0], 16), int(row[0], 16) + int(row[1], 16)))
    return found


def code(elf: Path) -> list[int]:
    """The addresses of all instructions, by objdump."""
    text = subprocess.run(["riscv64-unknown-elf-objdump", "-d", elf], check=True, capture_output=True, text=True).stdout
    return [int(pc, 16) for pc in re.findall(r"^ *([0-9a-f]+):\t", text, re.M)]


def test_lines_are_those_of_gcov(session: Session, tmp_path: Path) -> None:
    """The same program, compiled for this machine: each line runs as often, and where it does not is known.

    gcov puts the beginning of a function to its name, the line tables of the target to its brace; gcov counts labels.
    """
    expected = gcov(tmp_path)
    assert set(expected) == set(FILES.values())
    compared = 0
    for name, file in FILES.items():
        said = session.said[f"trace coverage {name}"]
        assert [(int(number), text) for _, number, text in LINE.findall(said)] == list(
            enumerate(file.read_text().splitlines(), 1)
        )
        for line, ran in lines(said).items():
            text = file.read_text().splitlines()[line - 1].strip()
            theirs = expected[file].get(line)
            if ran is not None and theirs is not None and text != "}":
                assert ran == theirs, (name, line, text)
                compared += 1
            elif (ran is None) != (theirs is None):
                assert text in "{}" or text.startswith(("case ", "default:")) or text.endswith(")"), (name, line, text)
    assert compared > 40


def test_a_function_is_its_lines_of_the_file(session: Session) -> None:
    whole = lines(session.said["trace coverage main.c"])
    text = SOURCES[0].read_text().splitlines()
    for name, last in (("collatz", "    return steps;"), ("letter", "    return c;"), ("never", "    return x - 1;")):
        shown = lines(session.said[f"trace coverage {name}"])
        first = next(i for i, line in enumerate(text, 1) if re.match(rf"(static )?int {name}\(", line))
        assert list(shown) == list(range(first, text.index(last, first) + 3)), name
        assert shown == {line: whole[line] for line in shown}
    around = lines(session.said["trace coverage main.c:21"])
    assert around == {line: whole[line] for line in range(16, 26)}
    assert lines(session.said["trace coverage main.c:20,25"]) == {line: whole[line] for line in range(20, 26)}
    assert list(lines(session.said["trace coverage main.c:40"])) == [38, 39, 40, 41]


def test_copies_of_a_function(session: Session) -> None:
    """`clamp` is in two files as one function of a header; `helper` is three functions of three files."""
    clamp = lines(session.said["trace coverage clamp"])
    assert clamp == {line: ran for line, ran in lines(session.said["trace coverage shared.h"]).items() if line > 1}
    assert clamp[4] == 7 + 1 + 3, "called 8 times in main.c and 3 times in parts.c"
    parts = session.said["trace coverage helper"].split(":\n")
    assert [Path(part.splitlines()[-1]) for part in parts[:3]] == sorted(SOURCES)
    assert "190: 10\t" in parts[1] and "2: 4\t" in parts[2] and "3: 5\t" in parts[3]
    assert session.said["trace coverage main.c:helper"].count(": 10\t") == 1


def test_branches_that_went_one_way_only(session: Session) -> None:
    """By the program: no letter has a number over 1000, loops and recursion go both ways."""
    said = session.said["trace coverage main.c"].splitlines()
    hints: dict[str, str] = {}
    text = ""
    for line in said:
        text = line.split("\t")[1].strip() if "\t" in line else text
        if "branch" in line:
            hints[text] = line
    assert set(hints) >= {"if (c > 1000)"} and not {"if (n & 1)", "if (n == 0)", "while (n != 1) {"} & set(hints)
    assert re.search(r"branch 0x[0-9a-f]+ <letter\+\d+>: taken 5 of 5 times, never to line 44$", hints["if (c > 1000)"])
    never = [line for line in said if line.strip().startswith("#####: ")]
    assert {line.split("\t")[1].strip() for line in never} >= {"x = x * 3;", "return never(c);"}


def test_the_table(session: Session) -> None:
    """Names and sizes by nm and objdump, what ran by the retired list; entered as often as `trace find` finds."""
    said, retired = session.said["trace coverage"], set(session.retired)
    rows = {row[7]: row for row in ROW.findall(said) if row[7] in FUNCTIONS}
    assert set(rows) == set(FUNCTIONS)
    instructions, counts = code(session.elf), Counter(session.retired)
    for name, row in rows.items():
        [place] = symbols(session.elf)[name]
        inside = [pc for pc in instructions if pc in place]
        assert (int(row[4]), int(row[5])) == (sum(pc in retired for pc in inside), len(inside)), name
        found = session.said[f"trace find {name} 1,100000"]
        entered = max([0, *(int(number) for number in re.findall(r"^(\d+)\t@", found, re.M))])
        assert count(row[0]) == entered == counts[place.start], name
        shown = [ran for ran in lines(session.said[f"trace coverage {name}"]).values() if ran is not None]
        assert (int(row[1]), int(row[2])) == (sum(map(bool, shown)), len(shown)), name
        assert int(row[3]) == 100 * int(row[1]) // int(row[2]) and int(row[6]) == 100 * int(row[4]) // int(row[5])
    files = re.findall(r"^File (.*): (\d+) of (\d+) lines ran, (\d+)%$", said, re.M)
    assert [Path(file).name for file, *_ in files] == ["start.S", "main.c", "parts.c", "parts.c", "shared.h"]
    all_of = lines(session.said["trace coverage main.c"]).values()
    assert files[1][1:3] == (str(sum(map(bool, all_of))), str(sum(ran is not None for ran in all_of)))
    assert len(ROW.findall(session.said["trace coverage -all"])) >= len(ROW.findall(said)) > len(FUNCTIONS)


def test_parts_of_the_history(session: Session) -> None:
    """The first 500 and the rest: what they say adds up, and is what the hart retired then."""
    whole, first, rest = (lines(session.said[f"trace coverage main.c{part}"]) for part in ("", " 1,500", " 501"))
    assert first != whole != rest
    for line, ran in whole.items():
        if ran is not None:  # the busiest instruction of a line may be another one in each part
            assert max(first[line] or 0, rest[line] or 0) <= ran <= (first[line] or 0) + (rest[line] or 0)
    rows = {row[7]: row for row in ROW.findall(session.said["trace coverage -all 101,+400"])}
    counts = Counter(session.retired[100:500])
    for name in FUNCTIONS:
        [place] = symbols(session.elf)[name]
        assert int(rows[name][4]) == sum(pc in counts for pc in place), name


def test_assembler_code_has_lines(session: Session) -> None:
    shown = lines(session.said["trace coverage _start"])
    assert shown[12] == Counter(session.retired)[session.retired[8]] and shown[16] == 1
    assert 0 in lines(session.said["trace coverage *_exit"]).values()


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("parts.c", r"trace coverage: parts\.c is ambiguous: \S*/other/parts\.c, \S*/coverage/parts\.c"),
        ("nothing", r"trace coverage: nothing is neither a function nor a source file: .*not defined\.?"),
        ("nothing.c:7", r"No source file named nothing\.c\."),
        ("main.c:9,8", r"trace coverage: line 8 is before line 9\."),
        ("main.c 99999999", r"Range out of bounds: numbers go from 1 to \d+\."),
        ("main.c -", r"Expected positive number, got: -\."),
        ("main.c 5,4", r"Bad range: its end, 4, is before its beginning, 5\."),
    ],
)
def test_errors_are_one_line(session: Session, place: str, says: str) -> None:
    assert re.fullmatch(says, session.said[f"trace coverage {place}"].strip()), session.said[f"trace coverage {place}"]


def test_templates_and_overloads(programs: Programs) -> None:
    """By the program: add<1> is called 3 times, add<2> 4 times, add(long) 5 times."""
    file, all_three, one = TEMPLATES
    said = programs.runs["templates"].said
    ran: Lines = lines(said[file])
    assert (ran[6], ran[7], ran[8], ran[9], ran[13]) == (3, 1, 6, 7, 5), "add<2> has no code of line 6"
    counts = [int(times) for times, number, _ in LINE.findall(said[all_three]) if number in ("9", "13")]
    assert sorted(counts) == [3, 4, 5]
    assert lines(said[one])[9] == 4


def test_inlined_functions(programs: Programs) -> None:
    """What is inlined in two places ran in both; its lines are its own, not those of its callers."""
    said = programs.runs["inlined"].said
    ran = lines(said["trace coverage main.c"])
    assert ran[10] == 190 and list(lines(said["trace coverage helper"])) == [10]
    assert " helper\n" not in said["trace coverage"]


def test_without_debug_information(programs: Programs) -> None:
    elf, (said, retired) = programs.elfs["without"], programs.runs["without"]
    [place] = symbols(elf)["collatz"]
    shown = re.findall(r"^ *(#####|\d+): 0x([0-9a-f]+) <collatz\+\d+>:\t", said["trace coverage collatz"], re.M)
    counts = Counter(retired)
    assert [(count(ran), int(pc, 16)) for ran, pc in shown] == [(counts[pc], pc) for pc in code(elf) if pc in place]
    rows = {row[7]: row for row in ROW.findall(said["trace coverage"])}
    assert rows["collatz"][0] == "19" and rows["collatz"][1] == "" and "never" not in rows
    assert "Functions without line numbers:" in said["trace coverage"] and "did not run: see" in said["trace coverage"]
    assert said["trace coverage main.c"].startswith("trace coverage: main.c is neither a function nor a source file: ")


def test_a_source_that_is_not_there(programs: Programs) -> None:
    """As `list` says it, and only where there is code."""
    said = programs.runs["gone"].said[GONE]
    assert re.fullmatch(r"( *\d+: \d+\tin gone\.c\n)+", said.rstrip("\n") + "\n")


def test_gaps_are_said(tmp_path: Path) -> None:
    capture, _ = damaged(tmp_path)
    out = run(capture, "trace coverage main", "trace coverage", "trace coverage 1,2")
    for command in ("trace coverage main", "trace coverage"):
        assert out[command].strip().endswith("\n1 gap in the trace: code may have run that is not counted.")
    assert "gap" not in out["trace coverage 1,2"]


def test_a_trace_is_needed_and_a_program() -> None:
    needed = "there is no trace: `trace start` makes one, `trace open FILE` shows a saved one"
    commands = ["trace coverage", "trace coverage main"]
    out = run_gdb(ELF, [SOURCE, *commands])
    assert [out[command].strip() for command in commands] == [needed] * 2
    assert "No symbol table" in run_gdb(None, [SOURCE, "trace coverage main"])["trace coverage main"]


def test_completion_and_help() -> None:
    out = ask_gdb(
        ELF, [SOURCE, "complete trace cov", "complete trace coverage mai", "help trace coverage", "help trace"]
    )
    assert out["complete trace cov"].strip() == "trace coverage"
    assert "trace coverage main" in out["complete trace coverage mai"].split("\n")
    assert "\nUsage: trace coverage " in out["help trace coverage"]
    assert max(map(len, out["help trace coverage"].splitlines())) <= 75
