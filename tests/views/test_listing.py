"""Listings outside gdb: line for line what a real gdb printed (see tests/data/gdb-transcripts/README.md)."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting, EventKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.history.history import Path as Flow
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.views.disassembly import Disassembler, Disassemblers
from rvtrace_gdb.views.text_rows import ModifierError, Modifiers, lines, merged_lines
from tests.helpers.event_facts import lost
from tests.helpers.gdb_transcripts import FOLDER, exchanges, history_rows

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
            builder.gap(EventKind.LOSS, 0, lost(row[1:-1]))
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
        assert _without_comments(_as_in_gdb(ours)) == _without_comments(shown), command
        compared += 1
    assert compared >= 3


def test_addresses_composed_by_two_instructions_are_explained_as_in_gdb(
    transcript: str, image: Image, disassembler: Disassembler
) -> None:
    """In a listing from 1 on, gdb sees every auipc before its user: even the comments are the same."""
    history = recorded(transcript)
    shown = next(found for command, found in exchanges(transcript) if command.startswith(COMMAND + "1,"))
    ours = list(lines(history, disassembler, image.xlen, 1, len(history) + 1))
    assert _as_in_gdb(ours) == shown
    assert any(" # 0x" in line for line in ours)


def test_an_address_reads_as_its_context_has_it() -> None:
    """The same address in two processes and nowhere else: c.addi, c.mv, and no code."""
    images = ContextImages(Image(64))
    for scontext, code in ((1, b"\x05\x05"), (2, b"\x2e\x85")):
        process = Image(64)
        process.add_code(0x1000, code)
        images.attach(process, scontext=scontext)
    builder = HistoryBuilder()
    for scontext in (1, 2, 1, 3):
        builder.context(ProgramContext(prv=0, scontext=scontext))
        builder.append(Flow(((0x1000,),)))
    history = builder.finish(Accounting(0, 0, 0, 0))
    with Disassemblers(images) as source:
        shown = [line.split(":\t")[1] for line in lines(history, source, 64, 1, 5)]
        assert list(lines(history, source, 64, 2, 3)) == ["2\t   0x0000000000001000:\tmv\ta0,a1"]
    assert shown == ["add\ta0,a0,1", "mv\ta0,a1", "add\ta0,a0,1", "Cannot access memory at address 0x1000"]


def test_lines_of_several_harts_begin_with_the_hart() -> None:
    image = Image(64)
    image.add_code(0x1000, b"\x05\x05\x2e\x85")
    histories = {}
    for hart, times in ((2, (10, 30)), (5, (20, 40))):
        builder = HistoryBuilder()
        for time, pc in zip(times, (0x1000, 0x1002), strict=True):
            builder.time(time)
            builder.append(Flow(((pc,),)))
        histories[hart] = builder.finish(Accounting(0, 0, 0, 0))
    with Disassembler(image) as source:
        shown = list(merged_lines(histories, source, 64))
    assert shown == [
        "hart 2\t1\t   0x0000000000001000:\tadd\ta0,a0,1",
        "hart 5\t1\t   0x0000000000001000:\tadd\ta0,a0,1",
        "hart 2\t2\t   0x0000000000001002:\tmv\ta0,a1",
        "hart 5\t2\t   0x0000000000001002:\tmv\ta0,a1",
    ]


def _as_in_gdb(ours: list[str]) -> list[str]:
    """Without the byte of the trace, which our gaps name and gdb's do not."""
    return [line.removesuffix("; trace byte 0x0]") + "]" * line.endswith("; trace byte 0x0]") for line in ours]


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
    assert Modifiers.split("10,12 /r") == Modifiers.split("/r 10,12"), "as `trace history` has it"
    assert Modifiers.split("/ 10,12") == (Modifiers(), "10,12")
