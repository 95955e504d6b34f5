"""The reading of several captures by one command, and who reads them.

Each of several captures is read whole by one reader, and the results are put together in the order of the command line.
So they are the same whatever the number of processes or workers, and whichever ends first. (`console.captures.pieces`
has one long trace read by several.)
"""

import argparse
import os
import re
from typing import NamedTuple, Protocol, Self, TypeVar, runtime_checkable

from rvtrace_gdb.console.options import inputs
from rvtrace_gdb.console.options.request import LoadedTrace, RequestedTrace
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

_R_co = TypeVar("_R_co", covariant=True)
_R = TypeVar("_R")
_ADDRESS = re.compile(r"[a-z]+://\S+")


class MergedCaptureError(RvtraceError):
    """A capture among several cannot be read."""


class ReadWhole(Exception):
    """A long trace is not read in pieces. Its text says why."""


class CaptureReader(Protocol[_R_co]):
    """What a command wants to know of one trace. It is pickled, and so is its result.

    *reads_sources*: whether it reads the program's source files.
    """

    @property
    def reads_sources(self) -> bool: ...

    @property
    def trace(self) -> RequestedTrace | LoadedTrace: ...

    def with_trace(self, trace: LoadedTrace) -> Self:
        """Return the reader of what has been loaded from the file of its trace."""

    def read(self, progress: Progress = silent) -> _R_co:
        """Read the trace. Raises RvtraceError."""


@runtime_checkable
class DivisibleReader(Protocol[_R_co]):
    """A reader that can have others read the pieces of a long trace."""

    def read_by(self, by: "Readers", progress: Progress) -> _R_co:
        """Read the trace in pieces. Raises ReadWhole: it cannot be, or is too short; as `CaptureReader.read`, and as
        `read_captures`.
        """


class Readers(NamedTuple):
    """Who reads several captures: so many processes (*jobs*; 0: as many as there are processors), or the workers of the
    Dask *cluster* at an address, "" for none.
    """

    jobs: int = 0
    cluster: str = ""

    @classmethod
    def from_arguments(cls, args: argparse.Namespace) -> "Readers":
        """Return what the command line says."""
        return cls(args.jobs, args.cluster or "")

    @property
    def processes(self) -> int:
        """How many processes may read."""
        return self.jobs or os.cpu_count() or 1

    @property
    def wants_pieces(self) -> bool:
        """Whether a long trace is to be read in pieces: on few processors it may take longer, so who wants it says so.
        """
        return self.jobs > 1 or bool(self.cluster)


def add_arguments(parser: "argparse._ActionsContainer") -> None:
    """Add --jobs and --cluster."""
    jobs = "processes that read captures, or one long trace (default: one for each processor)"
    parser.add_argument("--jobs", type=inputs.number_from(1, 1 << 10), default=0, metavar="N", help=jobs)
    cluster = "let the workers of the Dask cluster with this scheduler (tcp://HOST:PORT) read them"
    parser.add_argument("--cluster", type=_address, metavar="ADDRESS", help=cluster)


def _address(text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not the address of a Dask scheduler, tcp://HOST:PORT")
    return text


class Unreadable(NamedTuple):
    """Why a capture cannot be read."""

    why: str


def read_or_problem(reader: CaptureReader[_R]) -> _R | Unreadable:
    """Return what is in a trace, or why it cannot be read."""
    try:
        return reader.read()
    except RvtraceError as error:
        return unreadable(reader, error)


def unreadable(reader: CaptureReader[_R], error: RvtraceError) -> Unreadable:
    """Return the error of a trace with its name."""
    text, name = str(error), reader.trace.name
    return Unreadable(text if name in text else f"{name}: {text}")
