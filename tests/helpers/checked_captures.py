"""Captures of a known program for tests of the check: sound ones, and damaged ones."""

import contextlib
import io
from dataclasses import replace
from pathlib import Path

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture.file import load, save
from rvtrace_gdb.session.capture.model import CapturedEncoder, CapturedSink
from tests.helpers.reference_streams import FOLDER

ELF = FOLDER / "towers.elf"
_ROWS = 7_000


def capture(folder: Path, *options: str) -> Path:
    """A capture of the beginning of `towers`. *options*: those of `rvtrace encode`."""
    pcs = decode((FOLDER / "towers.1.nex").read_bytes(), Image.from_elf(ELF), Options()).pcs(0, _ROWS)
    log, file = folder / "towers.log", folder / "towers.rvt"
    log.write_text("".join(f"0x{pc:x}\n" for pc in pcs))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert main(["encode", "--elf", str(ELF), "--pcs", str(log), "-o", str(file), *options]) == 0
    return file


def messages(file: Path) -> list[bytes]:
    """The messages of a capture of N-Trace: the last byte of each has MSEO 3."""
    data, found, start = load(file).sinks[0].data, [], 0
    for end, byte in enumerate(data, 1):
        if byte & 3 == 3:
            found.append(data[start:end])
            start = end
    return found


def with_bytes(file: Path, data: bytes, name: str) -> Path:
    """The same capture with other bytes."""
    whole = load(file)
    made = file.with_name(name)
    save(replace(whole, sinks=(replace(whole.sinks[0], data=data),)), made)
    return made


def doubled(file: Path, name: str = "doubled.rvt") -> tuple[Path, int]:
    """The capture with one message of a loop doubled, and at which byte."""
    sent = messages(file)
    at = next(i for i in range(100, len(sent)) if sent[i] == sent[i + 1] == sent[i + 2])
    data = b"".join([*sent[: at + 1], *sent[at:]])
    return with_bytes(file, data, name), sum(map(len, sent[:at]))


def of_harts(each: list[Path], file: Path) -> Path:
    """A capture of a hart for each of some captures of one hart."""
    whole = [load(it) for it in each]
    encoders, sinks = list[CapturedEncoder](), list[CapturedSink]()
    for hart, it in enumerate(whole):
        [encoder], [sink] = it.encoders, it.sinks
        name = f"encoder{hart}"
        encoders.append(replace(encoder, hart=hart, in_force=replace(encoder.in_force, name=name)))
        buffer = replace(sink.in_force, name=f"buffer{hart}")
        sinks.append(replace(sink, in_force=buffer, encoders=(name,)))
    save(replace(whole[0], encoders=tuple(encoders), sinks=tuple(sinks)), file)
    return file
