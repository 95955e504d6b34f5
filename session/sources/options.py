"""Converts the options of `trace start` into requests to the trace components: features, filters and triggers.

Options of filters, in the session protocol; without them everything is traced:

range     [[first address, end], ...]
function  [[name, address of the entry], ...]; the program's symbols give its end
priv      ["u", "s", "m", ...]

Options of triggers, which switch tracing on and off in the harts that are traced:

trigger_on        [address, ...]   tracing starts before the instruction there
trigger_off       [address, ...]   tracing stops before the instruction there
trigger_notify    [address, ...]   the trace gets a mark there
trigger_control   the value of trTeTrigDbgControl, whose meaning is the vendor's
trigger_input     ["N=ACTION,...", ...]: what external trigger input N of the encoder does: on, off, notify
trigger_output    ["N=EVENT,...", ...]: when external trigger output N fires: start, stop
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from rvtrace_gdb.controlregs.debug_triggers import (
    NAMES,
    AllocatedTrigger,
    AsManyAsFree,
    TriggerPoint,
    allocate,
    allocate_free,
    altered_notes,
    release,
)
from rvtrace_gdb.controlregs.encoder_features import SWITCHES
from rvtrace_gdb.controlregs.trace_control.component_registers import TsMode, TsPrescale
from rvtrace_gdb.controlregs.trace_control.encoder_registers import (
    PRIVILEGES,
    DataAddrCompress,
    ImplicitReturnMode,
    InstMode,
    SyncMode,
    TeFormat,
    TrigAction,
)
from rvtrace_gdb.controlregs.trace_control.filters_and_triggers import EXTERNAL, STARTS, STOPS, Filter, Triggers
from rvtrace_gdb.controlregs.trace_control.request import TraceRequest
from rvtrace_gdb.decode.program.elf import Symbol
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.description.model import EncoderDescription
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.target.link import Tcl, csrs_of
from rvtrace_gdb.session.target.target_state import WITH_MEMORY
from rvtrace_gdb.support import typed
from rvtrace_gdb.support.errors import RvtraceError

FILTER_OPTIONS = ("range", "function", "priv")
MODES = {name.lower(): number for number, name in PRIVILEGES.items() if name != "debug"}
"""Privilege modes in the user's notation, and their codes at the trace port."""
_TOP_OF_ADDRESSES = 1 << 64


def filter_of(options: Mapping[str, object], image: Image | None) -> Filter | None:
    """Return the requested filter, None: everything is traced. Raises `BadOption`."""
    ranges = tuple(_range_option(pair) for pair in _list(options, "range"))
    functions = tuple(_function_range(image, pair) for pair in _list(options, "function"))
    privileges = tuple(sorted({_mode(word) for word in _list(options, "priv")}))
    return Filter(ranges + functions, privileges) if ranges or functions or privileges else None


def _list(options: Mapping[str, object], name: str) -> list[object]:
    value = options.get(name, [])
    if not isinstance(value, list):
        raise BadOption(f"{name} is {value!r}, it must be a list")
    return value


def _range_option(value: object) -> tuple[int, int]:
    pair = typed.pair_of(value, typed.number, typed.number)
    if pair is None:
        raise BadOption(f"range has {value!r}, it must have pairs of addresses")
    start, end = pair
    if not 0 <= start < end <= _TOP_OF_ADDRESSES:
        raise BadOption(f"the range {start:#x},{end:#x} has no address in it: give FROM,TO with TO after the last one")
    return start, end


def _mode(word: object) -> int:
    if not isinstance(word, str) or word not in MODES:
        raise BadOption(f"priv has {word!r}, it must have some of {', '.join(MODES)}")
    return MODES[word]


def _function_range(image: Image | None, value: object) -> tuple[int, int]:
    """Return the range from a function's entry to its symbol's end; one without a size ends at the next symbol."""
    pair = typed.pair_of(value, typed.text, typed.number)
    if pair is None:
        raise BadOption(f"function has {value!r}, it must have pairs of a name and an address")
    name, entry = pair
    ends = [] if image is None else sorted(_ends(image, entry))
    if not ends:
        raise BadOption(f"{name}: the program has no symbol at {entry:#x} that gives its end: give -range FROM,TO")
    return entry, ends[-1]


def _ends(image: Image, entry: int) -> Iterator[int]:
    for elf, bias in image.elves:
        for section in elf.sections:
            if section.start <= entry - bias < section.end:
                size = _symbol_size(section.symbols, entry - bias, section.end)
                if size:
                    yield entry + size


def _symbol_size(symbols: list[Symbol], address: int, section_end: int) -> int:
    """Return the size of the largest symbol at *address*; one without a size reaches to the next. 0: there is none."""
    here = bisect_left(symbols, address, key=lambda symbol: symbol.address)
    behind = bisect_right(symbols, address, key=lambda symbol: symbol.address)
    if here == behind:
        return 0
    size = max(symbol.size for symbol in symbols[here:behind])
    following = symbols[behind].address if behind < len(symbols) else section_end
    return min(size, section_end - address) or following - address


TRIGGER_OPTIONS = ("trigger_on", "trigger_off", "trigger_notify", "trigger_control", "trigger_input", "trigger_output")
_ACTIONS = {"on": TrigAction.TRACE_ON, "off": TrigAction.TRACE_OFF, "notify": TrigAction.TRACE_NOTIFY}
_EVENTS = {"start": STARTS, "stop": STOPS}
_ADDRESSES = range(_TOP_OF_ADDRESSES)
_WORDS = range(1 << 32)


def triggers_of(options: Mapping[str, object]) -> Triggers | None:
    """Return the requested triggers, None: none. Raises `BadOption`."""
    on, off, notify = (_address_option(options, name) for name in TRIGGER_OPTIONS[:3])
    both = set(on) & set(off)
    if both:
        raise BadOption(f"{min(both):#x} is to switch the trace on and off: name different places")
    value = options.get("trigger_control")
    control = typed.number_in(_WORDS)(value)
    if value is not None and control is None:
        raise BadOption(f"trigger_control is {value!r}, it must be a number of 32 bits")
    inputs = tuple((number, _ACTIONS[word]) for number, word in _external(options, "trigger_input", _ACTIONS))
    outputs: dict[int, int] = {}
    for number, word in _external(options, "trigger_output", _EVENTS):
        outputs[number] = outputs.get(number, 0) | _EVENTS[word]
    if len(dict(inputs)) < len(inputs):
        raise BadOption("a trigger input can do one thing: name each of them once")
    found = Triggers(on, off, notify, control, inputs, tuple(outputs.items()))
    return None if found == Triggers() else found


def _external(options: Mapping[str, object], name: str, words: Mapping[str, object]) -> list[tuple[int, str]]:
    """Return (number, word) of each piece N=WORD."""
    texts = typed.list_of(options.get(name, []), typed.text)
    if texts is None:
        raise BadOption(f"{name} is {options[name]!r}, it must be a list of texts")
    found = []
    for piece in (piece for text in texts for piece in text.split(",")):
        number, _, word = piece.partition("=")
        if not (number.isascii() and number.isdigit() and int(number) < EXTERNAL and word in words):
            raise BadOption(f"{name} has {piece!r}, give N=WORD: 0 to {EXTERNAL - 1}, and one of {', '.join(words)}")
        found.append((int(number), word))
    return found


def _address_option(options: Mapping[str, object], name: str) -> tuple[int, ...]:
    addresses = typed.list_of(options.get(name, []), typed.number_in(_ADDRESSES))
    if addresses is None:
        raise BadOption(f"{name} is {options[name]!r}, it must be a list of addresses")
    return tuple(dict.fromkeys(addresses))


class Armed:
    """The triggers that were set in harts. *notes*: notes for the user, a line each. It is true while some of them are
    set that the user asked for.
    """

    def __init__(self, link: Tcl) -> None:
        self._link = link
        self._taken: dict[int, Sequence[AllocatedTrigger]] = {}
        self._requested = False
        self.notes: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._taken) and self._requested

    def add(self, hart: int, places: Sequence[TriggerPoint]) -> None:
        """Set triggers in a hart. Raises TriggersRefused, HartRuns, HartUnreachable and the transport's errors."""
        taken, notes = allocate(csrs_of(self._link, hart, NAMES), hart, places)
        self._taken[hart], self._requested = taken, True
        self.notes += notes

    def add_free(self, hart: int, places: Sequence[TriggerPoint]) -> AsManyAsFree:
        """Set triggers in a hart in addition, as many as are free. Raises as `add`."""
        already = self._taken.get(hart, ())
        kept = [one.number for one in already]
        more = allocate_free(csrs_of(self._link, hart, NAMES), hart, places, kept)
        if more.taken:
            self._taken[hart] = [*already, *more.taken]
        self.notes += more.notes
        return more

    def disarm(self) -> list[str]:
        """Remove all triggers; return a line for each that could not be removed, or that was changed. Raises nothing.

        Triggers in a hart that cannot be reached now are removed by the next call.
        """
        lines: list[str] = []
        for hart in tuple(self._taken):
            try:
                lines += release(csrs_of(self._link, hart, NAMES), hart, self._taken[hart])
            except RvtraceError as error:
                lines.append(f"the triggers of hart {hart} stay set for now: {error}")
            else:
                del self._taken[hart]
        return lines

    def changed(self) -> list[str]:
        """Return a line for each trigger that a reset or the program has changed, as far as harts can be read now."""
        lines: list[str] = []
        for hart, taken in self._taken.items():
            try:
                lines += altered_notes(csrs_of(self._link, hart, NAMES), hart, taken)
            except RvtraceError:
                continue  # the hart runs, or its error is reported elsewhere
        return lines


def arm(link: Tcl, encoders: Sequence[EncoderDescription], triggers: Triggers | None) -> Armed:
    """Set the triggers in each hart that *encoders* trace; the harts must be halted.

    Raises TriggersRefused, HartRuns, HartUnreachable and the transport's errors; then none is set.
    """
    armed = Armed(link)
    places = [] if triggers is None else _trigger_points(triggers)
    try:
        for hart in dict.fromkeys(encoder.hart for encoder in encoders if places):
            armed.add(hart, places)
    except BaseException:
        armed.disarm()
        raise
    return armed


def _trigger_points(triggers: Triggers) -> list[TriggerPoint]:
    by_action = {
        TrigAction.TRACE_ON: triggers.on,
        TrigAction.TRACE_OFF: triggers.off,
        TrigAction.TRACE_NOTIFY: triggers.notify,
    }
    return [TriggerPoint(action, address) for action, addresses in by_action.items() for address in addresses]


RequestFields: TypeAlias = Mapping[str, Any]
"""Fields of `TraceRequest`, by name."""
# Switches (true or false): the fields of the request that each of them sets.
_SWITCHES: Mapping[str, RequestFields] = {
    "stop_on_wrap": {"stop_on_wrap": True},
    "stall": {"stall": True},
    "btm": {"inst_mode": InstMode.BTM},
    "timestamps": {"timestamps": True},
    "context": {"context": True},
    "data": {"data": True},
    "no_data_values": {"data": True, "data_no_value": True},
    "no_data_addresses": {"data": True, "data_no_address": True},
    "full_data_addresses": {"data": True, "data_addr_compress": DataAddrCompress.FULL},
}
# Switches that are one field of trTeInstFeatures.
_FEATURES = {feature.request: feature.field for feature in SWITCHES}
_IMPLICIT_RETURN = "trTeInstEnImplicitReturn"
_RETURN_MODES = {
    "off": ImplicitReturnMode.UNREPORTED,
    "on": ImplicitReturnMode.UNREPORTED,
    "counter": ImplicitReturnMode.DEPTH_COUNTER,
    "partial": ImplicitReturnMode.PARTIAL_ADDRESS_STACK,
    "full": ImplicitReturnMode.FULL_ADDRESS_STACK,
}
_FORMATS = {"ntrace": TeFormat.N_TRACE, "etrace": TeFormat.E_TRACE}
_TIME_SOURCES = {
    "system": TsMode.INTERNAL_SYSTEM,
    "core": TsMode.INTERNAL_CORE,
    "external": TsMode.EXTERNAL,
    "shared": TsMode.SHARED,
}
_PRESCALES = {1: TsPrescale.DIV1, 4: TsPrescale.DIV4, 16: TsPrescale.DIV16, 64: TsPrescale.DIV64}
_CHOICES = ("to", "harts")
_SYNC_MAX = range(16)  # trTeInstSyncMax: a period of 2**(n + 4) units
_LONGEST = 1 << _SYNC_MAX.stop - 1 + 4  # halfwords


def chosen_components(options: Mapping[str, object]) -> tuple[list[str], list[int]]:
    """Return the sinks and the harts that the options `to` and `harts` name, [] if not given. Raises `BadOption`."""
    sinks = typed.list_of(options.get("to", []), typed.text)
    if sinks is None:
        raise BadOption(f"to is {options['to']!r}, it must be a list of names")
    harts = typed.list_of(options.get("harts", []), typed.number)
    if harts is None:
        raise BadOption(f"harts is {options['harts']!r}, it must be a list of numbers")
    return sinks, harts


def trace_request(options: Mapping[str, object], image: Image | None = None) -> TraceRequest:
    """Return the request to each encoder. *image*: the program, for options that name its functions.

    Switches, true or false: stop_on_wrap, stall, btm, timestamps, context, those of `encoder_features`, data,
    no_data_values, no_data_addresses, full_data_addresses (each of these three implies data). With a value: format
    (ntrace, etrace), implicit_return (off, on, counter, partial or full), sync_period (halfwords of code),
    timestamp_source (system, core, external, shared) and timestamp_prescale (1, 4, 16, 64; both imply timestamps), the
    filters, the triggers, and what `chosen` reads. Raises `BadOption`.
    """
    wanted: dict[str, Any] = {
        "features": (),
        "filter": filter_of(options, image),
        "triggers": triggers_of(options),
    }
    for name, value in options.items():
        if name in _VALUES:
            wanted |= _VALUES[name](value)
            wanted["features"] += (_IMPLICIT_RETURN,) if (name, value) == ("implicit_return", "on") else ()
        elif name not in _SWITCHES and name not in _FEATURES:
            raise BadOption(f"trace start has no option {name}; it has {', '.join((*_SWITCHES, *_FEATURES, *_VALUES))}")
        elif value:
            wanted |= _SWITCHES.get(name, {})
            wanted["features"] += (_FEATURES[name],) if name in _FEATURES else ()
    return TraceRequest(**wanted)


def unsupported_notes(options: Mapping[str, object]) -> list[str]:
    """Return notes for the user about options that no trace encoder supports."""
    asked = typed.number(options.get("sync_period"))
    if asked is None or asked <= _LONGEST:
        return []
    return [f"a sync period of {asked} halfwords is not possible, {_LONGEST} is the longest"]


def _implicit_return(value: object) -> RequestFields:
    mode = _RETURN_MODES.get(typed.text(value) or "")
    if mode is None:
        raise BadOption(f"implicit_return is {value!r}, it must be off, on, counter, partial or full")
    return {"implicit_return": mode}


def _format(value: object) -> RequestFields:
    chosen = _FORMATS.get(typed.text(value) or "")
    if chosen is None:
        raise BadOption(f"format is {value!r}, it must be ntrace or etrace")
    return {"format": chosen}


def _timestamp_source(value: object) -> RequestFields:
    source = _TIME_SOURCES.get(typed.text(value) or "")
    if source is None:
        raise BadOption(f"timestamp_source is {value!r}, it must be one of {', '.join(_TIME_SOURCES)}")
    return {"timestamps": True, "ts_mode": source}


def _timestamp_prescale(value: object) -> RequestFields:
    prescale = _PRESCALES.get(typed.number(value) or 0)
    if prescale is None:
        raise BadOption(f"timestamp_prescale is {value!r}, it must be one of {', '.join(map(str, _PRESCALES))}")
    return {"timestamps": True, "ts_prescale": prescale}


def _sync_period(value: object) -> RequestFields:
    """Return the shortest period that is not shorter than requested, or else the longest period."""
    halfwords = typed.number(value)
    if halfwords is None or halfwords < 1:
        raise BadOption(f"sync_period is {value!r}, it must be a number of halfwords from 1 on")
    exponent = (halfwords - 1).bit_length() - 4
    sync_max = min(max(exponent, _SYNC_MAX.start), _SYNC_MAX.stop - 1)
    return {"sync_mode": SyncMode.HALFWORDS, "sync_max": sync_max}


_VALUES: Mapping[str, Callable[[object], RequestFields]] = {
    "format": _format,
    "implicit_return": _implicit_return,
    "sync_period": _sync_period,
    "timestamp_source": _timestamp_source,
    "timestamp_prescale": _timestamp_prescale,
    **dict.fromkeys((*FILTER_OPTIONS, *TRIGGER_OPTIONS, *_CHOICES, WITH_MEMORY), lambda value: {}),  # read on their own
}
