"""The decoder is tested with the compiled kernel, if there is one, and without: what takes the steps remembered."""

import pytest

from tests.decode.kernel.loops import LOOPS, with_and_without_kernel

loop = pytest.fixture(with_and_without_kernel, scope="module", autouse=True, params=LOOPS)
