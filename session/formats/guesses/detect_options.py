"""Guesses how a trace was made, for bytes whose options were given incompletely or wrongly.

If bytes contradict the program, or cannot be decoded at all, they are decoded again with one option changed, then
another, as long as that helps. A guess is only a hint: with the wrong program none is right. Several fields around
E-Trace packets must be right at once before anything can be decoded: these are tried together.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from itertools import chain, product
from typing import Any

from rvtrace_gdb.controlregs.encoder_features import ETRACE, RAW_NTRACE
from rvtrace_gdb.decode.etrace.dialects import DEFAULTS
from rvtrace_gdb.decode.etrace.encapsulation import NAMES, Encapsulation
from rvtrace_gdb.decode.etrace.items import Item, Itemizer
from rvtrace_gdb.decode.etrace.layout import SyncSubformat, TeInstFormat
from rvtrace_gdb.decode.etrace.options import Dialect
from rvtrace_gdb.decode.etrace.wording import Wording
from rvtrace_gdb.decode.history.events import EventKind, Loss, LossCause, Note, NoteCause
from rvtrace_gdb.decode.history.history import Event, History
from rvtrace_gdb.decode.ntrace.options import DIALECTS, SIFIVE, ImplicitReturn, Options
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.session.capture.etrace_settings import (
    BadSetting,
    EtraceTraceOptions,
    SettingValue,
    default,
    etrace_of,
    values_of,
)
from rvtrace_gdb.session.capture.model import Capture, CapturedSink
from rvtrace_gdb.session.decoded_capture import Decoded
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.formats import registry
from rvtrace_gdb.session.formats.guesses.option_trial import BY_CHANCE, MUCH, OptionTrial
from rvtrace_gdb.session.formats.imports.raw_import import EncoderTraceOptions, is_imported
from rvtrace_gdb.session.formats.sinks import feeding, options_of
from rvtrace_gdb.session.history_problems import nothing_decoded
from rvtrace_gdb.support.errors import Progress, silent

_LIKELY: Mapping[str, tuple[SettingValue, ...]] = {
    "src_bits": tuple(range(9)),
    "timestamp_bytes": (0, 1, 2, 4, 6, 8),
    "type_bits": (0, 1, 2),
    "instruction_type": (0, 2),
    "iaddress_width": (32, 64, 39, 48),
    "iaddress_lsb": (1, 2),
    "privilege_width": (1, 2, 3),
    "ecause_width": (4, 5, 6),
    "context_width": (0, 8, 16, 32),
    "time_width": (0, 16, 32, 40, 48, 64),
    "support": ("reference", "standard", "pulp", "et20", "pt10"),
    "ecall_retires": (False, True),
    "iret_ext": (False, True),
    "f0s_width": (0, 1),
    "bpred_size": (6, 7, 8, 9, 10, 5, 4),
    "cache_size": (5, 6, 4, 7, 8),
}
"""Values that encoders use, if the default was tried first."""

_TOGETHER: tuple[Mapping[str, SettingValue], ...] = (
    *({feature.etrace: True, **needed} for feature in ETRACE for needed in feature.needs),
    *({feature.etrace: False} for feature in ETRACE),
)
"""Modes, with the settings that they need in an encoder."""

_ETRACE_SRC_BITS = range(13)  # of trTeSrcBits
_TIMESTAMP_BYTES = (0, 1, 2, 4, 5, 6, 8)
_TYPES: tuple[Mapping[str, SettingValue], ...] = (
    {"type_bits": 0}, {"type_bits": 1}, {"type_bits": 2}, {"type_bits": 2, "instruction_type": 0},
)  # fmt: skip
_LEAST, _FIRST_LOOK, _LOOK = 1 << 6, 1 << 9, 1 << 11  # bytes
_ETRACE_CHANGES = 3  # at most
_SENSIBLE = 16  # one nonsense byte in so many can occur in any trace
_MUCH_SENSE = 4  # so many times less nonsense is much better

_TRANSPORTS = tuple(map(Encapsulation, NAMES))


def changed_etrace(trace_options: EtraceTraceOptions) -> Iterator[EtraceTraceOptions]:
    """Yield *trace_options* with one setting changed: first with a given setting omitted, then with others added."""
    return iter(
        sorted(
            _etrace_candidates(trace_options),
            key=lambda candidate: etrace_words(candidate) >= etrace_words(trace_options),
        )
    )


def _etrace_candidates(trace_options: EtraceTraceOptions) -> Iterator[EtraceTraceOptions]:
    for transport in _TRANSPORTS:
        if transport.name != trace_options.encapsulation.name:
            yield replace(trace_options, encapsulation=transport)
    single: list[Mapping[str, SettingValue]]
    single = [{key: value} for key, values in _LIKELY.items() for value in values]
    dialects: list[Mapping[str, SettingValue]] = [
        {"dialect": dialect.value, **DEFAULTS[dialect]} for dialect in Dialect
    ]
    plain = trace_options.encapsulation == Encapsulation("smi")  # its header contains the types
    for change in (*single, *dialects, *_TOGETHER):
        if plain and "type_bits" in change:
            continue
        try:
            other = etrace_of(change, trace_options)
        except BadSetting:
            continue
        if other != trace_options:
            yield other


def etrace_words(trace_options: EtraceTraceOptions) -> int:
    """Return how many settings differ from the defaults."""
    return len(values_of(trace_options))


def better_etrace_layout(
    data: bytes, trace_options: EtraceTraceOptions, xlen: int, *, wrapped: bool = False
) -> EtraceTraceOptions | None:
    """Return settings with which the beginning of *data* makes far more sense, without a program; None if none do."""

    if makes_sense(data, trace_options, xlen, wrapped=wrapped):
        return None

    def least(candidates: Iterable[EtraceTraceOptions], size: int) -> tuple[EtraceTraceOptions, int]:
        """Return the candidate with the least nonsense, of several the nearest to *trace_options*; and the nonsense."""
        best, worth = trace_options, (size + 1, 0)
        for candidate in candidates:
            bad = nonsense(data[:size], candidate, xlen, wrapped, worth[0])
            if bad <= worth[0] and (mine := (bad, len(values_of(candidate, trace_options)))) < worth:
                best, worth = candidate, mine
        return best, worth[0]

    first = nonsense(data[:_LOOK], trace_options, xlen, wrapped)
    best, _ = least(chain([trace_options], _framings(trace_options)), _FIRST_LOOK)
    fewest = nonsense(data[:_LOOK], best, xlen, wrapped)
    for _ in range(_ETRACE_CHANGES):
        better, bad = least(chain([best], _etrace_candidates(best)), _LOOK)
        if bad >= fewest:
            break
        best, fewest = better, bad
    return best if fewest * _MUCH_SENSE <= first else None


def sensible_layout(data: bytes, xlen: int, *, wrapped: bool = False) -> EtraceTraceOptions | None:
    """Return settings with which the beginning of unknown *data* is plausible; None if there are none."""
    plain = etrace_of({"iaddress_width": xlen})
    found = better_etrace_layout(data, plain, xlen, wrapped=wrapped) or plain
    return found if len(data) >= _LEAST and makes_sense(data, found, xlen, wrapped=wrapped) else None


def makes_sense(data: bytes, trace_options: EtraceTraceOptions, xlen: int, *, wrapped: bool = False) -> bool:
    """Return whether hardly any byte at the beginning of *data* is nonsense; True for a few bytes."""
    size = min(len(data), _LOOK)
    return size < _LEAST or nonsense(data[:size], trace_options, xlen, wrapped) * _SENSIBLE <= size


def nonsense(data: bytes, trace_options: EtraceTraceOptions, xlen: int, wrapped: bool, limit: int | None = None) -> int:
    """Return how many bytes are neither filling nor packets that an encoder sends; all, if no packet synchronizes.

    A trace of data only needs no synchronization. More than *limit* are not counted to the end.
    """
    most = len(data) if limit is None else limit
    itemizer = Itemizer(trace_options.options, trace_options.encapsulation, xlen, wrapped=wrapped)
    wording = Wording(trace_options.options)
    bad, synchronizes, only_data = 0, False, True
    for item in chain(itemizer.feed(data), itemizer.finish()):
        if item.packet is not None:
            of_sync = item.packet.format == TeInstFormat.SYNC
            synchronizes |= of_sync and item.packet.subformat in (SyncSubformat.START, SyncSubformat.TRAP)
            only_data &= of_sync and item.packet.subformat == SyncSubformat.SUPPORT
        known = item.packet is not None or item.data is not None
        if not item.is_idle and (not known or wording.is_odd(item) or _is_long(item, trace_options)):
            bad += item.length
            if bad > most:
                break
    return bad if synchronizes or only_data else len(data)


def _framings(trace_options: EtraceTraceOptions) -> Iterator[EtraceTraceOptions]:
    """Yield *trace_options* with other fields around packets, or in another transport."""
    yield from (replace(trace_options, encapsulation=transport) for transport in _TRANSPORTS)
    if trace_options.encapsulation.name not in ("encap", "smi"):
        return
    for bits, size, types in product(_ETRACE_SRC_BITS, _TIMESTAMP_BYTES, _TYPES):
        transport = {"encapsulation": "encap", "src_bits": bits, "timestamp_bytes": size, **types}
        yield etrace_of(transport, replace(trace_options, encapsulation=Encapsulation()))


def _is_long(item: Item, trace_options: EtraceTraceOptions) -> bool:
    """Return whether sign based compression would have omitted the last byte."""
    if trace_options.options.dialect is not Dialect.STANDARD or len(item.raw) < 2:
        return False
    last, before = item.raw[-1], item.raw[-2]
    return last in (0, 0xFF) and last & 0x80 == before & 0x80


_MOST = 1 << 18  # bytes decoded for each guess
_LOOKED_AT = 1 << 11  # bytes, where there is no program
_FEW = 2  # odd messages may be in any trace
_BEHIND = 1 << 13  # bytes after the first contradiction
_CHANGES = 3  # at most
_SRC_BITS = range(9)  # wider ones are rare
_ADDRESS_BITS = (None, 64, 58, 57, 49, 48, 40, 39, 32)
"""All, those of Sv57, Sv48 and Sv39, with one more as SiFive's encoders have, and 32; None: as the dialect has it.

The first that fits is taken: more bits than an encoder sends do not fit, fewer may by chance.
"""
_BAD = (EventKind.MISMATCH, EventKind.LOSS)
_MOST_SINKS = 4  # those with most bytes: noise taken for CoreSight frames has a hundred ATB IDs


def guess(
    capture: Capture, decoded: Decoded, progress: Progress = silent
) -> tuple[EncoderTraceOptions, EncoderTraceOptions] | None:
    """Return (given options, options that fit much better) for an imported trace that does not fit its program.

    None: it fits, or nothing fits better, or an encoder's registers were read. Raises only what *progress* raises.
    """
    if not is_imported(capture):
        return None
    total, used, idle, _ = decoded.harts.accounting
    doubtful = MUCH * used < total - idle
    looked_at = {it.in_force.name for it in sorted(decoded.sinks, key=lambda it: -len(it.data))[:_MOST_SINKS]}
    for number, sink in enumerate(decoded.sinks):
        if not isinstance(sink, CapturedSink) or sink.in_force.name not in looked_at:
            continue
        said = options_of(feeding(sink, capture.encoders))
        if not isinstance(said, EncoderTraceOptions):  # of other formats there is nothing to guess
            continue
        found = decoded.harts.histories.items()
        histories = [history for hart, history in found if decoded.harts.sinks.get(hart, 0) == number]
        better = better_options(
            sink.data, decoded.program, said, histories, wrapped=sink.wrapped, doubtful=doubtful, progress=progress
        )
        if better is not None:
            return said, better
    return None


def wrong_widths(sink: CapturedSink, capture: Capture, decoded: Decoded, progress: Progress = silent) -> str:
    """Return which settings of an E-Trace encoder do not fit its trace, and those that do.

    They need not be options of a command, but may be those of a target description. "": it is another format, or has
    no packet that synchronizes.
    """
    said = options_of(feeding(sink, capture.encoders))
    if not isinstance(said, EtraceTraceOptions):
        return ""
    histories = decoded.harts.histories.values()
    better = better_options(
        sink.data, decoded.program, said, histories, wrapped=sink.wrapped, doubtful=True, progress=progress
    )
    where = "" if is_imported(capture) else " (table `etrace` of the encoder in the target description)"
    if not isinstance(better, EtraceTraceOptions):
        lost = next((event for history in histories for event in history.events if _is_of_sync(event)), None)
        return f"with these widths{where}: {lost.text}" if lost is not None else ""
    changed = {**values_of(said, better), **values_of(better, said)}
    before, after = (
        ", ".join(f"{key} {values.get(key, default(key))}" for key in changed)
        for values in (values_of(said), values_of(better))
    )
    return f"with {before}: {after} fits the trace{where}"


def _is_of_sync(event: Event) -> bool:
    """Whether an event says that a packet which synchronizes is impossible, or leads to no code."""
    fact = event.fact
    return isinstance(fact, Loss) and fact.cause in (LossCause.RESERVED, LossCause.IMPOSSIBLE, LossCause.NO_CODE)


def better_options(
    data: bytes,
    program: Program,
    options: EncoderTraceOptions,
    histories: Iterable[History],
    *,
    wrapped: bool = False,
    doubtful: bool = False,
    progress: Progress = silent,
) -> EncoderTraceOptions | None:
    """Return options with which *data* fit *program* much better than with *options*, None if there are none.

    *histories*: decoded with *options*. *doubtful*: most bytes could not be decoded. Raises only what *progress*
    raises.
    """
    found = list(histories)
    if not doubtful and not any(map(_contradictions, found)) and any(history.instructions for history in found):
        return None
    events = [event for history in found for event in history.events]
    part = _decoded_part(len(data), events, from_start=isinstance(options, EtraceTraceOptions))
    window = data[part.start : part.stop]
    if not any(history.instructions for history in found):
        layout = _without_flow(window, options, program.xlen, wrapped=wrapped and not part.start)
        if layout is not None:
            return layout
    search = _Search(window, program, wrapped and not part.start, progress)
    first = search.tried(options)
    best, result = search.best(options, first)
    better = result.reads_what(first) if isinstance(best, EtraceTraceOptions) else result.explains_what(first)
    is_explained = better and result.is_evident and not result.contradictions
    if doubtful and not part.start and not is_explained:
        other, read = search.best_of(_other_format(options, program.xlen))
        if read.worth > result.worth and read.reads_what(first) and read.is_evident:
            return other
    if better and not result.is_evident:
        better = isinstance(best, EtraceTraceOptions) and _is_of_data(best, result, options, window, program.xlen)
    return best if better else None


def _is_of_data(
    best: EtraceTraceOptions, result: OptionTrial, options: EncoderTraceOptions, data: bytes, xlen: int
) -> bool:
    """Return whether there are data only, and nearly all settings were right: with some of many options noise is data,
    too.
    """
    only = not result.instructions and result.accesses > BY_CHANCE
    near = isinstance(options, EtraceTraceOptions) and len(values_of(best, options)) < 2
    return only and near and makes_sense(data, best, xlen)


def _without_flow(data: bytes, options: EncoderTraceOptions, xlen: int, *, wrapped: bool) -> EncoderTraceOptions | None:
    """Return options for *data* that contain no flow to compare with a program: SiFive's events and samples."""
    if not isinstance(options, Options) or options.dialect == SIFIVE:
        return None
    better = better_layout(data, options, xlen, wrapped=wrapped)
    return better if isinstance(better, Options) and better.dialect == SIFIVE else None


class _Search:
    """A search for the options with which bytes fit a program best. Raises only what *progress* raises."""

    def __init__(self, data: bytes, program: Program, wrapped: bool, progress: Progress) -> None:
        self._data, self._program, self._wrapped, self._progress = data, program, wrapped, progress

    def tried(self, candidate: EncoderTraceOptions) -> OptionTrial:
        """Return the result of decoding with *candidate*."""
        self._progress("trying other options", 0, None)
        trial = registry.decode(self._data, self._program, candidate, wrapped=self._wrapped)
        contradictions = sum(map(_contradictions, trial.histories.values()))
        instructions = sum(history.instructions for history in trial.histories.values())
        accesses = sum(len(history.accesses) for history in trial.histories.values())
        total, decoded, idle, _ = trial.accounting
        return OptionTrial(total - idle, contradictions + (not instructions), decoded, instructions, accesses)

    def best_of(self, options: EncoderTraceOptions) -> tuple[EncoderTraceOptions, OptionTrial]:
        """Return the best options that are found from *options* on."""
        return self.best(options, self.tried(options))

    def best(self, options: EncoderTraceOptions, result: OptionTrial) -> tuple[EncoderTraceOptions, OptionTrial]:
        """Return the best options that are found from *options* on, which had *result*."""
        best = options
        if isinstance(options, EtraceTraceOptions):  # several settings must be right at once before anything fits
            layout = better_etrace_layout(self._data, options, self._program.xlen, wrapped=self._wrapped)
            if layout is not None and (trial := self.tried(layout)).worth > result.worth:
                best, result = layout, trial
        steps = [(best, result)]
        for _ in range(_CHANGES):
            best, result = steps[-1]
            if not result.contradictions:
                break
            tried = [(self.tried(it), it) for it in _changed(best)]
            certain = [one for one in tried if not _has_fewer_address_bits(one[1], best)]
            (trial, candidate), (some, other) = (max(part, key=lambda one: one[0].worth) for part in (certain, tried))
            if max(trial.worth, result.worth) < some.worth and (trial.worth <= result.worth or some.is_all):
                trial, candidate = some, other
            if trial.worth <= result.worth:
                break
            steps.append((candidate, trial))
        while len(steps) > 1 and _fits_by_chance(steps[-1][0], steps[-2][0]):
            if steps[-1][1].improves_much(steps[-2][1]):
                break
            steps.pop()
        return steps[-1]


def _has_fewer_address_bits(one: EncoderTraceOptions, other: EncoderTraceOptions) -> bool:
    """Return whether the addresses of N-Trace have fewer bits, which may fit by chance: high ones are often alike."""
    if not isinstance(one, Options) or not isinstance(other, Options) or one.address_bits is None:
        return False
    return one.address_bits < (other.sent_address_bits or 64)


def _fits_by_chance(one: EncoderTraceOptions, other: EncoderTraceOptions) -> bool:
    """Return whether only fields differ of which wrong ones may fit a part of a trace: those around packets or
    messages, the right ones of which show in all of them, and address bits.
    """
    if _has_fewer_address_bits(one, other):
        return True
    if isinstance(one, EtraceTraceOptions) and isinstance(other, EtraceTraceOptions):
        return one.encapsulation != other.encapsulation
    if isinstance(one, Options) and isinstance(other, Options):
        return (one.src_bits, one.timestamps) != (other.src_bits, other.timestamps)
    return False


def _other_format(options: EncoderTraceOptions, xlen: int) -> EncoderTraceOptions:
    """Return default options of the other format: E-Trace for N-Trace, and the reverse."""
    return Options() if isinstance(options, EtraceTraceOptions) else etrace_of({"iaddress_width": xlen})


def better_layout(
    data: bytes, options: EncoderTraceOptions, xlen: int, *, wrapped: bool = False
) -> EncoderTraceOptions | None:
    """Return options with which the beginning of *data* has far fewer odd messages than with *options*, without a
    program.
    """
    if isinstance(options, EtraceTraceOptions):
        plain = Options()
        if makes_sense(data, options, xlen, wrapped=wrapped):
            return None
        if odd_messages(data, plain, xlen, wrapped) <= _FEW:
            return plain
        return better_etrace_layout(data, options, xlen, wrapped=wrapped)
    first = fewest = odd_messages(data, options, xlen, wrapped)
    best = options
    for _ in range(_CHANGES):
        tried = ((odd_messages(data, it, xlen, wrapped), it) for it in _changed_ntrace(best))
        trial, candidate = min(tried, key=lambda one: one[0])
        if trial >= fewest:
            break
        best, fewest = candidate, trial
    if first > _FEW and fewest * MUCH <= first:
        return best
    return None if first <= _FEW else sensible_layout(data, xlen, wrapped=wrapped)


def odd_messages(data: bytes, options: Options, xlen: int, wrapped: bool) -> int:
    """Return how many messages at the beginning of an N-Trace are odd."""
    trace_format = registry.format_of(options)
    itemizer, wording = trace_format.itemizer(options, xlen, wrapped=wrapped), trace_format.wording(options)
    return sum(map(wording.is_odd, chain(itemizer.feed(data[:_LOOKED_AT]), itemizer.finish())))


def _changed(options: EncoderTraceOptions) -> Iterator[EncoderTraceOptions]:
    """Yield *options* with one changed: first with a given one omitted, then with others added."""
    return changed_etrace(options) if isinstance(options, EtraceTraceOptions) else _changed_ntrace(options)


def _changed_ntrace(options: Options) -> Iterator[Options]:
    found = list(_ntrace_candidates(options))
    # Of options that fit alike the first is taken: rather all address bits than another dialect than was given.
    whole = options.address_bits is None and options.sent_address_bits and replace(options, address_bits=64)
    yield from sorted(found, key=lambda changed: (changed != whole, _stated_size(changed) >= _stated_size(options)))


def _ntrace_candidates(options: Options) -> Iterator[Options]:
    returns = ImplicitReturn.OFF if options.implicit_return else ImplicitReturn.FULL_STACK
    yield replace(options, implicit_return=returns)
    yield from (replace(options, dialect=dialect) for dialect in DIALECTS.values() if dialect != options.dialect)
    yield from (replace(options, src_bits=bits) for bits in _SRC_BITS if bits != options.src_bits)
    yield from (replace(options, address_bits=bits) for bits in _ADDRESS_BITS if bits != options.address_bits)
    yield replace(options, timestamps=not options.timestamps)
    yield replace(options, btm=not options.btm)
    for feature in RAW_NTRACE:
        changed: dict[str, Any] = {feature.ntrace: not getattr(options, feature.ntrace)}
        yield replace(options, **changed)


def _stated_size(options: Options) -> int:
    """Return how many options differ from the defaults."""
    return sum(getattr(options, field.name) != field.default for field in fields(Options))


def _contradictions(history: History) -> int:
    """Return how often the bytes contradicted the program, or could not be decoded."""
    return sum(map(_contradicts, history.doubtful_events))


def _contradicts(event: Event) -> bool:
    one_more = isinstance(event.fact, Note) and event.fact.cause is NoteCause.FIELD_TOO_MANY
    return event.kind in _BAD or one_more


def _decoded_part(size: int, events: Iterable[Event], *, from_start: bool = False) -> range:
    """Return the bytes to decode: whole messages from the last synchronizing one before the first contradiction.

    If there is none, from the beginning; also, if that is not too far, with *from_start*: messages at the start of a
    trace may be needed to decode it.
    """
    start = 0
    for event in sorted(events, key=lambda event: event.offset):
        if _contradicts(event):
            start = 0 if from_start and event.offset < _MOST else start
            return range(start, min(event.offset + _BEHIND, start + _MOST, size))
        if event.kind in (EventKind.SYNC, EventKind.TRACE_ON):
            start = event.offset
    return range(min(size, _BEHIND))


def nothing_of_hart(capture: Capture, decoded: Decoded, hart: int, *, live: bool) -> NoTrace:
    """Return an error that says why the history of a hart is empty."""
    histories = decoded.harts.histories
    if any(len(history) for history in histories.values()):
        return NoTrace(f"this trace has nothing of hart {hart} that can be decoded, only of other harts")
    sink, why = decoded.sink_of(hart), ""
    if isinstance(sink, CapturedSink) and EventKind.HART_EVENT not in histories[hart].kind_counts:
        why = wrong_widths(sink, capture, decoded)
    return nothing_decoded(sink, histories[hart], decoded.image, live=live, why=why)
