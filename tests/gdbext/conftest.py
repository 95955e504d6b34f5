"""What the tests with a gdb have in common: those that `ask_gdb` keeps end with each module."""

from collections.abc import Iterator

import pytest

from tests.gdbext.gdb_process import end_kept


@pytest.fixture(scope="module", autouse=True)
def _kept_gdbs() -> Iterator[None]:
    yield
    end_kept()
