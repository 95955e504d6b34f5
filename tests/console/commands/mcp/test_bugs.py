"""The bugs of docs/tutorials: from the overview to the line that the tutorial blames in at most six calls.

Each call takes only names and numbers that the answers before it have, as a program that asks would.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.console.commands.mcp.asked import Answer, Asker, asked_trace, asking
from tests.helpers.cross_compiler import EXAMPLES, HOME
from tests.helpers.example_captures import example_capture

CALLS = 6


def line_of(source: str, text: str) -> str:
    """Where the only line with *text* is, as file:line."""
    lines = (EXAMPLES / source).read_text(encoding="utf-8").splitlines()
    (found,) = [number for number, line in enumerate(lines, 1) if text in line]
    return f"{Path(source).name}:{found}"


async def hangs(ask: Asker) -> None:
    overview = (await ask("overview")).json
    waits = overview["end"][0]
    assert waits["line"] == line_of("hang.c", "while (put_count - sent_count == SIZE)")
    last_interrupt = [row for row in overview["first traps"] if "position" in row][-1]
    assert last_interrupt["func"] == "on_timer"
    masks = (await ask("find", where=["mask_interrupts", "unmask_interrupts"])).rows
    assert [row["func"] for row in masks][-1] == "mask_interrupts"
    begun = (await ask("frame", number=masks[-1]["position"], level=1)).json
    assert begun["func"] == "uart_set_speed"
    assert line_of("hang.c", "return -1;") in begun["lines that ran"]
    assert [row["func"] for row in begun["rows"]] == ["mask_interrupts"]


async def loops_in_traps(ask: Asker) -> None:
    first = (await ask("overview")).json["first traps"][0]
    trapped = first["from"]["func"]
    assert trapped == "read_reg"
    frame = (await ask("frame", number=first["position"] - 1)).json
    assert frame["called from"]["func"] == "poll"
    sensor = frame["arguments"]["a0"]
    register = (await ask("value", what=f"{int(sensor, 16) + 16:#x},8", number=first["position"])).json
    assert register["value"][0]["bytes"] == "00 00 00 00 00 00 00 00"  # {"humidity", read_reg, NULL}


async def smashes_its_stack(ask: Asker) -> None:
    (wrong, *_) = (await ask("overview")).json["returns to where no call came from"]
    assert wrong["from"]["func"] == "greet"
    before = (await ask("at", number=wrong["position"] - 1)).json["registers before it"]
    slot = int(before["sp"], 16) - 8
    written = (await ask("value", what=f"{slot:#x},8", number=wrong["position"] - 1)).rows[0]
    assert (written["func"], written["line"]) == ("copy", line_of("smashed_stack.c", "while ((*to++ = *from++))"))
    stack = (await ask("at", number=written["number"])).json["calls under way, innermost first"]
    assert [row["func"] for row in stack][:3] == ["copy", "greet", "main"]
    assert stack[1]["line"] == line_of("smashed_stack.c", "copy(name, who);")


async def changes_a_variable(ask: Asker) -> None:
    written = (await ask("value", what="filter")).rows[0]
    assert (written["old"], written["new"]) == ("1000", "149")
    frame = (await ask("frame", number=written["number"])).json
    assert frame["func"] == "add_sample" and frame["arguments"]["a0"] == "0x8"
    assert frame["called from"]["line"] == line_of("changed_variable.c", "add_sample(i, (uint16_t)")


async def is_late(ask: Asker) -> None:
    traps = (await ask("overview")).json["first traps"]
    times = [row["time"] for row in traps if "time" in row]
    if len(times) < 3:
        times = [row["time"] for row in (await ask("events", kind="interrupt")).rows]
    assert times[1] - times[0] < 2000 < times[2] - times[1]
    due = times[1] + 2000
    there = (await ask("at", number=due)).json  # one instruction a tick
    names = [row["func"] for row in there["calls under way, innermost first"]]
    assert names[:3] == ["crc_of", "log_word", "main"]
    frame = (await ask("frame", number=due)).json
    assert frame["ended"] - frame["began"] > 4000
    assert frame["called from"]["line"] == line_of("latency.c", "crc = crc_of(log_, logged);")


async def calls_the_base(ask: Asker) -> None:
    await ask("overview")
    reads = (await ask("find", where=["sensors::sensor::read"])).rows
    stack = (await ask("at", number=reads[0]["position"])).json["calls under way, innermost first"]
    assert stack[2]["func"] == "sensors::average<4>(sensors::sensor)"


async def wraps_around(ask: Asker) -> None:
    wraps = next(row for row in (await ask("value", what="TANK")).rows if row["old"] == "0x00000000")
    assert wraps["new"] == "0xffffffff"
    assert wraps["line"] == line_of("rust_tank.rs", "self.level = self.level - litres;")


async def loses_payments(ask: Asker) -> None:
    """The time of a row is that of the message before it: here that of the return from `note`."""
    assert (await ask("overview")).json["harts"] == [0, 1]
    last = (await ask("value", what="balance")).json
    assert "what hart 1 wrote" in last["writers"]
    assert last["rows"][0]["line"] == line_of("two_harts/two_harts.c", "balance = b")
    frame = (await ask("frame", number=last["rows"][0]["number"])).json
    read, written = (line_of("two_harts/two_harts.c", text) for text in ("int before = balance;", "balance = before +"))
    assert {read, written} <= set(frame["lines that ran"])
    times, meanwhile = [], 0
    for hart in (0, 1):
        found = await ask("find", where=[read, written], hart=hart)
        times.append([row["time"] for row in found.rows if row["line"] == written])
        meanwhile = found.rows[1]["position"] - found.rows[0]["position"]
        assert found.json["hart"] == hart and found.json["more"]["arguments"]["hart"] == hart
    together = [one for one in times[0] for other in times[1] if abs(one - other) < meanwhile]
    assert len(together) > 5


BUGS = {
    "hang": hangs, "trap_loop": loops_in_traps, "smashed_stack": smashes_its_stack,
    "changed_variable": changes_a_variable, "latency": is_late, "cpp_sensors": calls_the_base,
    "rust_tank": wraps_around, "two_harts": loses_payments,
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_found_in_at_most_six_calls(name: str, tmp_path: Path) -> None:
    calls: list[str] = []

    async def talk(ask: Asker) -> None:
        async def counted(tool: str, **arguments: Any) -> Answer:
            calls.append(tool)
            found = await ask(tool, **arguments)
            assert not found.is_error, found.text
            return found

        await BUGS[name](counted)

    with asked_trace(example_capture(tmp_path, name)) as trace:
        asking(trace, talk)
    assert 0 < len(calls) <= CALLS


def test_each_tutorial_of_a_bug_is_here() -> None:
    """Those without: the trace of somebody else has no bug, and what never ran is no question of the tools."""
    pages = [path.read_text(encoding="utf-8") for path in (HOME / "docs" / "tutorials").glob("*.md")]
    programs = {name for page in pages for name in re.findall(r"build/examples/(\w+)\.elf", page)}
    assert programs - {"demo", "checksum"} == BUGS.keys()


def test_each_answer_names_a_line_for_a_place(tmp_path: Path) -> None:
    async def talk(ask: Asker) -> None:
        for tool, arguments in (
            ("find", {"where": ["poll"]}), ("history", {"first": 100}), ("functions", {}), ("events", {}),
            ("calls", {}), ("value", {"what": "sum"}),
        ):  # fmt: skip
            rows = (await ask(tool, **arguments)).rows
            assert rows
            for row in rows:
                assert re.fullmatch(r"[\w.]+:[0-9]+", row["line"])
                assert {"position", "number"} & row.keys() or tool == "calls"

    with asked_trace(example_capture(tmp_path, "trap_loop")) as trace:
        asking(trace, talk)
