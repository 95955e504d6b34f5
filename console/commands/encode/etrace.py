"""`rvtrace encode --etrace`: the options of the E-Trace encoder, and its packets in their encapsulation."""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from rvtrace_gdb.console.commands.encode.encoding import Encoding
from rvtrace_gdb.console.help_pages import ENCODER, group_of
from rvtrace_gdb.console.options import etrace
from rvtrace_gdb.console.options.encoder import dashed, in_words, named
from rvtrace_gdb.decode.etrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.etrace.encoder.options import ContextType, EncoderOptions, EndReport, ResyncMode
from rvtrace_gdb.decode.etrace.options import Parameters, TrapHandlers
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.executed.execution import Executed
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture.etrace_settings import LONGEST_PERIOD, EtraceTraceOptions

# In quotation marks: sections of E-Trace 2.0.
HELP: Mapping[str, str] = {
    "sync_mode": "what the period of synchronization is counted in (trTeInstSyncMode)",
    "sync_max": "the period is 2**(N + 4) of these (trTeInstSyncMax)",
    "compress": "all fields of packets are sent, no sign based compression",
    "itype_width": "width of itype at the hart's interface: only 4 distinguishes calls and returns",
    "context": 'how the encoder reports a change of context: ctype of "Context type"; discontinuity: like a trap',
    "hcontext_at": "bit of the field context where hcontext begins, above scontext; default: it is not sent",
    "stop": "how the end is reported: late, by ended_ntr after an uninferable discontinuity, or early, in the last"
    " packet",
    "epc_after_inferred": "a trap at the target of an inferred jump is reported with its EPC (thaddr 0), as in the"
    " pseudo-code of 2.0.5, not with its handler",
    "shortest": 'a cached target is always sent as an index ("Format selection" allows a shorter difference)',
}
"""The fields of EncoderOptions that a decoder does not need."""

_CHOICES: Mapping[str, Mapping[str, Any]] = {
    "sync_mode": named(ResyncMode),
    "context": named(ContextType),
    "stop": {member.value: member for member in EndReport},
}
_FIELDS = {field.name: field for field in fields(EncoderOptions)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add an option for each setting that a decoder needs, and for each choice of the encoder."""
    group = group_of(parser, ENCODER, "the encoder", "Settings that a decoder does not need.")
    for name, text in HELP.items():
        _add_option(group, name, text)
    group.add_argument(
        "--src-id", type=etrace.whole_number(16), default=0, metavar="N", help="srcID (trTeSrcID)"
    )
    group.add_argument(
        "--alignment", type=etrace.whole_number(20), default=0, metavar="N",
        help='a synchronization sequence ("Synchronization" of the encapsulation) after every N packets',
    )  # fmt: skip
    etrace.add_shared(group_of(parser, ENCODER, "modes that other formats also have"))
    etrace.add_arguments(parser, raw=False)


@dataclass(frozen=True)
class ETraceRequest:
    """What the command line says of the encoder. *given*: settings that a decoder needs, too. *own*: values of fields
    of `EncoderOptions`. *source*: srcID. *alignment*: packets between two synchronization sequences, 0: there are none.
    """

    given: etrace.GivenSettings
    own: Mapping[str, Any]
    source: int
    alignment: int

    @classmethod
    def from_arguments(cls, args: argparse.Namespace) -> "ETraceRequest":
        """Return what a command with the options of `add_arguments` says."""
        own = {name: getattr(args, name) for name in HELP if getattr(args, name, None) is not None}
        own |= {name: _CHOICES[name][value] for name, value in own.items() if name in _CHOICES}
        return cls(etrace.GivenSettings.from_arguments(args), own, args.src_id, args.alignment)

    def encoding(self, image: Image) -> Encoding:
        """Return the encoding for a program. Raises BadETrace, BadParametersFile."""
        trace_options = etrace.trace_options(self.given.settings(), image.xlen)
        said = trace_options.options
        try:
            options = EncoderOptions(said.parameters, said.modes, said.dialect, said.support, **self.own)
        except ValueError as error:
            raise etrace.BadETrace(in_words(str(error), _all_names())) from None
        if self.source >> (7 if trace_options.encapsulation.name == "atb" else trace_options.encapsulation.src_bits):
            raise etrace.BadETrace(f"--src-id {self.source} does not fit srcID: say with --src-bits how wide it is")
        if options.sync_mode is ResyncMode.PACKETS and options.period <= LONGEST_PERIOD:
            trace_options = replace(trace_options, options=replace(said, sync_packets=options.period))
        notes = [*self._without_effect(options), *_unfit(image, trace_options.options.parameters)]
        return _ETraceEncoding(options, trace_options, self.source, self.alignment, notes)

    def _without_effect(self, options: EncoderOptions) -> Iterator[str]:
        """Return a line for each option that was given and has no effect with the others."""
        given = {*self.own, *map(etrace.dest, self.given.values)}
        for name, (wanted, there) in _NEEDED.items():
            if name in given and not there(options):
                yield f"--{dashed(name)} has no effect, it needs {wanted}"


def _unfit(image: Image, parameters: Parameters) -> Iterator[str]:
    """Return why addresses of the program do not fit the packets."""
    ends = [address for start, data in image.segments for address in (start, start + len(data) - 1)]
    sign = parameters.iaddress_width - 1
    wide = [end for end in ends if end >> parameters.iaddress_width and end >> sign != (1 << image.xlen - sign) - 1]
    if wide:
        yield f"the program has addresses like {max(wide):#x}: --iaddress-width {parameters.iaddress_width} cuts them"


_NEEDED: Mapping[str, tuple[str, Callable[[EncoderOptions], object]]] = {
    "sync_max": ("--sync-mode", lambda encoder: encoder.sync_mode is not ResyncMode.OFF),
    "hcontext_at": ("--context-width", lambda encoder: encoder.parameters.context_width),
    "shortest": ("--jump-target-cache", lambda encoder: encoder.modes.jump_target_cache),
    "bpred_size": ("--branch-prediction", lambda encoder: encoder.modes.branch_prediction),
    "cache_size": ("--jump-target-cache", lambda encoder: encoder.modes.jump_target_cache),
    "trap_vector": ("--implicit-exception", lambda encoder: encoder.modes.implicit_exception),
    "trap_handler": ("--implicit-exception", lambda encoder: encoder.modes.implicit_exception),
}
"""For options without effect by themselves: the option they need, and a test for it."""


def _all_names() -> set[str]:
    return {*HELP, *etrace.own_options(), "implicit_return"}


def _add_option(group: Any, name: str, text: str) -> None:
    default = _FIELDS[name].default
    if default is True:
        group.add_argument(f"--no-{dashed(name)}", dest=name, action="store_const", const=False, help=text)
    elif default is False:
        group.add_argument(f"--{dashed(name)}", dest=name, action="store_const", const=True, help=text)
    elif name in _CHOICES:
        shown = next(word for word, value in _CHOICES[name].items() if value is default)
        group.add_argument(f"--{dashed(name)}", choices=list(_CHOICES[name]), help=f"{text} (default {shown})")
    else:
        shown = "" if default is None else f" (default {default})"
        number = etrace.whole_number(8)
        group.add_argument(f"--{dashed(name)}", type=number, metavar="N", help=text + shown)


class _ETraceEncoding(Encoding):
    """The E-Trace encoder with its encapsulation. *idle*: a line for each option without effect."""

    messages_are = "packets"

    def __init__(
        self, options: EncoderOptions, trace_options: EtraceTraceOptions, source: int, alignment: int, idle: list[str]
    ) -> None:
        super().__init__()
        self._idle = idle
        self._trace_options, self._source, self._alignment = trace_options, source, alignment
        self._timed = trace_options.encapsulation.timestamp_bytes > 0
        self._mask = (1 << 8 * trace_options.encapsulation.timestamp_bytes) - 1
        self._now = self._sent = 0
        self._framer = trace_options.encapsulation.framer()
        self._pieces: list[bytes] = []
        self._encoder = Encoder(options, self._emit)
        self._low_bits = 0  # of addresses
        self._handlers: dict[tuple[int, bool], int] = {}
        self._several: set[tuple[int, bool]] = set()

    @property
    def trace_options(self) -> EtraceTraceOptions:
        """How to decode the trace, with the trap handlers in the log if packets and options do not give them."""
        options = self._trace_options.options
        known = options.trap_handlers
        if not options.modes.implicit_exception or known.tvec is not None or known.handlers:
            return self._trace_options
        return replace(self._trace_options, options=replace(options, trap_handlers=TrapHandlers(None, self._handlers)))

    def start(self) -> bytes:
        self._encoder.start()
        return self._taken_bytes()

    def retire(self, items: Sequence[Block | IngressTrap | ProgramContext]) -> bytes:
        for item in items:
            if isinstance(item, IngressTrap):
                self._learn(item)
            elif isinstance(item, Block):
                self._low_bits |= item.pc
        if not self._timed:
            self._encoder.retire(items)
        else:
            for item in items:
                self._encoder.retire([item])
                self._now += item.instructions if isinstance(item, Block) else 0
        return self._taken_bytes()

    def stop(self) -> bytes:
        self._encoder.stop()
        return self._taken_bytes()

    def notes(self, executed: Executed) -> list[str]:
        lines = list(self._idle)
        lsb = self._trace_options.options.parameters.iaddress_lsb
        if self._low_bits & (1 << lsb) - 1:
            lines.append(f"not all addresses are multiples of {1 << lsb}: --iaddress-lsb {lsb} cuts them")
        if self._trace_options.options.parameters.context_width and not self.contexts_seen:
            lines.append(f"all contexts are 0: none are in this log (format {executed.format})")
        if self._trace_options.options.modes.implicit_exception and self._several:
            cause, interrupt = min(self._several)
            what = f"{'interrupt' if interrupt else 'exception'} {cause}"
            lines.append(f"{what} has several handlers: packets without their addresses cannot be decoded")
        return lines

    def _learn(self, trap: IngressTrap) -> None:
        key = trap.cause, trap.interrupt
        if self._handlers.setdefault(key, trap.handler) != trap.handler:
            self._several.add(key)

    def _emit(self, payload: bytes) -> None:
        time = self._now & self._mask if self._timed else None
        if self._alignment and self._sent % self._alignment == 0:
            self._pieces.append(self._framer.synchronization())
        self._sent += 1
        self._pieces.append(self._framer.packet(payload, source=self._source, time=time))

    def _taken_bytes(self) -> bytes:
        self.count(self._sent - self._messages)
        data = b"".join(self._pieces)
        self._pieces.clear()
        return data
