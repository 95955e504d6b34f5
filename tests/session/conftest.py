"""A program that keeps a trace busy, and what it executes."""

import itertools
from pathlib import Path

import pytest

from tests.helpers.cross_compiler import compile_program
from tests.session.board import executed


@pytest.fixture(scope="session")
def busy_elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program(tmp_path_factory.mktemp("busy"), Path(__file__).with_name("busy.c"))


@pytest.fixture(scope="session")
def reference(busy_elf: Path) -> list[int]:
    """The first instructions the program retires."""
    return list(itertools.islice(executed(busy_elf), 60_000))
