"""What `rvtrace why`, `who-wrote` and `values` take, and how they say what is not known; expected is what the source of
the examples says.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.session import Session
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import HOME, compile_program
from tests.helpers.example_captures import RAM, example_capture
from tests.session.board import board

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(example_capture(tmp_path_factory.mktemp("places"), "calibration"))


def rows(capsys: Captured, *words: str) -> list[dict[str, Any]]:
    assert main([*words, "--json", "--quiet"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def text(capsys: Captured, *words: str) -> str:
    assert main([*words, "--quiet"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    return said.out


@pytest.mark.parametrize(
    ("place", "old", "new", "function"),
    [
        ("calibration.gain[1]", 0, 24, "set_gain"),  # of channel 3
        ("calibration.offset", 4, 30, "set_gain"),  # the bug
        ("*(calibration.gain + 2)", 0, 18, "set_gain"),
        ("slot[5]", 0, 6, "map_slots"),
    ],
)
def test_members_and_elements(
    calibration: str, place: str, old: int, new: int, function: str, capsys: Captured
) -> None:
    (writer,) = rows(capsys, "who-wrote", calibration, place)
    assert (int(writer["old"], 16), int(writer["new"], 16), writer["func"]) == (old, new, function)
    (value,) = rows(capsys, "values", calibration, place)
    assert (value["what"], int.from_bytes(bytes(value["bytes"]), "little")) == (place, new)


def test_parts_of_structures_and_arrays_are_said_as_gdb_does(calibration: str, capsys: Captured) -> None:
    """By name and type, one writer after the other; the bytes of memory that is no variable."""
    places = ("calibration", "calibration.gain", "slot", "*&calibration")
    [elf] = Path(calibration).parent.glob("*.elf")
    asked = [f"trace who-wrote {place}" for place in places]
    said = run_gdb(elf, [SOURCE, f"trace open {calibration}", *asked])
    for place, command in zip(places, asked, strict=True):
        (first, *_), (own, *_) = said[command].splitlines(), text(capsys, "who-wrote", calibration, place).splitlines()
        assert own == first and "bytes" not in own and "0x" not in own
        (row,) = rows(capsys, "who-wrote", calibration, place)
        assert first.startswith(f"{row['what']}: {row['old']} -> {row['new']}, ")
    names = [it["what"] for it in rows(capsys, "who-wrote", calibration, "calibration", "--count", "3")]
    assert names[0] == "calibration.offset" and len(set(names)) == 3
    (row,) = rows(capsys, "who-wrote", calibration, "calibration,8")
    assert row["new"].startswith("0x")


def test_a_local_variable_in_a_register(calibration: str, capsys: Captured) -> None:
    for channel, entered in enumerate(rows(capsys, "find", calibration, "set_gain")):
        at = ("--at", str(entered["position"]))
        (value,) = rows(capsys, "values", calibration, "channel", *at)
        assert int(value["value"], 16) == channel
    assert text(capsys, "who-wrote", calibration, "channel", *at).startswith("channel (in $a0): ")


@pytest.mark.parametrize("verb", ["why", "who-wrote", "values"])
@pytest.mark.parametrize("place", ["nowhere", "calibration.nothing", "slot[", "$a9", "slot,0"])
def test_all_three_refuse_the_same_alike(calibration: str, verb: str, place: str, capsys: Captured) -> None:
    said = []
    for one in (verb, "why"):
        assert main([one, calibration, place, "--quiet"]) == 1
        said.append(capsys.readouterr())
    assert said[0] == said[1] and said[0].out == "" and said[0].err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("who-wrote", "$s11"), "Nothing wrote $s11 in this trace before now."),
        (("who-wrote", "$zero"), "$zero is always 0: nothing can write it."),
        (("gaps",), "No gaps: the history is complete."),
        (("events", "--kind", "overflow"), "No event of the kind overflow is in this trace."),
        (("find", "0x80000fff"), "0x80000fff did not run in this history."),
        (("log", "0x80000ffe", "sum"), "0x80000ffe did not run in this history."),
        (("calls-of", "set_gain", "--range", "1,2"), "set_gain was not called in this history."),
    ],
)
def test_that_there_is_nothing_is_an_answer(
    calibration: str, words: tuple[str, ...], answer: str, capsys: Captured
) -> None:
    """On standard output, in quiet, too; programs get no row, or an object that says it."""
    verb, *rest = words
    assert text(capsys, verb, calibration, *rest) == f"{answer}\n"
    expected = [{"hart": 0, "messages": [answer]}] if verb == "who-wrote" else []
    assert rows(capsys, verb, calibration, *rest) == expected


def test_registers_that_are_not_known_are_counted(calibration: str, capsys: Captured) -> None:
    """With what was saved, and without anything: `--values off` and --json as ever."""
    listed = rows(capsys, "values", calibration, "--at", "50")
    unknown = {it["register"] for it in listed if "value" not in it}
    short = text(capsys, "values", calibration, "--at", "50").splitlines()
    every = text(capsys, "values", calibration, "--at", "50", "--all").splitlines()
    assert [line.split()[0] for line in every[1:]] == [it["register"] for it in listed]
    names = [line.split()[0] for line in short[1:-1]]
    assert unknown and names == [it["register"] for it in listed if it["register"] not in unknown]
    assert short[-1].startswith("not known: ") and "<unavailable>" not in "".join(short)
    assert sum(int(word) for word in short[-1].replace(",", "").split() if word.isdecimal()) == len(unknown)


def test_where_no_register_is_known_one_line_says_so(tmp_path: Path, capsys: Captured) -> None:
    """Nothing was saved: the first instruction that makes a register of a constant makes it known behind it."""
    target, file = board(tmp_path), tmp_path / "bare.rvt"
    session, context = Session(target.connect, {}), target.describe()
    session.start(context, {})
    target.run(40)
    session.save(file, context)
    session.close()
    listed = [rows(capsys, "values", str(file), "--at", str(number)) for number in range(1, 20)]
    known = [any("value" in it and it["register"] != "pc" for it in of_place) for of_place in listed]
    first = 1 + known.index(True)
    assert first > 1
    where, pc, said = text(capsys, "values", str(file), "--at", "1").splitlines()
    assert where.startswith("before instruction 1: ") and pc.startswith("pc ")
    assert said == f"No register is known here; some are before instruction {first}: `rvtrace values FILE` says why."


def test_a_number_of_which_one_byte_was_written_is_said_as_a_whole_with_the_line(
    tmp_path: Path, capsys: Captured
) -> None:
    """306 is 0x132: its lowest byte is overwritten by the end of a text."""
    source = HOME / "tests" / "programs" / "who" / "overrun.c"
    elf = compile_program(tmp_path, source)
    target, file = board(tmp_path, elf), str(tmp_path / "it.rvt")
    target.registers = True
    session, context = Session(target.connect, {}), target.describe(extra=RAM)
    session.start(context, {})
    target.run(300)
    session.save(Path(file), context)
    session.close()
    number, line = next(it for it in enumerate(source.read_text().splitlines(), 1) if "/* here */" in it[1])
    (writer,) = rows(capsys, "who-wrote", file, "shared.setpoint")
    assert (writer["what"], int(writer["old"], 16), int(writer["new"], 16)) == ("shared.setpoint", 306, 0x100)
    assert (writer["source-line"], writer["code"]) == (f"overrun.c:{number}", line.strip())
    change, shown, _ = text(capsys, "who-wrote", file, "shared.setpoint").splitlines()
    assert change.startswith("shared.setpoint: 0x00000132 -> 0x00000100, written ")
    assert shown == f"overrun.c:{number}\t{line.strip()}"
    assert rows(capsys, "who-wrote", file, "shared.line")[0]["what"] == "shared.line[3]"
