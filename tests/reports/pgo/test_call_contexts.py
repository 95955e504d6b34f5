"""What ran by the calls that led to it, against a call stack that is made of the addresses that ran."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.history import GAP, Event
from rvtrace_gdb.reports.pgo.call_contexts import (
    CallContext,
    ContextCounts,
    ContextTallies,
    context_counts,
    contexts_of_program,
)
from rvtrace_gdb.reports.profile.hart_profile import hart_profile
from rvtrace_gdb.session.queries.coverage.program_counts import counted_harts
from rvtrace_gdb.session.session import Session
from tests.decode import assembler as asm
from tests.decode.calls.call_histories import history_of, in_small_blocks
from tests.decode.calls.test_call_history import CALL, HANDLED, NOP, RET, Code
from tests.decode.calls.test_call_history_properties import Case
from tests.helpers.amounts import each_seed
from tests.reports.pgo.naive_contexts import Context, NaiveContexts
from tests.session.exports import exported

small_blocks = pytest.fixture(in_small_blocks, autouse=True, scope="module")


def contexts_of(calls: CallHistory) -> ContextCounts:
    return context_counts(hart_profile(calls), calls)


def contexts(code: Code, places: str, *traps: Event) -> dict[str, str]:
    """Entries and instructions, by "sites function"."""
    found = contexts_of(CallHistory(history_of(code.pcs(places), traps), code.image))
    names = {start: name for name, start in code.starts.items()}

    def text(pc: int) -> str:
        start = max(at for at in names if at <= pc)
        return f"{names[start]}.{(pc - start) // 4}"

    [tallies] = found.tallies
    return {
        " ".join([*map(text, context.sites), names[context.function]]):
        f"{tally.entries}: " + " ".join(f"{text(pc)}*{times}" for pc, times in sorted(tally.ran.items()))
        for context, tally in tallies.items()
    }  # fmt: skip


def test_two_callers_of_a_function() -> None:
    code = Code(main=[CALL, CALL, NOP], f=[asm.beq(8), NOP, RET])
    assert contexts(code, "main.0 f.0 f.2 main.1 f.0 f.1 f.2 main.2") == {
        "main": "0: main.0*1 main.1*1 main.2*1",
        "main.0 f": "1: f.0*1 f.2*1",
        "main.1 f": "1: f.0*1 f.1*1 f.2*1",
    }


def test_recursion_is_one_context() -> None:
    code = Code(main=[CALL, NOP], f=[asm.beq(8), CALL, RET])
    assert contexts(code, "main.0 f.0 f.1 f.0 f.1 f.0 f.2 f.2 f.2 main.1") == {
        "main": "0: main.0*1 main.1*1",
        "main.0 f": "1: f.0*1 f.1*1 f.2*1",
        "main.0 f.1 f": "2: f.0*2 f.1*1 f.2*2",
    }


def test_a_trap_begins_a_context() -> None:
    trap = HANDLED.trap(2, "f.1", "handler.0")
    assert contexts(HANDLED, "main.1 f.0 handler.0 handler.2 f.1 main.2", trap) == {
        "main": "0: main.1*1 main.2*1",
        "main.1 f": "1: f.0*1 f.1*1",
        "handler": "1: handler.0*1 handler.2*1",
    }


def test_of_two_jumps_it_is_not_known_which() -> None:
    code = Code(main=[CALL, CALL, NOP], f=[asm.beq(8), asm.jal(8), asm.jal(4)], g=[NOP, RET])
    calls = CallHistory(history_of(code.pcs("main.0 f.0 f.1 g.0 g.1 main.1 f.0 f.2 g.0 g.1 main.2")), code.image)
    found = contexts_of(calls)
    assert found.unplaced == 2
    assert found.tallies[0][CallContext((), code.at("g.0"))].entries == 2


def test_behind_a_gap_a_context_begins() -> None:
    assert contexts(HANDLED, "main.0 main.1 f.0 - f.1 main.2") == {
        "main": "0: main.0*1 main.1*1 main.2*1", "main.1 f": "1: f.0*1", "f": "0: f.1*1",
    }  # fmt: skip


@each_seed(range(300), share=12)
def test_contexts_add_up(seed: int) -> None:
    """All contexts of a function together have what ran in it; a caller has the calls that lead to a context."""
    case = Case(seed)
    [tallies] = contexts_of(case.calls).tallies or [{}]
    ran = Counter[int]()
    for tally in tallies.values():
        ran.update(tally.ran)
    assert ran == Counter(pc for pc in case.pcs if pc != GAP and case.image.function(pc) is not None)
    calls = sum(times for tally in tallies.values() for times in tally.calls.values())
    entries = sum(tally.entries for context, tally in tallies.items() if context.sites)
    assert calls == entries


@dataclass
class Plain:
    """Contexts as plain tables, without what is 0."""

    ran: dict[Context, dict[int, int]]
    entries: dict[Context, int]
    calls: dict[Context, dict[tuple[int, int], int]]


def plain_of(tallies: ContextTallies) -> Plain:
    ran: dict[Context, dict[int, int]] = {it: dict(+tally.ran) for it, tally in tallies.items() if +tally.ran}
    entries: dict[Context, int] = {it: tally.entries for it, tally in tallies.items() if tally.entries}
    calls: dict[Context, dict[tuple[int, int], int]] = {
        it: dict(+tally.calls) for it, tally in tallies.items() if +tally.calls
    }
    return Plain(ran, entries, calls)


def plain_sum(*naive: NaiveContexts) -> Plain:
    found = Plain({}, {}, {})
    for one in naive:
        for context, ran in one.ran.items():
            found.ran[context] = dict(Counter(found.ran.get(context, {})) + ran)
        for context, times in one.entries.items():
            found.entries[context] = found.entries.get(context, 0) + times
        for context, calls in one.calls.items():
            found.calls[context] = dict(Counter(found.calls.get(context, {})) + calls)
    return found


def counted(session: Session) -> ContextTallies:
    found = counted_harts(session, has_contexts=True)
    return contexts_of_program(found.contexts, found.elves[0].build_id or found.elves[0].sha256)


@pytest.mark.parametrize("program", exported.PROGRAMS)
def test_contexts_of_programs(program: str, tmp_path: Path) -> None:
    session, capture = Session(), tmp_path / "it.rvt"
    assert main(["import", str(exported.stream(program)), *exported.options(program), "-o", str(capture)]) == 0
    session.open(capture, None)
    naive = NaiveContexts(exported.elf(program), exported.retired(program))
    assert plain_of(counted(session)) == plain_sum(naive)


def test_contexts_of_two_harts(tmp_path: Path) -> None:
    file, options = exported.two_harts(tmp_path)
    session = exported.opened(file, "median", *options[3:])
    pcs = exported.retired("median")
    decoded = session.harts().harts.histories
    naive = [NaiveContexts(exported.elf("median"), pcs[: len(history)]) for history in decoded.values()]
    assert len(decoded[1]) == len(pcs) > len(decoded[2]) > 100
    assert plain_of(counted(session)) == plain_sum(*naive)
