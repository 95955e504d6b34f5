"""Programs with seeded faults: what is said of how they ended, against what the simulated hart itself says.

The observer knows registers, traps, calls and the lowest sp, and nothing of the trace. A program that ends, or goes on
as it should, is sane, whatever it computed.
"""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.questions.explain.explain import explanations
from rvtrace_gdb.session.session import Session
from tests.helpers.amounts import thorough
from tests.session.questions.explain.corpus import RUN, observed
from tests.session.questions.explain.mutants import PROGRAMS, Mutant, mutants
from tests.session.questions.explain.observer import SANE

SEED, OF_EACH = 20_261, 20
FEW, FEW_RUN = 5, 12_000
SHARE, ETRACE_SHARE, KINDS = 0.9, 0.7, 10
"""The right answers among those that misbehave, and how many kinds of misbehaviour there are, at least. E-Trace sends
nothing for what ran last until something is not inferable: a loop, or a trap without end, can be missing.
"""


class Verdicts(NamedTuple):
    """How often which kind was said of which, and lines about those that are wrong."""

    pairs: Counter[tuple[str, str]]
    wrong: list[str]

    @property
    def share(self) -> float:
        bad = sum(times for (truth, _), times in self.pairs.items() if truth != SANE)
        return sum(times for (truth, said), times in self.pairs.items() if truth != SANE and truth == said) / bad

    @property
    def false_alarms(self) -> int:
        return sum(times for (truth, said), times in self.pairs.items() if truth == SANE != said)

    @property
    def kinds(self) -> set[str]:
        return {truth for truth, _ in self.pairs} - {SANE}


def kind_of(capture: Path) -> str:
    """The first kind that is said of a capture."""
    session = Session()
    session.open(capture, None)
    [explanation] = explanations(session, Context())
    session.close()
    return explanation.findings[0].kind if explanation.findings else SANE


def verdicts(
    folder: Path, chosen: list[Mutant], *, etrace: bool = False, run: int = RUN, march: str = "rv64imac_zicsr"
) -> Verdicts:
    pairs, wrong = Counter[tuple[str, str]](), list[str]()
    for number, mutant in enumerate(chosen):
        place = folder / str(number)
        place.mkdir()
        seen = observed(place, mutant, etrace=etrace, run=run, march=march)
        if seen is None:
            continue
        said = kind_of(seen.capture)
        pairs[seen.truth, said] += 1
        if said != seen.truth:
            wrong.append(f"{mutant.name}: {seen.truth}, said {said}")
    return Verdicts(pairs, wrong)


def test_some_mutants_and_sane_programs(tmp_path: Path) -> None:
    """A few of those below: each is said to be what it is."""
    sane = [Mutant(program, "", 0, "") for program in PROGRAMS[::5]]
    result = verdicts(tmp_path, [*sane, *mutants(1, 1)[:FEW]], run=FEW_RUN)
    assert result.wrong == [] and result.pairs[SANE, SANE] >= len(sane)
    assert len(result.kinds) >= 2


def test_some_mutants_on_rv32(tmp_path: Path) -> None:
    result = verdicts(tmp_path, mutants(1, 1)[:FEW], run=FEW_RUN, march="rv32imac_zicsr")
    assert result.wrong == [] and len(result.kinds) >= 2


@thorough("test_some_mutants_and_sane_programs")
@pytest.mark.parametrize("etrace", [False, True], ids=["N-Trace", "E-Trace"])
def test_mutants(tmp_path: Path, etrace: bool) -> None:
    """At least 100 mutants of ten programs; the right kind of nine in ten, and no alarm where nothing is wrong."""
    sane = [Mutant(program, "", 0, "") for program in PROGRAMS]
    result = verdicts(tmp_path, [*sane, *mutants(SEED, OF_EACH)], etrace=etrace)
    figures = f"{result.pairs}: {result.wrong}"
    assert sum(result.pairs.values()) >= 100 + len(PROGRAMS)
    assert len(result.kinds) >= KINDS
    assert result.false_alarms == 0, figures
    assert result.share >= (ETRACE_SHARE if etrace else SHARE), figures
