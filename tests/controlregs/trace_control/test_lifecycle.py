"""Reset handshake, version and type rules; and what the user reads when a component is not as described."""

import pytest

from rvtrace_gdb.controlregs.trace_control.lifecycle import reset
from rvtrace_gdb.support.errors import Cancelled
from tests.controlregs.trace_control.component_model import ACTIVE, ENABLE, Unplugged
from tests.controlregs.trace_control.rig import rig


@pytest.mark.parametrize("delay", [0, 1, 5])
def test_reset_waits_for_active_both_ways(delay: int) -> None:
    r = rig(encoder={"delay": delay})
    for _ in range(2):
        identity = reset(r.encoder)
        assert r.encoder_model.shown == ACTIVE
    assert (identity.impl, identity.version, identity.notes) == (0x0001_0101, (1, 0), ())


def test_a_lost_target_is_reported_as_such() -> None:
    r = rig()
    for cut in range(7):
        r.target.cut = cut
        with pytest.raises(Unplugged):
            reset(r.encoder)
    r.target.cut = None
    assert reset(r.encoder).version == (1, 0)


def test_waiting_can_be_cancelled() -> None:
    r = rig(encoder={"never": ACTIVE | ENABLE}, timeout=100)

    def interrupt(label: str, done: int, total: int | None = None) -> None:
        assert label == "waiting for encoder 0 (trTeActive=1)"
        raise Cancelled

    with pytest.raises(Cancelled):
        reset(r.encoder, interrupt)


def test_impl_is_read_until_it_is_stable() -> None:
    """OpenOCD 0.12 on a slow system bus answers first reads with the word read before."""
    r = rig()
    late: list[int] = [0xDEAD_BEEF]
    real = r.target.read32

    def late_by_one(address: int) -> int:
        late.append(real(address))
        return late.pop(0)

    r.target.read32 = late_by_one  # type: ignore[method-assign]
    assert reset(r.encoder).impl == 0x0001_0101
