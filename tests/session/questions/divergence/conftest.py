"""The programs of these tests, compiled and run once."""

import pytest

from rvtrace_gdb.session.questions.divergence.question import ComparedTrace
from tests.session.questions.divergence.runs import Run, opened, parting


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run of parting.c."""
    return Run.of(parting(tmp_path_factory.mktemp("parting")))


@pytest.fixture(scope="session")
def original_trace(original: Run) -> ComparedTrace:
    return opened(original.traced(original.elf.parent / "original.rvt"), original.elf)
