"""Calls by the instructions that made them: small histories by hand, and what holds of all."""

from collections import Counter

import pytest

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.call_tree import call_tree, tree_rows
from rvtrace_gdb.decode.history.history import GAP, Event
from rvtrace_gdb.reports.profile.call_sites import ArcCounts, CallArc, call_arcs
from rvtrace_gdb.reports.profile.counted import count_code
from rvtrace_gdb.reports.profile.model import CodePlace, Profile
from rvtrace_gdb.reports.profile.places import CodePlaces
from rvtrace_gdb.support.errors import silent
from tests.decode import assembler as asm
from tests.decode.calls.call_histories import history_of, in_small_blocks
from tests.decode.calls.test_call_history import CALL, HANDLED, NOP, RET, Code
from tests.decode.calls.test_call_history_properties import Case
from tests.helpers.amounts import each_seed

small_blocks = pytest.fixture(in_small_blocks, autouse=True, scope="module")


def arcs_of(calls: CallHistory) -> tuple[Profile, dict[CallArc, ArcCounts]]:
    profile = Profile()
    places, steps = CodePlaces(profile), calls.steps()
    count_code(profile, places, calls, steps, range(len(calls.history)), silent)
    return profile, call_arcs(profile, places, calls, steps, silent)


def called(code: Code, places: str, *traps: Event) -> dict[str, tuple[int, int]]:
    """Calls, and instructions in them, by "site function"; without a known site, "(caller) function"."""
    profile, arcs = arcs_of(CallHistory(history_of(code.pcs(places), traps), code.image))
    names = {start: name for name, start in code.starts.items()}
    found = {}
    for (caller, site, callee), counts in arcs.items():
        where = "-" if caller is None else f"({profile.names[caller]})"
        if site is not None:
            start = max(at for at in names if at <= site[1])
            assert caller == (site[0], start)
            where = f"{names[start]}.{(site[1] - start) // 4}"
        found[f"{where} {profile.names[callee]}"] = counts.calls, counts.instructions
    return found


def test_two_places_that_call_the_same_function() -> None:
    code = Code(main=[NOP, CALL, NOP, CALL, NOP], f=[asm.beq(8), NOP, RET])
    assert called(code, "main.0 main.1 f.0 f.2 main.2 main.3 f.0 f.1 f.2 main.4") == {
        "- main": (0, 10), "main.1 f": (1, 2), "main.3 f": (1, 3),
    }  # fmt: skip


def test_an_interrupt_is_a_call_from_where_it_hit() -> None:
    trap = HANDLED.trap(2, "f.1", "handler.0")
    assert called(HANDLED, "main.1 f.0 handler.0 handler.2 f.1 main.2", trap) == {
        "- main": (0, 6), "main.1 f": (1, 4), "f.1 handler": (1, 2),
    }  # fmt: skip


def test_a_trap_of_an_unknown_place_has_none() -> None:
    trap = HANDLED.trap(2, None, "handler.0")
    assert called(HANDLED, "main.1 f.0 handler.0 handler.2 f.1", trap)["(f) handler"] == (1, 2)


@pytest.mark.parametrize("reported", [False, True])
def test_an_ecall_calls_its_handler(reported: bool) -> None:
    traps = [HANDLED.trap(2, "main.3", "handler.0")] if reported else []
    assert called(HANDLED, "main.2 main.3 handler.0 handler.1 f.0 f.1 handler.2 main.4", *traps) == {
        "- main": (0, 8), "main.3 handler": (1, 5), "handler.1 f": (1, 2),
    }  # fmt: skip


def test_a_jump_to_another_function_is_a_call() -> None:
    code = Code(main=[CALL, NOP], f=[NOP, asm.jal(4)], g=[NOP, RET])
    assert called(code, "main.0 f.0 f.1 g.0 g.1 main.1") == {"- main": (0, 6), "main.0 f": (1, 4), "f.1 g": (1, 2)}


def test_of_two_jumps_it_is_not_known_which() -> None:
    code = Code(main=[CALL, CALL, NOP], f=[asm.beq(8), asm.jal(8), asm.jal(4)], g=[NOP, RET])
    assert called(code, "main.0 f.0 f.1 g.0 g.1 main.1 f.0 f.2 g.0 g.1 main.2") == {
        "- main": (0, 11), "main.0 f": (1, 4), "main.1 f": (1, 4), "(f) g": (2, 4),
    }  # fmt: skip


def test_each_call_of_a_recursion_counts() -> None:
    code = Code(main=[CALL, NOP], f=[asm.beq(8), CALL, RET])
    assert called(code, "main.0 f.0 f.1 f.0 f.1 f.0 f.2 f.2 f.2 main.1") == {
        "- main": (0, 10), "main.0 f": (1, 8), "f.1 f": (2, 5 + 2),
    }  # fmt: skip


def test_behind_a_gap_no_caller_is_known() -> None:
    assert called(HANDLED, "main.0 main.1 f.0 - f.1 main.2") == {
        "- main": (0, 3 + 1), "main.1 f": (1, 1), "- f": (0, 1),
    }  # fmt: skip


@each_seed(range(300), share=20)
def test_what_ran_in_calls_adds_up(seed: int) -> None:
    """Where a function is called from has what ran in it, and what ran in its calls; the calls are those of the call
    tree; and they are made in the function that calls."""
    case = Case(seed)
    _, arcs = arcs_of(case.calls)
    into, out, calls, own = (Counter[CodePlace]() for _ in range(4))
    for (caller, site, callee), counts in arcs.items():
        into[callee] += counts.instructions
        calls[callee] += counts.calls
        if caller is not None:
            out[caller] += counts.instructions
        assert site is None or start_of(case, site[1]) == caller
    for pc in case.pcs:
        if pc != GAP:
            own[start_of(case, pc)] += 1
    assert into == own + out
    expected = Counter[CodePlace]()
    for _, node in tree_rows(call_tree(case.calls), 1 << 20):
        expected[(0, node.function) if node.function >= 0 else (-1, -1)] += node.calls
    assert +calls == +expected


def start_of(case: Case, pc: int) -> CodePlace:
    found = case.image.symbol(pc)
    return (-1, -1) if found is None else (0, pc - found[1])
