"""What is said about a trace of QEMU: lines ready to print."""

from collections.abc import Iterable, Sequence

from rvtrace_gdb.session import report as common
from rvtrace_gdb.session.captured import CapturedEncoder
from rvtrace_gdb.session.qemu.hart import HartTrace
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.transport.qemu.ring import Ring

_WORD = 4  # bytes


def target(name: str, file: str, ring: Ring) -> str:
    """Which QEMU it is."""
    which = "hart 0" if ring.harts == 1 else f"harts 0 to {ring.harts - 1}"
    return common.line("target", f"{name}{f' ({file})' if file else ''}, {which}")


def encoders(made: Iterable[CapturedEncoder], *, tracing: bool) -> list[str]:
    state = "tracing" if tracing else "off"
    return [
        common.line(
            "encoder",
            f"{it.in_force.name}, hart {it.hart}, in software: {state}, {common.protocol(it.in_force)}",
            encoder=(it.in_force.name, state),
        )
        for it in made
    ]


def ring(it: Ring, traces: Sequence[HartTrace]) -> str:
    """How much can be recorded before it has to be read out."""
    each = " for each hart" if len(traces) > 1 else ""
    return common.line("sink", f"a ring of {it.size * _WORD} bytes{each}, keeps the newest {it.size} blocks or so")


def harts(traces: Iterable[HartTrace], *, read: bool) -> list[str]:
    """How much there is of each."""
    lines: list[str] = []
    for it in traces:
        data = it.sink
        text = f"{data.in_force.name}: {it.instructions} instructions, {len(data.data)} bytes"
        text += ", older trace was overwritten" if it.overwritten else ""
        unread = 0 if read else _WORD * it.behind
        text += f", {unread} bytes of the ring are not read yet" if unread else ""
        lines.append(common.line("sink", text, filled=(len(data.data), 0), unread=unread))
    return lines


def notes(said: Iterable[str]) -> list[str]:
    return [common.line("note", text) for text in said]


def failure(error: RvtraceError | None) -> list[str]:
    return [] if error is None else [common.incomplete(error)]


def changed(address: int) -> str:
    """Code that ran is not what the program has there; a history is made with the latter."""
    return (
        f"the code changed while it ran, lowest at 0x{address:x}: the history has it as it was before, and gaps where"
        " that leads elsewhere"
    )


def gone(it: Ring) -> str:
    """QEMU does not run any more."""
    if it.ended:
        return "QEMU has ended; all it ran is in the trace, as far as the ring had room"
    return "QEMU has ended in the middle of something: what it ran last may be missing"
