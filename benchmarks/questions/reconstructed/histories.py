"""From Spike's log through an encoder of this project and its decoder to a history that has no values."""

from pathlib import Path

from rvtrace_gdb.decode.etrace import decoder as etrace
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.encoder import encoder as etrace_encoder
from rvtrace_gdb.decode.etrace.encoder import options as etrace_options
from rvtrace_gdb.decode.etrace.options import Parameters
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.executed.execution import Executed
from rvtrace_gdb.decode.executed.readers import Log
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace import decoder as ntrace
from rvtrace_gdb.decode.ntrace.encoder import encoder as ntrace_encoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import EncoderOptions
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image

Items = list[Block | IngressTrap | ProgramContext]
FORMATS = ("ntrace", "etrace")


def history_of_log(log: Path, image: Image, format: str) -> History:
    """Return what a decoder makes of what an encoder sends. N-Trace has no causes of traps, E-Trace has them."""
    with Log(str(log)) as opened:
        items = list(Executed(opened, image, format="spike").items())
    return _ntrace(items, image) if format == "ntrace" else _etrace(items, image)


def _ntrace(items: Items, image: Image) -> History:
    sent: list[bytes] = []
    options = EncoderOptions(xlen=image.xlen)
    encoder = ntrace_encoder.Encoder(options, sent.append)
    encoder.start(Sync.EXIT_FROM_DEBUG)
    encoder.retire(items)
    encoder.stop(Evcode.DEBUG_MODE)
    return ntrace.decode(b"".join(sent), image, options.of_decoder)


def _etrace(items: Items, image: Image) -> History:
    sent: list[bytes] = []
    encapsulation = Encapsulation("encap")
    frame = encapsulation.framer().packet
    parameters = Parameters(iaddress_width=image.xlen, ecause_width=5)
    options = etrace_options.EncoderOptions(parameters=parameters)
    encoder = etrace_encoder.Encoder(options, lambda payload: sent.append(frame(payload)))
    encoder.enable()
    encoder.start()
    encoder.retire(items)
    encoder.stop()
    decoder = etrace.StreamDecoder(image, options.decoder, encapsulation, split=False)
    decoder.feed(b"".join(sent))
    return decoder.finish_one()
