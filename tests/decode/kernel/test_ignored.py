"""Between a loss and the next synchronization the kernel ignores by itself what it was once told to ignore there."""

from functools import partial
from typing import Any

import pytest

from rvtrace_gdb.decode.etrace import decoder as etrace
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.kernel_hart import PacketKernelHart
from rvtrace_gdb.decode.etrace.options import Options as PacketOptions
from rvtrace_gdb.decode.kernel.loading import kernel
from rvtrace_gdb.decode.ntrace import decoder as ntrace
from rvtrace_gdb.decode.ntrace.kernel_hart import KernelHart
from rvtrace_gdb.decode.ntrace.options import Options
from tests.decode import assembler as asm
from tests.decode.etrace.packets import write
from tests.decode.etrace.worked_examples import branches, start
from tests.decode.kernel.histories import decoded_both_ways
from tests.decode.kernel.test_etrace import ROUNDS
from tests.decode.ntrace.messages import image_of, message, started, stopped

pytestmark = pytest.mark.skipif(kernel() is None, reason="there is no kernel to compare with")

TIMES = 200
LOOP = image_of((0x100, [asm.C_NOP, asm.c_beqz(-2)]))
PACKET_OPTIONS = PacketOptions(pinned=True)
PULP = Encapsulation("pulp")
EXECUTED = branches(*[1] * 31)
DECODERS: dict[str, tuple[Any, Any]] = {
    "N-Trace": (KernelHart, partial(ntrace.StreamDecoder, LOOP, Options())),
    "N-Trace with times": (KernelHart, partial(ntrace.StreamDecoder, LOOP, Options(timestamps=True))),
    "E-Trace": (PacketKernelHart, partial(etrace.StreamDecoder, ROUNDS, PACKET_OPTIONS, Encapsulation())),
    "E-Trace of PULP": (
        PacketKernelHart,
        partial(etrace.StreamDecoder, ROUNDS, PACKET_OPTIONS, PULP),
    ),
}


def trace(name: str) -> tuple[bytes, bytes, bytes]:
    """What begins, what is ignored before something begins, and what ends."""
    if name.startswith("N-Trace"):
        time = 5 if "times" in name else None
        ignored = message("ResourceFull", rcode=1, rdata=0b101, tstamp=time)
        return started(tstamp=9 if time else None), ignored, stopped(2)
    payloads = [write(packet, PACKET_OPTIONS.parameters, PACKET_OPTIONS.modes) for packet in (start(0x100), EXECUTED)]
    begun, ignored = (PULP.framer().packet(it) if "PULP" in name else bytes([len(it)]) + it for it in payloads)
    return begun, ignored, b""


@pytest.mark.parametrize("name", DECODERS)
def test_what_means_nothing_before_a_synchronization_is_read_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes are counted as skipped, each time it comes."""
    hart, decoder = DECODERS[name]
    begun, ignored, ended = trace(name)
    data = ignored * TIMES + begun + ended
    read: list[bytes] = []
    ignore = hart._ignore

    def noted(self: Any, message: bytes, other: Any) -> None:
        read.append(message)
        ignore(self, message, other)

    monkeypatch.setattr(hart, "_ignore", noted)
    compiled, interpreted = decoded_both_ways(decoder, [data, data[:-1]])
    assert compiled == interpreted
    assert len(read) == 1
    made = decoder()
    made.feed(data)
    accounting = made.finish()[1]
    assert (accounting.skipped, accounting.decoded) == (TIMES * len(ignored), len(begun) + len(ended))


def test_what_is_ignored_is_bounded() -> None:
    """Here by a limit of 20 messages, of which a thousand different ones come."""
    decoder = ntrace.StreamDecoder(LOOP, Options(), memo_limit=20)
    ignored = [message("ResourceFull", rcode=1, rdata=0b1000000000000 | number) for number in range(1000)]
    decoder.feed(b"".join(ignored))
    (hart,) = decoder._harts.values()
    assert isinstance(hart, KernelHart)
    assert hart._kernel.sizes()[0] == 20
    assert decoder.finish()[1].skipped == sum(map(len, ignored))
