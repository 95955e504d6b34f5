"""The commands for Control Transfer Records: start, stop, clear, status, and access to records that a program makes.

`ctr_request` converts the options of `trace ctr start`.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from rvtrace_gdb.controlregs.ctr import procedures
from rvtrace_gdb.controlregs.ctr.entries import DEPTHS, RECORDABLE, TransferType
from rvtrace_gdb.controlregs.ctr.procedures import SavedSetup
from rvtrace_gdb.controlregs.ctr.settings import CtrRequest
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS
from rvtrace_gdb.controlregs.target import CsrAccess
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.facts import MemoryRange
from rvtrace_gdb.rows.harts_text import harts_text
from rvtrace_gdb.session import program
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.decoded_capture import DecodedCapture
from rvtrace_gdb.session.description.memory import believed
from rvtrace_gdb.session.description.model import DescriptionError
from rvtrace_gdb.session.errors import BadOption, Busy, NoTrace, WrongXlen
from rvtrace_gdb.session.program import LoadedProgram
from rvtrace_gdb.session.reverse_debugger import is_away
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.sources import ctr
from rvtrace_gdb.session.sources.ctr import MODES, CtrTrace, HartRecorder, captured
from rvtrace_gdb.session.target.csr_access import UsbAccess, Way, open_access
from rvtrace_gdb.session.target.target_state import wishes_of
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

_EXTERNAL = ("m", "s", "vs")
_FREEZE = ("breakpoint", "lcofi")
_SWITCHES = ("not_taken", "ras")


def ctr_request(options: Mapping[str, Any]) -> CtrRequest:
    """Return the request for *options*.

    modes (of m, s, u, vs, vu), inhibit (codes of ctrdata.TYPE), not_taken, depth (entries), ras, freeze (of breakpoint,
    lcofi), external (of m, s, vs), version ("1.0", "0.1.4"); "harts" is ignored here. Raises `BadOption`.
    """
    depth, version = options.get("depth"), options.get("version")
    if depth is not None and depth not in DEPTHS:
        raise BadOption(f"there is no CTR depth {depth}: choose {_joined(DEPTHS)}")
    if version is not None and version not in VERSIONS:
        raise BadOption(f"there is no CTR version {version}: choose {_joined(VERSIONS)}")
    freeze = _some(options, "freeze", _FREEZE)
    inhibit = frozenset(_kind(code) for code in options.get("inhibit") or ())
    return CtrRequest(
        modes=_some(options, "modes", MODES) or None,
        inhibit=inhibit - {TransferType.NOT_TAKEN_BRANCH},
        depth=depth,
        freeze_breakpoint="breakpoint" in freeze,
        freeze_lcofi="lcofi" in freeze,
        external=_some(options, "external", _EXTERNAL),
        version=version,
        **{name: bool(options.get(name)) for name in _SWITCHES},
    )


def _some(options: Mapping[str, Any], name: str, names: tuple[str, ...]) -> frozenset[str]:
    wanted = options.get(name) or ()
    for word in wanted:
        if word not in names:
            raise BadOption(f"{name}: there is no {word!r}: choose {_joined(names)}")
    return frozenset(wanted)


def _kind(code: Any) -> TransferType:
    if code not in tuple(RECORDABLE):
        raise BadOption(f"there is no kind of transfer with the number {code}")
    return TransferType(code)


def _joined(versions: Any) -> str:
    *others, last = map(str, versions)
    return f"{', '.join(others)} or {last}"


def start(
    session: Session, context: Context, way: Way, options: Mapping[str, Any], progress: Progress = silent
) -> list[str]:
    """Record on the context's hart, or on those in *options*' "harts", besides harts that record already.

    Raises NoElf, BadElf, Busy, WrongXlen, BadOption, and what the access and the procedures raise.
    """
    session.check_present("trace ctr start")
    session.check_free(CtrTrace)
    connected(session, way)
    request, image = ctr_request(options), _context_image(context)
    harts = list(options.get("harts") or _requested_harts(session, context, way, options))
    before = session.live.recorders if isinstance(session.live, CtrTrace) else []
    recorders = [it for it in before if it.hart not in harts] if session.live and session.live.tracing else []
    replaced = {it.hart: it.saved for it in before if it.saved is not None}
    begun, notes = _begun(session, way, harts, image, request, replaced, progress)
    trace = CtrTrace(_by_hart(recorders + begun), way)
    trace.notes = notes
    ranges, wishes = _described_memory(context), wishes_of({}, context.save_memory)
    trace.save_state(image, ranges, wishes, [it.hart for it in begun], progress)
    return session.begin(trace, _reading(context, image), ctr.target(begun[0].access))


def _begun(
    session: Session,
    way: Way,
    harts: list[int],
    image: Image,
    request: CtrRequest,
    saved: Mapping[int, SavedSetup],
    progress: Progress,
) -> tuple[list[HartRecorder], list[str]]:
    """Set up all *harts*, or none; return recorders, and notes about what was not granted.

    *saved*: the original register values of harts that record already.
    """
    begun: list[HartRecorder] = []
    notes: list[str] = []
    try:
        for hart in harts:
            access = _opened_access(way, session, hart, image)
            version = procedures.detect(access, request.version)
            it = procedures.start(access, version, request, f"ctr{hart}", saved.get(hart), progress)
            records = captured(hart, it.in_force, [])
            begun.append(HartRecorder(hart, access, version, records, it.saved, it.in_force, it.in_force.pc))
            notes += (note if len(harts) == 1 else f"hart {hart}: {note}" for note in it.notes)
    except BaseException:
        _undo([recorder for recorder in begun if recorder.hart not in saved])
        raise
    return begun, notes


def look(session: Session, context: Context, way: Way | None, progress: Progress = silent) -> CtrTrace | None:
    """Return the records to show: those of the session's trace, if it has any, else those that a program on the target
    makes.

    None: they are in a capture. Raises as `start`, and NoTrace.
    """
    live, hart = session.live, _context_hart(context)
    connected(session, way)
    if isinstance(live, CtrTrace) and _stays(session, live, hart, way):
        _check_moved(session, live, way)
        return live
    if live is None and session.has_trace() and session.capture().records:
        return None
    if way is None:
        raise NoTrace("there are no control transfer records: gdb is not connected to a target, and no capture is open")
    session.check_present("records of the target cannot be read now")
    session.check_free(CtrTrace)
    image = _context_image(context)
    access = _opened_access(way, session, hart, image)
    version = procedures.detect(access, way.get("version"))
    in_force, entries = procedures.read(access, version, f"ctr{hart}", progress)
    others = live.recorders if isinstance(live, CtrTrace) and live.tracing and live.way == way else []
    mine = HartRecorder(hart, access, version, captured(hart, in_force, entries))
    trace = CtrTrace(_by_hart([*(it for it in others if it.hart != hart), mine]), way)
    trace.save_state(image, _described_memory(context), wishes_of({}, context.save_memory), (), progress)
    session.begin(trace, _reading(context, image), ctr.target(access), just_read=context)
    return trace


def stop(session: Session, way: Way | None = None, progress: Progress = silent) -> list[str]:
    """Stop the recording as `trace stop` does. Raises NoTrace, Busy, HartRuns."""
    session.check_present("trace ctr stop")
    _recording(session)
    connected(session, way)
    return session.stop(progress)


def connected(session: Session, way: Way | None) -> None:
    """Switch to gdb's new connection, if it has one. Raises as `open_access`."""
    live = session.live
    if isinstance(live, CtrTrace) and way is not None and way.get("connection") != live.way.get("connection"):
        live.connected(way, lambda hart: open_access(way, session, hart))
        session.changed()


def clear(session: Session, context: Context, way: Way | None, progress: Progress = silent) -> list[str]:
    """Empty the records on the target. Raises as `look`."""
    session.check_present("trace ctr clear")
    trace = look(session, context, way, progress)
    if trace is None:
        raise Busy("a capture file is open, whose records cannot be cleared: `trace ctr start` begins on the target")
    trace.clear(progress)
    session.changed()
    return [f"The records of {harts_text([it.hart for it in trace.recorders])} are empty."]


def status(session: Session, context: Context, way: Way | None, progress: Progress = silent) -> list[str]:
    """Describe what is recorded, how, and how much of it there is. Raises as `look`."""
    trace = look(session, context, way, progress)
    if trace is None:
        return [line for records in session.capture().records for line in ctr.status(records, None)]
    return trace.status()


def _stays(session: Session, live: CtrTrace, hart: int, way: Way | None) -> bool:
    """Return whether the session's trace is to be shown, instead of the records that the program makes now."""
    if is_away(session.debugger):
        return True
    if not live.tracing:
        return live.started_here or way is None
    return live.ours or (live.has(hart) and live.way == way)


def _check_moved(session: Session, live: CtrTrace, way: Way | None) -> None:
    """Have the hart read again if it has changed without gdb's knowledge, e.g. by a reset with `monitor`."""
    if live.tracing and way is not None and not is_away(session.debugger) and live.moved():
        session.changed()


def _recording(session: Session) -> CtrTrace:
    if not isinstance(session.live, CtrTrace):
        raise NoTrace("no control transfers are being recorded: `trace ctr start` begins")
    return session.live


def _undo(recorders: list[HartRecorder]) -> None:
    """Stop recorders: another hart could not be set up."""
    for recorder in recorders:
        with suppress(RvtraceError):
            procedures.stop(recorder.access, recorder.version, recorder.saved)


def _by_hart(recorders: list[HartRecorder]) -> list[HartRecorder]:
    return sorted(recorders, key=lambda it: it.hart)


def _described_memory(context: Context) -> Sequence[MemoryRange]:
    """Return what the target description says of memory, nothing if there is none that can be read."""
    try:
        return believed(context.description())
    except DescriptionError:
        return ()


def _context_image(context: Context) -> Image:
    return program.program_of(context.elf).image()


def _requested_harts(session: Session, context: Context, way: Way, options: Mapping[str, Any]) -> list[int]:
    """Return all harts if they are requested and can be enumerated; else the context's."""
    if options.get("harts") is not None:
        access = open_access(way, session, None)
        if isinstance(access, UsbAccess):
            return access.harts()
    return [_context_hart(context)]


def _context_hart(context: Context) -> int:
    number = context.thread_hart if context.hart is None else context.hart
    return 0 if number is None else number


def _opened_access(way: Way, session: Session, hart: int, image: Image) -> CsrAccess:
    access = open_access(way, session, hart)
    if access.xlen != image.xlen:
        raise WrongXlen(image.path, image.xlen, f"hart {hart}", access.xlen)
    return access


def _reading(context: Context, image: Image) -> DecodedCapture:
    assert context.elf is not None
    return DecodedCapture(program.new_capture("the target", image), LoadedProgram(context.elf))
