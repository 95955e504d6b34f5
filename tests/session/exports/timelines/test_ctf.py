"""The Common Trace Format, as Babeltrace reads it: functions begin and end where they ran, each hart is a stream."""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.exports.timelines import ctf
from tests.decode.tandem.corpus import DATA, trace_bytes
from tests.session.exports.exported import damaged, export, names_at, options, retired, stream, two_harts

_LINE = re.compile(r"\[(\d+)\] \(\S+\) (\w+): \{ cpu_id = (\d+) \}, \{ number = (\d+) \}, \{ (.*) \}")
_FIELD = re.compile(r'(\w+) = ("[^"]*"|[^,]+)')


class Shown(NamedTuple):
    """An event as babeltrace2 prints it."""

    time: int
    name: str
    hart: int
    number: int
    fields: dict[str, str]


def babeltrace(out: Path) -> list[Shown]:
    """The events of an archive. Babeltrace sorts them by time."""
    shutil.rmtree(out.parent / "trace", ignore_errors=True)
    subprocess.run(["tar", "xf", str(out), "-C", str(out.parent)], check=True)
    command = ["babeltrace2", "--clock-cycles", str(out.parent / "trace")]
    said = subprocess.run(command, check=True, capture_output=True, text=True)
    assert said.stderr == ""
    found = []
    for line in said.stdout.splitlines():
        shown = _LINE.fullmatch(line)
        assert shown is not None, line
        fields = {name: value.strip('"') for name, value in _FIELD.findall(shown[5])}
        found.append(Shown(int(shown[1]), shown[2], int(shown[3]), int(shown[4]), fields))
    return found


def written(folder: Path, trace: Path, words: Sequence[str], *more: str) -> list[Shown]:
    out = folder / "it.tar"
    export("ctf", out, trace, list(words), *more)
    return babeltrace(out)


@pytest.mark.parametrize("program", ["towers", "median"])
def test_each_call_is_where_it_ran(program: str, tmp_path: Path) -> None:
    found, pcs = written(tmp_path, stream(program), options(program)), retired(program)
    stacks: dict[str, list[str]] = {}
    begun: Counter[int] = Counter()
    for event in found:
        stack = stacks.setdefault(event.fields["task"], [])
        name = event.fields["name"]
        if event.name == "function_exit":
            assert stack.pop() == name
            continue
        stack.append(name)
        address = int(event.fields["address"], 16)
        assert name in names_at(program, address) and event.time == event.number - 1
        if event.fields["called"] == "1":
            assert pcs[event.number - 1] == address
            begun[address] += 1
    assert not any(stacks.values())
    # A function whose first instruction ran only when it was entered was entered that often.
    assert len(begun) > 5 and all(pcs.count(address) >= times for address, times in begun.items())
    assert sum(pcs.count(address) == times for address, times in begun.items()) >= len(begun) - 1


def test_a_part_begins_with_what_was_running(tmp_path: Path) -> None:
    found, pcs = written(tmp_path, stream("towers"), options("towers"), "--range", "6000,+500"), retired("towers")
    begun = [event for event in found if event.name == "function_entry"]
    before = [event for event in begun if event.fields["called"] == "0"]
    assert {event.number for event in before} == {6000} and len(before) > 1
    assert before[-1].fields["name"] in names_at("towers", pcs[5999])
    for event in begun[len(before) :]:
        assert event.fields["called"] == "1" and pcs[event.number - 1] == int(event.fields["address"], 16)


def test_each_hart_is_a_stream(tmp_path: Path) -> None:
    trace, words = two_harts(tmp_path)
    found = written(tmp_path, trace, words)
    assert {path.name for path in (tmp_path / "trace").iterdir()} == {"metadata", "hart1", "hart2"}
    for hart, first in ((1, 100), (2, 155)):
        events = [event for event in found if event.hart == hart]
        assert events[0].time == first and {(event.time - first) % 10 for event in events} == {0}
        begun = Counter(event.name for event in events)
        assert begun["function_entry"] == begun["function_exit"] >= 10
    part = written(tmp_path, trace, words, "--hart", "2", "--time", "200,400")
    assert {event.hart for event in part} == {2} and all(195 <= event.time <= 405 for event in part)


def test_traps_and_what_is_missing(tmp_path: Path) -> None:
    name = "flute_rv64-irq"
    words = ["--tandem", "--dialect", "flute", "--elf", str(DATA / "riscv-tests" / "rv64-irq")]
    file = tmp_path / "it.tvt"
    file.write_bytes(trace_bytes(name))
    traps = [event.fields for event in written(tmp_path, file, words) if event.name == "trap"]
    # The core takes a software interrupt twice, and an exception: data/riscv-tests/README.md.
    assert sorted((trap["interrupt"], trap["cause"]) for trap in traps)[1:] == [("1", "3"), ("1", "3")]
    assert len(traps) == 3 and traps[0]["text"] == "interrupt 3 (machine software interrupt)"
    found = written(tmp_path, damaged(tmp_path), options("towers"))
    [gap] = [event for event in found if event.name == "missing"]
    assert gap.fields["what"].startswith("lost: ") and "trace byte 0x" in gap.fields["text"]
    assert gap.number > 5000 and retired("towers")[gap.number - 2]


def test_too_many_calls_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ctf, "MOST", 20)
    out = tmp_path / "it"
    words = ["export", str(stream("towers")), *options("towers"), "--to", "ctf", "-o", str(out), "--quiet"]
    assert main(words) == 1
    why = "rvtrace: ctf: more than 20 functions begin on hart 0: choose a part with --range A,B or --time T,T\n"
    assert capsys.readouterr().err == why and not out.exists()
    assert main([*words, "--range", "1,90"]) == 0
