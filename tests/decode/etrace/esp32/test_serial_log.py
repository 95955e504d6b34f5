"""Core dumps in logs of a serial line as people have them: with times, wrapped, alone, and with bytes lost.

The dump is that of `images`; what is right is what the same dump gives as an ELF file.
"""

import base64
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.etrace.esp32.readout import is_core_dump, read_core_dump
from rvtrace_gdb.decode.etrace.esp32.snapshot import BadSnapshot
from tests.decode.etrace.esp32 import images as made
from tests.helpers.amounts import LONG

STREAM = made.stream("pt10")
LOG = made.serial_log(made.elf_core([made.Described(STREAM, head=len(STREAM), mode=made.LINEAR)]))
LINES = LOG.split(b"\r\n")
WHOLE = read_core_dump(LOG).snapshot
DIGITS = [number for number, line in enumerate(LINES) if re.fullmatch(rb"[A-Za-z0-9+/]+={0,2}", line)]
TEXTS = [LINES[number] for number in DIGITS]


def wrapped(width: int) -> bytes:
    """The log as a narrow terminal has it."""
    pieces = (line[at : at + width] for line in LINES for at in range(0, max(len(line), 1), width))
    return b"\r\n".join(pieces)


FORMS: dict[str, Callable[[], bytes]] = {
    "date and time": lambda: b"\r\n".join(b"2025-01-17 19:18:5%d " % (n % 10) + line for n, line in enumerate(LINES)),
    "idf.py monitor": lambda: b"\r\n".join(b"[12:00:%02d.123] " % (n % 60) + line for n, line in enumerate(LINES)),
    "syslog": lambda: b"\n".join(b"Jan 17 12:00:%02d host esp: " % (n % 60) + line for n, line in enumerate(LINES)),
    "colours": lambda: b"\r\n".join(b"\x1b[0;32m" + line + b"\x1b[0m" for line in LINES),
    "base64 alone": lambda: b"\n".join(TEXTS) + b"\n",
    "one line of base64": lambda: base64.b64encode(b"".join(map(base64.b64decode, TEXTS))),
    "wrapped at 50": lambda: wrapped(50),
    "wrapped at 63": lambda: wrapped(63),
    "an older dump before": lambda: LOG[: len(LOG) // 2] + LOG,
    "other output between": lambda: LOG.replace(TEXTS[9] + b"\r\n", TEXTS[9] + b"\r\nI (123) wifi: run -> init\r\n"),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_of_the_dump_is_read(form: str) -> None:
    content = FORMS[form]()
    assert is_core_dump(content)
    dump = read_core_dump(content)
    assert (dump.snapshot, dump.notes) == (WHOLE, ())


@pytest.mark.parametrize("prefix", [b"", b"[12:00:01.123] "], ids=["plain", "times"])
@pytest.mark.parametrize("lost", ["line", "character", "two characters"])
@pytest.mark.parametrize("at", range(0, len(DIGITS), 1 if LONG else 37))
def test_a_part_that_is_lost_is_said(at: int, lost: str, prefix: bytes) -> None:
    """Never that there is no trace: how much is there, and the rest of the trace if its description is whole."""
    kept = {"line": [], "character": [TEXTS[at][1:]], "two characters": [TEXTS[at][2:]]}[lost]
    lines = [*LINES[: DIGITS[at]], *kept, *LINES[DIGITS[at] + 1 :]]
    content = b"\r\n".join(prefix + line for line in lines)
    assert is_core_dump(content)
    size = len(base64.b64decode(TEXTS[at]))
    try:
        dump = read_core_dump(content)
    except BadSnapshot as error:
        assert "the core dump is damaged" in str(error)
        return
    (note,) = dump.notes
    assert "the core dump is damaged" in note
    assert at == 0 or f"{9440 - size} of 9440 bytes are there" in note
    whole, found = WHOLE.cores[0].data, dump.snapshot.cores[0].data
    assert whole is not None and found is not None and len(found) == len(whole)
    assert sum(one != other for one, other in zip(whole, found, strict=True)) <= (4 if lost == "line" else 1) * 48
    cores = (replace(core, data=None) for core in (*WHOLE.cores, *dump.snapshot.cores))
    assert next(cores) == next(cores)  # no byte of the description is one of no meaning


@pytest.mark.parametrize("lost", ["line", "character"])
def test_the_gap_is_where_the_line_was(lost: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line in the middle of the trace: what ran before and after it is listed, and what is listed ran."""
    at = DIGITS[len(DIGITS) // 2]
    lines = [*LINES[:at], *([] if lost == "line" else [LINES[at][:-1]]), *LINES[at + 1 :]]
    (tmp_path / "crash.log").write_bytes(b"\r\n".join(lines))
    assert main(["decode", str(tmp_path / "crash.log"), "--elf", str(made.ELF)]) == 0
    printed = capsys.readouterr()
    assert "the core dump is damaged: 9392 of 9440 bytes are there" in printed.err
    ran = [int(pc, 16) for pc in re.findall(r"^\d+\t +0x([0-9a-f]+)", printed.out, re.M)]
    executed = made.executed()
    same = next(at for at, (one, other) in enumerate(zip(ran, executed, strict=False)) if one != other)
    assert ran == [*executed[:same], *executed[same - len(ran) :]]
    assert 17_000 < len(ran) < len(executed)


def test_a_dump_without_its_beginning() -> None:
    """The ELF header itself is lost: said as damage, not that the file is another."""
    content = LOG.replace(TEXTS[1] + b"\r\n", b"")
    assert is_core_dump(content)
    with pytest.raises(BadSnapshot, match="the core dump is damaged: its beginning is missing"):
        read_core_dump(content)


@pytest.mark.parametrize("content", [b"", b"hello\n", b"AAAA\nBBBB\n", b"CORE DUMP", base64.b64encode(bytes(300))])
def test_other_files_are_no_core_dumps(content: bytes) -> None:
    assert not is_core_dump(content)
