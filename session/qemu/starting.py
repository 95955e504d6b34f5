"""`trace start` where the target description says that the target is a QEMU that `rvtrace qemu` has started."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rvtrace_gdb.session import beginning
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description import Description
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.qemu import report
from rvtrace_gdb.session.qemu.live import QemuTrace
from rvtrace_gdb.session.qemu.wanted import wanted
from rvtrace_gdb.session.reading import Reading
from rvtrace_gdb.session.request import chosen, not_possible, trace_request
from rvtrace_gdb.transport.qemu.ring import Ring

if TYPE_CHECKING:
    from rvtrace_gdb.session.session import Session


def start(session: "Session", description: Description, context: Context, options: Mapping[str, Any]) -> list[str]:
    """Begin to trace; a trace that was there is dropped. What was set up, a line each.

    Raises NoElf, BadElf, WrongXlen, BadOption, Busy, QemuError.
    """
    program = beginning.program_of(context.elf)
    image = program.image()
    beginning.check_xlen(image, description)
    request = trace_request(options, image)
    encoder, notes = wanted(request, image.xlen, options)
    session.check_free(QemuTrace)
    folder = Path(description.qemu)
    ring = Ring.opened(folder)
    try:
        harts = _harts(options, ring)
        target = report.target(description.name, description.file, ring)
    finally:
        ring.close()
    if session.live is not None:
        session.live.abandon()
    trace = QemuTrace.start(folder, harts, encoder, program)
    trace.notes += [*notes, *not_possible(options)]
    return session.begin(trace, Reading(beginning.begun(description.name, image), program), target)


def _harts(options: Mapping[str, Any], ring: Ring) -> list[int]:
    _, harts = chosen(options)
    for hart in harts:
        if not 0 <= hart < ring.harts:
            raise BadOption(f"there is no hart {hart}: this QEMU has {ring.harts}")
    return sorted(set(harts)) or list(range(ring.harts))
