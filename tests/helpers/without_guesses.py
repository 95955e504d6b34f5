"""Commands that are asked something else of a trace with gaps than which options would fit it better."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rvtrace_gdb.console.options import hints


@contextmanager
def without_guesses() -> Iterator[None]:
    """Have commands in this process look for no better options: some fifty are tried, which takes a second or two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hints, "guess", lambda *_: None)
        yield
