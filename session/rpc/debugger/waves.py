"""The methods of the session protocol for waveform viewers, see `session.waves`.

| method       | params                                         | result                                              |
|--------------|------------------------------------------------|-----------------------------------------------------|
| waves_open   | viewer, file, host, port, listen, bell         | {lines}: a viewer follows, in place of another one  |
| waves_show   | thread_hart, offset, scale                     | {lines, open, cursor}: its cursor is where gdb is   |
| waves_cursor | context, offset, scale                         | {number}: of the instruction at its cursor          |
| waves_status | thread_hart, offset, scale                     | {lines}                                             |
| waves_close  |                                                | {lines}: it follows no more                         |

viewer: "surfer" or "gtkwave". *file*: what it is started with, or, with *port*, is to show. *host* and *port*: where a
viewer waits; *listen*: the port at which we wait for one. *bell*: the path of a FIFO through which bytes come when the
user has moved the cursor, or the viewer is gone.

waves_show moves the cursor if the hart is in the past, and has moved there. *lines* are for the user, once; *open*: the
viewer is there, or may still come; *cursor*: the user has moved the cursor since.

*offset* and *scale*: texts of fractions, see `ViewerScale`; they may be missing.
"""

import shutil
from collections.abc import Callable, Mapping
from fractions import Fraction

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.replay.debugger import ProxyDebugger, debugger_of
from rvtrace_gdb.session.rpc.protocol import BadRequest, JsonMessage, Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.waves.follower import Bell, CursorUnknown, Histories, Waves
from rvtrace_gdb.session.waves.gtkwave import Gtkwave, GtkwaveLink
from rvtrace_gdb.session.waves.viewer import Viewer, ViewerError
from rvtrace_gdb.session.waves.viewer_axis import ViewerScale
from rvtrace_gdb.session.waves.waveform_file import WaveformFile, waveform_file
from rvtrace_gdb.session.waves.wcp import ServerLink, WaitingLink, Wcp
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import open_problem, printable

_GREETING_SECONDS = 1.0
"""So long a viewer that was already there is waited for; it may come later."""
NAMES = {"surfer": "Surfer", "gtkwave": "GTKWave"}


def waves_open(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Let a viewer follow. Raises ViewerError."""
    kind, file = params.choice("viewer", NAMES), params.optional_path("file")
    bell = Bell(params.optional_path("bell"))
    try:
        viewer, lines = (_gtkwave if kind == "gtkwave" else _surfer)(params, file, bell)
    except BaseException:
        bell.close()
        raise
    _close(session)
    session.waves = Waves(viewer, file, bell)
    return {"lines": [*lines, *session.waves.news()]}


def _readable(file: str) -> WaveformFile:
    """Return what the header of a file says. Raises ViewerError."""
    try:
        return waveform_file(file)
    except (OSError, ValueError) as error:
        raise ViewerError(f"cannot read {printable(file)}: {open_problem(error)}") from None


def _gtkwave(params: Params, file: str | None, bell: Bell) -> tuple[Viewer, list[str]]:
    is_export = False
    if file is not None:
        is_export = _readable(file).is_ours
        _check_installed("gtkwave", ": apt install gtkwave")
    link = GtkwaveLink(file, is_export=is_export)
    viewer = Viewer(NAMES["gtkwave"], link, Gtkwave(link.token), bell.ring)
    if file is None:
        return viewer, [f"It is waited for: `gtkwave --tcl_init={link.script} FILE`."]
    return viewer, [f"GTKWave starts with {file}, and follows."]


def _surfer(params: Params, file: str | None, bell: Bell) -> tuple[Viewer, list[str]]:
    name = NAMES["surfer"]
    if file is not None:
        _readable(file)
    if params.given("port"):
        server = ServerLink(params.text("host"), params.number("port"))
        viewer = Viewer(name, server, Wcp(file), bell.ring)
        viewer.ready.wait(_GREETING_SECONDS)
        return viewer, [f"{name} follows."] if viewer.is_connected else []
    link = WaitingLink(params.optional_number("listen") or 0)
    if file is None:
        said = f"It is waited for: `surfer FILE --wcp-initiate {link.port}`."
    else:
        try:
            _check_installed("surfer")
            link.start(["surfer", file, "--wcp-initiate", str(link.port)])
        except BaseException:
            link.close()
            raise
        said = f"{name} starts with {file}, and follows."
    return Viewer(name, link, Wcp(), bell.ring), [said]


def _check_installed(program: str, where: str = "") -> None:
    if shutil.which(program) is None:
        raise ViewerError(f"{program} is not installed, or not in PATH{where}")


def waves_show(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Show where gdb is in the past, see the module."""
    waves, debugger = session.waves, session.debugger
    if waves is None:
        return {"lines": [], "open": False, "cursor": False}
    hart = params.optional_number("thread_hart")
    number = debugger.number(hart) if isinstance(debugger, ProxyDebugger) else None
    if number is not None and isinstance(debugger, ProxyDebugger):
        history = debugger.timeline.selected(hart).history
        waves.move_cursor(history, number, _histories(session, debugger.context, progress), _scale(params))
    is_open = waves.viewer.ended is None
    return {"lines": waves.news(), "open": is_open, "cursor": waves.viewer.cursor is not None}


def waves_cursor(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return the number of the instruction at the cursor. Raises CursorUnknown, and as `debugger_of`."""
    if session.waves is None:
        raise CursorUnknown("no waveform viewer follows: `trace waves surfer` or `trace waves gtkwave`")
    debugger = debugger_of(session, params.context())
    history = debugger.past_history(progress).history
    return {"number": session.waves.number(history, _histories(session, debugger.context, progress), _scale(params))}


def waves_close(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Let no viewer follow."""
    return {"lines": [_close(session)]}


def waves_status(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return whether a viewer follows, and which times it gets."""
    waves, debugger = session.waves, session.debugger
    if waves is None:
        return {"lines": ["No waveform viewer follows."]}
    lines = [f"{waves.status()}."]
    if isinstance(debugger, ProxyDebugger) and debugger.away():
        history = debugger.timeline.selected(params.optional_number("thread_hart")).history
        axis = waves.axis(history, _histories(session, debugger.context, progress), _scale(params))
        lines.append(f"There {axis.explained()}.")
    return {"lines": lines}


def _close(session: Session) -> str:
    waves, session.waves = session.waves, None
    if waves is None:
        return "No waveform viewer follows."
    waves.close()
    return f"{waves.viewer.name} follows no more, and stays as it is."


def _histories(session: Session, context: Context, progress: Progress) -> Histories:
    def histories() -> list[History]:
        return list(session.harts(context, progress).harts.histories.values())

    return histories


def _scale(params: Params) -> ViewerScale:
    """Return the scale that the user has set. Raises BadRequest."""
    try:
        offset, scale = (Fraction(params.text(it)) if params.given(it) else None for it in ("offset", "scale"))
    except (ValueError, ZeroDivisionError):
        raise BadRequest("waves: offset and scale are fractions") from None
    if scale is not None and scale <= 0:
        raise BadRequest("waves: scale is greater than 0")
    return ViewerScale(offset, scale)


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {
    "waves_open": waves_open,
    "waves_show": waves_show,
    "waves_cursor": waves_cursor,
    "waves_status": waves_status,
    "waves_close": waves_close,
}
