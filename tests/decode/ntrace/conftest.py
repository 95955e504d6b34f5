"""The decoder is tested with the compiled kernel, if there is one, and without."""

from collections.abc import Iterator

import pytest

from rvtrace_gdb.decode.kernel.loading import kernel

LOOPS = ["Python"] if kernel() is None else ["kernel", "Python"]


@pytest.fixture(scope="module", autouse=True, params=LOOPS)
def loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """What takes the steps that are remembered."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "Python":
            patch.setenv("RVTRACE_KERNEL", "0")
        yield
