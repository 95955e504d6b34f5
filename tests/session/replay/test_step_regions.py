"""Steps that gdb is spared, compared with a walk that looks at each instruction."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.history.history import GAP, Event
from rvtrace_gdb.session.replay.step_regions import StepRegion
from rvtrace_gdb.support.errors import silent
from tests.decode import assembler as asm
from tests.decode.calls.call_histories import history_of
from tests.decode.calls.test_call_history import CALL, NOP, Code
from tests.helpers.amounts import some_of
from tests.session.replay.test_timeline import places_in

CODE = Code(main=[NOP, NOP, NOP, CALL, NOP, asm.beq(-16), NOP, NOP], f=[NOP, NOP])
MAIN = [CODE.starts["main"] + 4 * k for k in range(8)]
PCS = [*MAIN, CODE.starts["f"]]
CALLS = {MAIN[3]}


class Walk:
    """The same, one instruction after the other."""

    def __init__(self, pcs: list[int], traps: set[int]) -> None:
        self.pcs, self.traps, self.position = pcs, traps, 0

    def step(self, direction: int, regions: tuple[range, ...], breakpoints: frozenset[int]) -> int:
        """Return where gdb looks next."""
        looks = CALLS | breakpoints | {part.start for part in regions}
        before, at = self.pcs[self.position], self._beside(self.position, direction)
        alone = before in breakpoints or (direction > 0 and before in CALLS) or abs(at - self.position) > 1
        if alone or at + (direction < 0) in self.traps:
            return at
        while 0 <= at < len(self.pcs) and any(self.pcs[at] in part for part in regions):
            if self.pcs[at] in looks:
                break
            ahead = at + direction
            if not 0 <= ahead < len(self.pcs) or self.pcs[ahead] == GAP:
                break
            at = ahead
            if at + (direction < 0) in self.traps:
                break
        return at

    def _beside(self, position: int, direction: int) -> int:
        at = position + direction
        return at + direction if 0 <= at < len(self.pcs) and self.pcs[at] == GAP else at


@given(st.integers(0, 1 << 30))
@settings(max_examples=some_of(200), deadline=None)
def test_as_a_walk(seed: int) -> None:
    rng = random.Random(seed)
    pcs = [rng.choice(PCS if rng.random() < 0.2 else MAIN[:3]) for _ in range(rng.randint(3, 60))]
    for position in rng.sample(range(1, len(pcs) - 1), rng.choice([0, 0, 1])):
        pcs[position] = GAP
    traps = set(rng.sample(range(1, len(pcs)), rng.choice([0, 0, 2])))
    events = [Event(at, CODE.trap(at, None, "f.0").kind, 0, CODE.trap(at, None, "f.0").fact) for at in sorted(traps)]
    past, walk = places_in(history_of(pcs, events, rng), program=CODE.image), Walk(pcs, traps)
    past.enter(0, silent)
    for _ in range(30):
        walk.position = rng.choice([at for at, pc in enumerate(pcs) if pc != GAP])
        direction, breakpoints = rng.choice([1, -1]), frozenset(rng.sample(PCS, rng.choice([0, 0, 1])))
        first = rng.randrange(6)
        region = range(MAIN[first], MAIN[first] + 4 * rng.randint(2, 9)), range(MAIN[0] - 8, MAIN[0] - 4)
        past.go_to(0, walk.position)
        past.regions.expect(0, walk.position, StepRegion(region, repeats=False))
        stop = past.step_along(0, direction, breakpoints, silent)
        expected = walk.step(direction, region, breakpoints)
        assert past.position(0) == min(max(expected, 0), len(pcs))
        assert stop.at_end == ("begin" if expected < 0 else "end" if expected >= len(pcs) else "")


def test_the_beginning_of_a_loop_is_looked_at_until_it_is_known() -> None:
    body = [MAIN[0], MAIN[1], MAIN[2]]
    past = places_in(history_of(body * 1000 + [MAIN[4]]), program=CODE.image)

    def looks(*, repeats: bool) -> int:
        past.go_to(0, 3000)
        for count in range(1, 4000):
            position = past.position(0)
            assert position is not None
            past.regions.expect(0, position, StepRegion((range(MAIN[0], MAIN[3]),), repeats))
            if past.step_along(0, -1, frozenset(), silent).at_end:
                past.regions.clear()
                return count
        raise AssertionError

    assert looks(repeats=False) == 1001 and looks(repeats=True) < 12


def test_a_step_from_elsewhere_is_one() -> None:
    past = places_in(history_of([MAIN[0], *MAIN[1:3] * 10]), program=CODE.image)
    region = StepRegion((range(MAIN[0], MAIN[3]),), repeats=True)
    past.go_to(0, 12)
    past.regions.expect(0, 11, region)
    past.step_along(0, -1, frozenset(), silent)
    assert past.position(0) == 11
    past.regions.expect(0, 11, region)
    past.regions.clear()
    past.step_along(0, -1, frozenset(), silent)
    assert past.position(0) == 10
