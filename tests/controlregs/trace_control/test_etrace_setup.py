"""Starting encoders that have E-Trace: the protocol is chosen first, data trace, alignment sequences.

Registers and bits are numbers here, from the Trace Control Interface 1.0 and E-Trace 2.0, "Encoder Control".
"""

from dataclasses import replace
from typing import Any

import pytest

from rvtrace_gdb.controlregs.trace_control.encoder_registers import DataAddrCompress, InstMode, TeFormat
from rvtrace_gdb.controlregs.trace_control.funnels_and_sinks import default_async_freq
from tests.controlregs.trace_control.component_model import ModelEncoder
from tests.controlregs.trace_control.rig import SMEM, SRAM, rig

E_TRACE: dict[str, Any] = {"impl": 0x0000_0101, "modes": (7,), "fixed_ones": 0, "fixed_zeros": 7 << 24}
DATA = 0x000F_0003  # implemented; trTeDataTracing, NoValue, NoAddr, AddrCompress can be written
REQUEST = replace(SMEM, format=TeFormat.E_TRACE)
NO_SEQUENCES = "sink 0 inserts no alignment sequences; a buffer that wraps may not be decodable"


class BothEncoder(ModelEncoder):
    """N-Trace and E-Trace: trTeFormat decides which features there are."""

    def legal(self, offset: int, value: int) -> int:
        if offset == 0:
            self.modes = (3, 6) if value >> 24 & 1 else (7,)
            self.impl = self.impl & ~(15 << 16) | (value >> 24 & 1) << 16
        self.features_mask = 0xFFFF_07CC if self.control >> 24 & 1 else 0xFFFF_003F
        return super().legal(offset, value)


def test_the_protocol_is_chosen_before_its_features() -> None:
    r = rig(sink={"asyncs": 7})
    both = BothEncoder(r.sink_model, fixed_ones=0, fixed_zeros=6 << 24)
    r.target.devices[0x2000_0000] = both
    features = ("trTeInstNoAddrDiff", "trTeInstEnBranchPrediction")
    for asked, granted in ((TeFormat.E_TRACE, 0x11), (TeFormat.N_TRACE, 0)):
        got = r.start(replace(SMEM, format=asked, features=features))
        assert (got.encoders[0].format, got.encoders[0].features) == (asked, granted)
        assert len(got.notes) == (0 if granted else 2)


def test_what_only_n_trace_has_is_not_granted() -> None:
    request = replace(REQUEST, inst_mode=InstMode.BTM, context=True)
    got = rig(encoder={**E_TRACE, "fixed_zeros": 7 << 24 | 1 << 9}, sink={"asyncs": 7}).start(request)
    assert list(got.notes) == [
        "encoder 0 produces E-Trace, which has no BTM",
        "encoder 0 always reports privilege, and contexts if it was built to (trTeContext stays 0)",
    ]


# Data trace


def test_data_trace_is_on_before_instructions_are_traced() -> None:
    """So that the first support packet tells of it; the document wants trTeEnable after all settings."""
    r = rig(encoder={**E_TRACE, "data": DATA}, sink={"asyncs": 7})
    seen = []
    r.encoder_model.changed = lambda before: seen.append(  # type: ignore[method-assign]
        (r.encoder_model.control >> 1 & 3, r.encoder_model.registers.get(0x10, 0) >> 1 & 1)
    )
    got = r.start(replace(REQUEST, data=True))
    assert got.notes == ()
    assert seen[-2:] == [(1, 0), (3, 1)], "Enable; then trTeDataTracing, and InstTracing"
    assert got.encoders[0].data_control == 1 | 1 << 1 | 2 << 18
    assert got.encoders[0].data("trTeDataAddrCompress") == DataAddrCompress.DIFFERENTIAL


def test_data_is_not_traced_unless_asked_for() -> None:
    got = rig(encoder={**E_TRACE, "data": DATA}, sink={"asyncs": 7}).start(REQUEST)
    assert got.encoders[0].data_control == 1


@pytest.mark.parametrize(
    ("data", "asked", "notes"),
    [
        (0, {}, ["encoder 0 has no data trace"]),
        (DATA, {"data_no_value": True}, []),
        (DATA, {"data_no_address": True, "data_addr_compress": DataAddrCompress.FULL}, []),
        (0x000C_0003, {"data_no_value": True}, ["encoder 0 cannot omit data values"]),
        (0x000C_0003, {"data_no_address": True}, ["encoder 0 cannot omit data addresses"]),
        (0x0003_0003, {}, ["encoder 0 sends data addresses in full (trTeDataAddrCompress stays 0)"]),
        (0x000C_0001, {}, ["encoder 0: data trace is not on yet (trTeDataTracing reads 0)"]),
    ],
)
def test_what_of_data_trace_was_not_granted_is_said(data: int, asked: dict[str, Any], notes: list[str]) -> None:
    got = rig(encoder={**E_TRACE, "data": data}, sink={"asyncs": 7}).start(replace(REQUEST, data=True, **asked))
    assert list(got.notes) == notes


def test_that_n_trace_has_no_data_trace_is_said() -> None:
    got = rig(sink={"asyncs": 7}).start(replace(REQUEST, format=None, data=True))
    assert "encoder 0 has no data trace, which N-Trace does not have" in got.notes


# Alignment sequences


@pytest.mark.parametrize(
    ("size", "frequency"), [(1024, 1), (8191, 1), (16384, 2), (32768, 3), (65536, 4), (1 << 20, 4)]
)
def test_a_larger_ring_has_them_more_rarely(size: int, frequency: int) -> None:
    assert default_async_freq(size, stop_on_wrap=False) == frequency
    assert default_async_freq(size, stop_on_wrap=True) == 4


def test_they_are_switched_on_for_e_trace_only() -> None:
    assert rig(encoder=E_TRACE, sink={"asyncs": 7}).start(SMEM).sink.async_freq == 1
    assert rig(sink={"asyncs": 7}).start(SMEM).sink.async_freq == 0
    assert rig(sink={"asyncs": 7}).start(replace(SRAM, async_freq=5)).sink.async_freq == 5


@pytest.mark.parametrize(("stop_on_wrap", "notes"), [(False, [NO_SEQUENCES]), (True, [])])
def test_a_ring_without_them_is_noted(stop_on_wrap: bool, notes: list[str]) -> None:
    got = rig(encoder=E_TRACE).start(replace(SMEM, stop_on_wrap=stop_on_wrap))
    assert list(got.notes) == notes
