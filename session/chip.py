"""The trace that an ESP32's firmware keeps in the chip's memory, which somebody else reads for the session: gdb.

| method   | params                          | result                                                               |
|----------|---------------------------------|----------------------------------------------------------------------|
| snapshot | context, elves, address, answer | {need}: (address, size) of memory to read and ask again with; {lines} |
"""

from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

from decode.etrace.esp32.live import Answer, Batch
from session import esp32
from session.captured import Capture
from session.errors import NoElf, NoTrace
from session.params import Params
from support.progress import Progress

if TYPE_CHECKING:
    from session.session import Session

Chip = Generator[Batch, Answer, Capture]
"""Asks for memory, and becomes the capture in it."""


def snapshot(session: "Session", params: Params, progress: Progress) -> Any:
    """Look at it. *elves*: beside the context's. *address*: of the snapshot, None: as the ELF has it. *answer*: the
    memory that was asked for last, None to begin. Raises Busy, NoElf, NoTrace, BadSnapshot, BadElf.
    """
    session.check_idle()
    context, answer = params.context(), params.memory("answer")
    if answer is None:
        if context.elf is None:
            raise NoElf("no program: load the ELF that runs on the chip first (`file app.elf`)")
        session.chip = esp32.live_capture(context.elf, params.texts("elves"), params.optional_number("address"))
    elif session.chip is None:
        raise NoTrace("no snapshot is being read")
    chip, session.chip = session.chip, None
    try:
        need = next(chip) if answer is None else chip.send(answer)
    except StopIteration as done:
        return {"lines": session.look_at(done.value, "the chip's memory", None)}
    session.chip = chip
    return {"need": need}


METHODS: Mapping[str, Callable[..., Any]] = {"snapshot": snapshot}
