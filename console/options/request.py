"""The trace that a command line names, as typed values: where its bytes are, how they were encoded, and what ran.

`raw.trace_request` makes a `RequestedTrace` of the parsed arguments. What reads, decodes and lists the trace knows the
request, and nothing of the arguments: a capture, raw bytes in a file or on standard input, and a stream differ only in
it. A capture is what all of them become, as the trace of a live target does.
"""

import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple, TypeAlias

from rvtrace_gdb.console.options import etrace as options_etrace
from rvtrace_gdb.console.options.hints import hints_of_groups
from rvtrace_gdb.console.options.inputs import ImportedCapture, Programs, RawError, pieces, standard_input, title
from rvtrace_gdb.console.options.logs import LoggedTrace
from rvtrace_gdb.console.options.perf import PerfTrace
from rvtrace_gdb.console.options.tandem import TandemOptions
from rvtrace_gdb.decode.branches.neorv32 import is_text, pairs_in_text
from rvtrace_gdb.decode.etrace.esp32.readout import is_core_dump
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.capture.etrace_settings import SettingValue
from rvtrace_gdb.session.capture.model import BranchPort, Capture, CapturedBranches, CapturedPort
from rvtrace_gdb.session.errors import Unsupported
from rvtrace_gdb.session.formats import registry, sinks
from rvtrace_gdb.session.formats.format import TraceOptions
from rvtrace_gdb.session.formats.guesses.found_dialect import with_dialect_in_frames, with_found_dialect
from rvtrace_gdb.session.formats.imports.imported_encoders import ImportedFrames
from rvtrace_gdb.session.formats.imports.raw_import import (
    EncoderTraceOptions,
    RawImport,
    branches_capture,
    capture_of,
    tandem_capture,
    with_settings,
)
from rvtrace_gdb.session.formats.stream import StreamSource, source_of
from rvtrace_gdb.session.program import placement
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.sources import esp32_memory
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.support.inputs import read_input


class RawTrace(NamedTuple):
    """Raw bytes of a program that is known. *capture*: a function that returns bytes as a capture; its second argument
    are the sources in them, None: not known yet. *source*: how a stream of such bytes is decoded. *advice*: a function
    that returns what the beginning of the bytes says against their options, without decoding them.
    """

    capture: Callable[[bytes, Sequence[int] | None], Capture]
    source: StreamSource
    advice: Callable[[bytes], list[str]] = lambda beginning: []


class RawMessages(NamedTuple):
    """How the messages of raw bytes are read without a program."""

    trace_options: TraceOptions
    xlen: int


@dataclass(frozen=True)
class EncoderBytes:
    """Bytes of encoders: *settings* are the options of N-Trace, or settings of E-Trace.

    *xlen*, *source*: None: not given. *wrapped*: they may start inside a message. *frames*: they are in CoreSight
    frames. *finds_dialect*: nobody said which dialect of N-Trace they are of, and they may show it.
    """

    settings: Options | Mapping[str, SettingValue]
    xlen: int | None
    source: int | None
    wrapped: bool
    frames: ImportedFrames | None = None
    finds_dialect: bool = False

    def trace_options(self, xlen: int | None = None, data: bytes = b"") -> EncoderTraceOptions:
        """Return how the bytes were encoded, *data* or what begins so. *xlen*: that of the program, if known. Raises
        BadETrace.
        """
        if isinstance(self.settings, Options):
            if not self.finds_dialect:
                return self.settings
            if self.frames is not None:
                return with_dialect_in_frames(self.settings, data, self.frames)
            return with_found_dialect(self.settings, data, wrapped=self.wrapped)
        return options_etrace.trace_options(self.settings, self.xlen or xlen)

    def messages(self, name: str, programs: Programs, beginning: bytes = b"") -> RawMessages:
        """Return how the messages are read of what begins so. Raises BadETrace."""
        return RawMessages(self.trace_options(data=beginning), self.xlen or 64)

    def of_program(self, name: str, programs: Programs) -> RawTrace:
        """Return the trace with its program. Raises `RawError`, BadETrace, and as `Programs.images`."""
        image, images = programs.images(self.xlen)
        if self.xlen not in (None, image.xlen):
            raise RawError(f"--xlen {self.xlen}: {image.path} is an RV{image.xlen} program")
        trace_options, only = self.trace_options(image.xlen), self.source
        says_source = registry.format_of(trace_options).has_sources(trace_options)

        def capture(data: bytes, sources: Sequence[int] | None) -> Capture:
            known = None if sources is None else (only,) if only is not None else tuple(sources) or (0,)
            frames = self.frames
            found = self.trace_options(image.xlen, data)
            return capture_of(RawImport(name, data, found, image, images, self.wrapped, only, known, frames))

        harts = None if only is None or not says_source else {only: only}
        alone = self.frames is None and (not says_source or harts is not None)
        finds = self.finds_dialect and isinstance(self.settings, Options)
        source = StreamSource(trace_options, harts, alone, self.frames, finds_dialect=finds)
        return RawTrace(capture, source)


@dataclass(frozen=True)
class SettingsBytes:
    """Bytes of encoders with the settings in the capture *file*."""

    file: str
    wrapped: bool
    frames: ImportedFrames | None = None

    def messages(self, name: str, programs: Programs, beginning: bytes = b"") -> RawMessages:
        """Return how the messages are read. Raises CaptureError, `RawError`, Unsupported."""
        settings = self._settings()
        return RawMessages(_options_of_capture(settings), settings.xlen)

    def of_program(self, name: str, programs: Programs) -> RawTrace:
        """Return the trace; its program is found when its capture is opened. Raises as `messages`."""
        settings = self._settings()
        _options_of_capture(settings)

        def capture(data: bytes, sources: Sequence[int] | None) -> Capture:
            return with_settings(settings, name, data, wrapped=self.wrapped, frames=self.frames)

        return RawTrace(capture, source_of(capture(b"", ()), self.frames))

    def recorded_options(self) -> EncoderTraceOptions:
        """Return how the bytes were encoded. Raises as `messages`."""
        return _options_of_capture(self._settings())

    def _settings(self) -> Capture:
        settings = load(self.file)
        if not settings.encoders:
            raise RawError(f"{self.file}: has no settings of a trace encoder")
        return settings


def _options_of_capture(settings: Capture) -> EncoderTraceOptions:
    """Return how the bytes that left the chip were encoded, by a capture's settings. Raises Unsupported."""
    trace_options = sinks.options_of(list(with_settings(settings, "", b"").encoders))
    if not isinstance(trace_options, EncoderTraceOptions):
        raise Unsupported(f"{trace_options.format} is not a format of raw bytes")
    return trace_options


@dataclass(frozen=True)
class TandemBytes:
    """Bytes of the tandem trace of a hart."""

    options: TandemOptions
    wrapped: bool
    hart: int = 0
    frames: ImportedFrames | None = None

    def messages(self, name: str, programs: Programs, beginning: bytes = b"") -> RawMessages:
        """Return how the groups are read. Raises `RawError`, BadElf, BadParameters."""
        parameters = self.options.parameters(programs)
        return RawMessages(CapturedPort(name, parameters), parameters.xlen)

    def of_program(self, name: str, programs: Programs) -> RawTrace:
        """Return the trace with its program. Raises `RawError`, BadElf, BadParameters, ProgramError."""
        parameters, image = self.options.parameters(programs), self.options.image(programs)

        def capture(data: bytes, sources: Sequence[int] | None) -> Capture:
            made = tandem_capture(name, data, parameters, image, hart=self.hart, wrapped=self.wrapped)
            if self.frames is None:
                return made
            from rvtrace_gdb.session.formats.imports import framed_import  # few traces are in frames

            return framed_import.with_tandem_streams(made, self.frames)

        port = CapturedPort(f"tandem{self.hart}", parameters)
        source = StreamSource(port, {0: 0}, self.frames is None, self.frames)
        if self.frames is not None:
            return RawTrace(capture, source)
        return RawTrace(capture, source, partial(hints_of_groups, parameters=parameters, wrapped=self.wrapped))


@dataclass(frozen=True)
class BranchBytes:
    """Bytes, or a text, of a trace of transfers. *kind*: of `decode.branches.READERS`; *registers*: see BranchPort."""

    kind: str
    xlen: int | None
    wrapped: bool
    hart: int = 0
    registers: tuple[tuple[str, int], ...] = ()

    @property
    def port(self) -> BranchPort:
        """How the entries are read."""
        name = f"{'tracer' if self.kind == 'neorv32' else self.kind}{self.hart}"
        return BranchPort(name, self.kind, self.registers)

    frames: ClassVar[None] = None
    """No such trace is sent over Arm's trace bus."""

    def messages(self, name: str, programs: Programs, beginning: bytes = b"") -> RawMessages:
        """Return how the entries are read."""
        return RawMessages(self.port, self.xlen or (32 if self.kind == "neorv32" else 64))

    def of_program(self, name: str, programs: Programs) -> RawTrace:
        """Return the trace with its program. Raises as `Programs.images`."""
        image, _ = programs.images(self.xlen)

        def capture(data: bytes, sources: Sequence[int] | None) -> Capture:
            try:
                captured = list(self._captured(data))
            except RvtraceError as error:
                raise RawError(f"{name}: {error}{self._better(data, image)}") from None
            return branches_capture(name, captured, image)

        return RawTrace(capture, StreamSource(self.port, {0: 0}, alone=True))

    def _better(self, data: bytes, image: Image) -> str:
        """Return which format fits better bytes that are not of this one; "": none does."""
        from rvtrace_gdb.session.formats.guesses.likely_format import likely_format  # few traces are of other formats

        option = likely_format(data, ContextImages(image), image.xlen, silent, wrapped=self.wrapped)
        return "" if option in (None, f"--{self.kind}") else f": the trace fits far better with {option}"

    def _captured(self, data: bytes) -> Iterator[CapturedBranches]:
        """Yield the trace of each hart. Raises BadPairs, BadCtxp, BadGem5."""
        if self.kind == "ctxp" and data:
            from rvtrace_gdb.decode.branches.ctxp import sources_of  # few traces are

            for hart, events in sources_of(data).items():
                yield CapturedBranches(hart, BranchPort(f"{self.kind}{hart}", self.kind), events)
            return
        if self.kind == "gem5" and data:
            from rvtrace_gdb.decode.branches.gem5.packets import uncompressed

            data = uncompressed(data)
        entries = pairs_in_text(data) if self.kind == "neorv32" and is_text(data) else data
        yield CapturedBranches(self.hart, self.port, entries, self.wrapped)


RawBytes: TypeAlias = EncoderBytes | SettingsBytes | TandemBytes | BranchBytes
"""What the command line says of raw bytes."""


@dataclass(frozen=True)
class RequestedTrace:
    """*file*: where the bytes are, "-" is standard input. *raw*: how they were encoded; None: a capture, which says it,
    or a core dump of ESP-IDF. *stop_at_error*: decode up to the first loss only. *log*: it is a log instead.
    *perf*: it is perf.data, whose trace is *raw*.
    """

    file: str
    raw: RawBytes | None
    programs: Programs
    stop_at_error: bool = False
    log: LoggedTrace | None = None
    perf: PerfTrace | None = None

    @property
    def name(self) -> str:
        """The name of the file in messages."""
        return title(self.file)

    def of_program(self) -> RawTrace:
        """Return raw bytes with their program. Raises as the methods of that name of `RawBytes`."""
        assert self.raw is not None
        return self.raw.of_program(self.name, self.programs)

    def elf_of_settings(self) -> str | None:
        """Return the program given for bytes with --settings, None without one. Raises `RawError`."""
        return self.programs.only() if isinstance(self.raw, SettingsBytes) else None

    def capture(self) -> Capture:
        """Read the trace, and return it as a capture. Raises CaptureError, BadSnapshot, `RawError`, and as
        `of_program`.
        """
        if self.file in OPEN_TRACES:
            return OPEN_TRACES[self.file].session.capture()
        if self.raw is not None:
            data = None if self.file == "-" else file_bytes(self.file)  # that it is not there is said first
            program = self.of_program()
            return program.capture(file_bytes(self.file) if data is None else data, None)
        return self._core_dump() or self.programs.added_to(load(self.file))

    def imported(self, progress: Progress = silent) -> ImportedCapture:
        """Read the trace, and return it with what is to be said of a log, or of perf.data. Raises as `capture`,
        `LoggedTrace.imported` and `PerfTrace.imported`.
        """
        if self.perf is not None:
            return self.perf.imported(self.file, self._encoder_options, self.programs, progress)
        if self.log is not None:
            return self.log.imported(self.file, self.programs, progress)
        return ImportedCapture(self.capture(), [])

    def _encoder_options(self, xlen: int) -> EncoderTraceOptions:
        """Return how encoders sent the bytes. Raises `RawError`, BadETrace, CaptureError, Unsupported."""
        if isinstance(self.raw, SettingsBytes):
            return self.raw.recorded_options()
        if not isinstance(self.raw, EncoderBytes):
            raise RawError("--tandem: perf records no tandem trace")
        return self.raw.trace_options(xlen)

    def open(self, session: Session, *, lazily: bool = False) -> list[str]:
        """Open the trace, and return notes about it. *lazily*: as for `Session.open_capture`.

        Raises as `capture` and `Session.open_capture`.
        """
        if self.file in OPEN_TRACES:
            return OPEN_TRACES[self.file].open(session)
        return self.loaded().open(session, lazily=lazily)

    def loaded(self) -> "LoadedTrace":
        """Read the file of the trace. Raises as `capture`."""
        dump = self._core_dump()
        if dump is not None:
            capture, elf = dump, None
        else:
            capture = self.programs.added_to(load(self.file)) if self.raw is None else self.capture()
            elf = self.programs.only() if self.raw is None else self.elf_of_settings()
        return LoadedTrace(capture, self.name, elf, self.stop_at_error)

    def _core_dump(self) -> Capture | None:
        if self.raw is not None or not is_core_dump_file(self.file):
            return None
        if not self.programs.elves:
            raise RawError(f"{self.file}: a core dump; which program ran? Give its ELF (--elf FILE)")
        program, *others = (os.path.abspath(elf) for elf in self.programs.elves)
        return esp32_memory.capture_of_core_dump(read_input(self.file), self.file, Image.from_elf(program), others)


class OpenTrace(NamedTuple):
    """The trace of a session of this process, which commands show beside it. *about*: what was said of it."""

    session: Session
    about: tuple[str, ...]

    def open(self, session: Session) -> list[str]:
        """Let another session have the trace, as `RequestedTrace.open` does. Raises NoTrace."""
        session.share(self.session)
        return list(self.about)


OPEN_TRACES: dict[str, OpenTrace] = {}
"""The traces that commands find open, by the name that stands for the file."""


class LoadedTrace(NamedTuple):
    """A trace whose file has been read: it can be pickled. *name*: of its file in messages; *elf*: the program that was
    given for it, None: the capture's.
    """

    capture: Capture
    name: str
    elf: str | None
    stop_at_error: bool = False

    def loaded(self) -> "LoadedTrace":
        """Return the trace."""
        return self

    def open(self, session: Session, *, lazily: bool = False) -> list[str]:
        """Open the trace as `RequestedTrace.open` does. Raises as `Session.open_capture`."""
        return session.open_capture(self.capture, self.name, self.elf, stop_at_error=self.stop_at_error, lazily=lazily)

    def program_files(self) -> list[str]:
        """Return the paths of the ELF files that the trace is read with, whether they are there or not."""
        capture = self.capture
        own = [capture.elf.path] if self.elf is None and capture.needs_elf and capture.elf is not None else []
        given = [] if self.elf is None else [placement(self.elf)[0]]
        others = [it.identity.path for it in (*capture.elfs, *(it for image in capture.images for it in image.elfs))]
        return list(dict.fromkeys((*given, *own, *others)))


def file_bytes(file: str) -> bytes:
    """Return the bytes of a file, of which there is no second copy at any time. Raises `RawError`."""
    content = io.BytesIO()
    content.writelines(pieces(file))
    return content.getvalue()


def is_core_dump_file(file: str) -> bool:
    """Whether a file is a core dump of ESP-IDF; False if it cannot be read: reading it as a capture reports why."""
    try:
        return file != "-" and is_core_dump(read_input(file))
    except (OSError, ValueError):
        return False


def load(file: str) -> Capture:
    """Read the capture in *file*, or on standard input for "-". Raises CaptureError, `RawError`."""
    return capture_file.unpack(standard_input(), title(file)) if file == "-" else capture_file.load(file)
