"""Whether a synchronization behind damage is believed: what the packets right after it would mean is looked at first.

Damage makes bytes look like packets that they are not, and a synchronization does not tell by itself that it is one:
nearly any address may be code. But what comes next in the trace either can have run from there on, or it cannot.
"""

from collections.abc import Callable, Iterable
from enum import Enum

from rvtrace_gdb.decode.callstack import Stack
from rvtrace_gdb.decode.etrace.automaton import Automaton
from rvtrace_gdb.decode.etrace.layout import Format
from rvtrace_gdb.decode.etrace.packet import Codec, Malformed, Packet
from rvtrace_gdb.decode.etrace.predictor import Tables
from rvtrace_gdb.decode.etrace.state import Setup, State, Step
from rvtrace_gdb.decode.events import EventKind, Loss, LossCause
from rvtrace_gdb.decode.reports import Report

AHEAD = 2
"""How many packets after one are looked at: of `benchmarks/damage.py` more of them find no more."""

_NO_DAMAGE = (LossCause.ABSENT_CODE, LossCause.NO_CODE, LossCause.COUNT_UNTOLD, LossCause.UNKNOWN_HANDLER)
_HARMLESS = (*_NO_DAMAGE, LossCause.PACKETS_LOST)


class Verdict(Enum):
    """What the packets after a synchronization say of it."""

    BELIEVED = "believed"
    CONTRADICTED = "contradicted"
    OPEN = "open"
    """Nothing yet: there are too few of them."""
    SELF_EVIDENT = "self-evident"
    """Nothing is needed: the packet itself tells a loss, or what cannot be."""


class Doubt:
    """What is in doubt: nothing before there is damage, then all up to a synchronization that is believed.

    *codec_of*: what reads packets under a setup. *active*: whether something is in doubt. *told*: whether it was said
    since the damage that something is not believed.
    """

    def __init__(self, automaton: Automaton, codec_of: Callable[[Setup], Codec]) -> None:
        self._automaton = automaton
        self._codec_of = codec_of
        self._differs: int | str | None = None  # the last place where program and trace do not agree
        self.active = self.told = False

    def look(self, reports: Iterable[Report]) -> None:
        """Whether one of *reports* is damage; that code is missing is none."""
        for report in reports:
            if report.lost and _cause(report) not in _NO_DAMAGE:
                self.active = True
                self._differs = _place(report) or self._differs

    def verdict(self, state: State, packet: Packet, payloads: Iterable[bytes], otherwise: Verdict) -> Verdict:
        """What *payloads*, which follow *packet*, say of it. *state*: before it, where the hart is not known.

        *otherwise*: what holds if there are too few of them.
        """
        verdict = self._verdict(state, packet, payloads)
        verdict = otherwise if verdict is Verdict.OPEN else verdict
        if verdict is Verdict.BELIEVED:
            self.active = self.told = False
        return verdict

    def _verdict(self, state: State, packet: Packet, payloads: Iterable[bytes]) -> Verdict:
        stack: Stack = None
        setup, tables = state.place.setup, Tables(state.place.setup.parameters)
        following = iter(payloads)
        for number in range(AHEAD + 1):
            step = self._automaton.step(state, packet, stack, tables).step
            if any(report.lost for report in step.reports):
                return self._judge(step, packet) if number else Verdict.SELF_EVIDENT
            if step.tables is not None:
                tables.apply(step.tables)
            stack, state = step.stack_after(stack), step.state
            if state.place.setup != setup:
                setup, tables = state.place.setup, Tables(state.place.setup.parameters)
            if number == AHEAD:
                break
            if (payload := next(following, None)) is None:
                return Verdict.OPEN
            try:
                packet = self._codec_of(setup).parse(payload)
            except Malformed:
                return Verdict.CONTRADICTED
        return Verdict.BELIEVED

    def _judge(self, step: Step, packet: Packet) -> Verdict:
        """Of a step with a loss. One synchronization against another says nothing of either.

        Where the program differs from the trace at the same place as before, it is the program that is wrong.
        """
        losses = [report for report in step.reports if report.lost]
        if packet.format == Format.SYNC or all(_cause(report) in _HARMLESS for report in losses):
            return Verdict.BELIEVED
        places = [_place(report) for report in losses]
        return Verdict.BELIEVED if self._differs is not None and self._differs in places else Verdict.CONTRADICTED


def _cause(report: Report) -> LossCause | None:
    return report.fact.cause if isinstance(report.fact, Loss) else None


def _place(report: Report) -> int | str | None:
    """The address at which program and trace do not agree, None where they do."""
    return report.fact.detail[1] if isinstance(report.fact, Loss) and report.kind is EventKind.MISMATCH else None
