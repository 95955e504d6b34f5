"""`trace history` of several harts and in the past, in the real gdb."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.decode.ntrace.messages import split
from tests.gdbext.gdb_process import NEWEST_GDB, SOURCE, ask_gdb, every_gdb, gdb_environ, run_gdb, some_gdbs
from tests.gdbext.past_stub import At, serving
from tests.gdbext.test_interrupt import Gdb
from tests.helpers import reference_streams
from tests.terminal import Terminal

ELF = reference_streams.FOLDER / "median.elf"
STREAM = (reference_streams.FOLDER / "median.1.nex").read_bytes()
BEGINNING = b"".join(list(split(STREAM))[:70])
EVERYTHING = "1,1000000"
ROW = re.compile(r"(\d+)\t((?:=> |   ).*)")
MERGED = re.compile(r"(\d*)\t(\d+):(\d*)\t(.*)")
TIME = re.compile(r"time (\d+)")

Line = tuple[int, str]
"""(hart, line as in the listing of its own)."""


def imported(folder: Path, *harts: list[bytes], times: bool) -> Path:
    (folder / "raw.bin").write_bytes(reference_streams.in_turn(*harts))
    words = ["--src-bits", "1", *(["--timestamps"] if times else []), "--elf", str(ELF), "-o", str(folder / "x.rvt")]
    assert main(["import", str(folder / "raw.bin"), *words]) == 0
    return folder / "x.rvt"


def of_two(folder: Path, stream: bytes) -> Path:
    """Two harts that run the same program, one later and slower; now and then both say the same time."""
    harts = [
        reference_streams.from_source(stream, 1, 0, (1000, 6)),
        reference_streams.from_source(stream, 1, 1, (1300, 8)),
    ]
    return imported(folder, *harts, times=True)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return of_two(tmp_path_factory.mktemp("harts"), STREAM)


@pytest.fixture(scope="module")
def beginning(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where there is no need for all of it."""
    return of_two(tmp_path_factory.mktemp("beginning"), BEGINNING)


@pytest.fixture(scope="module")
def listings(capture: Path) -> dict[str, str]:
    """Both harts' own listings, and that of all."""
    commands = [f"trace history {EVERYTHING}", "set trace hart 1", f"trace history  {EVERYTHING}"]
    commands += [
        f"trace history -all {EVERYTHING}",
        "trace history /ar 2000,4000",
        "trace history -all /ar 1:2000,+1500",
    ]
    return ask_gdb(ELF, [SOURCE, f"trace open {capture}", *commands])


def of_hart(listing: str, hart: int) -> list[tuple[int, Line]]:
    """(time, line) of each line: the time is the last one that was said, before any was the first."""
    first = TIME.search(listing)
    assert first
    now, lines = int(first[1]), []
    for line in listing.splitlines():
        if said := TIME.search(line):
            now = int(said[1])
        lines.append((now, (hart, line)))
    return lines


def sorted_by_time(*harts: list[tuple[int, Line]]) -> list[Line]:
    """Each hart keeps its own order: the sort is stable, and a hart's times never fall."""
    return [
        line for _, line in sorted((line for hart in harts for line in hart), key=lambda line: (line[0], line[1][0]))
    ]


def shown(listing: str) -> list[Line]:
    """The lines of a listing of all harts, without the numbers in it, which must go up from the first."""
    matches = [MERGED.fullmatch(line) for line in listing.splitlines()]
    assert all(matches), listing
    found = [match for match in matches if match]
    numbers = [int(match[1]) for match in found if match[1]]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert all(bool(match[1]) == bool(match[3]) for match in found)
    return [(int(match[2]), f"{match[3]}\t{match[4]}") for match in found]


def test_all_harts_are_listed_in_the_order_of_their_times(listings: dict[str, str]) -> None:
    """Against a sort of all lines of the harts' own listings: the times said there are those of the trace."""
    own = [listings[f"trace history {EVERYTHING}"], listings[f"trace history  {EVERYTHING}"]]
    expected = sorted_by_time(*(of_hart(listing, hart) for hart, listing in enumerate(own)))
    found = shown(listings[f"trace history -all {EVERYTHING}"])
    assert len(found) > 8000 and found == expected
    turns = sum(one[0] != other[0] for one, other in pairwise(found))
    assert turns > 100, "they take turns"


def test_modifiers_are_the_same_for_all_harts(listings: dict[str, str]) -> None:
    """A part of them, from a place of one on."""
    rows = [row for hart, row in shown(listings["trace history -all /ar 1:2000,+1500"]) if hart == 1]
    assert 300 < len(rows) < 1500 and rows == listings["trace history /ar 2000,4000"].splitlines()[: len(rows)]


def test_pages_of_all_harts(listings: dict[str, str], capture: Path) -> None:
    """The newest ten, and back; a place of a hart stands for its number; what is said in between has none."""
    everything = listings[f"trace history -all {EVERYTHING}"].splitlines()
    numbered = [line for line in everything if line[0] != "\t"]
    [at] = [number for number, line in enumerate(numbered, 1) if "\t1:2000\t" in line]
    commands = [
        "trace history -all",
        "trace history -all -",
        "trace history /a - -all",
        "trace history -all /a 1:2000,+3",
    ]
    out = ask_gdb(ELF, [SOURCE, f"trace open {capture}", *commands, "trace history -all +", "trace history -"])
    assert out["trace history -all"].splitlines() == everything[everything.index(numbered[-10]) - 1 :] or (
        out["trace history -all"].splitlines() == everything[everything.index(numbered[-10]) :]
    )
    before = out["trace history -all -"].splitlines()
    assert [line for line in before if line[0] != "\t"] == numbered[-20:-10]
    assert out["trace history /a - -all"].splitlines() == numbered[-30:-20]
    assert out["trace history -all /a 1:2000,+3"].splitlines() == numbered[at - 1 : at + 2]
    assert [line for line in out["trace history -all +"].splitlines() if line[0] != "\t"] == numbered[at + 2 : at + 12]
    own = [line for line in out["trace history -"].splitlines() if line[0] != "\t"]
    assert len(own) == 10 and ROW.fullmatch(own[-1]), "the pages of one hart are turned by themselves"


def test_numbers_that_are_not_there(listings: dict[str, str], capture: Path) -> None:
    numbered = [line for line in listings[f"trace history -all {EVERYTHING}"].splitlines() if line[0] != "\t"]
    of_hart = sum("\t0:" in line for line in numbered)
    commands = ["trace history -all 0:9999999", "trace history -all 9999999"]
    out = ask_gdb(ELF, [SOURCE, f"trace open {capture}", *commands])
    assert [out[command].strip() for command in commands] == [
        f"Range out of bounds: numbers of hart 0 go from 1 to {of_hart}.",
        f"Range out of bounds: numbers go from 1 to {len(numbered)}.",
    ]


def test_without_times_one_hart_comes_after_the_other_and_that_is_said_once(tmp_path: Path) -> None:
    harts = [reference_streams.from_source(BEGINNING, 1, 0), reference_streams.from_source(BEGINNING[:200], 1, 1)]
    capture = imported(tmp_path, *harts, times=False)
    out = ask_gdb(ELF, [SOURCE, f"trace open {capture}", f"trace history -all {EVERYTHING}", "trace history -all -"])
    lines = out[f"trace history -all {EVERYTHING}"].splitlines()
    note = "note:     the trace has no timestamps: one hart after the other, which is not the order in time"
    assert lines.count(note) == 1 and note not in out["trace history -all -"]
    harts_shown = [line.split("\t")[1].partition(":")[0] for line in lines if line[0].isdecimal()]
    assert harts_shown == sorted(harts_shown) and set(harts_shown) == {"0", "1"}


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("trace history -all 9:1", "hart 9 is not in this trace, which has harts 0, 1"),
        ("trace history -all here", "Expected positive number, got: here."),
        ("trace history -al", "Expected positive number, got: -al."),
        ("trace history 1:5", "Junk after argument: :5."),
        ("trace history /", "Missing modifier."),
        ("trace history /mx 1,5", "Invalid modifier: x."),
        ("trace history 1,5/x", "Invalid modifier: x."),
    ],
)
def test_wrong_arguments(command: str, line: str, capture: Path) -> None:
    assert ask_gdb(ELF, [SOURCE, f"trace open {capture}", command])[command].strip() == line


@every_gdb
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("trace history -", [f"trace history -{it}" for it in ("all", "process", "task", "thread")]),
        ("trace history -al", ["trace history -all"]),
        ("trace history 1", []),
        ("trace hist", ["trace history"]),
    ],
)
def test_completion(gdb: str, typed: str, offered: list[str]) -> None:
    assert ask_gdb(None, [SOURCE, f"complete {typed}"], gdb=gdb)[f"complete {typed}"].split("\n")[:-1] == offered


def test_an_empty_line_turns_the_page(capture: Path) -> None:
    gdb = Gdb(ELF)
    try:
        for command in ("set confirm off", SOURCE, "set height 0", f"trace open {capture}"):
            gdb.run(command)
        assert numbers(gdb.run("trace history -all 101,110\n")) == list(range(101, 111)), "not by number again"
        assert numbers(gdb.run("trace history -all\n")) == list(range(111, 131))
        assert numbers(gdb.run("trace history -all -\n")) == [*range(111, 121), *range(101, 111)]
    finally:
        gdb.process.kill()
        gdb.process.communicate()


@some_gdbs
def test_while_the_tui_shows_code_the_lines_are_the_same(gdb: str, capture: Path, tmp_path: Path) -> None:
    """gdb's `disassemble` prints nothing then; lost are its comments on addresses that two instructions make."""
    log, modifiers = tmp_path / "log", ("/a", "/ar")
    listings = [f"trace history {it} 1000,1200" for it in modifiers]
    logging = ["set logging redirect off", "set logging enabled on", *listings, "set logging enabled off"]
    words = [gdb, "-q", "-nx", str(ELF)]
    for command in ("set pagination off", "set width 0", SOURCE, f"trace open {capture}", f"set logging file {log}"):
        words += ["-ex", command]
    for command in ("layout asm", *logging, "echo ready\\n"):
        words += ["-ex", command]
    with Terminal(words, 120, 40, gdb_environ()) as terminal:
        terminal.wait(lambda screen: "ready\n" in screen, "ready")
    shown = [line for line in log.read_text().splitlines() if re.match(r"\d+\t", line)]
    out = ask_gdb(ELF, [SOURCE, f"trace open {capture}", *listings], gdb=gdb)
    expected = [line.partition(" # ")[0] for listing in listings for line in out[listing].splitlines()]
    assert len(shown) == 2 * 201 and shown == expected


def numbers(listing: str) -> list[int]:
    lines = [line.removeprefix("(gdb) ") for line in listing.splitlines()]
    return [int(line.partition("\t")[0]) for line in lines if re.match(r"\d+\t", line)]


def marked(listing: str) -> list[str]:
    return [line.partition("\t=> ")[0] for line in listing.splitlines() if "\t=> " in line]


@pytest.fixture(scope="module")
def pcs(beginning: Path) -> list[int]:
    command = f"trace history {EVERYTHING}"
    listing = ask_gdb(ELF, [SOURCE, f"trace open {beginning}", command])[command]
    return [int(pc, 16) for pc in re.findall(r"^\d+\t\s+0x([0-9a-f]+)", listing, re.M)]


@pytest.fixture(scope="module", params=NEWEST_GDB)
def past(request: pytest.FixtureRequest, pcs: list[int], beginning: Path) -> Iterator[dict[str, str]]:
    """Hart 0 is at 2000 of its history, hart 1 in the present, where its pc is that of number 3000."""
    commands = [
        "set pagination off",
        "trace history",
        "trace history ",
        "trace history -",
        f"trace history {EVERYTHING}",
    ]
    commands += ["trace history -all", f"trace history -all {EVERYTHING}", "trace history /p  1990,2010", "thread 2"]
    commands += ["trace history  ", f"trace history   {EVERYTHING}", f"trace history -all   {EVERYTHING}"]
    commands += ["set trace hart 0", "trace history     ", f"trace history      {EVERYTHING}"]
    with serving([At(2000, pcs[1999]), At(-1, pcs[2999])]) as port:
        yield run_gdb(ELF, [SOURCE, f"trace open {beginning}", f"target remote :{port}", *commands], gdb=request.param)


def test_in_the_past_the_listing_starts_where_one_is(past: dict[str, str]) -> None:
    assert numbers(past["trace history"]) == list(range(2000, 2010))
    assert numbers(past["trace history "]) == list(range(2010, 2020))
    assert numbers(past["trace history -"]) == list(range(2000, 2010))


def test_in_the_past_one_line_is_marked(past: dict[str, str], pcs: list[int]) -> None:
    """However often the instruction ran."""
    assert pcs.count(pcs[1999]) > 1
    assert marked(past[f"trace history {EVERYTHING}"]) == ["2000"]
    assert marked(past["trace history /p  1990,2010"]) == []


def test_in_the_past_all_harts_are_listed_around_the_place(past: dict[str, str]) -> None:
    first = past["trace history -all"].splitlines()
    first = [line for line in first if line[0].isdecimal()]
    assert first[0].split("\t")[1:3] == ["0:2000", f"=> {first[0].split('=> ')[1].split(chr(9))[0]}"]
    assert [
        line.split("\t")[1] for line in past[f"trace history -all {EVERYTHING}"].splitlines() if "\t=> " in line
    ] == ["0:2000"]


def test_in_the_present_every_instance_is_marked_of_the_hart_that_is_selected(
    past: dict[str, str], pcs: list[int]
) -> None:
    expected = [str(number) for number, pc in enumerate(pcs, 1) if pc == pcs[2999]]
    assert marked(past[f"trace history   {EVERYTHING}"]) == expected
    assert numbers(past["trace history  "])[-1] == len(pcs), "the newest ten"
    of_all = [
        line.split("\t")[1] for line in past[f"trace history -all   {EVERYTHING}"].splitlines() if "\t=> " in line
    ]
    assert of_all == [f"1:{number}" for number in expected]


def test_another_harts_history_has_no_mark(past: dict[str, str], pcs: list[int]) -> None:
    """`set trace hart` shows hart 0 while thread 2 is selected."""
    assert marked(past[f"trace history      {EVERYTHING}"]) == []
    assert numbers(past["trace history     "])[-1] == len(pcs)


def test_at_the_end_the_way_back_is_told_once(beginning: Path) -> None:
    """As gdb does, `-` shows the last page again there. The line is for whoever types: scripts do not see it."""
    script = "python print(gdb.execute('trace history /a', False, True), end='')"
    anew = "python sys.modules['rvtrace_gdb.gdbext.commands.history'].HistoryCommand.way_back_told = False"
    typed = "trace history /a +"
    commands = ["python import sys", anew, "set trace hart 0", "trace history /a", script, typed, typed + " "]
    out = ask_gdb(ELF, [SOURCE, f"trace open {beginning}", *commands])
    first = int(out["trace history /a"].split("\t")[0])
    end, hint = out[typed].splitlines()
    assert end == out[script].strip() == "At the end of the branch trace record."
    assert hint == f"Further back: `trace history {first - 1},-10`, then `trace history -` and Enter for more."
    assert out[typed + " "].strip() == end
    back = ["trace history /a", hint.split("`")[1].replace("history", "history /a"), "trace history /a -"]
    out = ask_gdb(ELF, [SOURCE, f"trace open {beginning}", "set trace hart 0", *back])
    numbers = [int(line.split("\t")[0]) for command in back for line in out[command].splitlines()]
    assert sorted(numbers) == list(range(first - 20, first + 10))
