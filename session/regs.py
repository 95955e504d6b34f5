"""What `trace regs` shows: the registers of trace components and of Control Transfer Records, in words."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rvtrace_gdb.session import regs_captured, regs_ctr, regs_live
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.ctr.access import Way
from rvtrace_gdb.session.description import Description, DescriptionError
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.link import Connect
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.lines import warning
from rvtrace_gdb.support.progress import Progress, silent
from rvtrace_gdb.transport.openocd import OpenOcd
from rvtrace_gdb.transport.openocd_errors import OpenOcdAbsent


class Shown(NamedTuple):
    """*csrs*: the hart's registers were used, so that what the debugger knows of them may be out of date."""

    lines: list[str]
    csrs: bool


@dataclass(frozen=True)
class Wish:
    """*names*: of components, none: all there are. *everything*: also optional registers that are 0.

    *live*: those of the target, even if a capture is being looked at. *access*: the way to a hart's CSRs.
    """

    names: Sequence[str] = ()
    everything: bool = False
    live: bool = False
    access: Way | None = None


def show(
    session: Session,
    context: Context,
    wish: Wish,
    progress: Progress = silent,
    connect: Connect = OpenOcd,
    environ: Mapping[str, str] = os.environ,
) -> Shown:
    """The registers of the capture that is looked at, else of the target.

    Raises BadOption, DescriptionError, the transport's errors, and what *progress* raises.
    """
    if in_capture(session) and not wish.live:
        return Shown(_of_capture(session, wish), False)
    return _live(session, context, wish, progress, connect, environ)


def _live(
    session: Session, context: Context, wish: Wish, progress: Progress, connect: Connect, environ: Mapping[str, str]
) -> Shown:
    harts, others = _sorted(session, wish)
    blocks = [_of_hart(session, name, wish) for name in harts]
    if others or not wish.names:
        needed = bool(others) or not harts  # harts may record without a description, and without OpenOCD
        description = _description(context, environ, needed=needed)
        try:
            blocks += _of_target(description, others, wish, progress, connect) if description else []
        except OpenOcdAbsent as error:
            if needed:
                raise
            blocks.append([warning(error)])
    return Shown(list(_spaced(blocks)), bool(harts))


def names(session: Session, context: Context, environ: Mapping[str, str] = os.environ) -> list[str]:
    """What `show` knows, without asking the target. Nothing is raised: it is for completion."""
    found = list(regs_captured.names(session.capture())) if in_capture(session) else []
    found += [recorder.captured.in_force.name for recorder in regs_ctr.recorders(session)]
    description = _description(context, environ, needed=False)
    found += [component.name for component in description.components] if description else []
    return list(dict.fromkeys(found))


def _description(context: Context, environ: Mapping[str, str], *, needed: bool) -> Description | None:
    """The one that applies. Raises DescriptionError if it is *needed*."""
    try:
        return context.description(environ)
    except DescriptionError:
        if needed:
            raise
        return None


def _sorted(session: Session, wish: Wish) -> tuple[list[str], list[str]]:
    """What is wanted of harts (those that record, unless others are named), and of trace components."""
    recording = [recorder.captured.in_force.name for recorder in regs_ctr.recorders(session)]
    wanted = list(dict.fromkeys(wish.names)) or recording
    harts = [name for name in wanted if regs_ctr.hart_of(name) is not None]
    return harts, [name for name in wanted if name not in harts]


def in_capture(session: Session) -> bool:
    """Whether a capture is being looked at."""
    return session.live is None and session.has_trace()


def _of_capture(session: Session, wish: Wish) -> list[str]:
    capture = session.capture()
    there = regs_captured.names(capture)
    for name in wish.names:
        if name not in there:
            raise _unknown(name, there, "this capture", "; `trace regs -live` asks the target")
    wanted = dict.fromkeys(wish.names or there)
    return list(_spaced([regs_captured.lines(capture, name, everything=wish.everything) for name in wanted]))


def _of_hart(session: Session, name: str, wish: Wish) -> list[str]:
    """The CSRs of a hart that records, else of any."""
    for recorder in regs_ctr.recorders(session):
        if recorder.captured.in_force.name == name:
            tracing = session.live is not None and session.live.tracing
            return regs_ctr.of_recorder(recorder, tracing=tracing, everything=wish.everything)
    hart = regs_ctr.hart_of(name)
    assert hart is not None
    return regs_ctr.of_hart(session, hart, wish.access, everything=wish.everything)


def _of_target(
    description: Description, wanted: Sequence[str], wish: Wish, progress: Progress, connect: Connect
) -> list[list[str]]:
    """The components called *wanted*, all if there are none. What is inside of another one is shown with that."""
    there = {component.name: component for component in description.components}
    for name in wanted:
        if name not in there:
            raise _unknown(name, tuple(there), description.file or "the target description", "")
    asked = [there[name] for name in wanted] or list(there.values())
    places = dict.fromkeys(regs_live.place(description, component).name for component in asked)
    with regs_live.linked(description, connect) as link:
        return [regs_live.lines(link, there[name], everything=wish.everything, progress=progress) for name in places]


def _spaced(blocks: Sequence[list[str]]) -> Iterator[str]:
    """An empty line between two components."""
    for number, block in enumerate(blocks):
        yield from ["", *block] if number else block


def _unknown(name: str, there: Sequence[str], where: str, more: str) -> BadOption:
    known = f"there are {', '.join(there)}" if there else "there is none"
    return BadOption(f"there is no component {name!r} in {where}: {known}{more}")
