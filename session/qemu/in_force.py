"""What a capture says of a software encoder and of what it fills: as of a trace that was imported, bases are 0.

Nothing was read back from registers, because there are none; what is in them is what the encoder was built with.
"""

from dataclasses import replace

from rvtrace_gdb.controlregs import encoder as registers
from rvtrace_gdb.controlregs import ram_sink
from rvtrace_gdb.controlregs.common import CompType
from rvtrace_gdb.controlregs.ram_sink import RamMode
from rvtrace_gdb.controlregs.request import EncoderInForce, SinkInForce
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.session.captured import CapturedEncoder, CapturedSink
from rvtrace_gdb.session.importing import Raw, capture_of, etrace_encoder
from rvtrace_gdb.session.qemu.wanted import NTrace, Wanted


def encoder(hart: int, wanted: Wanted, image: Image) -> CapturedEncoder:
    """Of a hart's encoder."""
    name = f"encoder{hart}"
    if not isinstance(wanted, NTrace):
        return etrace_encoder(name, hart, wanted.how)
    (made,) = capture_of(Raw(name, b"", wanted.how, image)).encoders
    in_force, options = made.in_force, wanted.options
    assert isinstance(in_force, EncoderInForce)
    beside = registers.CONTROL.pack(
        trTeContext=options.context, trTeInstSyncMode=options.sync_mode, trTeInstSyncMax=options.sync_max
    )
    features = registers.INST_FEATURES.pack(trTeInstEnRepeatedHistory=options.repeated_history)
    in_force = replace(in_force, name=name, control=in_force.control | beside, features=in_force.features | features)
    return replace(made, hart=hart, in_force=in_force)


def sink(hart: int, data: bytes, *, wrapped: bool) -> CapturedSink:
    """Of the bytes of a hart's encoder."""
    control = ram_sink.CONTROL.pack(trRamActive=1, trRamEnable=1, trRamMode=RamMode.SMEM)
    impl = ram_sink.IMPL.pack(trRamVerMajor=1, trRamCompType=CompType.RAM_SINK, trRamHasSMEM=1)
    in_force = SinkInForce(f"hart{hart}", 0, control, impl, 0, max(len(data) - 1, 0), 1)
    return CapturedSink(in_force, data, wrapped, 0, (f"encoder{hart}",), ())
