"""Runs that differ in interrupts and in how long they wait are the same run; the hart's own list is the truth."""

from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.session.questions.divergence.question import ComparedTrace, HartComparison
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from tests.helpers.cross_compiler import compile_program, symbol_address, symbol_size
from tests.reports.intervals.golden import Retired, returned_traps, traced
from tests.session.questions.divergence.runs import HERE, PERIOD, parted

WAITS = ("wait_for_tick", "wait_for_time", "is_later")


class Waited(NamedTuple):
    elf: Path
    selected: SelectedHistory
    run: list[Retired]

    def kept(self) -> list[int]:
        """The indices of what retired outside of interrupts and of the functions that wait."""
        aside = {k for begin, end, _ in returned_traps(self.run) for k in range(begin, end)}
        waits = [
            range(symbol_address(self.elf, name), symbol_address(self.elf, name) + symbol_size(self.elf, name))
            for name in WAITS
        ]
        return [k for k, it in enumerate(self.run) if k not in aside and not any(it.pc in one for one in waits)]


def waited(folder: Path, options: tuple[str, ...], words: dict[int, int]) -> Waited:
    """A run of waiting.c, with some of its four words changed."""
    folder.mkdir()
    elf = compile_program(folder, HERE / "waiting.c", options=("-Wl,--build-id", *options))
    data = bytearray(elf.read_bytes())
    begin = data.index(PERIOD) - 4
    for number, value in words.items():
        data[begin + 4 * number : begin + 4 * number + 4] = value.to_bytes(4, "little")
    elf.write_bytes(data)
    selected, run = traced(elf, folder, 13_000)
    return Waited(elf, selected, run)


def comparison(one: Waited, other: Waited) -> HartComparison:
    traces = [ComparedTrace(Session(), it.selected._replace(values="off"), it.elf.name) for it in (one, other)]
    return HartComparison(traces[0], traces[1])


@pytest.mark.parametrize("level", ["-Og", "-O2", "-O0"])
def test_waits_and_interrupts(level: str, tmp_path: Path) -> None:
    one = waited(tmp_path / "one", (level,), {})
    other = waited(tmp_path / "other", (level,), {0: 1000})
    kept, others = one.kept(), other.kept()
    assert [one.run[k].pc for k in kept] == [other.run[k].pc for k in others]
    assert len(one.run) != len(other.run)
    answer = comparison(one, other).answer()
    assert answer.first is None and answer.differences == answer.lost == 0
    assert answer.waits == 22  # in each of 11 rounds both waits
    assert (answer.interrupts, answer.other_interrupts) == tuple(len(returned_traps(it.run)) for it in (one, other))


def test_divergence_behind_waits(tmp_path: Path) -> None:
    one = waited(tmp_path / "one", (), {})
    other = waited(tmp_path / "other", (), {0: 700, 3: 7})
    kept, others = one.kept(), other.kept()
    at = parted([one.run[k].pc for k in kept], [other.run[k].pc for k in others])
    assert at is not None
    first = comparison(one, other).answer().first
    assert first is not None
    assert (first.to_number, first.other_to_number) == (kept[at] + 1, others[at] + 1)
