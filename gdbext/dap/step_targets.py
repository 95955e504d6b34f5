"""`stepInTargets` of the Debug Adapter Protocol: which of the functions that a line calls *step in* enters.

It is `next` with a temporary breakpoint in the function, so that the step ends at the next line if the call is not
made. Functions called by way of a register's value alone are not among the targets: the code does not say which.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import gdb

from rvtrace_gdb.gdbext import disassembly, neutral
from rvtrace_gdb.gdbext.dap.call_instructions import call_targets
from rvtrace_gdb.gdbext.dap.server import Body, DapResumption, DapServer
from rvtrace_gdb.gdbext.location import decode

_LARGEST = 1 << 14  # bytes of a function that are looked at


def add(server: DapServer) -> None:
    """Add the request to a server, and the argument `targetId` to `stepIn`. A target's number is its address."""
    resumption = DapResumption(server)
    frame_of = server.module("frames").frame_for_id
    quiet = server.module("breakpoint").suppress_new_breakpoint_event

    def targets(*, frameId: int, **others: Any) -> Body:
        frame = frame_of(frameId).inferior_frame()
        if frame != gdb.newest_frame():
            return {"targets": []}  # the line is being executed: its call is made
        return {"targets": [{"id": it, "label": _name_of(it)} for it in _called_on_line(frame)]}

    def step_in(*, threadId: int, targetId: int, **others: Any) -> None:
        with _entered(int(targetId), quiet):
            resumption.run(threadId, "next", "step")

    server.add("stepInTargets", targets)
    server.add_variant("stepIn", "targetId", step_in)
    server.declare("supportsStepInTargetsRequest")


@contextlib.contextmanager
def _entered(address: int, quiet: Callable[[], contextlib.AbstractContextManager[None]]) -> Iterator[None]:
    """Let gdb stop where a function is entered, within this context. *quiet*: in which the client hears of none."""
    with quiet():
        breakpoint = gdb.Breakpoint(f"*{_after_prologue(address):#x}", internal=True)
        try:
            yield
        finally:
            with contextlib.suppress(RuntimeError):
                breakpoint.delete()


def _after_prologue(address: int) -> int:
    """Return where `step` would stop in the function at an address."""
    name = disassembly.symbol_of(address)[0]
    with contextlib.suppress(gdb.error, RuntimeError):
        for place in decode(name) if name else ():
            block = gdb.block_for_pc(place.pc)
            while block is not None and block.function is None:
                block = block.superblock
            if block is not None and int(block.start) == address:
                return int(place.pc)
    return address


def _name_of(address: int) -> str:
    name, offset = disassembly.symbol_of(address)
    return f"{address:#x}" if name is None else name if not offset else f"{name}+{offset}"


def _called_on_line(frame: gdb.Frame) -> list[int]:
    """Return the functions that the rest of the frame's line calls, in the order of the code."""
    pc = int(frame.pc())
    line = _line_at(pc)
    end = min(_function_end(frame), pc + _LARGEST)
    if line is None or end <= pc:
        return []
    code = bytes(gdb.selected_inferior().read_memory(pc, end - pc))
    found = call_targets(pc, code, 8 * neutral.address_bytes())
    return list(dict.fromkeys(target for at, target in found if _line_at(at) == line))


def _line_at(pc: int) -> tuple[str, int] | None:
    place = gdb.find_pc_line(pc)
    return (place.symtab.filename, place.line) if place.symtab is not None and place.line else None


def _function_end(frame: gdb.Frame) -> int:
    """Return where the code ends of the function that runs in a frame, 0 if that is not known."""
    end = 0
    with contextlib.suppress(RuntimeError):  # no debug information
        block: gdb.Block | None = frame.block()
        while block is not None and not block.is_static and not block.is_global:
            end, block = int(block.end), block.superblock
    return end
