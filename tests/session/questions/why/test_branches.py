"""What let each instruction run, against another algorithm over what Spike executed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.past.register_writers import RegisterWriters
from rvtrace_gdb.session.questions.why import deciders
from rvtrace_gdb.session.questions.why.branches import Decided, Decision, Decisions
from rvtrace_gdb.session.questions.why.trace import HartRanges, TracedPast
from tests.decode.reconstruction.spike_history import history_of
from tests.helpers.amounts import sparse
from tests.session.questions.why.regions import Disassembly, decisions
from tests.transport.simulated.hart.programs import build, with_macros
from tests.transport.simulated.hart.spike import run_spike

SOURCES = Path(__file__).resolve().parents[3] / "programs"
STEPS = 25_000
_UNKNOWN = Decided(Decision.BEGINNING, None)


class Judged(NamedTuple):
    """A run, and what let each of its instructions run: the kind, and the position, -1 for the beginning."""

    image: Image
    history: History
    truth: Sequence[tuple[str, int]]

    def branches(self) -> Decisions:
        program = ContextImages(self.image)
        calls = CallHistory(self.history, program)
        hart = HartRanges(0, others=False, ranges=())
        trace = TracedPast(self.history, program, None, RegisterWriters(self.history, program), hart)
        return Decisions(trace, calls, CallFrames(self.history, calls))

    def differing(self, every: int) -> Iterator[tuple[int, Decided, tuple[str, int]]]:
        branches = self.branches()
        for position in range(0, len(self.history), every):
            found = branches.decided(position)
            if (found.kind.value, -1 if found.position is None else found.position) != self.truth[position]:
                yield position, found, self.truth[position]


PROGRAMS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "millicode": (("start.S", "workload.c"), "rv32imac"),
    "workload 64": (("start.S", "workload.c"), "rv64imafdc"),
    "workload 32": (("start.S", "workload.c"), "rv32imac"),
    "recursion in an endless loop": (("start.S", f"{SOURCES}/deep.c"), "rv64imac"),
    "tables": (("start.S", f"{SOURCES}/tables/main.c"), "rv64imafdc"),
    "interrupts": (("interrupts.S",), "rv64imac"),
    "exceptions": (("traps.S",), "rv64imafdc"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("branches")


@cache
def judged(name: str, folder: Path) -> Judged:
    sources, march = PROGRAMS[name]
    made = [with_macros(folder, it, ROUNDS=1) if it == "workload.c" else it for it in sources]
    options = ("-msave-restore",) if name == "millicode" else ()
    elf = build(folder, *made, march=march, options=options)
    run = run_spike(elf, folder, march[4:].upper(), steps=STEPS)
    return Judged(Image.from_elf(elf), history_of(run), list(decisions(run, Disassembly(elf))))


@pytest.mark.parametrize("name", ["workload 64", "workload 32", "recursion in an endless loop", "tables"])
def test_decisions(name: str, folder: Path) -> None:
    ran = judged(name, folder)
    assert {"branch", "call"} <= {kind for kind, _ in ran.truth}
    assert not list(ran.differing(sparse(7)))


def test_millicode(folder: Path) -> None:
    """Where gcc saves and restores registers by calls and jumps of its own. One of them goes on into the next, which is
    no jump.
    """
    ran = judged("millicode", folder)
    places = [ran.image.symbol(ran.history.pc(position)) for position, *_ in ran.differing(sparse(3))]
    assert all(place is not None and place[0].startswith("__riscv_") for place in places)
    assert "jump" in {kind for kind, _ in ran.truth}


@pytest.mark.parametrize("name", ["interrupts", "exceptions"])
def test_what_is_not_known_is_said(name: str, folder: Path) -> None:
    """Handlers that return elsewhere leave the call stack unknown: there is no answer then, and never a wrong one."""
    ran = judged(name, folder)
    assert {"branch", "jump", "trap"} <= {kind for kind, _ in ran.truth}
    differing = list(ran.differing(sparse(5)))
    assert all(found == _UNKNOWN for _, found, _ in differing)
    assert len(differing) < len(ran.truth) / sparse(5) / 4


def _tables_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deciders, "is_table_jump", lambda instruction: False)


def _branch_forgotten(patch: pytest.MonkeyPatch) -> None:
    whole = deciders.deciding_branches

    def fewer(successors: deciders.Successors) -> dict[int, deciders.Deciding]:
        return {pc: it._replace(branches=frozenset(sorted(it.branches)[1:])) for pc, it in whole(successors).items()}

    patch.setattr(deciders, "deciding_branches", fewer)


def _endless_loops_decide(patch: pytest.MonkeyPatch) -> None:
    whole = deciders.deciding_branches

    def more(successors: deciders.Successors) -> dict[int, deciders.Deciding]:
        return {pc: deciders.Deciding(it.branches) for pc, it in whole(successors).items()}

    patch.setattr(deciders, "deciding_branches", more)


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (_tables_forgotten, "tables"),
        (_branch_forgotten, "workload 64"),
        (_endless_loops_decide, "recursion in an endless loop"),
    ],
)
def test_faults_are_seen(fault: Callable[[pytest.MonkeyPatch], None], name: str, folder: Path) -> None:
    ran = judged(name, folder)
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        assert any(ran.differing(1))
