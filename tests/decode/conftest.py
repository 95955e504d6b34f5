"""Outside the long run, many cases that are tried with the kernel and without are shared out between the two."""

from collections import defaultdict

import pytest

from tests.decode.kernel.loops import LOOPS
from tests.helpers.amounts import LONG

MANY = 6
"""Of fewer cases each is tried both ways. tests/decode/kernel holds the two against each other in all they do."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if LONG or len(LOOPS) == 1 or any("::" in argument for argument in config.args):
        return
    ways = {item: loop for item in items if (loop := _loop(item)) is not None}
    cases: dict[str, dict[str, int]] = defaultdict(dict)  # by test, with their numbers
    for item, loop in ways.items():
        numbers = cases[_test(item)]
        numbers.setdefault(_case(item, loop), len(numbers))
    gone = {
        item
        for item, loop in ways.items()
        if len(numbers := cases[_test(item)]) >= MANY and loop != LOOPS[numbers[_case(item, loop)] % len(LOOPS)]
    }
    if gone:
        config.hook.pytest_deselected(items=list(gone))
        items[:] = [item for item in items if item not in gone]


def _loop(item: pytest.Item) -> str | None:
    """Whether it is tried with the kernel or without; None: neither is asked for."""
    spec = getattr(item, "callspec", None)
    loop = None if spec is None else spec.params.get("loop")
    return loop if loop in LOOPS else None


def _test(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _case(item: pytest.Item, loop: str) -> str:
    """What is tried, whichever way."""
    return item.nodeid.replace(f"[{loop}", "[", 1)
