"""Which entries can follow one another: all that NEORV32's RTL and TACIT's encoder sent, hardly any of noise."""

from random import Random

import pytest

from rvtrace_gdb.decode.branches import neorv32, tacit
from rvtrace_gdb.decode.branches.plausibility import PlausibleEntries
from tests.decode.branches.test_neorv32 import DATA
from tests.fuzz.kinds.branches import branches_of

ITEMS = {"neorv32": neorv32.items_of, "tacit": tacit.items_of}
NOISE = Random(4).randbytes(20_000)


def implausible(kind: str, data: bytes) -> int:
    """How many bytes are in entries that cannot be where they are."""
    follows = PlausibleEntries(kind)
    return sum(len(item.raw) for item in ITEMS[kind](data, {}) if not follows(item))


@pytest.mark.parametrize("name", sorted(file.name for file in DATA.glob("pairs*.txt")))
def test_what_the_rtl_recorded(name: str) -> None:
    assert implausible("neorv32", (DATA / name).read_bytes()) == 0


def test_what_tacit_sends() -> None:
    assert implausible("tacit", branches_of("tacit").data) == 0


@pytest.mark.parametrize("kind", ITEMS)
@pytest.mark.parametrize("data", [NOISE, bytes(2000), b"It was a dark and stormy night. " * 50])
def test_noise(kind: str, data: bytes) -> None:
    assert implausible(kind, data) > len(data) // 2
