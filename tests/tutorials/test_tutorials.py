"""Each page of docs/tutorials: its commands are typed, and print what the page says."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.cross_compiler import HOME
from tests.tutorials.page import exchanges, is_printed
from tests.tutorials.typist import CXX, Typist

PAGES = sorted((HOME / "docs" / "tutorials").glob("*.md"))


@pytest.fixture
def typist(short_path: Path) -> Iterator[Typist]:
    somebody = Typist(short_path)
    yield somebody
    somebody.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_print_what_it_says(page: Path, typist: Typist) -> None:
    rows = exchanges(page)
    assert rows
    for name in set(re.findall(r"build/examples/(\w+)\.elf", page.read_text(encoding="utf-8"))):
        typist.build(name)
    for row in rows:
        said = typist.types(row)
        assert is_printed(row.expected, said), f"{page.name}, line {row.line}: {row.command}\n{said}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_the_symptom_first_and_what_was_seen_last(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    sections = re.findall(r"^## (.*)$", text, re.M)
    assert re.match(r"# .+\n\n\*\*The symptom:\*\* ", text)
    assert sections[-1] == "What you have seen, and what next"
    assert f"tutorials/{page.name}" in (HOME / "docs" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("expected", "text", "same"),
    [
        (["a  b", "", "c"], "a b\n\nContinuing.\nc\n", True),
        (["at ... in f"], "at 0x1 in f", True),
        (["a", "...", "d"], "a\nb\nc\nd", True),
        (["a", "...", "d"], "a\nd", True),
        (["a", "...", "d"], "a\nd\ne", False),
        (["a"], "", False),
        ([], "a", False),
        (["a.c"], "abc", False),
    ],
)
def test_what_is_as_a_page_says(expected: list[str], text: str, same: bool) -> None:
    assert is_printed(expected, text) is same


def test_make_examples_builds_what_the_tests_use() -> None:
    """With the compiler's options of the tests, all of the programs."""
    makefile = (HOME / "Makefile").read_text(encoding="utf-8")
    helper = (HOME / "tests" / "helpers" / "cross_compiler.py").read_text(encoding="utf-8")
    options = re.findall(r"-(?:mcmodel=\w+|O\w|g|specs=[\w.]+|nostartfiles)(?=[\s\"])", makefile)
    assert len(options) == 5 and all(f'"{option}"' in helper for option in options)
    assert "examples/*.c)" in makefile and "examples/*.cpp)" in makefile
    assert f"EXAMPLE_CXX := {' '.join(CXX)}\n" in makefile
