"""`rvtrace encode --ntrace`."""

import argparse
from collections.abc import Sequence

from rvtrace_gdb.console import encode_options
from rvtrace_gdb.console.encoding import Encoding
from rvtrace_gdb.decode.executed.reading import Executed
from rvtrace_gdb.decode.history import Context
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.ingress import Block, Trap
from rvtrace_gdb.decode.ntrace.encoder import Encoder, EncoderOptions
from rvtrace_gdb.decode.ntrace.layout import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import Options

_IDLE = 0xFF


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the encoder, and the reasons it gives."""
    parser.add_argument(
        "--sync", type=encode_options.one_of(Sync), default=Sync.TRACE_ENABLE, metavar="REASON",
        help=f"SYNC of the first message: {', '.join(encode_options.named(Sync))}, or its value (default trace-enable)",
    )  # fmt: skip
    parser.add_argument(
        "--evcode", type=encode_options.one_of(Evcode), default=Evcode.TRACE_DISABLED, metavar="REASON",
        help=f"EVCODE of the last message: {', '.join(encode_options.named(Evcode))} (default trace-disabled)",
    )  # fmt: skip
    encode_options.add_arguments(parser)


def encoding(args: argparse.Namespace, image: Image) -> Encoding:
    """What the command line says. Raises BadOptions."""
    options = encode_options.options(args, image.xlen)
    return _NTrace(options, args.sync, args.evcode, encode_options.without_effect(args, options))


class _NTrace(Encoding):
    """The N-Trace encoder. *idle*: a line for each option without effect."""

    def __init__(self, options: EncoderOptions, sync: Sync, evcode: Evcode, idle: list[str]) -> None:
        super().__init__()
        self.contexts = options.context
        self._options, self._sync, self._evcode, self._idle = options, sync, evcode, idle
        self._sent: list[bytes] = []
        self._encoder = Encoder(options, self._sent.append)

    @property
    def how(self) -> Options:
        return encode_options.for_decoder(self._options)

    def start(self) -> bytes:
        self._encoder.start(self._sync)
        return self._taken()

    def retire(self, items: Sequence[Block | Trap | Context]) -> bytes:
        self._encoder.retire(items)
        return self._taken()

    def stop(self) -> bytes:
        self._encoder.stop(self._evcode)
        return self._taken()

    def notes(self, executed: Executed) -> list[str]:
        if not self._options.context or self.contexts_seen:
            return self._idle
        return [*self._idle, f"no Ownership messages: no privilege modes are in this log (format {executed.format})"]

    def _taken(self) -> bytes:
        self.count(sum(message[0] != _IDLE for message in self._sent))
        data = b"".join(self._sent)
        self._sent.clear()
        return data
