"""`trace events`, `trace gaps` and `trace find` in the real gdb, on imported captures of the reference encoder."""

import re
import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.decode.history.events import EventKind
from tests.decode.ntrace.messages import split
from tests.gdbext.commands.test_dump import ELF, STREAM, imported
from tests.gdbext.gdb_process import GDB, SOURCE, ask_gdb, every_gdb, gdb_environ, run_gdb
from tests.gdbext.test_interrupt import Gdb
from tests.helpers import reference_streams
from tests.terminal import Terminal

ROW = re.compile(r"(\d+)\t@(\d+)\t(?:\[(gap|end)\]|0x([0-9a-f]{16})( <[^>]+>)?):\t(.*)")
FROM = re.compile(r"from 0x([0-9a-f]{16}) <[^>]+>")


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported(tmp_path_factory.mktemp("find"), STREAM)


@pytest.fixture(scope="module")
def pcs(capture: Path) -> list[int]:
    """What ran, by gdb's own listing, which is what the reference says."""
    listing = ask_gdb(ELF, [SOURCE, f"trace open {capture}", "trace history /f 1,1000000"])[
        "trace history /f 1,1000000"
    ]
    found = [int(pc, 16) for pc in re.findall(r"^\d+\t(?:=> |   )0x([0-9a-f]+)", listing, re.M)]
    assert (len(found), reference_streams.fingerprint(found)) == reference_streams.golden("median")
    return found


def run(capture: Path, *commands: str) -> dict[str, str]:
    return ask_gdb(ELF, [SOURCE, f"trace open {capture}", *commands])


def matches(text: str) -> list[re.Match[str]]:
    found = [ROW.fullmatch(line) for line in text.splitlines() if not line.startswith("warning: ")]
    assert all(found), text
    return [match for match in found if match]


def symbols() -> dict[str, int]:
    lines = subprocess.run(["riscv64-unknown-elf-nm", ELF], check=True, capture_output=True, text=True).stdout
    return {name: int(address, 16) for address, kind, name in map(str.split, lines.splitlines()) if kind in "tT"}


def executed(pcs: list[int], address: int) -> list[tuple[int, int, int]]:
    """(number, position from 1 on, what ran before), counted one by one."""
    found = [i for i, pc in enumerate(pcs) if pc == address]
    return [(number, i + 1, pcs[i - 1]) for number, i in enumerate(found, 1)]


def listed(text: str, address: int) -> list[tuple[int, int, int]]:
    found = []
    for match in matches(text):
        came = FROM.fullmatch(match[6])
        assert came and int(match[4], 16) == address, match[0]
        found.append((int(match[1]), int(match[2]), int(came[1], 16)))
    return found


def test_entries_of_every_function(capture: Path, pcs: list[int]) -> None:
    """None of these begins with a loop: each is entered when its first instruction runs."""
    ran = {name: address for name, address in symbols().items() if address in pcs and address != pcs[0]}
    out = run(capture, *[f"trace find {name} 1,100000" for name in ran])
    assert len(ran) >= 5 and "main" in ran
    for name, address in ran.items():
        assert listed(out[f"trace find {name} 1,100000"], address) == executed(pcs, address), name


def test_executions_of_addresses(capture: Path, pcs: list[int]) -> None:
    """Of the hottest instruction, in all ways to write an address."""
    address = max(set(pcs), key=pcs.count)
    begin = symbols()["main"]
    expressions = [hex(address), f"*{address:#x}", f"(char *){address:#x}", f"{address - 2:#x}+2"]
    ways = [f"trace find {way} 1,100000" for way in [*expressions, f"*((char *)main+{address - begin})"]]
    out = run(capture, *ways)
    want = executed(pcs, address)
    assert len(want) > 100
    for way in ways:
        assert listed(out[way], address) == want, way


def test_arrivals_in_a_range(capture: Path, pcs: list[int]) -> None:
    begin = symbols()["main"]
    out = run(capture, f"trace find main,{begin + 0x40:#x} 1,100000")[f"trace find main,{begin + 0x40:#x} 1,100000"]
    inside = [begin <= pc <= begin + 0x40 for pc in pcs]
    want = [i + 1 for i, now in enumerate(inside) if now and not (i and inside[i - 1])]
    assert [int(match[2]) for match in matches(out)] == want and len(want) >= 2


def test_several_places_are_one_list(capture: Path, pcs: list[int]) -> None:
    """Places with blanks, a product that is meant as two places, and what did not run; counted in what ran."""
    addresses = symbols()
    main = addresses["main"]
    hot, other = sorted(set(pcs), key=pcs.count)[-2:]
    unrun = next(pc for pc in range(main, main + 0x1000, 2) if pc not in pcs)
    ways = {
        f"main {hot:#x}": {main, hot},
        f"*main *{hot:#x}  *((char *) {other:#x})": {main, hot, other},
        f"{hot:#x} *{other:#x}": {hot, other},
        f"main {main:#x}": {main},
        f"main - {main - hot}" if hot < main else f"main + {hot - main}": {hot},
        f"main {unrun:#x}": {main},
    }
    out = run(capture, *[f"trace find {way} 1,100000" for way in ways])
    for way, wanted in ways.items():
        text = re.sub("(?m)^note: .*\n", "", out[f"trace find {way} 1,100000"])
        found = [(int(match[1]), int(match[2])) for match in matches(text)]
        assert found == list(enumerate((i for i, pc in enumerate(pcs, 1) if pc in wanted), 1)), way
    said = out[f"trace find main {unrun:#x} 1,100000"].splitlines()
    assert f"note:     {unrun:#x} did not run in this history." in said


def test_from_an_instruction_on(capture: Path, pcs: list[int]) -> None:
    """The first ones from there, then on; `-` is what is before; and so are events."""
    address = max(set(pcs), key=pcs.count)
    want = executed(pcs, address)
    number, begin = want[40][1], want[40][0] - 1
    find = f"trace find {address:#x}"
    commands = [
        f"{find} -from {number}", "trace find", f"{find} -from 0+{number}", "trace find -",
        f"trace find -from {number - 1} ", f"trace find -from {number + 1}", "trace events -from 2",
        f"{find} -from {want[-1][1] + 1}",
    ]  # fmt: skip
    out = run(capture, "print 0", *commands)
    pages = [listed(out[command], address) for command in commands[:6]]
    slices = [begin, begin + 10, begin, begin - 10, begin, begin + 1]
    assert pages == [want[first : first + 10] for first in slices]
    assert out[commands[-1]].strip() == f"-from {want[-1][1] + 1}: the last of this list is at @{want[-1][1]}"
    assert all(int(match[2]) >= 2 for match in matches(out["trace events -from 2"]))


def test_pages(capture: Path, pcs: list[int]) -> None:
    """The newest ten, those before, the first two, the rest behind them; the question need not be repeated."""
    address = max(set(pcs), key=pcs.count)
    commands = [
        f"trace find {address:#x}",
        "trace find -",
        "trace find 1,2",
        "trace find",
        f"trace find {address:#x} -",
    ]
    out = run(capture, *commands)
    want = executed(pcs, address)
    pages = [listed(out[command], address) for command in commands]
    assert pages == [want[-10:], want[-20:-10], want[:2], want[2:12], want[:2]]


def test_each_list_has_pages_of_its_own(tmp_path: Path, pcs: list[int]) -> None:
    capture, _ = damaged(tmp_path)
    find = f"trace find {max(set(pcs), key=pcs.count):#x}"
    commands = [
        "set record instruction-history-size 1",
        "trace events",
        find,
        "trace gaps",
        "trace events -",
        f"{find} -",
    ]
    out = run_gdb(ELF, [SOURCE, f"trace open {capture}", *commands])
    for first, then in (("trace events", "trace events -"), (find, f"{find} -")):
        last, before = (int(matches(out[command])[-1][1]) for command in (first, then))
        assert before == last - 1


def test_where_the_history_starts(capture: Path, pcs: list[int]) -> None:
    out = run(capture, f"trace find {pcs[0]:#x}")[f"trace find {pcs[0]:#x}"]
    assert [match[6] for match in matches(out)] == ["where the history starts"]


def damaged(folder: Path) -> tuple[Path, int]:
    """A capture with nonsense in the middle, and at which byte."""
    at = sum(map(len, list(split(STREAM))[:100]))
    return imported(folder, STREAM[:at] + b"\x02\x03" + STREAM), at


def test_gaps_are_those_of_the_listing(tmp_path: Path) -> None:
    capture, at = damaged(tmp_path)
    out = run(
        capture, "trace gaps", "trace history 1,100000", "trace events loss", f"trace find {hex(symbols()['main'])}"
    )
    rows = out["trace history 1,100000"].splitlines()
    [k] = [i for i, row in enumerate(rows) if "\t[" in row]
    number, _, cause = rows[k].partition("\t")
    [gap] = matches(out["trace gaps"])
    before, after = (re.search(r"0x[0-9a-f]+ <[^>]+>", row) for row in (rows[k - 1], rows[k + 1]))
    assert before and after
    text, _, byte = cause.strip("[]").rpartition("; ")
    assert gap[0] == f"1\t@{number}\t[gap]:\tloss: {text}, after {before[0]}, goes on at {after[0]}; {byte}"
    assert byte == f"trace byte {at:#x}"
    assert matches(out["trace events loss"])[0][0] == gap[0]
    found = [match[6] for match in matches(out[f"trace find {hex(symbols()['main'])}"])]
    assert len(found) == 2, "the program ran twice, before and after the gap"


def test_events_without_a_kind_are_all(tmp_path: Path) -> None:
    capture, _ = damaged(tmp_path)
    kinds = [kind.value.replace(" ", "-") for kind in EventKind]
    out = run(capture, "trace events 1,100000", *[f"trace events {kind} 1,100000" for kind in kinds])
    texts = [match[0].partition("\t")[2] for match in matches(out["trace events 1,100000"])]
    said = []
    for kind in kinds:
        lines = out[f"trace events {kind} 1,100000"].splitlines()
        if lines[-1] != f"No event of the kind {kind} is in this trace.":
            name = kind.replace("-", " ")
            assert all(f":\t{name}: " in line for line in lines)
            said += [line.partition("\t")[2] for line in lines]
    assert sorted(said) == sorted(texts) and len(texts) >= 3


def test_a_complete_history_has_no_gaps(capture: Path) -> None:
    assert run(capture, "trace gaps")["trace gaps"].splitlines()[-1] == "No gaps: the history is complete."


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("trace find nothing_like_it", 'trace find: nothing_like_it: No symbol "nothing_like_it" in current context.'),
        ("trace find main,0x10", "trace find: main,0x10: the second address is before the first"),
        ("trace find 1.5+1", "trace find: 1.5+1 is neither a function nor an address."),
        ("trace find 0x10", "0x10 did not run in this history."),
        ("trace find main 99999999", "Range out of bounds: rows of this list go from 1 to "),
        ("trace find main 2,1", "Bad range: its end, 1, is before its beginning, 2."),
        (
            "trace events traps",
            "there are no events of the kind 'traps'; there are call, context, context-switch, control, counters,",
        ),
        ("trace events trap", "No event of the kind trap is in this trace."),
        ("trace gaps main", "trace gaps: main is not a range. See `help trace gaps`."),
        ("trace find main nosuch", 'trace find: nosuch: No symbol "nosuch" in current context.'),
        ("trace find main main,main+8", "main and main,main+8 have code in common: search for one after the other"),
        ("trace find main -from", "trace find: -from takes the number of an instruction, got: none."),
        ("trace find main -from 0", "trace find: -from takes the number of an instruction, got: 0."),
        ("trace events -from x", "trace events: -from takes the number of an instruction, got: x."),
        ("trace find main -from 3 1,2", "trace find: give -from N or a RANGE, not both."),
        ("trace find main -from 99999999", "-from 99999999: the history has the numbers 1 to "),
    ],
)
def test_what_cannot_be_found(capture: Path, command: str, says: str) -> None:
    out = run(capture, command)[command]
    assert out.splitlines()[-1].startswith(says), out


def test_the_first_find_needs_a_question(capture: Path) -> None:
    said = run_gdb(ELF, [SOURCE, f"trace open {capture}", "trace find"])["trace find"]
    assert said.strip() == (
        "trace find: what? A function, *EXPRESSION, or an address in hexadecimal. See `help trace find`."
    )


def test_a_trace_is_needed() -> None:
    says = "there is no trace: `trace start` makes one, `trace open FILE` shows a saved one"
    commands = ["trace find main", "trace events", "trace gaps"]
    out = run_gdb(ELF, [SOURCE, *commands])
    assert [out[command].strip() for command in commands] == [says] * 3


@every_gdb
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("trace fi", ["trace find"]),
        ("trace ga", ["trace gaps"]),
        ("trace find mai", ["trace find main"]),
        ("trace find median mai", ["trace find median main"]),
        ("trace find main -f", ["trace find main -from"]),
        ("trace gaps -", [f"trace gaps -{word}" for word in ("from", "process", "task", "thread")]),
        ("trace events tra", ["trace events trace-off", "trace events trace-on", "trace events trap"]),
        ("trace events loss trace-o", ["trace events loss trace-off", "trace events loss trace-on"]),
        ("trace events con", ["trace events context", "trace events context-switch", "trace events control"]),
    ],
)
def test_completion(typed: str, offered: list[str], gdb: str) -> None:
    assert ask_gdb(ELF, [SOURCE, f"complete {typed}"], gdb=gdb)[f"complete {typed}"].split("\n")[:-1] == offered


def test_each_has_help() -> None:
    commands = ["help trace events", "help trace gaps", "help trace find"]
    out = ask_gdb(None, [SOURCE, *commands])
    for name in ("events", "gaps", "find"):
        assert f"\nUsage: trace {name} " in out[f"help trace {name}"]


def test_of_several_harts_the_one_that_is_set(tmp_path: Path, pcs: list[int]) -> None:
    """Both run the same program; of the second one the trace has only the beginning."""
    harts = [reference_streams.from_source(STREAM, 2, 1), reference_streams.from_source(STREAM[:400], 2, 2)]
    capture = imported(tmp_path, reference_streams.in_turn(*harts), "--src-bits", "2")
    address = max(set(pcs[:4000]), key=pcs[:4000].count)
    find = f"trace find {address:#x} 1,100000"
    out = run(capture, find, "set trace hart 2", f"{find} ", "trace history 1,100000", "set trace hart 1", f"{find}  ")
    listing = re.findall(r"^\d+\t(?:=> |   )0x([0-9a-f]+)", out["trace history 1,100000"], re.M)
    second = [int(pc, 16) for pc in listing]
    assert 100 < len(second) < len(pcs)
    assert listed(out[find], address) == listed(out[f"{find}  "], address) == executed(pcs, address)
    assert listed(out[f"{find} "], address) == executed(second, address) != []


def test_long_lists_can_be_interrupted(tmp_path: Path, pcs: list[int]) -> None:
    capture = imported(tmp_path, STREAM * 300)
    gdb = Gdb(ELF)
    try:
        for command in ("set confirm off", SOURCE, "set height 0", f"trace open {capture}", "trace history"):
            gdb.run(command)
        gdb.type(f"trace find {max(set(pcs), key=pcs.count):#x} 1,100000000")
        gdb.until("\n2\t@")  # and all that follows does not go into the pipe, from which nobody reads any more
        gdb.interrupt()
        assert "Quit" in gdb.answer()
        again = gdb.run("trace find main 1,1000")
    finally:
        gdb.process.kill()
        gdb.process.communicate()
    assert len(re.findall(r"^\d+\t@", again, re.M)) in (299, 300), "the program ran 300 times"


def test_a_question_asked_again_is_answered_again(capture: Path, pcs: list[int]) -> None:
    """With its argument; without, the next page is shown."""
    address = max(set(pcs), key=pcs.count)
    find = f"trace find {address:#x}"
    out = run(capture, find, f"{find} ", f"{find} 1,3", f"{find}  ", f"{find} +", "trace find")
    want = executed(pcs, address)
    assert [listed(out[find + blanks], address) for blanks in ("", " ", "  ")] == [want[-10:]] * 3
    assert out[f"{find} +"].strip() == out["trace find"].strip() == "At the end of the list."


def test_an_empty_line_turns_the_page(capture: Path) -> None:
    """At a terminal: what is typed again begins again, and what was asked for by number is not repeated."""
    typed = ("set width 0", "set height 0", SOURCE, f"trace open {capture}", "set record instruction-history-size 2")
    with Terminal([GDB, "-q", "-nx", str(ELF)], 150, 50, gdb_environ()) as terminal:
        for command in typed:
            terminal.enter(command)

        for command, want in (("trace find median", (1, 0)), ("", (1, 1)), ("trace find median", (2, 1))):
            terminal.enter(command)
            terminal.wait(lambda screen, want=want: _seen(screen) == want, f"{want}")  # type: ignore[misc]


def _seen(screen: str) -> tuple[int, int]:
    """How often the first row is on the screen, and how often the end of the list."""
    return len(re.findall(r"^1\s+@", screen, re.M)), screen.count("At the end of the list.")
