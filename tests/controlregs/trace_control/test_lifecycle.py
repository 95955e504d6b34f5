"""Reset handshake, version and type rules; and what the user reads when a component is not as described."""

import pytest

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import ComponentAccess, ComponentTimeout, UnsupportedVersion, WrongComponent
from rvtrace_gdb.controlregs.trace_control.encoder_registers import ENCODER
from rvtrace_gdb.controlregs.trace_control.lifecycle import reset
from rvtrace_gdb.support.errors import Cancelled
from tests.controlregs.trace_control.component_model import ACTIVE, ENABLE, BusFault, Unplugged
from tests.controlregs.trace_control.rig import ENCODER_BASE, rig


@pytest.mark.parametrize("delay", [0, 1, 5])
def test_reset_waits_for_active_both_ways(delay: int) -> None:
    r = rig(encoder={"delay": delay})
    for _ in range(2):
        identity = reset(r.encoder)
        assert r.encoder_model.shown == ACTIVE
    assert (identity.impl, identity.version, identity.notes) == (0x0001_0101, (1, 0), ())


def test_never_active() -> None:
    r = rig(encoder={"never": ACTIVE}, timeout=0.02)
    with pytest.raises(ComponentTimeout) as caught:
        reset(r.encoder)
    assert (caught.value.base, caught.value.waited_for) == (ENCODER_BASE, "trTeActive=1")
    assert str(caught.value) == (
        f"encoder 0 at 0x20000000: trTeControl did not reach trTeActive=1 within 0.02 s (it reads "
        f"{caught.value.value:#010x}); check the component's clock and power, and the base address"
    )


def test_never_inactive() -> None:
    r = rig(timeout=0.02)
    reset(r.encoder)
    r.encoder_model.never = ACTIVE
    with pytest.raises(ComponentTimeout, match=r"encoder 0 at 0x20000000: .* trTeActive=0 within 0.02 s"):
        reset(r.encoder)


@pytest.mark.parametrize(
    ("impl", "version", "kind"),
    [(0x0001_0111, "1.1", "a newer one"), (0xAB01_01F1, "1.15", "experimental")],
)
def test_newer_minor_versions_are_used_with_a_note(impl: int, version: str, kind: str) -> None:
    r = rig(encoder={"impl": impl})
    (note,) = reset(r.encoder).notes
    assert note == (
        f"encoder 0 at 0x20000000: trace control interface {version} is {kind}, "
        f"used as 1.0 (tr??Impl reads {impl:#010x})"
    )


@pytest.mark.parametrize(
    ("impl", "version", "kind"),
    [(0x0001_0110, (0, 1), "pre-ratified"), (0x0001_0102, (2, 0), "newer"), (0x0001_01FF, (15, 15), "newer")],
)
def test_other_major_versions_are_refused(impl: int, version: tuple[int, int], kind: str) -> None:
    r = rig(encoder={"impl": impl})
    with pytest.raises(UnsupportedVersion) as caught:
        reset(r.encoder)
    assert caught.value.version == version
    text = str(caught.value)
    assert text.startswith(f"encoder 0 at 0x20000000: trace control interface {version[0]}.{version[1]}, {kind}")
    assert "rvtrace knows 1.0" in text and f"{impl:#010x}" in text and "\n" not in text


@pytest.mark.parametrize(
    ("impl", "text"),
    [
        (0x0000_3901, "this is a ram sink, not a trace encoder"),
        (0x0000_0801, "this is a funnel, not a trace encoder"),
        (0x0000_0E01, "this is an atb bridge, not a trace encoder"),
        (0x0000_0301, "this is a component of unknown type 0x3, not a trace encoder"),
        (0, "no trace encoder answers here"),
        (0xFFFF_FFFF, "no trace encoder answers here"),
    ],
)
def test_wrong_component(impl: int, text: str) -> None:
    r = rig(encoder={"impl": impl})
    with pytest.raises(WrongComponent) as caught:
        reset(r.encoder)
    assert str(caught.value) == (
        f"encoder 0 at 0x20000000: {text} (tr??Impl reads {impl:#010x}); correct the target description"
    )


def test_memory_at_the_base_address_is_not_written() -> None:
    """A description that points into RAM must not cost the user's program a word."""

    class Ram:
        words = bytearray(b"\x97\x01\x00\x00\x13\x00\x00\x01")

        def read32(self, address: int) -> int:
            return int.from_bytes(self.words[address : address + 4], "little")

        def write32(self, address: int, value: int) -> None:
            raise AssertionError("written")

        def read_block(self, address: int, nbytes: int, progress: object = None) -> bytes:
            raise AssertionError("read")

    with pytest.raises(UnsupportedVersion):
        reset(Component(Ram(), 0, ENCODER))


def test_bus_error_names_register_and_address() -> None:
    r = rig()
    nowhere = Component(r.target, 0x3000_0000, ENCODER, "encoder 1")
    with pytest.raises(ComponentAccess) as caught:
        reset(nowhere)
    assert str(caught.value) == (
        "encoder 1 at 0x30000000: trTeControl (0x30000000) cannot be read: bus error at 0x30000000; "
        "check the base address in the target description, and that the component has power and clock"
    )
    assert isinstance(caught.value.cause, BusFault)


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
