"""A long trace of a short program, in raw bytes."""

from pathlib import Path

from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.formats.long_traces.trace_pieces import STEP
from tests.reports.coverage.traced import PROGRAMS, program, retired, trace

SECTIONS = ("functions", "calls", "lines", "blocks", "edges", "branches", "traps", "losses", "harts")
SIZE = 5 * STEP + 1000


def long_run(folder: Path, form: str = "--ntrace") -> tuple[Path, Path]:
    """A file with the trace of a program that runs again and again, and the program."""
    elf = program(folder / "program", [PROGRAMS.parent / "conditions" / "main.c"])
    sink = capture_file.load(str(trace(elf, retired(elf), folder / "one.rvt", form))).sinks[0]
    file = folder / f"long{form}.bin"
    file.write_bytes((sink.data * (SIZE // len(sink.data) + 1))[:SIZE])
    return file, elf
