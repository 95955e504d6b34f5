"""Logs of other simulators and cores, which `rvtrace import` makes a tandem trace of."""

import argparse
from dataclasses import dataclass, replace

from rvtrace_gdb.console.options.inputs import ImportedCapture, Programs, RawError
from rvtrace_gdb.console.options.tandem import TandemOptions
from rvtrace_gdb.decode.executed.readers import Log, LogError
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.logs import FORMS, reader_of, recognized_form
from rvtrace_gdb.decode.tandem.logs.commits import trace_of
from rvtrace_gdb.decode.tandem.protocol import RECONSTRUCTED
from rvtrace_gdb.session.formats.imports.raw_import import tandem_capture
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.text import warning

AUTO = "auto"


def add_arguments(parser: "argparse._MutuallyExclusiveGroup") -> None:
    """Add the option that says which log a file is."""
    parser.add_argument(
        "--log", choices=(AUTO, *FORMS),
        help="the file is a log with the registers that each instruction wrote, of Spike (--log-commits), QEMU"
        " (-d exec,nochain,int,cpu -singlestep) or Ibex and CHERIoT-Ibex; detected without this option, too",
    )  # fmt: skip


@dataclass(frozen=True)
class LoggedTrace:
    """A log. *form*: of `FORMS`, None: detected. *options*: of the hart. *hart*: whose lines are read, None: the only
    one's.
    """

    form: str | None
    options: TandemOptions
    hart: int | None

    def imported(self, file: str, programs: Programs, progress: Progress = silent) -> ImportedCapture:
        """Read the log. Raises LogError, `RawError`, BadElf, BadParameters, ProgramError, and as *progress* does."""
        with Log(file) as log:
            head = log.head()
            form = self.form or recognized_form(head)
            if form is None:
                raise LogError(log.name, None, f"is not a log that is known: give --log, one of {', '.join(FORMS)}")
            reader_type = reader_of(form)
            supervisor = self.options.supervisor and reader_type.supervisor
            options = replace(self.options, dialect=RECONSTRUCTED, supervisor=supervisor)
            xlen = reader_type.xlen_in(head)
            if not programs.elves and options.xlen is None:
                options = replace(options, xlen=xlen)
            parameters = options.parameters(programs)
            if form == "ibex" and parameters.xlen != xlen:
                raise RawError(f"{log.name}: Ibex is an RV{xlen} core, and the program is RV{parameters.xlen}")
            image = options.image(programs) if programs.elves else Image(parameters.xlen)
            reader = reader_type(log, parameters.xlen, image if programs.elves else None, self.hart)
            data = trace_of(reader, parameters, progress)
        capture = tandem_capture(file, data, parameters, image, hart=reader.hart or 0)
        notes = [warning(reader.mismatch)] if reader.mismatch else []
        return ImportedCapture(capture, [*notes, *(f"note: {note}" for note in reader.notes)])


def is_log_file(file: str) -> bool:
    """Whether a file is a log of a known form; False if it cannot be read: reading it as raw bytes reports why."""
    if file == "-":
        return False
    try:
        with Log(file) as log:
            return recognized_form(log.head()) is not None
    except LogError:
        return False
