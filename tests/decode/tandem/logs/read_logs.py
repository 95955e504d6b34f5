"""Logs as tandem traces, read back as every trace is."""

from pathlib import Path

from rvtrace_gdb.decode.executed.readers import Log
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, decode
from rvtrace_gdb.decode.tandem.logs import reader_of, recognized_form
from rvtrace_gdb.decode.tandem.logs.commits import CommitReader, trace_of
from rvtrace_gdb.decode.tandem.protocol import RECONSTRUCTED, TandemParameters


def read_log(
    path: Path, xlen: int, image: Image | None = None, hart: int | None = None
) -> tuple[CommitReader, DecodedTandem]:
    """The log, whose form is recognized, and the history of its trace, which has no loss."""
    reader, found = read_lossy_log(path, xlen, image, hart)
    assert not found.trace.losses and not list(found.trace.flaws())
    return reader, found


def read_lossy_log(
    path: Path, xlen: int, image: Image | None = None, hart: int | None = None
) -> tuple[CommitReader, DecodedTandem]:
    """The same of a log that may not fit the program."""
    with Log(str(path)) as log:
        form = recognized_form(log.head())
        assert form is not None
        assert reader_of(form).xlen_in(log.head()) == xlen
        reader = reader_of(form)(log, xlen, image, hart)
        parameters = TandemParameters(xlen, 64, dialect=RECONSTRUCTED, supervisor=reader.supervisor)
        data = trace_of(reader, parameters)
    return reader, decode(data, image or Image(xlen), parameters)


def written(path: Path, *lines: str) -> Path:
    """A log of these lines."""
    path.write_text("".join(f"{line}\n" for line in lines))
    return path
