"""The dialect is found where a file has nothing but events of SiFive's encoders, and nowhere else."""

import random

import pytest

from rvtrace_gdb.decode.ntrace.options import RATIFIED, SIFIVE, Options
from rvtrace_gdb.session.formats.guesses.found_dialect import with_found_dialect
from tests.decode.ntrace.messages import message, split
from tests.helpers import reference_streams
from tests.helpers.core_captures import sifive
from tests.helpers.event_traces import EVENTS, in_circuit, written


def found(data: bytes) -> str:
    return with_found_dialect(Options(), data).dialect.name


@pytest.mark.parametrize(
    "data",
    [EVENTS, in_circuit(12, 5), written(0, b"text"), b"\xff" * 20 + EVENTS],
    ids=["events", "one", "text", "idle"],
)
def test_events_alone_are_of_sifive(data: bytes) -> None:
    assert found(data) == "sifive"


def test_synchronizing_samples_are_of_sifive() -> None:
    """SYNC 15 is left to vendors in N-Trace."""
    assert found(sifive("pc-sample-sync.rtd").read_bytes()) == "sifive"
    assert found(message("ProgTraceSync", sync=15, icnt=0, faddr=5)) == "sifive"
    assert found(message("ProgTraceSync", sync=2, icnt=0, faddr=5)) == "1.0"


@pytest.mark.parametrize("name", ["median.0", "median.1", "median.4", "towers.2"])
def test_flows_are_not(name: str) -> None:
    data = (reference_streams.FOLDER / f"{name}.nex").read_bytes()
    assert found(data) == "1.0"
    assert found(data[:2000] + EVENTS + data[2000:]) == "1.0"
    assert found(written(0, b"text") + data) == "1.0"


def test_a_flipped_bit_does_not_change_it() -> None:
    """IndirectBranchHist (28) and the like become InCircuitTrace (34, 35) by a bit or two."""
    rng = random.Random(1)
    frames = list(split((reference_streams.FOLDER / "median.1.nex").read_bytes()))[:40]
    for _ in range(300):
        damaged = bytearray(b"".join(frames))
        at = rng.randrange(len(damaged))
        damaged[at] ^= 1 << rng.randrange(8)
        assert found(bytes(damaged)) == "1.0"


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_not(seed: int) -> None:
    assert found(random.Random(seed).randbytes(2000)) == "1.0"


def test_what_is_said_is_not_asked() -> None:
    assert with_found_dialect(Options(dialect=SIFIVE), b"").dialect is SIFIVE
    assert with_found_dialect(Options(), b"").dialect is RATIFIED
