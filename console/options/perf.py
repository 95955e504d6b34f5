"""perf.data of Linux, as `rvtrace import` reads it: the options for it, and its capture."""

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

from rvtrace_gdb.console.options.inputs import (
    SYSROOT,
    ImportedCapture,
    Programs,
    RawError,
    absolute,
    number_from,
    title,
)
from rvtrace_gdb.session.formats.imports.raw_import import EncoderTraceOptions
from rvtrace_gdb.session.perf_data.recording import is_perf_data
from rvtrace_gdb.support.errors import Progress, silent

_MOST_PIDS = (1 << 32) - 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for perf.data."""
    group = parser.add_argument_group(
        "perf.data of Linux",
        "What perf recorded is known by its first bytes. Options of --help-raw say what the kernel does not: how the"
        " bytes were encoded.",
    )
    group.add_argument("--sysroot", metavar="DIR", help=f"{SYSROOT} that perf's mappings, or --maps, name")
    group.add_argument("--perf", action="store_true", help="standard input is what `perf record -o -` writes")
    group.add_argument(
        "--pid", type=number_from(0, _MOST_PIDS), metavar="N",
        help="of which process, if there are several and the trace does not say which one ran",
    )  # fmt: skip


def is_wanted(args: argparse.Namespace) -> bool:
    """Return whether the file is perf.data. Raises `RawError` for an option of perf.data with another file."""
    if args.perf or (args.file != "-" and is_perf_data(args.file)):
        return True
    if args.pid is not None:
        raise RawError(f"--pid is for perf.data, and {title(args.file)} is none")
    return False


@dataclass(frozen=True)
class PerfTrace:
    """What perf recorded. *pid*: of this process; None: of the only one."""

    pid: int | None

    def imported(
        self, file: str, options_of: Callable[[int], EncoderTraceOptions], programs: Programs,
        progress: Progress = silent,
    ) -> ImportedCapture:  # fmt: skip
        """Read the file. *options_of*: returns how the bytes were encoded, for harts of an XLEN.

        Raises `RawError`, BadPerfData, NoZstd, and as *options_of* and `import_perf_data`.
        """
        from rvtrace_gdb.session.perf_data.importing import PerfPrograms, import_perf_data
        from rvtrace_gdb.session.perf_data.recording import read_recording

        if programs.sysroot is not None and not os.path.isdir(programs.sysroot):
            raise RawError(f"--sysroot {programs.sysroot}: there is no such directory")
        if programs.maps:
            raise RawError("--maps: perf.data has the mappings of its processes, leave it out")
        try:
            recording = read_recording(file, sys.stdin.buffer if file == "-" else None, progress)
        except OSError as error:
            raise RawError(f"{title(file)}: cannot be read: {error.strerror}") from None
        elves = tuple(os.path.abspath(elf) for elf in programs.elves)
        vdso = None if programs.vdso is None else os.path.abspath(programs.vdso)
        found = PerfPrograms(elves, vdso, absolute(programs.sysroot), programs.kernel)
        return ImportedCapture(import_perf_data(recording, found, options_of(recording.xlen), self.pid), [])
