"""`rvtrace encode --ntrace`: the options of the N-Trace encoder, and its messages."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rvtrace_gdb.console.commands.encode.encoding import Encoding
from rvtrace_gdb.console.options import encoder
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.executed.execution import Executed
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import EncoderOptions, Options
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image

_IDLE = 0xFF


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the encoder, and those for the SYNC and EVCODE values it sends."""
    parser.add_argument(
        "--sync", type=encoder.one_of(Sync), default=Sync.TRACE_ENABLE, metavar="REASON",
        help=f"SYNC of the first message: {', '.join(encoder.named(Sync))}, or its value (default trace-enable)",
    )  # fmt: skip
    parser.add_argument(
        "--evcode", type=encoder.one_of(Evcode), default=Evcode.TRACE_DISABLED, metavar="REASON",
        help=f"EVCODE of the last message: {', '.join(encoder.named(Evcode))} (default trace-disabled)",
    )  # fmt: skip
    encoder.add_arguments(parser)


@dataclass(frozen=True)
class NTraceRequest:
    """What the command line says of the encoder. *given*: values of fields of `EncoderOptions`."""

    given: Mapping[str, Any]
    sync: Sync
    evcode: Evcode

    @classmethod
    def from_arguments(cls, args: argparse.Namespace) -> "NTraceRequest":
        """Return what a command with the options of `add_arguments` says."""
        return cls(encoder.given_options(args), args.sync, args.evcode)

    def encoding(self, image: Image) -> Encoding:
        """Return the encoding for a program. Raises `BadOptions`."""
        options = encoder.options(self.given, image.xlen)
        return _NTraceEncoding(options, self.sync, self.evcode, encoder.without_effect(self.given, options))


class _NTraceEncoding(Encoding):
    """The N-Trace encoder. *idle*: a line for each option without effect."""

    def __init__(self, options: EncoderOptions, sync: Sync, evcode: Evcode, idle: list[str]) -> None:
        super().__init__()
        self.contexts = options.context
        self._options, self._sync, self._evcode, self._idle = options, sync, evcode, idle
        self._sent: list[bytes] = []
        self._encoder = Encoder(options, self._sent.append)

    @property
    def trace_options(self) -> Options:
        return self._options.of_decoder

    def start(self) -> bytes:
        self._encoder.start(self._sync)
        return self._taken_bytes()

    def retire(self, items: Sequence[Block | IngressTrap | ProgramContext]) -> bytes:
        self._encoder.retire(items)
        return self._taken_bytes()

    def stop(self) -> bytes:
        self._encoder.stop(self._evcode)
        return self._taken_bytes()

    def notes(self, executed: Executed) -> list[str]:
        if not self._options.context or self.contexts_seen:
            return self._idle
        return [*self._idle, f"no Ownership messages: no privilege modes are in this log (format {executed.format})"]

    def _taken_bytes(self) -> bytes:
        self.count(sum(message[0] != _IDLE for message in self._sent))
        data = b"".join(self._sent)
        self._sent.clear()
        return data
