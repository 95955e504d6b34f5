"""What is left to the long run has a smaller case that `make test` tries: the one that its mark names."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repository.test_rooms import TESTS, tree

_Test = tuple[Path, str]


def _tests_of(path: Path) -> Iterator[tuple[str, str | None]]:
    """Each test of a file, with the smaller one that it names if it is thorough."""
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name, next(filter(None, map(_smaller, node.decorator_list)), None)


def _smaller(decorator: ast.expr) -> str | None:
    named = isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) and decorator.func.id == "thorough"
    return ast.literal_eval(decorator.args[0]) if named and isinstance(decorator, ast.Call) else None


def _place(path: Path, smaller: str) -> _Test:
    file, _, name = smaller.rpartition("::")
    return TESTS / file if file else path, name


def unproved(tests: dict[_Test, str | None]) -> list[str]:
    """Those of *tests* that name a test which is not there, or is thorough, too."""
    return [
        f"{path.name}: {name}: {smaller}"
        for (path, name), smaller in tests.items()
        if smaller is not None and tests.get(_place(path, smaller), "missing") is not None
    ]


def test_a_smaller_case_stays() -> None:
    files = [path for path in sorted(TESTS.rglob("test_*.py")) if "thorough" in path.read_text(encoding="utf-8")]
    thorough = {(path, name): smaller for path in files for name, smaller in _tests_of(path)}
    named = {_place(path, smaller)[0] for (path, _), smaller in thorough.items() if smaller is not None}
    others: dict[_Test, str | None] = {(path, name): None for path in named - set(files) for name, _ in _tests_of(path)}
    assert unproved(thorough | others) == []


@pytest.mark.parametrize("smaller", ["test_gone", "test_thorough", "test_long.py::test_short"])
def test_what_does_not_stay_is_found(smaller: str) -> None:
    here = TESTS / "test_long.py"
    tests = {(here, "test_thorough"): smaller, (here, "test_short"): None}
    assert bool(unproved(tests)) == (smaller != "test_long.py::test_short")
