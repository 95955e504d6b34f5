"""How instructions are cut into runs that are compiled: where they do not follow each other, or are many."""

from itertools import accumulate
from random import Random

from rvtrace_gdb.decode.reconstruction.compiler import LONGEST_RUN
from rvtrace_gdb.decode.reconstruction.runs import _straight


def follows(pcs: tuple[int, ...], at: int) -> bool:
    return pcs[at] - pcs[at - 1] in (1, 2, 3, 4)


def test_straight_stretches_are_as_long_as_they_can_be() -> None:
    random = Random(1)
    for size in (0, 1, 2, 3, LONGEST_RUN, LONGEST_RUN + 1, 2 * LONGEST_RUN, 3000):
        for jumps in (0, 1, 30):
            steps = [random.choice((-8, 0, 6, 100) if random.randrange(100) < jumps else (2, 4)) for _ in range(size)]
            pcs = tuple(accumulate(steps[1:], initial=1 << 20))[:size]
            found = list(_straight(pcs))
            assert [at for begin, end in found for at in range(begin, end)] == list(range(size))
            assert all(follows(pcs, at) for begin, end in found for at in range(begin + 1, end))
            lengths = [end - begin for begin, end in found]
            assert all(0 < length <= LONGEST_RUN for length in lengths)
            for (begin, end), length in zip(found[:-1], lengths, strict=False):
                assert length == LONGEST_RUN or not follows(pcs, end), (begin, end)
