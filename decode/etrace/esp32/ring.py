"""A core's trace buffer in the order of time.

Source: ESP-IDF, esp_riscv_trace.c (the buffer is cleared before a trace begins) and its test application: there is no
flag that says whether the buffer has wrapped, and no packet goes on from the end of the buffer at its start.
"""

from typing import NamedTuple

from rvtrace_gdb.decode.etrace.esp32.descriptors import BadSnapshot, Core, MemoryMode, State


class Ring(NamedTuple):
    """*data*: oldest byte first. *wrapped*: older trace was overwritten. *seam*: offset of what is at the start of the
    buffer; the packet before it may be cut off there, and 0 says that there is no such place.
    """

    data: bytes
    wrapped: bool
    seam: int


def ring_of(core: Core) -> Ring:
    """What the encoder wrote into the buffer of *core*. Raises `BadSnapshot`, which says why nothing can be known."""
    if core.data is None:
        raise BadSnapshot(f"core {core.core_id}: {_why_nothing(core)}")
    if not core.head_valid or core.head_offset > core.capacity or len(core.data) < core.capacity:
        raise BadSnapshot(
            f"core {core.core_id}: its trace is damaged: it ends {core.head_offset} bytes into a buffer of"
            f" {core.capacity}, of which {len(core.data)} are there"
        )
    newest, oldest = core.data[: core.head_offset], core.data[core.head_offset : core.capacity]
    if core.memory_mode == MemoryMode.LINEAR or (oldest and not any(oldest)):
        return Ring(newest, False, 0)
    return Ring(oldest + newest, True, len(oldest))  # just full counts as wrapped: it is then read from an anchor on


def _why_nothing(core: Core) -> str:
    if core.state in (State.UNAVAILABLE, State.READY):
        return "it was not traced"
    if core.state == State.CAPTURING:
        return "it was being traced when this was written, and where its trace ends is not known"
    return "its trace is not there" if core.head_valid else "where its trace ends is not known"
