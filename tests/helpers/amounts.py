"""How much a test tries, and which tests run: some in `make test`, all of it in `make test-long` (RVTRACE_TEST_LONG=1).

Random cases follow from their numbers, so that the some are the first of all, and the same each time.
"""

import inspect
import os
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import product
from typing import Any, TypeVar

import pytest

LONG = os.environ.get("RVTRACE_TEST_LONG", "0") not in ("", "0")
_SHARE, _FEWEST, _STRIDE = 20, 6, 3
_Case = TypeVar("_Case")


def some_of(count: int, share: int = _SHARE) -> int:
    """Return how many of *count* cases are tried: a twentieth, but 6 at least; in the long run all of them.

    *share*: another part than a twentieth, where so few take every way through what is tested.
    """
    return count if LONG else min(count, max(_FEWEST, count // share))


def sparse(every: int) -> int:
    """Return the distance of the places that are tried where *every* place so far apart is tried in the long run."""
    return every if LONG else _STRIDE * every


def long_only(*cases: _Case) -> tuple[_Case, ...]:
    """Return further cases for the long run, which take no other way than those before them: `[*few, *long_only(...)]`.

    Nothing otherwise.
    """
    return cases if LONG else ()


def thorough(smaller: str) -> pytest.MarkDecorator:
    """Leave a test to the long run; it also runs when the command line names it (`FILE::TEST`).

    *smaller*: the test in `make test` that proves a smaller case of the same: one of the same file, or
    `endtoend/trace/test_options.py::test_what_is_in_force_is_said`, by its place in tests/.
    """
    return pytest.mark.thorough(smaller)


def crossed(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return cases of these axes: all combinations in the long run, otherwise each value of every axis at least once.

    Those are as many as the longest axis has values; a shorter one begins again.
    """
    if LONG:
        return list(product(*axes))
    return [tuple(axis[n % len(axis)] for axis in axes) for n in range(max(map(len, axes)))]


def each_seed(seeds: range, share: int = _SHARE) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a test that takes *seed* some of *seeds* (`some_of`), one after the other: they are one test.

    A failure says which seed it was. What else the test takes, fixtures and parameters, stays the same for all seeds.
    """

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def with_each(**others: Any) -> None:
            for seed in seeds[: some_of(len(seeds), share)]:
                try:
                    test(seed=seed, **others)
                except Exception as error:
                    error.add_note(f"seed {seed}")
                    raise

        signature = inspect.signature(test)
        others = [parameter for name, parameter in signature.parameters.items() if name != "seed"]
        with_each.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return with_each

    return decorated
