"""The last lines of `trace info`: what is missing to trace, and what to do."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.controlregs.interruptions import no_waiting
from tests.session.queries.hardware.register_target import Registers, described
from tests.session.queries.hardware.test_info import shown

BOARD = ("encoder e 0x1000", 'ram_sink r 0x2000 mode="SRAM"')
OFF = {0x1000: 0x9, 0x1004: 0x0001_0101, 0x2000: 0x9, 0x2004: 0x1901}
"""An encoder and a RAM sink with memory of its own (bit 12 of trRamImpl), active and not enabled."""


def last(target: Registers, folder: Path, *components: str) -> list[str]:
    """The lines that are not about one component."""
    with no_waiting():
        lines = shown(target.connect, described(folder, *(components or BOARD)))
    begin = next((n for n, line in enumerate(lines) if line.startswith(("missing:", "note:"))), len(lines))
    return [line[len("missing:  ") :] for line in lines[begin:]]


NOT = "cannot be used as a {}: correct the description; `rvtrace init --probe` shows what is there"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({0x1000: 0}, "e at 0x1000 stays in reset (trTeActive remains 0): switch on its clock and power, then repeat"
                      " `trace info`"),
        ({0x2004: 0x801}, f"r at 0x2000 {NOT.format('RAM sink')}"),
        ({0x1004: 0x102}, f"e at 0x1000 {NOT.format('trace encoder')}"),
        ({0x2004: 0x2901}, 'r has no SRAM: write mode = "SMEM", and start and size of a buffer in the description'),
        ({0x2004: 0x1901, 0x2000: 0xB}, ""),
    ],
)  # fmt: skip
def test_a_component(changes: Mapping[int, int], line: str, tmp_path: Path) -> None:
    assert last(Registers({**OFF, **changes}), tmp_path) == [line] * bool(line)


def test_no_ram_sink(tmp_path: Path) -> None:
    target = Registers({**OFF, 0x2004: 0xA01})
    assert last(target, tmp_path, "encoder e 0x1000", "pib_sink pins 0x2000") == [
        "no RAM sink is described: trace leaves the chip by pins, and has to be recorded there by a probe"
    ]


def test_harts(tmp_path: Path) -> None:
    target = Registers(dict(OFF), targets=("a", "b"), states={"a": "unavailable"})
    assert last(target, tmp_path) == [
        "hart 0 of e is unavailable: switch on a, or see OpenOCD's log",
        "hart 1 (b) has no encoder in the description, so it is not traced: `rvtrace init`",
    ]
    assert last(Registers(dict(OFF)), tmp_path, "encoder e 0x1000 hart=3", BOARD[1]) == [
        "hart 3 of e is not there: OpenOCD has 1; correct `hart`",
        "hart 0 (cpu0) has no encoder in the description, so it is not traced: `rvtrace init`",
    ]


def test_nothing_arrives(tmp_path: Path) -> None:
    """The encoder traces, the sink is on, and its write pointer is where the buffer begins; or 8 bytes behind."""
    on = {**OFF, 0x1000: 0x0131_006F, 0x2000: 0xB, 0x2010: 0x400, 0x2018: 0x7FC, 0x2020: 0x400}
    (line,) = last(Registers(dict(on)), tmp_path)
    assert line.endswith(
        "nothing has arrived in r yet: let the program run; if it has, a funnel in between may not be described:"
        " `rvtrace init --probe`"
    )
    assert last(Registers({**on, 0x2020: 0x408}), tmp_path) == []
    assert last(Registers({**on, 0x1000: 0x0131_006B}), tmp_path) == [], "the encoder does not trace"
    assert last(Registers({**on, 0x2020: 0x401}), tmp_path) == [], "it has wrapped"
