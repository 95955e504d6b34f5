"""Tests of what the kernel does, if there is one, and of the same in Python."""

from collections.abc import Iterator

import pytest

from rvtrace_gdb.decode.kernel.loading import kernel

LOOPS = ["Python"] if kernel() is None else ["kernel", "Python"]


def with_and_without_kernel(request: pytest.FixtureRequest) -> Iterator[None]:
    """A fixture for `LOOPS`."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "Python":
            patch.setenv("RVTRACE_KERNEL", "0")
        yield
