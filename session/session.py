"""The trace session: everything from the choice of a target to the instructions that ran. gdb, the console and scripts
use it.

The file is longer than others because each command about a trace is a method of this one object. What concerns the
target is in `recording`, the debugger in the past in `reverse_debugger`, and the histories that requests are about in
`selected_history`.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.elf import BadElf
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.regions import joined_code
from rvtrace_gdb.rows.list_rows import MessageRow, ShortHistoryRow
from rvtrace_gdb.session import program as session_program
from rvtrace_gdb.session import report
from rvtrace_gdb.session.capture.model import (
    Capture,
    Captured,
    is_overwritten,
)
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.decoded_capture import Decoded, DecodedCapture, Listing
from rvtrace_gdb.session.errors import Busy, NoTrace, Unsupported, WrongXlen
from rvtrace_gdb.session.formats import registry
from rvtrace_gdb.session.history_problems import nothing_traced
from rvtrace_gdb.session.program import LoadedProgram
from rvtrace_gdb.session.queries.lists.pages import PageSelection
from rvtrace_gdb.session.reverse_debugger import ProxyLock, ReverseDebugger, check_present, is_away, positions
from rvtrace_gdb.session.selected_history import (
    FunctionLists,
    HistoryCache,
    LastRequest,
    Searches,
    SelectedHistory,
    functions_of,
)
from rvtrace_gdb.session.sources import TraceSource
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.extents import Extent
from rvtrace_gdb.support.inputs import forget, use_stand_ins
from rvtrace_gdb.support.text import Line
from rvtrace_gdb.transport.openocd.target import OpenOcd

if TYPE_CHECKING:
    from rvtrace_gdb.decode.calls.stacks.owners import OwnerTurns
    from rvtrace_gdb.decode.reconstruction.facts import StopState
    from rvtrace_gdb.session.recording import TraceRecording
    from rvtrace_gdb.session.sources.esp32_memory import ChipReading
    from rvtrace_gdb.session.target.link import ConnectLink
    from rvtrace_gdb.session.waves.follower import Waves

_T = TypeVar("_T")
_MAKING = "a trace is being recorded"
SaveFunction = Callable[[Capture, str, Progress], list[str]]


class Session:
    """The trace that is recorded from a target, or the capture that was opened; a new session has neither. Methods that
    return lists of strings return lines for the user.

    *connect* opens the link to a target; *environ* may contain RVTRACE_TARGET.
    """

    def __init__(self, connect: "ConnectLink" = OpenOcd, environ: Mapping[str, str] = os.environ) -> None:
        self._connect, self._environ = connect, environ
        self.lock = RLock()
        """The lock that every user of the session holds: its requests, and the debugger's proxy, which runs in a thread
        of its own.
        """
        self.proxy_lock = ProxyLock(self.lock)
        """The same lock, for the proxy."""
        self._recording: TraceRecording | None = None
        self._decoded_capture: DecodedCapture | None = None
        self._stand_ins: Mapping[str, str] = {}  # the sources that came with the capture
        self._target_line = ""  # what the trace comes from, for `status`
        self.opened: str | None = None
        """The name of the capture file that was opened; None if the trace was recorded here."""
        self._selected: LastRequest | None = None
        self._prepared: Decoded | None = None  # what `prepare` has done its work for
        self.searches = Searches(self)
        self.last: dict[str, Any] = {}
        """The lists that were requested last, by name; see `session.rpc.lists.pages`."""
        self.chip: ChipReading | None = None
        """The reader of the trace in an ESP32's memory, while it waits for more of that memory."""
        self._cache = HistoryCache()
        self.debugger: ReverseDebugger | None = None
        """The debugger that goes back in time with this trace, if there is one."""
        self.waves: Waves | None = None
        """The waveform viewer that follows the debugger in the past, if one does."""
        self.ask: Callable[[dict[str, Any]], Any] | None = None
        """Asks the client whose request is being answered for something that only the client can do; None if it cannot
        be asked.
        """

    def close(self) -> None:
        """Release the target. A running trace continues to run on it."""
        self._let_go()
        if self.waves is not None:
            self.waves.close()
            self.waves = None
        if self.debugger is not None:
            self.debugger.close()
            self.debugger = None

    def _let_go(self) -> None:
        if self._recording is not None:
            self._recording.source.close()
            self._recording = None

    # Recording a trace

    def start(
        self, context: Context, options: Mapping[str, Any] | None = None, progress: Progress = silent
    ) -> list[str]:
        """Start tracing, and drop the trace that the session had. *options*: see `trace_request`.

        Raises NoElf, BadElf, DescriptionError, BadOption, WrongXlen, and the errors of the transport and the
        components.
        """
        self.check_present("trace start")
        session_program.program_of(context.elf)  # raises NoElf
        from rvtrace_gdb.session.sources.choice import start

        description = context.description(self._environ)
        return start(self, description, context, options or {}, self._connect, progress)

    def begin(
        self, live: TraceSource, reading: DecodedCapture, target_line: str, just_read: Context | None = None
    ) -> list[str]:
        """Make this trace the session's, and return a line for each thing that was set up for it.

        *target_line* names the target. *just_read*: the trace has just been read out, with this context.
        """
        recording = self._recording
        if recording is None or recording.source is not live:
            from rvtrace_gdb.session.recording import TraceRecording  # captures need none

            self._let_go()
            recording = TraceRecording(live)
        self._recording, self._decoded_capture, self._target_line = recording, reading, target_line
        self.opened = None
        return recording.begin(just_read, self.debugger)

    def changed(self) -> None:
        """Note that the trace on the target differs from what was read out, although nothing ran."""
        if self._recording is not None:
            self._recording.changed()

    def check_free(self, kind: type) -> None:
        """Raise `Busy` when a trace of another *kind* is being recorded: it would be lost."""
        if self._goes_on() and not isinstance(self.live, kind):
            raise Busy(f"{_MAKING}: end it first (`trace stop`, and `trace save FILE` to keep it)")

    def _goes_on(self) -> bool:
        """Return whether a trace is recorded that would be lost, and could be stopped."""
        return self._recording is not None and self._recording.goes_on

    def has_trace(self) -> bool:
        """Return whether the session has a trace, recorded or opened."""
        return self._decoded_capture is not None

    @property
    def live(self) -> TraceSource | None:
        """The source of the trace that is being recorded, or was recorded last."""
        return None if self._recording is None else self._recording.source

    def stop(self, progress: Progress = silent, context: Context | None = None) -> list[str]:
        """Stop tracing and read the trace out. Raises `NoTrace`, `Busy`, `NotStopped`."""
        self.check_present("trace stop")
        if self._recording is None:
            raise NoTrace("nothing is being traced: `trace start` begins")
        return self._recording.stop(progress, context or Context(), self.debugger)

    # Showing it

    def status(self, context: Context, progress: Progress = silent) -> list[str]:
        """Describe the target, its components, the history, losses and warnings, without disturbing a running trace."""
        if self._decoded_capture is None:
            return report.nothing(lambda: context.description(self._environ))
        recording = self._recording
        if recording is not None:
            lines = [self._target_line, *recording.elsewhere(context), *recording.source.status(), *recording.kept()]
        else:
            lines = [self._target_line, *report.opened(self.capture())]
        if recording is None or not recording.source.incomplete or not self.capture().captured:
            try:
                self._decode(context, progress)
            except (NoTrace, BadElf, Unsupported) as error:
                return [*lines, report.history(str(error))]
        decoded = self._decoded_capture.decoded
        if decoded is None:
            return [*lines, report.history("not read yet: `trace history` reads it")]
        checked = report.checks(decoded.checked or ())
        places = positions(self.debugger, decoded.harts, context)
        warnings = [*decoded.warnings, *self._exchanged(decoded)]
        return [*lines, *report.histories(decoded.harts), *checked, *places, *warnings]

    def history(
        self, args: str, size: int | None, context: Context, progress: Progress = silent, at: int | None = None
    ) -> Listing:
        """Return which rows of the context's hart `trace history ARGS` shows; see `queries.lists.pages`.

        A running trace is read out first. *size*: how many instructions a page has, None or 0: all. *at*: the number of
        the instruction where the hart is in the past.

        Raises RangeError, NoTrace, BadElf, Unsupported; if nothing could be read out, the error that was the reason.
        """
        it, selection = self.history_page(args, size, context, progress, at)
        return Listing(*selection, it.lines, it.hart)

    def history_page(
        self, args: str, size: int | None, context: Context, progress: Progress = silent, at: int | None = None
    ) -> tuple[SelectedHistory, PageSelection]:
        """Return the history of the context's hart, and which rows of it `trace history ARGS` shows; as `history`.

        *size*: how many instructions a page has. Raises what `history` raises.
        """
        it = self._selected_again(context, progress)
        if it is not None:
            return it, self.require_capture().select(args, size, it.hart, at)
        decoded = self.harts(context, progress)
        hart = decoded.harts.number(context.hart, context.thread_hart)
        self._check_not_empty(decoded, hart)
        selection = self.require_capture().select(args, size, hart, at)  # no line is reported with an invalid range
        return self._chosen(decoded, hart, context), selection

    def rows(self, begin: int, end: int, hart: int | None = None) -> list[ShortHistoryRow]:
        """Return the rows numbered *begin* to *end* - 1 of the history that was requested last. Raises `NoTrace`."""
        return list(self.require_capture().rows(begin, end, hart))

    def dump(
        self,
        args: str,
        size: int | None,
        context: Context,
        offset: int | None = None,
        progress: Progress = silent,
    ) -> Listing:
        """Return which messages `trace dump ARGS` shows, or those from byte *offset* on.

        A running trace is read out first. No program is needed. Raises RangeError, NoTrace, Unsupported; if nothing
        could be read out, the error that was the reason.
        """
        self._read_out(context, progress)
        reading = self._refreshed()
        if not any(captured.data for captured in reading.capture.captured):
            raise (self.live.failure if self.live else None) or nothing_traced(
                live=self.live is not None
            )
        listing = reading.select_messages(args, size, offset, _selected_hart(context), progress)
        return listing._replace(lines=report.failure(self.live))

    def messages(self, begin: int, end: int, *, raw: bool = False) -> list[MessageRow]:
        """Return the messages numbered *begin* to *end* - 1 of the list that `dump` returned last.

        Raises `NoTrace`, `Unsupported`.
        """
        messages = self.require_capture().messages()
        wording = registry.format_of(messages.trace_options).wording(messages.trace_options)
        found = messages.items(begin, end)
        return [MessageRow(number, item.offset, wording.text(item, raw=raw)) for number, item in found]

    def decoded(self, context: Context | None = None, progress: Progress = silent) -> tuple[History, Image]:
        """Return the whole history of the context's hart, and the program, for views. Raises as `history`."""
        context = context or Context()
        decoded = self.harts(context, progress)
        return decoded.harts.histories[decoded.harts.number(context.hart, context.thread_hart)], decoded.image

    def harts(self, context: Context | None = None, progress: Progress = silent) -> Decoded:
        """Return the histories of all harts, and the programs of all contexts, for views. Raises as `history`."""
        context = context or Context()
        self._read_out(context, progress)
        return self._explained(context, progress)

    def check(self, context: Context | None = None, progress: Progress = silent) -> Decoded:
        """Return the histories of all harts, checked; see `DecodedCapture.check`. Raises as `history`."""
        decoded = self.harts(context, progress)
        if not any(len(history) for history in decoded.harts.histories.values()):
            self._check_not_empty(decoded, min(decoded.harts.histories))
        return self.require_capture().check(progress)

    def selected(self, context: Context, progress: Progress = silent) -> SelectedHistory:
        """Return the history of the context's hart, which is not empty. A running trace is read out first.

        Raises as `history`.
        """
        it = self._selected_again(context, progress)
        if it is not None:
            return it
        decoded = self.harts(context, progress)
        hart = decoded.harts.number(context.hart, context.thread_hart)
        self._check_not_empty(decoded, hart)
        return self._chosen(decoded, hart, context)

    def selected_of_thread(self, context: Context, progress: Progress = silent) -> SelectedHistory:
        """Return, as `selected` does, where the debugger's thread goes back: see `HartHistories.of_thread`."""
        decoded = self.harts(context, progress)
        hart = decoded.harts.of_thread(context.thread_hart, context.hart)
        self._check_not_empty(decoded, hart)
        return self._chosen(decoded, hart, context)

    def _check_not_empty(self, decoded: Decoded, hart: int) -> None:
        """Raise the reason why a hart's history is empty, if it is."""
        if not len(decoded.harts.histories[hart]):
            from rvtrace_gdb.session.formats.guesses.detect_options import nothing_of_hart

            raise (self.live.failure if self.live else None) or nothing_of_hart(
                self.capture(), decoded, hart, live=self.live is not None
            )

    def _selected_again(self, context: Context, progress: Progress) -> SelectedHistory | None:
        """Return what the last request got of a capture, unless it has no instruction, if this one is the same and the
        program's file, too.

        There is nothing to read out and to decode then, and nothing to report.
        """
        before, capture = self._selected, self._decoded_capture
        if before is None or self._recording is not None or capture is None or before.context != context:
            return None
        capture.use_progress(progress)
        return before.selected if before.is_of(capture) and capture.lengths.get(before.selected.hart) else None

    def selected_or_empty(self, context: Context, progress: Progress = silent) -> SelectedHistory:
        """Return the same as `selected`; the history may be empty."""
        decoded = self.harts(context, progress)
        return self._chosen(decoded, decoded.harts.number(context.hart, context.thread_hart), context)

    def last_selected(self, context: Context) -> SelectedHistory | None:
        """Return the context's hart's part of what was decoded last, None if nothing was decoded.

        Nothing is read out or decoded for it, and no line for the user counts as reported.
        """
        decoded = self._last_decoded
        if decoded is None:
            return None
        hart = decoded.harts.number(context.hart, context.thread_hart)
        overwritten = is_overwritten(decoded.sink_of(hart))
        return SelectedHistory(
            decoded.harts.histories[hart], decoded.program, hart, [], overwritten, context.values, context.rtos
        )

    def captured_of(self, hart: int) -> Captured | None:
        """Return what the history of a hart was decoded from last; None: nothing was decoded."""
        return None if self._last_decoded is None else self._last_decoded.sink_of(hart)

    @property
    def gdb(self) -> ReverseDebugger | None:
        """The debugger, while it is connected through the proxy."""
        return self.debugger if self.debugger is not None and self.debugger.connected else None

    def live_stop(self, hart: int, rams: Sequence[Extent]) -> "StopState | None":
        """Return the state of a hart that stands where its trace ends, as `session.past.live_stop` does."""
        if self._recording is None or self._selected is None:
            return None
        from rvtrace_gdb.session.past.live_stop import live_stop

        return live_stop(self, hart, rams, self._selected.context)

    def is_current(self, context: Context) -> bool:
        """Return whether nothing ran since the trace was read out, as far as is known without asking the target."""
        return self._recording is None or self._recording.is_current(context, self.debugger)

    def unread(self, context: Context) -> int:
        """Return about how many bytes a read-out would fetch from the target. Raises the transport's errors."""
        return 0 if self._recording is None else self._recording.unread(context, self.debugger)

    def cached(self, kind: type[_T], history: History, make: Callable[[], _T]) -> _T:
        """Return the object of type *kind* that belongs to *history*; *make* creates it when there is none yet.

        Objects are dropped with the histories to which they belong.
        """
        current = () if self._last_decoded is None else self._last_decoded.harts.histories.values()
        return self._cache.get(kind, history, make, current)

    def owner_turns(self, selected: SelectedHistory, progress: Progress) -> "OwnerTurns":
        """Return whose call stack runs from where on, see `HistorySource`."""
        from rvtrace_gdb.session.tasks.owner_turns import owner_turns  # only where calls are looked at

        return owner_turns(self, selected, progress)

    def prepare(self, progress: Progress) -> None:
        """Compute what takes long for the history that was decoded last. Raises what *progress* raises."""
        decoded = self._last_decoded
        if decoded is None or decoded is self._prepared:
            return
        for hart, history in decoded.harts.histories.items():
            if len(history) and history.is_complete:
                functions_of(self, SelectedHistory(history, decoded.program, hart, []), progress).root(progress)
        self._prepared = decoded

    def warnings(self) -> list[str]:
        """Return the warnings about the history that was decoded last which the user has not seen yet."""
        reading = self.require_capture()
        new = reading.unreported(reading.decoded.warnings) if reading.decoded else []
        return report.failure(self.live) + self._new_notes() + new

    def _new_notes(self) -> list[str]:
        """Return the notes that came up while the trace was read out, once: e.g. a component did not become empty."""
        return [] if self.live is None else report.notes(self.live.unlisted())

    # Saving and opening it

    def save(
        self, path: str | Path, context: Context, progress: Progress = silent, written: SaveFunction | None = None
    ) -> list[str]:
        """Write a capture file. *written*: writes another file of it, and returns lines about that.

        Raises `CaptureError`, `NoTrace`, and what *written* raises.
        """
        self._read_out(context, progress)
        lines = report.failure(self.live)
        try:
            self._explained(context, progress)  # decoding finds out which code is needed that the ELF lacks
        except (BadElf, Unsupported) as error:
            lines.append(report.line("note", f"saved without decoding it: {error}"))
        except NoTrace:  # a trace that leaves the chip is recorded by a probe: the settings to decode it with are saved
            if self.capture().captured or not self.capture().encoders:
                raise
        if self._recording is not None:
            lines += self._recording.save_state(context, self.debugger, progress)
        from rvtrace_gdb.session.capture import file as capture_file

        capture, replaced = self.capture(), os.path.exists(path)
        if self._recording is not None:
            capture = replace(capture, code=joined_code(capture.code))
        state = None if self.live is None else self.live.state
        writing = silent if state is not None and state.interrupted else progress
        if written is None:
            capture_file.save(capture, path, writing)
        else:
            lines += written(capture, str(path), writing)
        return [report.saved(capture, str(path), replaced=replaced), *lines]

    def stands(self, context: Context) -> bool:
        """Return whether nothing can have run since the trace was read out last, or stopped."""
        return self._recording is not None and self._recording.stands(context, self.debugger)

    def close_trace(self) -> list[str]:
        """Drop the trace that was recorded or opened. Raises `NoTrace`, `InThePast`; `Busy` while one is recorded."""
        self.check_present("trace close")
        if self._decoded_capture is None:
            raise NoTrace("there is no trace to close")
        self.check_idle()
        self._let_go()
        self._decoded_capture = self._selected = self._prepared = None
        self.last.clear()
        self._cache.clear()
        return [Line("The trace is closed.", nothing=True)]

    def open(self, path: str | Path, elf: str | None, progress: Progress = silent) -> list[str]:
        """Open a capture file. *elf* is the program to decode it with; None: the one with which it was captured.

        Raises Busy, CaptureError, NoElf, BadElf, WrongXlen.
        """
        self.check_idle()
        from rvtrace_gdb.session.capture import file as capture_file

        forget(path)  # a pipe may bring another trace now
        if not capture_file.begins_as_capture(path):
            from rvtrace_gdb.session.sources import esp32_memory

            dump = esp32_memory.core_dump_at(path, elf)
            if dump is not None:
                return self.open_capture(dump, str(path), None)
        capture = capture_file.load(path, progress)
        return self.open_capture(capture, str(path), elf if capture.takes_elf else None, lazily=True)

    def open_capture(
        self, capture: Capture, name: str, elf: str | None, *, stop_at_error: bool = False, lazily: bool = False
    ) -> list[str]:
        """Open a capture that is in memory and is called *name*. *stop_at_error*: decode up to the first loss only.
        *lazily*: decode only what is looked at, as far as possible.

        Raises as `open`.
        """
        self.check_idle()
        path = session_program.elf_of(capture, name) if elf is None else elf
        program = LoadedProgram(
            path, code=capture.code, images=capture.images, xlen=capture.xlen, elfs=capture.elfs,
            patched=capture.patched,
        )  # fmt: skip
        image = program.image()
        if image.xlen != capture.xlen:
            raise WrongXlen(program.path, image.xlen, name, capture.xlen)
        self._let_go()
        self._target_line, self.opened = report.line("capture", name, file=name), name
        self._decoded_capture = DecodedCapture(capture, program, stop_at_error=stop_at_error, lazily=lazily)
        self._stand_ins = use_stand_ins({} if capture.unpacked is None else capture.unpacked.sources, self._stand_ins)
        other = session_program.other_elf(capture.elf, image)
        return [self._target_line, *report.opened(capture), *self._decoded_capture.unreported([other] if other else [])]

    def restart_pages(self) -> None:
        """Let all lists begin again: another client looks at them."""
        self.searches = Searches(self)
        self._cache.drop(FunctionLists)
        if self._decoded_capture is not None:
            self._decoded_capture.restart_pages()

    def share(self, other: "Session") -> None:
        """Have the trace of another session, with what was decoded and found in it, and the pages that were shown.

        Raises `NoTrace`.
        """
        self._decoded_capture, self._cache = other.require_capture(), other._cache
        self.searches = other.searches
        self._target_line, self.opened = other._target_line, other.opened

    def capture(self) -> Capture:
        """Return the capture that `save` would write now. Raises `NoTrace`."""
        return self._refreshed().capture

    # Internal

    def number_of_selected_hart(self, context: Context) -> int | None:
        """Return the number where the hart of `set trace hart` is in the past, if it is not the selected thread's."""
        if self.debugger is None or context.hart in (None, context.thread_hart):
            return None
        return self.debugger.number(context.hart)

    def _chosen(self, decoded: Decoded, hart: int, context: Context) -> SelectedHistory:
        sink = decoded.sink_of(hart)
        news = [] if self._recording is None else self._recording.elsewhere(context)
        news += report.stopped(sink) + report.other_hart(hart, context)
        news += decoded.warnings + self._exchanged(decoded)
        history = decoded.harts.histories[hart]
        it = SelectedHistory(history, decoded.program, hart, [], is_overwritten(sink), context.values, context.rtos)
        self._selected = LastRequest(context, decoded, it)
        lines = report.failure(self.live) + self._new_notes() + self.require_capture().unreported(news)
        return it._replace(lines=lines)

    def _exchanged(self, decoded: Decoded) -> list[str]:
        return [] if self._recording is None else self._recording.exchanged(decoded)

    def check_present(self, what: str) -> None:
        """Raise `InThePast` if the debugger is in the past; *what* is the command that was given."""
        check_present(self.debugger, what)

    def check_idle(self) -> None:
        """Raise `Busy` when no other trace can be opened now."""
        self.check_present("another trace cannot be opened now")
        if self._goes_on():
            raise Busy(f"{_MAKING}: end it first (`trace stop`, and `trace save FILE` to keep it)")

    @property
    def elf(self) -> str | None:
        """The path of the program with which the trace is decoded."""
        return None if self._decoded_capture is None else self._decoded_capture.elf

    def require_capture(self) -> DecodedCapture:
        """Return the capture with its history. Raises `NoTrace`."""
        if self._decoded_capture is None:
            raise NoTrace("there is no trace: `trace start` makes one, `trace open FILE` shows a saved one")
        return self._decoded_capture

    def _decode(self, context: Context, progress: Progress) -> Decoded:
        return self._refreshed().decode(context.elf, progress, context.others)

    @property
    def _last_decoded(self) -> Decoded | None:
        """What was decoded last."""
        return self._decoded_capture.decoded if self._decoded_capture is not None else None

    def _refreshed(self) -> DecodedCapture:
        """Return the capture, with everything that was read out of the target so far."""
        reading = self.require_capture()
        if self._recording is not None:
            self._recording.put_into(reading, self.debugger)
        return reading

    def _explained(self, context: Context, progress: Progress) -> Decoded:
        """Return the histories, with what halted harts say of last traps whose cause is not in the trace."""
        decoded, live = self._decode(context, progress), self.live
        if live is None or is_away(self.debugger):
            return decoded
        from rvtrace_gdb.session.trap_causes import asked_for  # captures have no hart to ask

        for hart in asked_for(decoded.harts, decoded.program):
            live.ask_of_trap(hart)
        return decoded if live.traps == decoded.traps else self._decode(context, progress)

    def _read_out(self, context: Context, progress: Progress) -> None:
        if self._recording is not None:
            self._recording.read_out(context, self.debugger, progress)


def _selected_hart(context: Context) -> int | None:
    """Return the hart that the context selects, None for any."""
    return context.thread_hart if context.hart is None else context.hart
