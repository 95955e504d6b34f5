"""What decodes is tested with the compiled kernel, if there is one, and without."""

import pytest

from tests.decode.kernel.loops import LOOPS, with_and_without_kernel

# The names of modules that decode: one of these.
DECODING = {"decode", "decode_streams", "StreamDecoder", "Case", "decoded"}

loop = pytest.fixture(with_and_without_kernel, scope="module")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run both ways what decodes."""
    if DECODING & vars(metafunc.module).keys():
        metafunc.fixturenames.insert(0, "loop")
        metafunc.parametrize("loop", LOOPS, indirect=True, scope="module")
