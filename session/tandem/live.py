"""A tandem trace that is being made: what arrives of the ports in a target description. See `session.making.Making`.

A port tells from its beginning what its hart does, whether anybody listens or not. So everything there is belongs to
the history, also what ran before `trace start`: it is what registers and memory are known from.
"""

from collections.abc import Sequence
from dataclasses import replace

from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.tandem.dialect import DIALECTS
from rvtrace_gdb.decode.tandem.parameters import Parameters
from rvtrace_gdb.session import report
from rvtrace_gdb.session.captured import CapturedEncoder, CapturedRecords, CapturedSink, CapturedTandem, TandemPort
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description import Tandem
from rvtrace_gdb.session.tandem.port_file import PortFile, PortFileError
from rvtrace_gdb.session.tandem.port_socket import PortSocket
from rvtrace_gdb.support.errors import Cancelled, RvtraceError
from rvtrace_gdb.support.progress import Progress, silent


class _Port:
    """One port, whose trace arrives in *file*."""

    def __init__(self, port: Tandem, file: PortFile | PortSocket, parameters: Parameters) -> None:
        self.hart, self.file, self.made = port.hart, file, TandemPort(port.name, parameters)

    @property
    def captured(self) -> CapturedTandem:
        return CapturedTandem(self.hart, self.made, bytes(self.file.data), self.file.wrapped)


class TandemTrace:
    """Of some *ports*, for *image*. Raises PortFileError."""

    def __init__(self, ports: Sequence[Tandem], image: Image) -> None:
        self.tracing = self.behind = True
        self.failure: RvtraceError | None = None
        self.notes: list[str] = []
        self._ports: list[_Port] = []
        self._captured: dict[str, CapturedTandem] = {}
        try:
            for port in ports:
                parameters = parameters_of(port, image)
                self._ports.append(_Port(port, _opened(port), parameters))
        except RvtraceError:
            self.close()
            raise

    @property
    def encoders(self) -> tuple[CapturedEncoder, ...]:
        return ()

    @property
    def sinks(self) -> tuple[CapturedSink, ...]:
        return ()

    @property
    def records(self) -> tuple[CapturedRecords, ...]:
        return ()

    @property
    def tandem(self) -> tuple[CapturedTandem, ...]:
        """The same objects until more was read."""
        for port in self._ports:
            known = self._captured.get(port.made.name)
            if known is None or len(known.data) != len(port.file.data):
                self._captured[port.made.name] = port.captured
        return tuple(self._captured[port.made.name] for port in self._ports)

    def started(self) -> list[str]:
        lines = [
            report.line(
                "tracing",
                f"{it.made.name}, hart {it.hart}: tandem, {it.made.parameters}, from {it.file.path}",
                begun=True,
            )
            for it in self._ports
        ]
        return [*lines, *(report.line("note", note) for note in self.notes)]

    def status(self) -> list[str]:
        lines = self._lines(tracing=self.tracing)
        return lines + [report.line("note", note) for note in self.notes] + report.failure(self)

    def ended(self) -> list[str]:
        return self._lines(tracing=False)

    def told(self, context: Context) -> None:
        """The port tells everything itself."""

    def unchanged(self, runs: int | None) -> tuple[object, ...] | None:
        """Nothing arrives while nothing runs."""
        return None if runs is None else (runs, *(len(it.file.data) for it in self._ports))

    def unread(self) -> int:
        return sum(it.file.unread for it in self._ports) if self.tracing else 0

    def read_out(self, progress: Progress = silent) -> None:
        if self.tracing:
            self._read(progress)

    def stop(self, progress: Progress = silent) -> None:
        """The port goes on; what it tells from now on is not read."""
        self.read_out(progress)
        self.tracing = False
        self.close()

    def abandon(self) -> None:
        self.tracing = self.behind = False
        self.failure = None

    def close(self) -> None:
        for it in self._ports:
            it.file.close()

    def _read(self, progress: Progress) -> None:
        """Of every port, also when another one's file is damaged."""
        self.failure, self.behind = None, True
        for it in self._ports:
            try:
                it.file.read(progress)
            except Cancelled:
                raise
            except RvtraceError as error:
                self.failure = self.failure or error
        self.behind = self.failure is not None

    def _lines(self, *, tracing: bool) -> list[str]:
        return [
            report.line("tandem", f"{report.tandem(captured)}, {self._state(it) if tracing else 'off'}")
            for it, captured in zip(self._ports, self.tandem, strict=True)
        ]

    def _state(self, port: _Port) -> str:
        """What has arrived is not read for this: it may be much."""
        try:
            unread = port.file.unread
        except PortFileError as error:
            self.failure, self.behind = self.failure or error, True
            return "tracing"
        return f"{unread} more to read, tracing" if unread else "tracing"


def _opened(port: Tandem) -> PortFile | PortSocket:
    return PortSocket(port.socket) if port.socket else PortFile(port.file)


def parameters_of(port: Tandem, image: Image) -> Parameters:
    """Those of the program's hart, and what the description says of the port. Raises BadElf."""
    found = Parameters.of_elf(image.path, mlen=port.mlen, dialect=DIALECTS[port.dialect])
    flen = found.flen if port.flen is None else port.flen
    return replace(found, flen=flen, eaddr=port.eaddr, supervisor=port.supervisor)
