"""The waveforms of `vcd` as FST, GTKWave's compressed form: converted by GTKWave's own program, `vcd2fst`."""

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.timelines.vcd import write_waveforms
from rvtrace_gdb.support.errors import Progress, RvtraceError

CONVERTER = "vcd2fst"
_LOOK = 0.1
"""Seconds between two looks at whether Ctrl-C was pressed."""


class FstError(RvtraceError):
    """The converter is not there, or failed."""


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written:
    """Write the waveforms of all harts. Raises LibraryMissing, TooManyInstructions, FstError."""
    converter = shutil.which(CONVERTER)
    if converter is None:
        raise FstError(f"fst: {CONVERTER} is not installed: apt install gtkwave (or write vcd, which it reads, too)")
    with TemporaryDirectory(prefix="rvtrace-") as folder:
        source, made = Path(folder, "it.vcd"), Path(folder, "it.fst")
        with source.open("wb") as dump:
            written = write_waveforms(trace, dump, "fst", progress)
        _convert([converter, "--vcdname", str(source), "--fstname", str(made)], progress)
        with made.open("rb") as converted:
            shutil.copyfileobj(converted, file)
    return written


def _convert(command: list[str], progress: Progress) -> None:
    """Run the converter. Raises FstError, and what *progress* raises."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
        try:
            while True:
                try:
                    said = child.communicate(timeout=_LOOK)[0]
                    break
                except subprocess.TimeoutExpired:
                    progress("compressing", 0, None)
        except BaseException:
            child.kill()
            raise
    if child.returncode:
        lines = said.decode(errors="replace").split("\n")
        raise FstError(f"fst: {CONVERTER} failed with status {child.returncode}: {lines[0]}")
