"""Lines of `rvtrace decode --events`, as docs/messages.md has them."""

from pathlib import Path

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting, EventKind
from rvtrace_gdb.decode.history.history import Path as Flow
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.views.text_rows import event_lines
from tests.helpers.event_facts import ENABLED, INTERRUPT, lost, note

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "messages.md").read_text(encoding="utf-8")


class Named(Image):
    """A program with two functions."""

    def symbol(self, addr: int) -> tuple[str, int] | None:
        return {0x80000048: ("add", 0), 0x800000D4: ("on_trap", 0)}.get(addr)


def test_the_reference_pages_example() -> None:
    builder = HistoryBuilder()
    builder.append(Flow((tuple(range(1206)),)))
    builder.time(1206)
    builder.context(ProgramContext(prv=3))
    builder.event(EventKind.TRAP, 0x29A, INTERRUPT, last_pc=0x80000048, next_pc=0x800000D4)
    builder.append(Flow(((0x800000D4,),)))
    [line] = event_lines({0: builder.finish(Accounting(0, 0, 0, 0))}, Named(64))
    assert f"\n    {line}\n" in PAGE


def test_what_is_not_known_is_left_out() -> None:
    builder = HistoryBuilder()
    builder.event(EventKind.TRACE_ON, 0, ENABLED)
    builder.context(ProgramContext(scontext=7, hcontext=1))
    builder.append(Flow(((0x10,),)))
    builder.gap(EventKind.LOSS, 9, lost("2 bytes skipped: why"))
    assert list(event_lines({0: builder.finish(Accounting(0, 0, 0, 0))}, Image(32))) == [
        "1\ttrace-on offset=0x0 scontext=7 hcontext=1 # trace enabled",
        "2\tloss offset=0x9 last_pc=0x00000010 scontext=7 hcontext=1 # 2 bytes skipped: why",
    ]


def test_every_kind_is_on_the_page() -> None:
    names = [kind.value.replace(" ", "-") for kind in EventKind]
    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_events_of_several_harts_come_in_the_order_of_their_bytes() -> None:
    histories = {}
    for hart, offsets in ((4, (0, 20, 20)), (1, (10, 30))):
        builder = HistoryBuilder()
        for order, offset in enumerate(offsets):
            builder.event(EventKind.NOTE, offset, note(f"{order}"))
        histories[hart] = builder.finish(Accounting(0, 0, 0, 0))
    assert [line.replace("1\tnote ", "") for line in event_lines(histories, Image(64))] == [
        "hart 4\toffset=0x0 # 0",
        "hart 1\toffset=0xa # 0",
        "hart 4\toffset=0x14 # 1",
        "hart 4\toffset=0x14 # 2",
        "hart 1\toffset=0x1e # 1",
    ]
