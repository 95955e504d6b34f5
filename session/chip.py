"""The trace that an ESP32's firmware keeps in the chip's memory, which somebody else reads for the session: gdb.

| method   | params                          | result                                                               |
|----------|---------------------------------|----------------------------------------------------------------------|
| snapshot | context, elves, address, answer | {need}: (address, size) of memory to read and ask again with; {lines} |
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rvtrace_gdb.decode.etrace.esp32.live import Answer, Batch
from rvtrace_gdb.session import esp32, told
from rvtrace_gdb.session.captured import Capture
from rvtrace_gdb.session.errors import NoElf, NoTrace
from rvtrace_gdb.session.params import BadRequest, Params
from rvtrace_gdb.support.progress import Progress

if TYPE_CHECKING:
    from rvtrace_gdb.session.session import Session


class Chip(NamedTuple):
    """*reading* asks for memory, and becomes the capture in it. *asked*: what it has asked for last."""

    reading: Generator[Batch, Answer, Capture]
    asked: Sequence[tuple[int, int]] = ()


def snapshot(session: "Session", params: Params, progress: Progress) -> Any:
    """Look at it. *elves*: beside the context's. *address*: of the snapshot, None: as the ELF has it. *answer*: the
    memory that was asked for last, None to begin. Raises Busy, NoElf, NoTrace, BadSnapshot, BadElf.
    """
    session.check_idle()
    context, answer = params.context(), params.memory("answer")
    if answer is None:
        if context.elf is None:
            raise NoElf("no program: load the ELF that runs on the chip first (`file app.elf`)")
        session.chip = Chip(esp32.live_capture(context.elf, params.paths("elves"), params.optional_number("address")))
    elif session.chip is None:
        raise NoTrace("no snapshot is being read")
    chip, session.chip = session.chip, None
    try:
        need = next(chip.reading) if answer is None else chip.reading.send(_whole(answer, chip.asked))
    except StopIteration as done:
        return told.answer(session.look_at(done.value, "the chip's memory", None))
    session.chip = chip._replace(asked=need)
    return {"need": need}


def _whole(answer: Answer, asked: Sequence[tuple[int, int]]) -> Answer:
    """What is not as long as was asked could not be read. Raises BadRequest for another number of pieces."""
    if len(answer) != len(asked):
        raise BadRequest(f"snapshot: the answer has {len(answer)} pieces of memory, and {len(asked)} were asked for")
    pairs = zip(asked, answer, strict=True)
    return [data if data is not None and len(data) == size else None for (_, size), data in pairs]


METHODS: Mapping[str, Callable[..., Any]] = {"snapshot": snapshot}
