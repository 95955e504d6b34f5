"""What happened between the instructions, a line each, for people and for grep.

    1207	trap offset=0x31c last_pc=0x80000170 next_pc=0x80000180 time=4711 prv=3 v=0 # interrupt

The number is that of the instruction it happened before, as in the listing; *offset* is the byte of the trace that says
so; *time* and the context (prv, v, scontext, hcontext) are that instruction's; after # come the words.
"""

from collections.abc import Iterator, Mapping

from rvtrace_gdb.decode.history import Context, Event, History
from rvtrace_gdb.views.listing import prefix


def lines(histories: Mapping[int, History]) -> Iterator[str]:
    """The events of one hart, or of several in the order of their bytes, each then after "hart N" and a tab."""
    found = [
        (event.offset, hart, order) for hart, history in histories.items() for order, event in enumerate(history.events)
    ]
    for _, hart, order in sorted(found):
        history = histories[hart]
        before = prefix(hart) if len(histories) > 1 else ""
        yield before + line(history, history.events[order])


def line(history: History, event: Event) -> str:
    """The line of one event of a history."""
    columns = [event.kind.value.replace(" ", "-"), f"offset={event.offset:#x}"]
    for name, pc in (("last_pc", event.last_pc), ("next_pc", event.next_pc)):
        if pc is not None:
            columns.append(f"{name}={pc:#x}")
    time = history.time_at(event.position)
    if time is not None:
        columns.append(f"time={time}")
    columns += _context(history.context_at(event.position))
    return f"{event.position + 1}\t{' '.join(columns)} # {event.text}"


def _context(context: Context) -> Iterator[str]:
    if context.prv is not None:
        yield f"prv={context.prv}"
        yield f"v={int(context.virtual)}"
    if context.scontext is not None:
        yield f"scontext={context.scontext}"
    if context.hcontext is not None:
        yield f"hcontext={context.hcontext}"
