"""What ends a trace of which E-Trace says little: a handler whose first instruction traps, calls without a branch."""

from pathlib import Path

import pytest

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.questions.explain.explain import explanations
from rvtrace_gdb.session.session import Session
from tests.session.questions.explain.corpus import observed
from tests.session.questions.explain.mutants import mutants


@pytest.mark.parametrize("etrace", [False, True], ids=["N-Trace", "E-Trace"])
def test_the_handler_and_what_led_to_it(tmp_path: Path, etrace: bool) -> None:
    """A loop that counts down writes through all memory below an array, its own code too, until a store fails; then the
    handler is no instruction any more.
    """
    mutant = next(it for it in mutants(9, 5) if it.name.startswith("tasks:64 other way"))
    seen = observed(tmp_path, mutant, "-O2", etrace=etrace, run=9000)
    assert seen is not None and seen.truth == "trap-loop"
    session = Session()
    session.open(seen.capture, None)
    [found] = explanations(session, Context())
    session.close()
    finding = next(it for it in found.findings if it.kind == "trap-loop")
    assert finding.place is not None and (finding.place.name, finding.place.offset) == ("on_trap", 0)
    assert finding.details[0].endswith("which the first instruction of its handler has.")
    assert " in add() led there." in finding.details[1]


@pytest.mark.parametrize("etrace", [False, True], ids=["N-Trace", "E-Trace"])
def test_calls_without_end_and_without_a_branch(tmp_path: Path, etrace: bool) -> None:
    """E-Trace sends nothing for direct calls: its history ends with the first one of them."""
    mutant = next(it for it in mutants(5, 6) if it.name.startswith("parser:54 itself"))
    seen = observed(tmp_path, mutant, etrace=etrace, run=9000)
    assert seen is not None and seen.truth == "endless-recursion"
    session = Session()
    session.open(seen.capture, None)
    [found] = explanations(session, Context())
    session.close()
    finding = found.findings[0]
    assert finding.kind == "endless-recursion" and "sum() calls itself" in finding.text
    assert found.commands == [f"goto {finding.place and finding.place.number}", "calls-of sum 1,10"]
