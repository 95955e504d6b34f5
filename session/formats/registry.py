"""What is done differently for each trace format: choosing how to read an encoder's trace, and reading it.

Decoding can be interrupted: what was done until then is kept, and asking for the result again continues there.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Protocol

from rvtrace_gdb.controlregs.ctr.settings import CtrInForce
from rvtrace_gdb.controlregs.trace_control.encoder_registers import (
    ENCODER_CONTROL,
    DataAddrCompress,
    Format,
    InstMode,
    SyncMode,
)
from rvtrace_gdb.controlregs.trace_control.encoder_setup import SYNC_MAX_LOWEST_UNIT
from rvtrace_gdb.controlregs.trace_control.request import EncoderInForce
from rvtrace_gdb.decode.etrace.decoder import StreamDecoder as ETraceDecoder
from rvtrace_gdb.decode.etrace.items import Itemizer as ETraceItemizer
from rvtrace_gdb.decode.etrace.wording import Wording as ETraceWording
from rvtrace_gdb.decode.history.builder import Streams
from rvtrace_gdb.decode.ntrace import options as ntrace
from rvtrace_gdb.decode.ntrace.decoder import StreamDecoder as NTraceDecoder
from rvtrace_gdb.decode.ntrace.items import Itemizer as NTraceItemizer
from rvtrace_gdb.decode.ntrace.options import DIALECTS, ImplicitReturn
from rvtrace_gdb.decode.ntrace.options import Options as NTrace
from rvtrace_gdb.decode.ntrace.wording import Wording as NTraceWording
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.tandem.decoder import Decoding as TandemDecoding
from rvtrace_gdb.session.capture.etrace_settings import (
    REGISTERED_MODES,
    SETTINGS,
    BadSetting,
    ETrace,
    Value,
    Values,
    made,
)
from rvtrace_gdb.session.capture.model import (
    CapturedEncoder,
    TandemPort,
    Unregistered,
)
from rvtrace_gdb.session.errors import Unsupported
from rvtrace_gdb.session.formats import ctr
from rvtrace_gdb.session.formats import tandem as tandem_items
from rvtrace_gdb.session.formats.tandem import Wording as TandemWording
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.support.text import printable

_PIECE = 1 << 16
"""Bytes decoded between two looks at the progress: some hundredths of a second where nothing repeats."""


class Unfinished(Protocol):
    """The decoding of a whole trace."""

    def result(self, progress: Progress) -> Streams:
        """What it comes to. Raises only what *progress* raises, and can be asked for again then."""
        ...


class StreamDecoder(Protocol):
    """Takes a trace in pieces."""

    def feed(self, data: bytes) -> None: ...
    def finish(self) -> Streams: ...


class Fed:
    """What decodes bytes in the order in which they are given to it. *make*: from the beginning."""

    def __init__(self, data: bytes, make: Callable[[], StreamDecoder]) -> None:
        self._data, self._make = data, make
        self._decoder: StreamDecoder | None = None
        self._done = 0
        self._found: Streams | None = None

    def result(self, progress: Progress) -> Streams:
        """As `Unfinished`."""
        while self._found is None:
            if self._done < len(self._data):
                progress("decoding", self._done, len(self._data))
            try:
                self._found = self._next()
            except BaseException:  # in the middle: out of memory, Ctrl-C in a program that is not the session's
                self._decoder, self._done = None, 0
                raise
        return self._found

    def _next(self) -> Streams | None:
        if self._decoder is None:
            self._decoder = self._make()
        piece = self._data[self._done : self._done + _PIECE]
        if not piece:
            return self._decoder.finish()
        self._decoder.feed(piece)
        self._done += len(piece)
        return None


class OfTandem:
    """A tandem trace: its groups are found, then what each changed, then which instructions these are."""

    def __init__(self, make: Callable[[], TandemDecoding]) -> None:
        self._make = make
        self._decoding: TandemDecoding | None = None
        self._found: Streams | None = None

    def result(self, progress: Progress) -> Streams:
        """As `Unfinished`."""
        if self._found is None:
            try:
                self._decoding = self._decoding or self._make()
                history = self._decoding.result(progress).history
            except RvtraceError:  # Ctrl-C
                raise
            except BaseException:
                self._decoding = None
                raise
            self._found = Streams({0: history}, history.accounting)
        return self._found


N_TRACE_MAJOR = 1
"""The trTeProtocolMajor that can be decoded (N-Trace 1.0, "N-Trace Specific Trace Controls")."""


def ntrace_options(encoder: EncoderInForce, *, alone: bool) -> ntrace.Options:
    """How to decode what *encoder* sends; *alone*: nothing else is in the same buffer. Raises `Unsupported`."""
    if encoder.format != Format.N_TRACE:
        name = "E-Trace" if encoder.format == Format.E_TRACE else f"trTeFormat {encoder.format}"
        raise undecodable(encoder, name)
    if encoder.version and encoder.protocol_version[0] != N_TRACE_MAJOR:  # a higher minor one adds only what is enabled
        raise undecodable(encoder, f"N-Trace {'.'.join(map(str, encoder.protocol_version))}")
    return ntrace.Options(
        src_bits=encoder.src_bits,
        src_id=None if alone or not encoder.src_bits else encoder.src_id,
        timestamps=encoder.timestamps,
        timestamp_bits=encoder.timestamp_bits,
        btm=encoder.inst_mode == InstMode.BTM,
        implicit_return=_implicit_return(encoder),
        sequential_jump=bool(encoder.feature("trTeInstEnSequentialJump")),
        all_jumps=bool(encoder.feature("trTeInstEnAllJumps")),
        extend_addr_msb=bool(encoder.feature("trTeInstExtendAddrMSB")),
        sync_period=sync_period(encoder),
        dialect=DIALECTS[encoder.dialect],
    )


def sync_period(encoder: EncoderInForce) -> int | None:
    """Messages or packets after which an encoder synchronizes, None where it counts something else or does not say."""
    mode, exponent = encoder.sync
    return 1 << exponent + SYNC_MAX_LOWEST_UNIT if encoder.version and mode == SyncMode.MESSAGES else None


def _implicit_return(encoder: EncoderInForce) -> ImplicitReturn:
    """An encoder that does not say how it follows calls is read like all that do: I-CNT tells what was not reported."""
    mode = encoder.implicit_return
    return ImplicitReturn.OFF if mode is None else ImplicitReturn(mode or ImplicitReturn.FULL_STACK)


def undecodable(encoder: EncoderInForce, what: str) -> Unsupported:
    """The error for an encoder that produces *what*."""
    return Unsupported(f"{printable(encoder.name)} produces {what}, which cannot be decoded yet; `trace save` keeps it")


E_TRACE_MAJOR = 0
"""The trTeProtocolMajor that can be decoded (E-Trace 2.0, "Basic Control")."""


def etrace_of_registers(encoder: EncoderInForce, values: Values) -> ETrace:
    """How to read what *encoder* sends; *values*, which count more, are what its registers do not tell.

    Raises `BadSetting`, `Unsupported`.
    """
    if encoder.protocol_version[0] != E_TRACE_MAJOR:
        raise undecodable(encoder, f"E-Trace {'.'.join(map(str, encoder.protocol_version))}")
    modes = {key: bool(encoder.feature(SETTINGS[key].told_by)) for key in REGISTERED_MODES}
    told: dict[str, Value] = {
        **modes,
        "src_bits": encoder.src_bits,
        "timestamp_bytes": -(-encoder.timestamp_bits // 8) if encoder.timestamps else 0,
    }
    if encoder.base:  # registers that were read, not what somebody said
        told["resync_disabled"] = encoder.sync[0] == SyncMode.OFF
        told["sync_packets"] = sync_period(encoder) or 0
        told["unfiltered"] = encoder.inst_filters == 0 and not ENCODER_CONTROL.get(
            encoder.control, "trTeInstTrigEnable"
        )
    if encoder.data("trTeDataImplemented"):
        told |= {
            "type_bits": 1,
            "data_no_data": bool(encoder.data("trTeDataNoValue")),
            "data_no_address": bool(encoder.data("trTeDataNoAddr")),
            "data_full_address": encoder.data("trTeDataAddrCompress") == DataAddrCompress.FULL,
        }
    return made({**told, **values})


How = NTrace | ETrace
"""How a trace was made by encoders."""
AnyHow = How | CtrInForce | TandemPort
"""How a trace was made."""


class AnyItem(Protocol):
    """A message, filling, or bytes that are neither: where they are."""

    @property
    def offset(self) -> int: ...

    @property
    def end(self) -> int: ...


class AnyItemizer(Protocol):
    """Takes a trace apart, fed in pieces."""

    def feed(self, data: bytes) -> Iterator[Any]: ...
    def finish(self) -> Iterator[Any]: ...


class AnyWording(Protocol):
    """Puts its items into words. `is_odd`: whether one is nothing that such an encoder sends."""

    def text(self, item: Any, *, raw: bool = False) -> str: ...
    def is_odd(self, item: Any) -> bool: ...


def how_of(encoder: CapturedEncoder) -> How:
    """How to read what *encoder* sends, whoever else sends into the same sink. Raises `Unsupported`."""
    if encoder.in_force.format != Format.E_TRACE:
        return _overridden(ntrace_options(encoder.in_force, alone=True), encoder.unregistered)
    try:
        return etrace_of_registers(encoder.in_force, encoder.unregistered.etrace)
    except BadSetting as error:
        raise Unsupported(printable(f"{encoder.in_force.name}: {error}")) from None


def with_one_period(all_options: list[How]) -> list[How]:
    """The same; of encoders that synchronize after different numbers of messages none is known."""
    periods = {it.options.sync_packets if isinstance(it, ETrace) else it.sync_period for it in all_options}
    return all_options if len(periods) < 2 else [_without_period(it) for it in all_options]


def _without_period(how: How) -> How:
    if isinstance(how, ETrace):
        return replace(how, options=replace(how.options, sync_packets=0))
    return replace(how, sync_period=None)


def decode(
    data: bytes,
    program: Program,
    how: AnyHow,
    *,
    wrapped: bool = False,
    stop_at_error: bool = False,
    progress: Progress = silent,
) -> Streams:
    """The histories of all harts in *data*, by source. Raises only what *progress* raises."""
    return begun(data, program, how, wrapped=wrapped, stop_at_error=stop_at_error).result(progress)


def begun(
    data: bytes, program: Program, how: AnyHow, *, wrapped: bool = False, stop_at_error: bool = False
) -> Unfinished:
    """The same when it may be interrupted, and is to go on there later."""
    if isinstance(how, CtrInForce):
        return _OfRecords(data, program, how)
    if isinstance(how, TandemPort):
        parameters = how.parameters
        return OfTandem(lambda: TandemDecoding(data, program, parameters, wrapped=wrapped, stop_at_error=stop_at_error))
    if isinstance(how, ETrace):
        options, encapsulation = replace(how.options, stop_at_error=stop_at_error), how.encapsulation
        return Fed(data, lambda: ETraceDecoder(program, options, encapsulation, wrapped=wrapped))
    options_of_n = replace(how, stop_at_error=stop_at_error)
    return Fed(data, lambda: NTraceDecoder(program, options_of_n, wrapped=wrapped))


class _OfRecords:
    """At most some hundred of them: they are decoded at once."""

    def __init__(self, data: bytes, program: Program, how: CtrInForce) -> None:
        self._data, self._program, self._how = data, program, how
        self._found: Streams | None = None

    def result(self, progress: Progress) -> Streams:
        """As `Unfinished`."""
        if self._found is None:
            history = ctr.decode(self._data, self._program, self._how, progress).history
            self._found = Streams({0: history}, history.accounting)
        return self._found


def tells_sources(how: AnyHow) -> bool:
    """Whether messages say whose they are."""
    if isinstance(how, CtrInForce | TandemPort):
        return False
    return how.tells_sources if isinstance(how, ETrace) else how.src_bits > 0


def itemizer(how: AnyHow, xlen: int, *, wrapped: bool = False) -> AnyItemizer:
    """What takes a trace apart that was made so."""
    if isinstance(how, CtrInForce):
        return ctr.Itemizer()
    if isinstance(how, TandemPort):
        return tandem_items.Itemizer(how.parameters, wrapped=wrapped)
    if isinstance(how, ETrace):
        return ETraceItemizer(how.options, how.encapsulation, xlen, wrapped=wrapped)
    return NTraceItemizer(how, xlen, wrapped=wrapped)


def wording(how: AnyHow) -> AnyWording:
    """What puts its items into words."""
    if isinstance(how, CtrInForce):
        return ctr.Wording()
    if isinstance(how, TandemPort):
        return TandemWording(how.parameters)
    return ETraceWording(how.options) if isinstance(how, ETrace) else NTraceWording(how)


def source_of(item: Any) -> int | None:
    """Who sent a message; None for what is no message."""
    if isinstance(item, ctr.Item):
        return None
    if hasattr(item, "source"):
        return item.source  # type: ignore[no-any-return]
    return None if item.message is None else item.message.src


def _overridden(options: NTrace, unregistered: Unregistered) -> NTrace:
    """*options* with what is known better than from the registers."""
    if unregistered.dialect is not None:
        options = replace(options, dialect=DIALECTS[unregistered.dialect])
    if unregistered.address_bits is not None:
        options = replace(options, address_bits=unregistered.address_bits)
    if unregistered.timestamp_bits is not None:
        options = replace(options, timestamp_bits=unregistered.timestamp_bits)
    return options
