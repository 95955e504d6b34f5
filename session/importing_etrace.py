"""E-Trace that something else made, as a capture has it: an encoder for each source in it."""

from itertools import chain

from rvtrace_gdb.controlregs import encoder, timestamp
from rvtrace_gdb.controlregs.common import CompType
from rvtrace_gdb.controlregs.encoder import Format, InstMode
from rvtrace_gdb.controlregs.request import EncoderInForce
from rvtrace_gdb.decode.etrace.encapsulation import Kind, Packets
from rvtrace_gdb.session.captured import CapturedEncoder, Unregistered
from rvtrace_gdb.session.etrace import REGISTERED_MODES, ETrace, of_registers, values_of
from rvtrace_gdb.session.etrace_settings import SETTINGS, Value

_MAX_SRC_BITS, _MAX_SRC = 12, (1 << 12) - 1  # of trTeSrcBits and trTeSrcID
_SYNC, _WITH_ADDRESS = 0b11, (0, 1)  # format 3, subformats 0 and 1 (2.0, "Format 3 packets")


def etrace_encoder(name: str, hart: int, how: ETrace, source: int = 0) -> CapturedEncoder:
    """An encoder that was set up so: what registers can hold is in them, everything else beside them."""
    in_force = EncoderInForce(
        name=name,
        base=0,
        control=encoder.CONTROL.pack(
            trTeActive=1,
            trTeEnable=1,
            trTeInstTracing=1,
            trTeInstMode=InstMode.VENDOR,
            trTeFormat=Format.E_TRACE,
        ),
        impl=encoder.IMPL.pack(trTeVerMajor=1, trTeCompType=CompType.ENCODER),
        features=_features(how, source),
        ts_control=timestamp.CONTROL.pack(
            trTsActive=how.encapsulation.timestamp_bytes > 0,
            trTsEnable=how.encapsulation.timestamp_bytes > 0,
            trTsWidth=min(8 * how.encapsulation.timestamp_bytes, _max_width()),
        ),
    )
    told = of_registers(in_force, {})
    beside: dict[str, Value] = {"iaddress_width": how.options.parameters.iaddress_width, **values_of(how, told)}
    if source != in_force.src_id & (1 << in_force.src_bits) - 1:
        beside["src_id"] = source
    return CapturedEncoder(hart, in_force, Unregistered(etrace=beside))


def etrace_sources(data: bytes, how: ETrace, *, wrapped: bool = False) -> list[int]:
    """The sources in a trace that decoding can start for: with a synchronizing packet. [0] without any."""
    found: set[int] = set()
    deframer = how.encapsulation.deframer(wrapped=wrapped)
    for item in chain(deframer.feed(data), deframer.finish()):
        if not isinstance(item, Packets) or item.kind is not Kind.INSTRUCTION or item.source in found:
            continue
        if any(map(_starts, item.payloads)):
            found.add(item.source)
    return sorted(found) or [0]


def _starts(payload: bytes) -> bool:
    return bool(payload) and payload[0] & 3 == _SYNC and payload[0] >> 2 & 3 in _WITH_ADDRESS


def _features(how: ETrace, source: int) -> int:
    modes = {SETTINGS[key].told_by: getattr(how.options.modes, key) for key in REGISTERED_MODES}
    bits = how.encapsulation.src_bits
    fits = bits <= _MAX_SRC_BITS and source <= _MAX_SRC
    return encoder.INST_FEATURES.pack(
        **modes, trTeSrcID=source if fits else 0, trTeSrcBits=bits if bits <= _MAX_SRC_BITS else 0
    )


def _max_width() -> int:
    return (1 << timestamp.CONTROL.by_name["trTsWidth"].width) - 1
