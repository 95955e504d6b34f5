"""Where tracing goes on and off by itself: the triggers of the options of `trace start`, in the harts that are traced.

Options, in the session protocol:

trigger_on        [address, ...]   tracing begins before the instruction there
trigger_off       [address, ...]   tracing ends before the instruction there
trigger_notify    [address, ...]   the trace gets a mark there
trigger_control   what trTeTrigDbgControl must hold, which is the vendor's
trigger_input     ["N=ACTION,...", ...]: what external trigger input N of the encoder does: on, off, notify
trigger_output    ["N=EVENT,...", ...]: when external trigger output N fires: start, stop
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rvtrace_gdb.controlregs.debug_triggers import NAMES
from rvtrace_gdb.controlregs.encoder import TrigAction
from rvtrace_gdb.controlregs.hart_triggers import altered, give_back, take
from rvtrace_gdb.controlregs.trigger_module import Place, Taken
from rvtrace_gdb.controlregs.trigger_setup import EXTERNAL, STARTS, STOPS, Triggers
from rvtrace_gdb.session.description import Encoder
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.hart_csrs import Tcl, csrs_of
from rvtrace_gdb.support.errors import RvtraceError

OPTIONS = ("trigger_on", "trigger_off", "trigger_notify", "trigger_control", "trigger_input", "trigger_output")
_ACTIONS = {"on": TrigAction.TRACE_ON, "off": TrigAction.TRACE_OFF, "notify": TrigAction.TRACE_NOTIFY}
_EVENTS = {"start": STARTS, "stop": STOPS}
_TOP = 1 << 64
_WORD = 1 << 32


def triggers_of(options: Mapping[str, Any]) -> Triggers | None:
    """The triggers that the options ask for, None: none. Raises `BadOption`."""
    on, off, notify = (_addresses(options, name) for name in OPTIONS[:3])
    both = set(on) & set(off)
    if both:
        raise BadOption(f"{min(both):#x} is to switch the trace on and off: name different places")
    control = options.get("trigger_control")
    if control is not None and not (_is_number(control) and 0 <= control < _WORD):
        raise BadOption(f"trigger_control is {control!r}, it must be a number of 32 bits")
    inputs = tuple((number, _ACTIONS[word]) for number, word in _external(options, "trigger_input", _ACTIONS))
    outputs: dict[int, int] = {}
    for number, word in _external(options, "trigger_output", _EVENTS):
        outputs[number] = outputs.get(number, 0) | _EVENTS[word]
    if len(dict(inputs)) < len(inputs):
        raise BadOption("a trigger input can do one thing: name each of them once")
    found = Triggers(on, off, notify, control, inputs, tuple(outputs.items()))
    return None if found == Triggers() else found


def _external(options: Mapping[str, Any], name: str, words: Mapping[str, object]) -> list[tuple[int, str]]:
    """(number, word) of each piece N=WORD."""
    value = options.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadOption(f"{name} is {value!r}, it must be a list of texts")
    found = []
    for piece in (piece for text in value for piece in text.split(",")):
        number, _, word = piece.partition("=")
        if not (number.isascii() and number.isdigit() and int(number) < EXTERNAL and word in words):
            raise BadOption(f"{name} has {piece!r}, give N=WORD: 0 to {EXTERNAL - 1}, and one of {', '.join(words)}")
        found.append((int(number), word))
    return found


def _addresses(options: Mapping[str, Any], name: str) -> tuple[int, ...]:
    value = options.get(name, [])
    if not isinstance(value, list) or not all(_is_number(one) and 0 <= one < _TOP for one in value):
        raise BadOption(f"{name} is {value!r}, it must be a list of addresses")
    return tuple(dict.fromkeys(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class Armed:
    """The triggers that were set in harts. *notes*: what the user should know of it, a line each."""

    def __init__(self, link: Tcl) -> None:
        self._link = link
        self._taken: dict[int, Sequence[Taken]] = {}
        self.notes: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._taken)

    def add(self, hart: int, places: Sequence[Place]) -> None:
        """Raises TriggersRefused, HartRuns, HartUnreachable and the transport's errors."""
        taken, notes = take(csrs_of(self._link, hart, NAMES), hart, places)
        self._taken[hart] = taken
        self.notes += notes

    def disarm(self) -> list[str]:
        """Take all of them back. Raises nothing: a line for each that could not be, or was not ours any more.

        What a hart keeps because it cannot be reached now is taken back by the next call.
        """
        lines: list[str] = []
        for hart in tuple(self._taken):
            try:
                lines += give_back(csrs_of(self._link, hart, NAMES), hart, self._taken[hart])
            except RvtraceError as error:
                lines.append(f"the triggers of hart {hart} stay set for now: {error}")
            else:
                del self._taken[hart]
        return lines

    def changed(self) -> list[str]:
        """A line for each trigger that a reset or the program has changed, as far as harts can be asked now."""
        lines: list[str] = []
        for hart, taken in self._taken.items():
            try:
                lines += altered(csrs_of(self._link, hart, NAMES), hart, taken)
            except RvtraceError:
                continue  # it runs, or what is wrong with it is said elsewhere
        return lines


def arm(link: Tcl, encoders: Sequence[Encoder], triggers: Triggers | None) -> Armed:
    """Set the triggers in each hart that *encoders* trace; the harts must stand still.

    Raises TriggersRefused, HartRuns, HartUnreachable and the transport's errors; then none is set.
    """
    armed = Armed(link)
    places = [] if triggers is None else _places(triggers)
    try:
        for hart in dict.fromkeys(encoder.hart for encoder in encoders if places):
            armed.add(hart, places)
    except BaseException:
        armed.disarm()
        raise
    return armed


def _places(triggers: Triggers) -> list[Place]:
    by_action = {
        TrigAction.TRACE_ON: triggers.on,
        TrigAction.TRACE_OFF: triggers.off,
        TrigAction.TRACE_NOTIFY: triggers.notify,
    }
    return [Place(action, address) for action, addresses in by_action.items() for address in addresses]
