"""Code that a program changes before it is traced, as kernels do (Linux: alternatives, static keys).

The file has other instructions than memory. A live target's memory counts; a capture has what differs; a trace without
either is read with a dump of the page.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.session import Session
from tests.endtoend.command_line import printed
from tests.endtoend.trace.hard_programs import complete, instructions, session

PATCHED = {0x80003004: 0x00428293, 0x80003008: 0x00504263, 0x80003014: 0x0140006F}
"""What the program writes where its file has nops: by the sources, addi, bgtz, and j."""


def test_what_memory_has_instead_of_the_file_is_read_from_the_target(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = ["break patched", "continue", "trace start", "break finish", "continue", "trace history"]
    outcome = session("patched_machine.S", tmp_path, commands)
    complete(outcome)
    assert not outcome.warnings and not outcome.gaps
    assert "hint:     memory has other code than patched_machine-rv64gc.elf at " in str(outcome.said)
    assert set(PATCHED) <= set(outcome.retired)
    assert "j\t0x80003028 <slow>" in outcome.listing
    file = tmp_path / "x.rvt"
    capture = capture_file.load(file)
    words = {at + i: data[i : i + 2] for at, data in capture.patched for i in range(0, len(data), 2)}
    kept = {at: int.from_bytes(words.get(at, b"\x13\0") + words.get(at + 2, b"\0\0"), "little") for at in PATCHED}
    assert kept == PATCHED
    # The same trace without that: the file's code contradicts it, and a page of memory is the remedy.
    capture_file.save(replace(capture, patched=()), file)
    main(["decode", str(file), "--quiet"])
    out, err = capsys.readouterr()
    assert "is this the program that ran?" in err and instructions(out) != outcome.retired
    page = bytearray(page_of_file(file))
    for at, word in PATCHED.items():
        page[at - 0x80003000 : at - 0x80003000 + 4] = word.to_bytes(4, "little")
    (tmp_path / "page.bin").write_bytes(page)
    again = printed("decode", file, "--memory", f"{tmp_path}/page.bin@0x80003000")
    assert instructions(again) == outcome.retired


def page_of_file(file: Path) -> bytes:
    """The page of the patched function as the program's file has it."""
    opened = Session()
    opened.open(file, None)
    return opened.harts().image.constant(0x80003000, 0x40)
