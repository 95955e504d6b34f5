"""Listings outside gdb: line for line what a real gdb printed (see tests/data/gdb-transcripts/README.md)."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from decode.history import Accounting, EventKind, History, HistoryBuilder
from decode.history import Path as Flow
from decode.image import Image
from tests.transcripts import FOLDER, exchanges, history_rows
from views.disassembly import Disassembler
from views.listing import ModifierError, Modifiers, lines

COMMAND = "record instruction-history "
SIZES = {
    "instruction-history-rv64.txt": 534,
    "instruction-history-rv32.txt": 40,
    "instruction-history-stripped.txt": 20,
}


def recorded(transcript: str) -> History:
    """The history a transcript lists from 1 on."""
    builder = HistoryBuilder()
    listing = next(shown for command, shown in exchanges(transcript) if command.startswith(COMMAND + "1,"))
    for _, row in history_rows(listing):
        if row.startswith("["):
            builder.gap(EventKind.LOSS, 0, row[1:-1])
        else:
            builder.append(Flow(((int(row.split()[0].rstrip(":"), 16),),)))
    return builder.finish(Accounting(0, 0, 0, 0))


@pytest.fixture(params=SIZES)
def transcript(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def image(transcript: str, tmp_path: Path) -> Image:
    elf = FOLDER / ("demo32.elf" if "rv32" in transcript else "demo64.elf")
    if "stripped" in transcript:
        stripped = tmp_path / "stripped.elf"
        subprocess.run(["riscv64-unknown-elf-strip", "-o", str(stripped), str(elf)], check=True)
        elf = stripped
    return Image.from_elf(elf)


@pytest.fixture
def disassembler(image: Image) -> Iterator[Disassembler]:
    with Disassembler(image) as disassembler:
        yield disassembler


def test_every_listing_reads_as_in_gdb(transcript: str, image: Image, disassembler: Disassembler) -> None:
    history, compared = recorded(transcript), 0
    assert len(history) == SIZES[transcript]
    for command, shown in exchanges(transcript):
        rows = history_rows(shown) if command.startswith("record instruction-history") else []
        if not rows or "/m" in command or "/s" in command:  # source lines are only shown inside gdb
            continue
        modifiers, _ = Modifiers.split(command.removeprefix("record instruction-history"))
        ours = list(lines(history, disassembler, image.xlen, rows[0][0], rows[-1][0] + 1, modifiers))
        assert _without_comments(ours) == _without_comments(shown), command
        compared += 1
    assert compared >= 3


def test_addresses_composed_by_two_instructions_are_explained_as_in_gdb(
    transcript: str, image: Image, disassembler: Disassembler
) -> None:
    """In a listing from 1 on, gdb sees every auipc before its user: even the comments are the same."""
    history = recorded(transcript)
    shown = next(found for command, found in exchanges(transcript) if command.startswith(COMMAND + "1,"))
    ours = list(lines(history, disassembler, image.xlen, 1, len(history) + 1))
    assert ours == shown
    assert any(" # 0x" in line for line in ours)


def _without_comments(shown: list[str]) -> list[str]:
    """Whether gdb comments on an address depends on where its page began."""
    return [line.partition(" # ")[0] for line in shown]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("/", "Missing modifier."),
        ("/x", "Invalid modifier: x."),
        ("/rx 10", "Invalid modifier: x."),
        ("/r10", "Invalid modifier: 1."),
    ],
)
def test_modifier_errors_are_gdbs(arguments: str, error: str) -> None:
    shown = dict(exchanges("instruction-history-rv64.txt"))
    assert shown[COMMAND + arguments] == [error]
    with pytest.raises(ModifierError) as caught:
        Modifiers.split(arguments)
    assert str(caught.value) == error


def test_modifiers_may_be_given_one_by_one() -> None:
    assert Modifiers.split("/r /f 10,12") == Modifiers.split("/r/f 10,12") == (Modifiers(True, True), "10,12")
    assert Modifiers.split("/ 10,12") == (Modifiers(), "10,12")
