"""Profiles of small histories, by hand: each expectation is what a reader of the program would say."""

from array import array
from collections.abc import Sequence
from dataclasses import replace

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting, EventKind
from rvtrace_gdb.decode.history.history import GAP, Event, History, Path, Times
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.elf import Elf, ElfSection, ElfSegment, Symbol
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.reports.profile import hottest
from rvtrace_gdb.reports.profile.hart_profile import hart_profile
from rvtrace_gdb.reports.profile.model import PLACES_AT_MOST, Durations, GapCause, Profile, TrapCause
from rvtrace_gdb.reports.profile.sums import sum_of
from tests.decode import assembler as asm
from tests.decode.calls.call_histories import history_of
from tests.decode.calls.test_call_history import CALL, HANDLED, NOP, RET, Code


def profile_of(code: Code, places: str, times: Sequence[tuple[int, int]] = (), *traps: Event) -> Profile:
    """The profile of a history with these times, by position."""
    history = history_of(code.pcs(places), traps)
    history.times = Times(array("Q", [at for at, _ in times]), array("Q", [time for _, time in times]))
    return hart_profile(CallHistory(history, code.image))


def table(profile: Profile) -> dict[str, tuple[int, int, int]]:
    """Calls, instructions in it alone, and in all, by function."""
    return {row.name: (row.calls, row.own, row.total) for row in hottest.hot_functions(profile)}


RECURSIVE = Code(main=[NOP, CALL, NOP], odd=[asm.beq(8), CALL, RET], even=[NOP, CALL, RET])


def test_a_function_that_calls_itself_counts_once() -> None:
    profile = profile_of(RECURSIVE, "main.0 main.1 odd.0 odd.1 even.0 even.1 odd.0 odd.2 even.2 odd.2 main.2")
    assert table(profile) == {"odd": (2, 5, 8), "even": (1, 3, 5), "main": (0, 3, 11)}


def times_of(profile: Profile) -> dict[str, tuple[int, int, int, int]]:
    """Ticks of its own, how many of them are an estimate; and the same of all, by function."""
    return {
        row.name: (row.own_ticks, row.own_estimate, row.total_ticks, row.total_estimate)
        for row in hottest.hot_functions(profile)
    }


CALLS = Code(main=[NOP, NOP, CALL, NOP, NOP], f=[NOP, NOP, NOP, RET])
RUN = "main.0 main.1 main.2 f.0 f.1 f.2 f.3 main.3 main.4"


def test_time_that_passed_in_one_function_is_known() -> None:
    profile = profile_of(CALLS, RUN, [(0, 100), (3, 110), (7, 150), (8, 151)])
    assert times_of(profile) == {"f": (40, 0, 40, 0), "main": (11, 0, 51, 0)}
    assert (profile.harts[0].ticks, profile.harts[0].timed) == (51, 51)


def test_time_that_passed_in_several_is_shared_out() -> None:
    """Of 80 ticks of 8 instructions, half were in f; that all were in main and below it is known."""
    assert times_of(profile_of(CALLS, RUN, [(0, 0), (8, 80)])) == {"f": (40, 40, 40, 40), "main": (40, 40, 80, 0)}


def test_time_in_which_something_is_missing_is_nobodys() -> None:
    profile = profile_of(CALLS, "main.0 main.1 - f.1 f.2", [(0, 0), (1, 5), (4, 100)])
    assert times_of(profile) == {"f": (0, 0, 0, 0), "main": (5, 0, 5, 0)}
    assert (profile.harts[0].ticks, profile.harts[0].timed) == (100, 5)


def test_a_trap_with_its_duration() -> None:
    trap = HANDLED.trap(2, "f.1", "handler.0")
    places = "main.1 f.0 handler.0 handler.2 f.1 main.2"
    profile = profile_of(HANDLED, places, [(0, 0), (2, 7), (4, 10)], trap)
    [(cause, tally)] = profile.traps.items()
    assert cause == TrapCause("interrupt", None)
    assert (tally.times, tally.instructions, tally.ticks) == (1, Durations(1, 2, 2, 2), Durations(1, 3, 3, 3))
    untimed = profile_of(HANDLED, places, [(0, 0), (2, 7), (5, 10)], trap)
    assert next(iter(untimed.traps.values())).ticks == Durations(), "not known where the handler ends"


def test_a_handler_that_is_cut_off_has_no_duration() -> None:
    trap = HANDLED.trap(2, "f.1", "handler.0")
    profile = profile_of(HANDLED, "main.1 f.0 handler.0 - handler.2 f.1", (), trap)
    [tally] = profile.traps.values()
    assert (tally.times, tally.instructions) == (1, Durations())


def test_losses_have_their_bytes_and_places() -> None:
    history = history_of(CALLS.pcs("main.0 - f.1 f.2 - main.4"))
    first, last = (event for event in history.events if event.kind is EventKind.LOSS)
    history.events = [first._replace(end=first.offset + 10), last._replace(end=None)]
    profile = hart_profile(CallHistory(history, CALLS.image), 3, trace_bytes=104)
    tally = profile.gaps[GapCause("loss", "malformed", True)]
    assert (tally.times, tally.size) == (2, 10 + 100), "the last one reaches to the end of the trace"
    assert [(gap.hart, gap.number, gap.offset, gap.size) for gap in tally.places] == [(3, 5, 4, 100), (3, 2, 1, 10)]
    many = sum_of([profile] * PLACES_AT_MOST).gaps[GapCause("loss", "malformed", True)]
    assert (many.times, len(many.places)) == (2 * PLACES_AT_MOST, PLACES_AT_MOST)
    assert {gap.size for gap in many.places} == {100}, "the largest are kept"


def _elf(name: str, build_id: str, base: int, code: list[bytes], symbol: str) -> Elf:
    data = b"".join(code)
    section = ElfSection(base, base + len(data), [Symbol(base, symbol, len(data), True)])
    made = Elf(name, name, 64, build_id=build_id)
    return replace(made, segments=[ElfSegment(base, base, 0, data, True)], sections=[section])


def test_processes_at_the_same_address_are_told_apart() -> None:
    """Two processes with code at 0x1000, and a library that each has elsewhere: its code is the same."""
    library = _elf("lib.so", "11", 0x100, [NOP, RET], "shared")
    program = ContextImages(Image(64))
    for number, bias in ((1, 0x8000), (2, 0x9000)):
        image = Image(64)
        jump = asm.jal(0x100 + bias - 0x1004)
        image.add_elf(_elf(f"p{number}", f"2{number}", 0x1000, [NOP, jump], f"main{number}"))
        image.add_elf(library, bias)
        program.attach(image, scontext=number)
    builder = HistoryBuilder()
    for number, bias in ((1, 0x8000), (2, 0x9000), (1, 0x8000)):
        builder.context(ProgramContext(0, scontext=number), 0)
        builder.append(Path([(0x1000, 0x1004, 0x100 + bias, 0x104 + bias)]))
    history: History = builder.finish(Accounting(0, 0, 0, 0))
    profile = hart_profile(CallHistory(history, program))
    assert {row.name: row.own for row in hottest.hot_functions(profile)} == {"main1": 4, "shared": 6, "main2": 2}
    assert [(it.name, it.build_id) for it in profile.programs if it.build_id] == [
        ("lib.so", "11"), ("p1", "21"), ("p2", "22"),
    ]  # fmt: skip
    assert sorted(profile.ran.values()) == [1, 1, 2, 2, 3, 3]
    assert GAP not in {address for _, address in profile.ran}
