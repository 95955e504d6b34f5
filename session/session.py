"""One trace session, from "which target" to "what ran". gdb, the console and scripts talk to this module."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar, cast

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.elf import BadElf
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session import decoded_capture, report
from rvtrace_gdb.session import program as session_program
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.capture.model import Capture, is_overwritten
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.decoded_capture import Decoded, DecodedCapture, Listing
from rvtrace_gdb.session.errors import Busy, InThePast, NoElf, NoTrace, Unsupported, WrongXlen
from rvtrace_gdb.session.formats import registry
from rvtrace_gdb.session.lists import Debugger, Lists, SelectedHistory, functions_of
from rvtrace_gdb.session.program import CodeOnTarget, Program
from rvtrace_gdb.session.queries.rows import Row
from rvtrace_gdb.session.sources import TraceSource, esp32_memory
from rvtrace_gdb.session.sources import tandem_port as tandem
from rvtrace_gdb.session.sources.esp32_memory import Chip
from rvtrace_gdb.session.sources.hardware import Hardware
from rvtrace_gdb.session.sources.options import chosen, not_possible, trace_request
from rvtrace_gdb.session.sources.qemu import trace as qemu
from rvtrace_gdb.session.sources.trace_control import LiveTrace, unsaid
from rvtrace_gdb.session.target.link import Connect, open_link
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.text import Line
from rvtrace_gdb.transport.openocd.target import OpenOcd

MessageRow = tuple[int, int, str]
"""(number, byte offset, text) of a message."""
_T = TypeVar("_T")
_RETURN = "you are in the past, return to the present first (`trace live`)"
_DISCONNECT = (
    "gdb goes back in a trace alone (`trace replay`), end that first (`disconnect`; `trace connect` connects gdb to a"
    " target)"
)
_MAKING = "a trace is being made"


class Session:
    """A trace being made, or a capture being looked at; nothing at first. Lines that are returned are for the user.

    *connect* makes the link to a target; *environ* may hold RVTRACE_TARGET.
    """

    def __init__(self, connect: Connect = OpenOcd, environ: Mapping[str, str] = os.environ) -> None:
        self._connect, self._environ = connect, environ
        self.lock = RLock()
        """Held by who uses the session: its requests, and the debugger's proxy, which is a thread of its own."""
        self._live: TraceSource | None = None
        self._reading: DecodedCapture | None = None
        self._target_line = ""  # what the trace comes from, for `status`
        self._quiet_since: tuple[object, ...] | None = None
        self.lists = Lists(self)
        self.last: dict[type, Any] = {}
        """What modules of their own listed last, by its kind."""
        self.chip: Chip | None = None
        """What reads the trace out of a chip's memory, while it waits for more of that memory."""
        self._kept: dict[type, dict[int, tuple[History, object]]] = {}
        self.debugger: Debugger | None = None
        """A debugger that goes back in time with this trace."""
        self.ask: Callable[[dict[str, Any]], Any] | None = None
        """Asks who made the request that is being answered for something only it can do; None: it cannot be asked."""

    def close(self) -> None:
        """Let go of the target. A trace that runs goes on in it."""
        self._let_go()
        if self.debugger is not None:
            self.debugger.close()
            self.debugger = None

    def _let_go(self) -> None:
        if self._live is not None:
            self._live.close()
            self._live = None

    # Making a trace

    def start(
        self, context: Context, options: Mapping[str, Any] | None = None, progress: Progress = silent
    ) -> list[str]:
        """Begin to trace; a trace that was there is dropped. *options*: see `trace_request`.

        Raises NoElf, BadElf, DescriptionError, BadOption, WrongXlen, the transport's and the components' errors.
        """
        self.check_present("trace start")
        if context.elf is None:
            raise NoElf("no program: load the ELF that runs on the target first (`file app.elf`)")
        description = context.description(self._environ)
        if description.qemu:
            return qemu.start(self, description, context, options or {})
        if tandem.wanted(description, options or {}):
            return tandem.start(self, description, context, options or {})
        hardware = Hardware.of(description, *chosen(options or {}))
        image = Program(context.elf).image()
        request = trace_request(options or {}, image)
        link = open_link(description, hardware.encoders[0], self._connect)
        try:
            session_program.check_xlen(image, description, hardware.encoders[0].hart, link)
            self.check_free(LiveTrace)
            if self._live is not None:
                self._live.abandon()
            live = LiveTrace.start(link, hardware, request, progress)
        except BaseException:
            link.close()
            raise
        live.xlen = image.xlen
        live.notes += not_possible(options or {})
        target = CodeOnTarget(link, hardware.registers)
        program = Program(context.elf, target=target)
        return self.begin(
            live,
            DecodedCapture(session_program.begun(description.name, image), program, target),
            report.target(description),
        )

    def begin(
        self, live: TraceSource, reading: DecodedCapture, target_line: str, just_read: Context | None = None
    ) -> list[str]:
        """From now on this trace is the session's; *target_line* says what of. *just_read*: it was read out then.

        What was set up for it, a line each.
        """
        if live is not self._live:
            self._let_go()
        self._live, self._reading, self._target_line = live, reading, target_line
        self._quiet_since = None if just_read is None else live.unchanged(self._runs(just_read))
        return live.started()

    def changed(self) -> None:
        """What was read out is not what there is, although nothing ran."""
        self._quiet_since = None

    def check_free(self, kind: type) -> None:
        """Raises `Busy` when a trace of another *kind* is being made, which would be lost."""
        if self._live is not None and self._live.tracing and not isinstance(self._live, kind):
            raise Busy(f"{_MAKING}: end it first (`trace stop`, and `trace save FILE` to keep it)")

    def has_trace(self) -> bool:
        """Whether there is one, made or opened."""
        return self._reading is not None

    @property
    def live(self) -> TraceSource | None:
        """The trace that is being made, or was last."""
        return self._live

    def stop(self, progress: Progress = silent) -> list[str]:
        """End the trace and read it out. Raises `NoTrace`, `Busy`."""
        self.check_present("trace stop")
        live = self._live
        if live is None:
            raise NoTrace("nothing is being traced: `trace start` begins")
        first = Line("Tracing stopped." if live.tracing else "The trace had ended already.", ended=True)
        live.stop(progress)
        return [first, *live.ended(), *report.failure(live)]

    # Looking at it

    def status(self, context: Context, progress: Progress = silent) -> list[str]:
        """Target, components, history, losses and warnings. Does not disturb a running trace."""
        if self._reading is None:
            return report.nothing(lambda: context.description(self._environ))
        if self._live is not None:
            lines = [self._target_line, *self._live.status()]
        else:
            lines = [self._target_line, *report.opened(self.capture())]
        if self._live is None or not self._live.behind or not self.capture().captured:
            try:
                self._decode(context, progress)
            except (NoTrace, BadElf, Unsupported) as error:
                return [*lines, report.history(str(error))]
        decoded = self._reading.decoded
        if decoded is None:
            return [*lines, report.history("not read yet, `trace history` does it")]
        return [*lines, *report.histories(decoded.harts), *decoded.warnings]

    def history(
        self, args: str, size: int | None, context: Context, progress: Progress = silent, at: int | None = None
    ) -> Listing:
        """Which rows of the context's hart `trace history ARGS` shows; see `queries.rows`. A running trace is read
        out first. *at*: the number where the hart is in the past.

        Raises RangeError, NoTrace, BadElf, Unsupported, and when nothing could be read out, why.
        """
        reading = self.the_reading()
        self._read_out(context, progress)
        decoded = self._decode(context, progress)
        hart = decoded.harts.number(context.hart, context.thread_hart)
        history = decoded.harts.histories[hart]
        if not len(history):
            failure = self._live.failure if self._live else None
            raise failure or _nothing(decoded, hart, live=self._live is not None)
        listing = reading.select(args, size, hart, at)
        said = reading.untold(report.stopped(decoded.sink_of(hart)) + report.other_hart(hart, context))
        return listing._replace(lines=report.failure(self._live) + unsaid(self._live) + said + listing.lines)

    def rows(self, begin: int, end: int, hart: int | None = None) -> list[Row]:
        """The rows numbered *begin* to *end* - 1 of the history last asked for. Raises `NoTrace`."""
        return list(self.the_reading().rows(begin, end, hart))

    def dump(
        self, args: str, size: int | None, context: Context, offset: int | None = None, progress: Progress = silent
    ) -> Listing:
        """Which messages `trace dump ARGS` shows, or those from byte *offset* on. A running trace is read out first.

        No program is needed. Raises RangeError, NoTrace, Unsupported, and when nothing could be read out, why.
        """
        self._read_out(context, progress)
        reading = self._refreshed()
        if not any(captured.data for captured in reading.capture.captured):
            raise (self._live.failure if self._live else None) or decoded_capture.nothing_traced(
                live=self._live is not None
            )
        listing = reading.select_messages(args, size, offset, _hart(context), progress)
        return listing._replace(lines=report.failure(self._live))

    def messages(self, begin: int, end: int, *, raw: bool = False) -> list[MessageRow]:
        """The messages numbered *begin* to *end* - 1, of those `dump` was asked for last: number, byte offset, text.

        Raises `NoTrace`, `Unsupported`.
        """
        messages = self.the_reading().messages()
        wording = registry.wording(messages.how)
        return [(number, item.offset, wording.text(item, raw=raw)) for number, item in messages.items(begin, end)]

    def decoded(self, context: Context | None = None, progress: Progress = silent) -> tuple[History, Image]:
        """The whole history of the context's hart and the program, for views. Raises as `history`."""
        context = context or Context()
        decoded = self.harts(context, progress)
        return decoded.harts.histories[decoded.harts.number(context.hart, context.thread_hart)], decoded.image

    def harts(self, context: Context | None = None, progress: Progress = silent) -> Decoded:
        """The histories of all harts, and the programs in all contexts, for views. Raises as `history`."""
        context = context or Context()
        self._read_out(context, progress)
        return self._decode(context, progress)

    def selected(self, context: Context, progress: Progress = silent) -> SelectedHistory:
        """The history of the context's hart, which is not empty. A running trace is read out first.

        Raises as `history`.
        """
        decoded = self.harts(context, progress)
        return self._not_empty(decoded, decoded.harts.number(context.hart, context.thread_hart), context)

    def selected_of_thread(self, context: Context, progress: Progress = silent) -> SelectedHistory:
        """As `selected`, the history that the debugger's thread goes back in, see `Harts.of_thread`."""
        decoded = self.harts(context, progress)
        return self._not_empty(decoded, decoded.harts.of_thread(context.thread_hart, context.hart), context)

    def _not_empty(self, decoded: Decoded, hart: int, context: Context) -> SelectedHistory:
        if not len(decoded.harts.histories[hart]):
            raise (self._live.failure if self._live else None) or _nothing(decoded, hart, live=self._live is not None)
        return self._chosen(decoded, hart, context)

    def selected_or_empty(self, context: Context, progress: Progress = silent) -> SelectedHistory:
        """As `selected`, also of a history that is empty."""
        decoded = self.harts(context, progress)
        return self._chosen(decoded, decoded.harts.number(context.hart, context.thread_hart), context)

    def at_hand(self, context: Context) -> SelectedHistory | None:
        """As `selected`, of what was decoded last: nothing is read out, decoded or said. None: nothing was."""
        decoded = self._last
        if decoded is None:
            return None
        hart = decoded.harts.number(context.hart, context.thread_hart)
        overwritten = is_overwritten(decoded.sink_of(hart))
        return SelectedHistory(decoded.harts.histories[hart], decoded.program, hart, [], overwritten)

    def is_current(self, context: Context) -> bool:
        """Whether nothing ran since the trace was read out, as far as that is known without asking the target."""
        live = self._live
        if live is None or not live.tracing or self._frozen():
            return live is None or not live.behind or self._frozen()
        return self._quiet_since is not None and self._quiet_since[0] == self._runs(context)

    def unread(self, context: Context) -> int:
        """About how many bytes reading out would take from the target. Raises the transport's errors."""
        live = self._live
        if live is None or self.is_current(context):
            return 0
        return live.unread()

    def kept(self, kind: type[_T], history: History, make: Callable[[], _T]) -> _T:
        """What *make* made of a history: of each *kind* one thing, as long as the history is one that is looked at."""
        of_kind = self._kept.setdefault(kind, {})
        found = of_kind.get(id(history))
        if found is None or found[0] is not history:
            current = set() if self._last is None else {id(one) for one in self._last.harts.histories.values()}
            for old in of_kind.keys() - current:
                del of_kind[old]
            found = of_kind[id(history)] = history, make()
        return cast(_T, found[1])

    def prepare(self, progress: Progress) -> None:
        """What takes long to be found for the first time, of what was decoded last. Raises what *progress* raises."""
        decoded = self._last
        if decoded is None:
            return
        for hart, history in decoded.harts.histories.items():
            if len(history):
                functions_of(self, SelectedHistory(history, decoded.program, hart, []), progress).root(progress)

    def warnings(self) -> list[str]:
        """What the user must know about what was decoded last, as far as it was not said yet."""
        reading = self.the_reading()
        said = reading.untold(reading.decoded.warnings) if reading.decoded else []
        return report.failure(self._live) + unsaid(self._live) + said

    # Keeping it

    def save(self, path: str | Path, context: Context, progress: Progress = silent) -> list[str]:
        """Write a capture file. Raises `CaptureError`, `NoTrace`."""
        self._read_out(context, progress)
        lines = report.failure(self._live)
        try:
            self._decode(context, progress)  # which finds out what code is needed that the ELF lacks
        except (BadElf, Unsupported) as error:
            lines.append(report.line("note", f"saved without decoding it: {error}"))
        except NoTrace:  # what leaves the chip is recorded by a probe: what it is read with is kept
            if self.capture().captured or not self.capture().encoders:
                raise
        capture = self.capture()
        capture_file.save(capture, path, progress)
        return [report.saved(capture, str(path)), *lines]

    def open(self, path: str | Path, elf: str | None, progress: Progress = silent) -> list[str]:
        """Look at a capture file; *elf*, if it needs one, is the program to read it with, else where it was then.

        Raises Busy, CaptureError, NoElf, BadElf, WrongXlen.
        """
        self.check_idle()
        dump = esp32_memory.core_dump_at(path, elf)
        if dump is not None:
            return self.look_at(dump, str(path), None)
        capture = capture_file.load(path, progress)
        return self.look_at(capture, str(path), elf if capture.takes_elf else None)

    def look_at(self, capture: Capture, name: str, elf: str | None, *, stop_at_error: bool = False) -> list[str]:
        """As `open`, a capture that is in memory and is called *name*. *stop_at_error*: decode up to the first loss."""
        self.check_idle()
        path = session_program.elf_of(capture, name) if elf is None else elf
        program = Program(path, code=capture.code, images=capture.images, xlen=capture.xlen)
        image = program.image()
        if image.xlen != capture.xlen:
            raise WrongXlen(program.path, image.xlen, name, capture.xlen)
        self._let_go()
        self._target_line = report.line("capture", name, file=name)
        self._reading = DecodedCapture(capture, program, stop_at_error=stop_at_error)
        other = session_program.other_elf(capture.elf, image)
        return [self._target_line, *report.opened(capture), *self._reading.untold([other] if other else [])]

    def capture(self) -> Capture:
        """What would be saved now. Raises `NoTrace`."""
        return self._refreshed().capture

    # Inside

    def _chosen(self, decoded: Decoded, hart: int, context: Context) -> SelectedHistory:
        sink = decoded.sink_of(hart)
        stopped = report.stopped(sink)
        said = self.the_reading().untold(decoded.warnings + stopped + report.other_hart(hart, context))
        lines = report.failure(self._live) + said
        return SelectedHistory(decoded.harts.histories[hart], decoded.program, hart, lines, is_overwritten(sink))

    def check_present(self, what: str) -> None:
        """Raises `InThePast`; *what* is what was wanted."""
        if self._frozen() and self.debugger is not None:
            raise InThePast(f"{what}: {_RETURN if self.debugger.has_target else _DISCONNECT}")

    def check_idle(self) -> None:
        """Raises `Busy` when something else cannot be looked at now."""
        self.check_present("another trace cannot be looked at now")
        if self._live is not None and self._live.tracing:
            raise Busy(f"{_MAKING}: end it first (`trace stop`, and `trace save FILE` to keep it)")

    @property
    def elf(self) -> str | None:
        """The program with which the trace is read."""
        return None if self._reading is None else self._reading.elf

    def the_reading(self) -> DecodedCapture:
        if self._reading is None:
            raise NoTrace("there is no trace: `trace start` makes one, `trace open FILE` shows a saved one")
        return self._reading

    def _decode(self, context: Context, progress: Progress) -> Decoded:
        return self._refreshed().decode(context.elf, progress)

    @property
    def _last(self) -> Decoded | None:
        """What was decoded last."""
        return self._reading.decoded if self._reading is not None else None

    def _refreshed(self) -> DecodedCapture:
        """The reading with all that was read out of the target so far."""
        reading, live = self.the_reading(), self._live
        if live is not None:
            code = tuple(reading.decoded.image.code) if reading.decoded else ()
            notes = tuple(live.notes)
            reading.capture = replace(
                reading.capture, encoders=live.encoders, sinks=live.sinks, records=live.records, tandem=live.tandem,
                code=code, notes=notes,
            )  # fmt: skip
        return reading

    def _read_out(self, context: Context, progress: Progress) -> None:
        live = self._live
        if live is not None:
            live.told(context)
        if live is None or self._frozen():
            return
        runs = self._runs(context)
        if live.tracing and self._quiet_since and self._quiet_since == live.unchanged(runs):
            return
        live.read_out(progress)
        self._quiet_since = None if live.failure else live.unchanged(runs)

    def _frozen(self) -> bool:
        """In the past nothing new runs, and the numbers of what ran stay."""
        return self.debugger is not None and self.debugger.away()

    def _runs(self, context: Context) -> int | None:
        """A number that changes whenever the target is resumed; gdb alone also counts its ways through the past.

        What gdb counts is no number of the debugger's: they are negative.
        """
        if self.debugger is not None and self.debugger.connected:
            return self.debugger.resumes
        return None if context.runs is None else -1 - context.runs


def _hart(context: Context) -> int | None:
    """The hart meant, None: any."""
    return context.thread_hart if context.hart is None else context.hart


def _nothing(decoded: Decoded, hart: int, *, live: bool) -> NoTrace:
    """Why the history of a hart is empty."""
    histories = decoded.harts.histories
    if any(len(history) for history in histories.values()):
        return NoTrace(f"nothing that can be decoded is in this trace of hart {hart}, of others there is")
    return decoded_capture.nothing_decoded(decoded.sink_of(hart), histories[hart], decoded.image, live=live)
