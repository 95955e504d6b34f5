"""Each reason for which tracing starts or stops is decided about: what it says of the hart, by the trace formats.

N-Trace 1.0, table of SYNC, and of EVCODE; E-Trace 2.0 does not say why (UNSPECIFIED, TRACING_STARTS).
"""

from rvtrace_gdb.decode.history.event_wording import fact_text
from rvtrace_gdb.decode.history.events import (
    HALTS,
    LOSSES,
    MAYBE_HALTS,
    ONLY_SAY_WHERE,
    Loss,
    LossCause,
    StartReason,
    StopReason,
)
from rvtrace_gdb.decode.reconstruction import happenings
from rvtrace_gdb.rows import list_text
from rvtrace_gdb.session.past import register_writers, saved_facts

RAN, RESET, NOTHING, UNKNOWN = "ran as before", "was reset", "nothing happened", "something may have happened"
STARTS = {
    StartReason.EXTERNAL_TRIGGER: UNKNOWN, StartReason.EXIT_FROM_RESET: RESET, StartReason.PERIODIC: NOTHING,
    StartReason.EXIT_FROM_DEBUG: UNKNOWN, StartReason.COUNTER_FULL: NOTHING, StartReason.TRACE_ENABLED: UNKNOWN,
    StartReason.TRACE_EVENT: UNKNOWN, StartReason.FIFO_OVERRUN: UNKNOWN, StartReason.EXIT_FROM_POWER_DOWN: RESET,
    StartReason.MESSAGE_CONTENTION: UNKNOWN, StartReason.PC_SAMPLE: NOTHING, StartReason.UNSPECIFIED: NOTHING,
    StartReason.TRACING_STARTS: UNKNOWN, StartReason.NOTIFICATION: UNKNOWN, StartReason.KNOWN_CODE: UNKNOWN,
    StartReason.RESET: RESET, StartReason.BEGINNING: RAN, StartReason.OLDEST_RECORD: UNKNOWN,
    StartReason.OTHER: UNKNOWN,
}  # fmt: skip
AFTER_A_HALT = {
    StartReason.EXIT_FROM_DEBUG, StartReason.TRACE_ENABLED, StartReason.TRACING_STARTS, StartReason.UNSPECIFIED,
}  # fmt: skip
HALTED, MAYBE, NOT = "halted", "maybe halted", "not halted"
STOPS = {
    StopReason.DEBUG_MODE: HALTED, StopReason.UNSPECIFIED: HALTED, StopReason.TRACE_DISABLED: MAYBE,
    **dict.fromkeys(
        [StopReason.LOW_POWER, StopReason.RESET, StopReason.OTHER, StopReason.MODE_NOT_RECORDED,
         StopReason.END_NOT_RECORDED, StopReason.LEFT_FOR_HIDDEN_MODE, StopReason.MAYBE_OFF, StopReason.OTHER_ROUTE,
         StopReason.NO_ROUTE, StopReason.NO_CODE, StopReason.UNTRACED, StopReason.GROUPS_MISSING], NOT
    ),
}  # fmt: skip


def test_each_reason_to_start() -> None:
    assert STARTS.keys() == set(StartReason)
    assert {reason for reason, what in STARTS.items() if what == NOTHING} == ONLY_SAY_WHERE
    assert {reason for reason, what in STARTS.items() if what in (NOTHING, RAN)} == happenings._GOES_ON
    assert {reason for reason, what in STARTS.items() if what == RESET} == set(register_writers._RESETS)
    assert set(saved_facts._BEGINS) == AFTER_A_HALT


def test_losses_are_the_same_for_lists() -> None:
    assert set(list_text.LOSSES) == {kind.value for kind in LOSSES}


def test_each_reason_to_stop() -> None:
    assert STOPS.keys() == set(StopReason)
    assert {reason for reason, what in STOPS.items() if what == HALTED} == HALTS
    assert {reason for reason, what in STOPS.items() if what != NOT} == MAYBE_HALTS


def test_noise_is_said_in_a_few_words() -> None:
    """500 bytes of zeros are a count of 3,000 bits."""
    count = 1 << 2996
    said = fact_text(Loss(LossCause.ICNT_TOO_LARGE, ("ResourceFull", count.bit_length(), 22, count)))
    assert said == "ResourceFull: I-CNT has 2997 bits, more than 22, and is at least 2^2996 halfwords ahead of HIST"
