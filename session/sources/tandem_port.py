"""A running tandem trace: the data of the ports in a target description, which arrive in a file or at a socket.

A port reports from its beginning what its hart does, whether or not anybody listens. So everything that arrived belongs
to the history, also what ran before `trace start`: registers and memory are computed from it. Another program appends
to the file of a port; a thread receives what a socket delivers, so that the sender never waits.

`start` is `trace start` for a target description with tandem ports.
"""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import FileIO
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.protocol import DIALECTS, TandemParameters
from rvtrace_gdb.rows.harts_text import harts_text
from rvtrace_gdb.session import program as session_program
from rvtrace_gdb.session import report
from rvtrace_gdb.session.capture.model import CapturedPort, CapturedTandem
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.decoded_capture import DecodedCapture
from rvtrace_gdb.session.description.model import Description, TandemDescription
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.sources import TraceOwner, TraceSource
from rvtrace_gdb.session.sources.options import chosen_components, trace_request
from rvtrace_gdb.support.errors import Cancelled, Progress, RvtraceError, silent
from rvtrace_gdb.support.text import open_problem
from rvtrace_gdb.transport.stream import NoStream, Stream, StreamLost, open_stream

_PIECE = 1 << 20


class PortFileError(RvtraceError):
    """The file or socket of a port, *path*, cannot be read, or was replaced."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        super().__init__(f"{path}: {problem}")


class PortFile:
    """The file of a port at *path*. `data` is all that was read of it, and is kept whatever happens to the file.

    Raises PortFileError.
    """

    wrapped = False

    def __init__(self, path: str) -> None:
        self.path = path
        self.data = bytearray()
        try:
            self._file = FileIO(path, "r")
        except (OSError, ValueError) as error:
            raise PortFileError(
                path, f"cannot be read: {open_problem(error)}; is the port's other end running?"
            ) from None
        if not Path(path).is_file():
            self._file.close()
            raise PortFileError(path, "is not a file: the port has to write its trace to a file")
        self._identity = self._inode(os.fstat(self._file.fileno()))

    def close(self) -> None:
        self._file.close()

    @property
    def unread(self) -> int:
        """Return the number of bytes that have arrived since the last read. Raises PortFileError."""
        return self._checked_size() - len(self.data)

    def read(self, progress: Progress) -> None:
        """Read everything that has arrived. Raises PortFileError, and what *progress* raises."""
        end = self._checked_size()
        while len(self.data) < end:
            progress("reading the trace", len(self.data), end)
            try:
                piece = self._file.read(min(_PIECE, end - len(self.data)))
            except OSError as error:
                raise PortFileError(self.path, f"cannot be read: {error.strerror}") from None
            if not piece:
                raise self._shorter(len(self.data))
            self.data += piece

    def _checked_size(self) -> int:
        """Return the size of the file. Raises PortFileError if it was replaced, or is shorter than
        what was read of it.
        """
        try:
            size = os.fstat(self._file.fileno()).st_size
            there = os.stat(self.path)
        except OSError as error:
            raise PortFileError(self.path, f"is gone: {error.strerror}; {self._kept()}") from None
        if self._inode(there) != self._identity:
            raise PortFileError(self.path, f"is another file than before; {self._kept()}")
        if size < len(self.data):
            raise self._shorter(size)
        return size

    def _shorter(self, size: int) -> PortFileError:
        return PortFileError(self.path, f"has only {size} bytes left; {self._kept()}")

    def _kept(self) -> str:
        return f"the {len(self.data)} bytes read before are kept, `trace start` begins with the new ones"

    @staticmethod
    def _inode(file_status: os.stat_result) -> tuple[int, int]:
        return file_status.st_dev, file_status.st_ino


_WAIT = 0.1  # seconds that the thread waits for bytes before it checks whether to end
_QUIET, _LONGEST = (
    0.03,
    0.5,
)  # seconds without any data after which everything sent has arrived; and the longest wait for that


class PortSocket:
    """A connection to *path*, `tcp:HOST:PORT` or `unix:PATH`. `data` is all that was read so far.

    Raises PortFileError.
    """

    wrapped = True
    """Earlier data are lost, and the first byte may be in the middle of a group."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.data = bytearray()
        self._lock, self._arrived, self._ended, self._closing = Lock(), bytearray(), "", False
        try:
            self._stream: Stream = open_stream(path)
        except NoStream as error:
            raise PortFileError(path, f"{error.problem}; is the port's other end running?") from None
        self._thread = Thread(target=self._receive, name=f"tandem port {path}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing = True
        self._thread.join()

    @property
    def unread(self) -> int:
        """Return the number of bytes that have arrived since the last read. Raises PortFileError if the connection has
        ended without any.
        """
        if self._ended and not self._arrived:
            raise self._connection_error()
        return len(self._arrived)

    def read(self, progress: Progress) -> None:
        """Read everything that has arrived. Raises PortFileError if the connection has ended, and what *progress*
        raises.
        """
        begun = changed = time.monotonic()
        while not self._ended and time.monotonic() - changed < _QUIET and time.monotonic() - begun < _LONGEST:
            progress("reading the trace", len(self.data))
            if self._receive_piece():
                changed = time.monotonic()
            time.sleep(_QUIET / 3)
        self._receive_piece()
        if self._ended:
            raise self._connection_error()

    def _connection_error(self) -> PortFileError:
        kept = f"the {len(self.data)} bytes received before are kept, `trace start` connects again"
        return PortFileError(self.path, f"{self._ended}; {kept}")

    def _receive_piece(self) -> int:
        with self._lock:
            piece, self._arrived = self._arrived, bytearray()
        self.data += piece
        return len(piece)

    def _receive(self) -> None:
        try:
            while not self._closing and not self._ended:
                piece = self._stream.read(_WAIT)
                if piece is None:
                    self._ended = "the other end has closed the connection"
                elif piece:
                    with self._lock:
                        self._arrived += piece
        except StreamLost as error:
            self._ended = error.problem
        finally:
            self._stream.close()


class _ReadPort:
    """One port, whose trace arrives in *file*."""

    def __init__(self, port: TandemDescription, file: PortFile | PortSocket, parameters: TandemParameters) -> None:
        self.hart, self.file, self.file_name = port.hart, file, CapturedPort(port.name, parameters)

    @property
    def captured(self) -> CapturedTandem:
        return CapturedTandem(self.hart, self.file_name, bytes(self.file.data), self.file.wrapped)


class TandemTrace(TraceSource):
    """The trace of *ports*, for *image*. Raises PortFileError."""

    def __init__(self, ports: Sequence[TandemDescription], image: Image) -> None:
        self.tracing = self.incomplete = True
        self.failure: RvtraceError | None = None
        self.notes: list[str] = []
        self._ports: list[_ReadPort] = []
        self._captured: dict[str, CapturedTandem] = {}
        try:
            for port in ports:
                parameters = parameters_of(port, image)
                self._ports.append(_ReadPort(port, _opened(port), parameters))
        except RvtraceError:
            self.close()
            raise

    @property
    def tandem(self) -> tuple[CapturedTandem, ...]:
        """The captured traces; the same objects until more was read."""
        for port in self._ports:
            known = self._captured.get(port.file_name.name)
            if known is None or len(known.data) != len(port.file.data):
                self._captured[port.file_name.name] = port.captured
        return tuple(self._captured[port.file_name.name] for port in self._ports)

    def started(self) -> list[str]:
        lines = [
            report.line(
                "tracing",
                f"{it.file_name.name}, hart {it.hart}: tandem, {it.file_name.parameters}, from {it.file.path}",
                begun=True,
            )
            for it in self._ports
        ]
        return [*lines, *report.notes(self.notes)]

    def status(self) -> list[str]:
        lines = self._lines(tracing=self.tracing)
        return lines + report.notes(self.notes) + report.failure(self)

    def ended(self) -> list[str]:
        return self._lines(tracing=False)

    def unchanged(self, runs: int | None) -> tuple[object, ...] | None:
        """Return a value that stays the same as long as nothing runs: nothing arrives then."""
        return None if runs is None else (runs, *(len(it.file.data) for it in self._ports))

    def unread(self) -> int:
        return sum(it.file.unread for it in self._ports) if self.tracing else 0

    def read_out(self, progress: Progress = silent) -> None:
        if self.tracing:
            self._read_ports(progress)

    def stop(self, progress: Progress = silent) -> None:
        """Stop reading; the port continues, and what it sends from now on is ignored."""
        self.read_out(progress)
        self.tracing = False
        self.close()

    def abandon(self) -> None:
        self.tracing = self.incomplete = False
        self.failure = None

    def close(self) -> None:
        for it in self._ports:
            it.file.close()

    def _read_ports(self, progress: Progress) -> None:
        """Read every port, even if the file of another one is damaged."""
        self.failure, self.incomplete = None, True
        for it in self._ports:
            try:
                it.file.read(progress)
            except Cancelled:
                raise
            except RvtraceError as error:
                self.failure = self.failure or error
        self.incomplete = self.failure is not None

    def _lines(self, *, tracing: bool) -> list[str]:
        return [
            self._port_line(it, captured, tracing=tracing)
            for it, captured in zip(self._ports, self.tandem, strict=True)
        ]

    def _port_line(self, port: _ReadPort, captured: CapturedTandem, *, tracing: bool) -> str:
        """Describe a port, without reading what has arrived, which may be much."""
        state, unread = "tracing" if tracing else "off", self._unread(port) if tracing else 0
        more = f"{unread} more to read, " if unread else ""
        filled = len(captured.data), 0  # a file has no size that it cannot exceed
        facts = {"encoder": (port.file_name.name, state), "filled": filled, "unread": unread}
        return report.line("tandem", f"{report.tandem(captured)}, {more}{state}", **facts)

    def _unread(self, port: _ReadPort) -> int:
        """Return how much has arrived and was not read; 0 if the file or socket cannot be asked, which is kept."""
        try:
            return port.file.unread
        except PortFileError as error:
            self.failure, self.incomplete = self.failure or error, True
            return 0


def _opened(port: TandemDescription) -> PortFile | PortSocket:
    return PortSocket(port.socket) if port.socket else PortFile(port.file)


def parameters_of(port: TandemDescription, image: Image) -> TandemParameters:
    """Return the parameters of the program's hart and those in the description of the port. Raises BadElf."""
    found = TandemParameters.of_elf(image.path, mlen=port.mlen, dialect=DIALECTS[port.dialect])
    flen = found.flen if port.flen is None else port.flen
    return replace(found, flen=flen, eaddr=port.eaddr, supervisor=port.supervisor)


_CHOICES = ("to", "harts")


def is_requested(description: Description, options: Mapping[str, Any]) -> bool:
    """Return whether to read tandem ports: the description has some, and *options* name no other sinks.

    Raises BadOption.
    """
    names, _ = chosen_components(options)
    ports = {port.name for port in description.tandem}
    if description.encoders and ports & set(names) and set(names) - ports:
        raise BadOption(f"-to {','.join(names)}: tandem ports and sinks of encoders cannot be traced at once")
    return bool(ports) and (ports.issuperset(names) or not description.encoders)


def start(
    session: TraceOwner, description: Description, context: Context, options: Mapping[str, Any]
) -> list[str]:
    """Begin to read, and drop the trace that the session had. Return lines about what was set up.

    Raises NoElf, BadElf, WrongXlen, BadOption, Busy, PortFileError.
    """
    program = session_program.program_of(context.elf, others=context.others)
    image = program.image()
    session_program.check_xlen(image, description)
    trace_request(options, image)  # raises the reason
    ports = _ports(description, options)
    session.check_free(TandemTrace)
    trace = TandemTrace(ports, image)
    if session.live is not None:
        session.live.abandon()
    trace.notes += _without_effect(options)
    return session.begin(
        trace, DecodedCapture(session_program.new_capture(description.name, image), program), report.target(description)
    )


def _ports(description: Description, options: Mapping[str, Any]) -> list[TandemDescription]:
    names, harts = chosen_components(options)
    known = [port.name for port in description.tandem]
    for name in names:
        if name not in known:
            raise BadOption(f"there is no tandem port {name!r} in the target description, it has {', '.join(known)}")
    ports = [port for port in description.tandem if not names or port.name in names]
    there = {port.hart for port in ports}
    for hart in harts:
        if hart not in there:
            raise BadOption(f"there is no tandem port of hart {hart}: there are those of {harts_text(sorted(there))}")
    return [port for port in ports if not harts or port.hart in harts]


def _without_effect(options: Mapping[str, Any]) -> list[str]:
    """Return notes about options that only encoders support."""
    asked = [name for name, value in options.items() if name not in _CHOICES and value]
    if not asked:
        return []
    names = ", ".join(name.replace("_", "-") for name in asked)
    return [f"a tandem port always reports everything; options without effect: {names}"]
