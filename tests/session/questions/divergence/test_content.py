"""Contents of random paths, against the list of their instructions."""

from itertools import pairwise
from random import Random

from rvtrace_gdb.decode.history.history import AnyPath, Path, PathPart, RepeatPath
from rvtrace_gdb.session.questions.divergence.content import MODULUS, PathContents, joined_hash


def path(random: Random, depth: int) -> AnyPath:
    """A path of paths, tuples (some empty), and repetitions."""
    def part() -> PathPart:
        if depth and random.random() < 0.5:
            return path(random, depth - 1)
        return tuple(random.randrange(1, 50) for _ in range(random.randrange(5)))

    made = Path([part() for _ in range(random.randrange(1, 5))] + [(random.randrange(1, 50),)])
    return RepeatPath(made, random.randrange(2, 6)) if random.random() < 0.4 else made


def spelled(whole: AnyPath) -> list[int]:
    return [whole.pc(k) for k in range(len(whole))]


def odd(pc: int) -> int | None:
    return pc if pc % 2 else None


def test_against_a_list() -> None:
    random = Random(3)
    for number in range(300):
        whole = path(random, 3)
        pcs = spelled(whole)
        symbol_of = odd if number % 2 else None
        places = [k for k, pc in enumerate(pcs) if symbol_of is None or pc % 2]
        symbols = [pcs[k] for k in places]
        content = PathContents(symbol_of).content(whole)
        assert (content.count, content.length) == (len(symbols), len(pcs))
        assert content.hash == content.prefix(content.count)
        first, last = sorted(random.randrange(len(symbols) + 1) for _ in range(2))
        taken: list[int] = []
        content.take(taken, first, last)
        assert taken == symbols[first:last]
        flat = PathContents().content(Path([tuple(symbols[:first])])) if first else None
        assert content.prefix(first) == (flat.hash if flat is not None else 0)
        for k in random.sample(range(len(symbols)), min(3, len(symbols))):
            assert content.place(k) == places[k]
        place = random.randrange(len(pcs) + 1)
        assert content.before(place) == sum(k < place for k in places)


def test_cut_in_other_ways() -> None:
    random = Random(4)
    for _ in range(50):
        pcs = [random.randrange(1 << 40) for _ in range(200)]
        cuts = sorted({0, 200, *(random.randrange(200) for _ in range(9))})
        parts = [tuple(pcs[a:b]) for a, b in pairwise(cuts)]
        whole = PathContents().content(Path(parts))
        assert whole.hash == PathContents().content(Path([tuple(pcs)])).hash < MODULUS
        head = PathContents().content(Path([tuple(pcs[:77])]))
        tail = PathContents().content(Path([tuple(pcs[77:])]))
        assert joined_hash(head.hash, tail.hash, tail.count) == whole.hash


def test_of_other_instructions() -> None:
    known = {PathContents().content(Path([pcs])).hash for pcs in ((1, 2), (2, 1), (1,), (1, 2, 3), (12,), (1, 1, 2))}
    assert len(known) == 6
