"""Who wrote each element of an array, and each member of a structure, last: by what Spike says was stored."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.program.image import read_elf
from rvtrace_gdb.session.session import Session
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import HOME, compile_program
from tests.helpers.example_captures import RAM
from tests.session.board import board
from tests.transport.simulated.hart.spike import Commit, run_spike

_SOURCE = HOME / "tests" / "programs" / "who" / "parts.c"
_STEPS = 400
_MOST = 16

# What is where in `struct device` of RV64, by the psABI: each is aligned to its size, and bit-fields share a word.
_MEMBERS = {
    "device.gain": (0, 6), "device.low": (6, 1), "device.high": (6, 1), "device.byte": (8, 1), "device.word": (8, 4),
    "device.flags": (12, 2), "device.place": (16, 8), "device.next": (24, 8), "device.never": (32, 4),
    "device.four": (36, 1), "device.ten": (36, 2),
}  # fmt: skip
_NO_NUMBERS = ("device.low", "device.high", "device.four", "device.next", "device.flags")
_ELEMENTS = {f"table[{number}]": (4 * number, 4) for number in range(20)}


class Stored(NamedTuple):
    """What Spike retired: the number of the last instruction that stored to each byte, and what the memory has then."""

    capture: Path
    elf: Path
    writers: Mapping[int, int]
    memory: Mapping[int, int]
    symbols: Mapping[str, int]

    def last(self, whole: str, offset: int, size: int) -> int:
        """The number of the instruction that wrote a part last."""
        start = self.symbols[whole] + offset
        return max(self.writers[at] for at in range(start, start + size))

    def content(self, whole: str, offset: int, size: int) -> int:
        start = self.symbols[whole] + offset
        return int.from_bytes(bytes(self.memory[at] for at in range(start, start + size)), "little", signed=True)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    folder = tmp_path_factory.mktemp("parts")
    elf = compile_program(folder, _SOURCE)
    target, file = board(folder, elf), folder / "parts.rvt"
    target.registers = True
    session, context = Session(target.connect, {}), target.describe(extra=RAM)
    session.start(context, {})
    target.run(_STEPS)
    session.save(file, context)
    session.close()
    commits = [it for it in run_spike(elf, folder, "IMAC", steps=_STEPS).steps if isinstance(it, Commit)]
    writers, memory = dict[int, int](), dict[int, int]()
    for number, commit in enumerate(commits, 1):
        for address, size, value in commit.stores:
            for at in range(size):
                writers[address + at], memory[address + at] = number, value >> 8 * at & 0xFF
    symbols = {it.name: it.address for section in read_elf(elf).sections for it in section.symbols}
    return Stored(file, elf, writers, memory, symbols)


def answered(stored: Stored, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["who-wrote", str(stored.capture), *words, "--quiet"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(("whole", "parts"), [("table", _ELEMENTS), ("device", _MEMBERS)])
def test_the_last_writer_of_each_part_is_spikes(
    stored: Stored, whole: str, parts: dict[str, tuple[int, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    row: dict[str, Any] = json.loads(answered(stored, capsys, whole, "--json"))
    shown = dict(list(parts.items())[:_MOST])
    assert row.get("more", 0) == len(parts) - len(shown)
    assert [it["number"] for it in row["parts"]] == [stored.last(whole, *place) for place in shown.values()]
    assert row["number"] == max(stored.last(whole, *place) for place in parts.values())
    for it, (name, place) in zip(row["parts"], shown.items(), strict=True):
        assert it["what"] in (name, f"byte 0 of {name}") or it["what"].startswith((f"{name}[", f"{name}."))
        if it["what"] == name and name not in _NO_NUMBERS:
            assert int(it["new"].split()[0], 0) == stored.content(whole, *place)
    assert len({it["number"] for it in row["parts"]}) > 6


def test_members_have_their_own_values(stored: Stored, capsys: pytest.CaptureFixture[str]) -> None:
    """As the source says: bit-fields, and the innermost part of what was written of a member."""
    row = json.loads(answered(stored, capsys, "device", "--json"))
    said = {it["what"]: (it.get("old"), it["new"]) for it in row["parts"]}
    assert said["device.low"] == ("0x0", "0x3") and said["device.high"] == ("0x15", "0x15"), "one store for both"
    assert said["device.gain[0]"] == ("0", "4") and said["device.place.x"] == ("0", "8")
    assert said["device.word"] == (str(0x01020304), str(0x01020309)), "the byte in it was written"
    assert said["device.four"] == ("0x0", "0xa"), "of 0x5a"
    assert said["byte 0 of device.ten"] == ("0x50", "0x5a"), "0x155 is 0x1550 behind four bits"
    (own,) = (it for it in row["parts"] if it["what"] == "device.next")
    assert "<device>" in own["new"]


def test_gdb_says_the_same_of_the_others(stored: Stored, capsys: pytest.CaptureFixture[str]) -> None:
    """Each but that which was said already, and how many more there are; not of the writer before, nor of bytes."""
    machine = 'interpreter-exec mi "-rvtrace-who-wrote table"'
    places = ("table", "device", "*&device", "device.place")
    commands = [f"trace who-wrote {it}" for it in places]
    more = ["trace who-wrote -before", f"trace who-wrote {stored.symbols['table']:#x},80", machine]
    said = run_gdb(stored.elf, [SOURCE, f"trace open {stored.capture}", *commands, *more])
    for command, place in zip(commands, places, strict=True):
        own, lines = answered(stored, capsys, place).splitlines(), said[command].strip().splitlines()[:-1]
        at = lines.index("Its other parts were written last:")
        assert own[own.index(lines[at]) :] == lines[at:] and len(lines) > at + 1
        assert lines[0].partition(":")[0] not in [line.strip().partition(":")[0] for line in lines[at:]]
    table = said[commands[0]].strip().splitlines()
    assert table[-2] == "    ... 4 more, each of which can be named"
    number = stored.last("table", *_ELEMENTS["table[3]"])
    assert re.search(rf"\n    table\[3\]: 0 -> 10, written \d+ instructions .*, by {number} 0x", said[commands[0]])
    assert all("other parts" not in said[it] for it in more)
    numbers = [stored.last("table", *place) for place in list(_ELEMENTS.values())[:_MOST]]
    assert [int(it.partition('"')[0]) for it in said[machine].split('instruction={number="')[2:]] == numbers
    assert "parts=[{" in said[machine] and ',more="4"' in said[machine]
