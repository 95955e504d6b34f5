"""`assert ...`: the assertions of scripts, their syntax and evaluation.

An assertion does not pass on assumptions: if trace is missing, an assertion that the missing part could contradict
fails.
"""

import re
import shlex
from collections.abc import Callable
from typing import Any, NamedTuple

from rvtrace_gdb.console.bench import trace_queries
from rvtrace_gdb.console.bench.bench import Bench
from rvtrace_gdb.console.bench.trace_queries import CheckFailed, Ran
from rvtrace_gdb.console.scripts import interval_limits
from rvtrace_gdb.console.scripts.language import SIGNS, Comparison, Expected, comparison
from rvtrace_gdb.support.text import counted

_LATENCY = re.compile(r"interrupt\s+latency(?:\s+of\s+(?P<handler>.+))?")
UNITS = ("instructions", "ticks")


class AssertionResult(NamedTuple):
    """The result of an assertion. *measured*: the value, for the report; *why*: the reason of a failure, and notes."""

    passed: bool
    measured: Any
    why: str = ""


Check = Callable[[Bench], AssertionResult]


class Form(NamedTuple):
    """A kind of assertion. *read*: parses the text after `assert`; returns None if it is another kind."""

    usage: str
    explained: str
    read: Callable[[str], Check | None]


class HandlerLatency(NamedTuple):
    """The latency of interrupts to a handler, in a unit."""

    handler: str | None
    unit: str

    def measure(self, bench: Bench) -> int:
        """Return the longest latency. Raises CheckFailed."""
        found = bench.latency(self.handler)
        return found.ticks if self.unit == "ticks" else found.instructions


def check(text: str) -> Check:
    """Parse the text after `assert`. Raises Expected."""
    for form in FORMS:
        found = form.read(text)
        if found is not None:
            return found
    raise Expected("expected one of: " + "; ".join(f"assert {form.usage}" for form in FORMS))


def latency(text: str) -> HandlerLatency | None:
    """Parse `interrupt latency [of HANDLER] [instructions|ticks]`; None for anything else."""
    words, unit = text.rsplit(None, 1), "instructions"
    if len(words) == 2 and words[1] in UNITS:
        text, unit = words
    found = _LATENCY.fullmatch(text.strip())
    return None if found is None else HandlerLatency(found["handler"], unit)


def interval_figure(text: str) -> interval_limits.IntervalFigure | None:
    """Parse `intervals of PLACE FIGURE [instructions|ticks]` and the like; None for anything else."""
    words = text.rsplit(None, 1)
    if len(words) == 2 and words[1] in UNITS:
        found = interval_limits.figure_of(words[0])
        return None if found is None else found._replace(unit=words[1])
    return interval_limits.figure_of(text)


def _after(word: str, text: str) -> str | None:
    """Return the text after a word, or words; None if *text* does not begin with them."""
    found = re.fullmatch(rf"{word.replace(' ', chr(92) + 's+')}\s+(.+)", text)
    return None if found is None else found[1].strip()


def _compared(text: str, usage: str) -> Comparison:
    found = comparison(text)
    if found is None:
        raise Expected(f"expected: assert {usage}, with spaces around the operator")
    return found


def _ran(text: str) -> Check | None:
    location = _after("ran", text)
    if location is None:
        return None

    def run(bench: Bench) -> AssertionResult:
        found = bench.came(location)
        if not found.came:
            return AssertionResult(False, 0, _and(f"{location} did not run", _earlier(found)))
        return AssertionResult(True, found.came, "" if found.times else _stands(location))

    return run


def _not_ran(text: str) -> Check | None:
    location = _after("not ran", text)
    if location is None:
        return None

    def run(bench: Bench) -> AssertionResult:
        found = bench.came(location)
        if found.times:
            times = f"{found.times} times" if found.times > 1 else "once"
            return AssertionResult(False, found.came, f"{location} ran {times}")
        if found.stands:
            return AssertionResult(False, found.came, _stands(location))
        lost = bench.losses()
        why = f"cannot be told, the trace is not complete: {lost[0]}" if lost else _earlier(found)
        return AssertionResult(not lost, 0, why)

    return run


def _stands(location: str) -> str:
    return f"the program is stopped at {location}, about to run it, which counts"


def _and(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def _earlier(ran: Ran) -> str:
    """Return a note if a ring buffer has overwritten older trace."""
    return "older trace was overwritten, and what ran before that is not counted" if ran.overwritten else ""


def _no_loss(text: str) -> Check | None:
    if text.split() != ["no", "loss"]:
        return None

    def run(bench: Bench) -> AssertionResult:
        bench.decode()
        lost = bench.losses()
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        return AssertionResult(not lost, len(lost), f"{lost[0]}{more}" if lost else "")

    return run


def _calls(text: str) -> Check | None:
    if _after("calls", text) is None:
        return None
    what, sign, value = _compared(text, CALLS)
    location = _after("calls", what)
    if location is None:
        raise Expected(f"expected: assert {CALLS}")

    def run(bench: Bench) -> AssertionResult:
        limit, found = bench.number(value), bench.came(location)
        times = found.came
        lost = bench.losses() if sign not in (">", ">=") else []
        if SIGNS[sign](times, limit) and lost:
            return AssertionResult(False, times, f"cannot be told, the trace is not complete: {lost[0]}")
        result = _limit(times, sign, limit, f"{location} ran {counted(times, 'time')}")
        stands = _stands(location) if found.stands else ""
        return result._replace(why=_and(result.why, stands, _earlier(found)))

    return run


def _interrupt_latency(text: str) -> Check | None:
    if not text.startswith("interrupt"):
        return None
    what, sign, value = _compared(text, LATENCY)
    words = value.rsplit(None, 1)
    unit = words[1] if len(words) == 2 and words[1] in UNITS else "instructions"
    asked = latency(what)
    if asked is None or sign not in ("<", "<="):
        raise Expected(f"expected: assert {LATENCY}, or with <=")
    limit_text = words[0] if len(words) == 2 and words[1] in UNITS else value

    def run(bench: Bench) -> AssertionResult:
        limit, worst = bench.number(limit_text), asked._replace(unit=unit).measure(bench)
        return _limit(worst, sign, limit, f"the worst is {worst} {unit}")

    return run


def _intervals(text: str) -> Check | None:
    if _after("intervals", text) is None:
        return None
    what, sign, value = _compared(text, INTERVALS)
    words = value.rsplit(None, 1)
    unit = words[1] if len(words) == 2 and words[1] in UNITS else UNITS[0]
    figure = interval_limits.figure_of(what)
    if figure is None:
        raise Expected(f"expected: assert {INTERVALS}, or {', '.join(interval_limits.FIGURES)} instead of max")
    limit_text = words[0] if len(words) == 2 and words[1] in UNITS else value

    def run(bench: Bench) -> AssertionResult:
        return AssertionResult(*figure._replace(unit=unit).judge(bench, sign, bench.number(limit_text)))

    return run


def _instructions_check(text: str) -> Check | None:
    if text.split()[0] != "instructions":
        return None
    what, sign, value = _compared(text, INSTRUCTIONS)
    if what != "instructions":
        raise Expected(f"expected: assert {INSTRUCTIONS}")

    def run(bench: Bench) -> AssertionResult:
        limit, count = bench.number(value), instructions(bench)
        there = f"{counted(count, 'instruction')} {'is' if count == 1 else 'are'} in the trace"
        return _limit(count, sign, limit, there)

    return run


def instructions(bench: Bench) -> int:
    """Return the number of instructions in the history, without gaps."""
    return bench.decode() - trace_queries.length(bench.engine, "-rvtrace-gaps")


def _order(text: str) -> Check | None:
    if _after("order", text) is None:
        return None
    try:
        locations = shlex.split(text)[1:]
    except ValueError:
        locations = []
    if len(locations) < 2:
        raise Expected(f"expected: assert {ORDER}")

    def run(bench: Bench) -> AssertionResult:
        bench.check_order(*locations)
        return AssertionResult(True, None)

    return run


def _value_check(text: str) -> Check | None:
    expression = _after("value", text)
    if expression is None:
        return None

    def run(bench: Bench) -> AssertionResult:
        number = bench.number(expression)
        return AssertionResult(number != 0, number, "" if number else f"{expression} is 0")

    return run


def _limit(measured: int, sign: str, limit: int, text: str) -> AssertionResult:
    passed = SIGNS[sign](measured, limit)
    return AssertionResult(passed, measured, "" if passed else f"{text}, not {sign} {limit}")


def run(checked: Check, bench: Bench) -> AssertionResult:
    """Evaluate an assertion. Raises RvtraceError if that is not possible: no such function, no trace, no gdb."""
    try:
        return checked(bench)
    except CheckFailed as error:
        return AssertionResult(False, None, str(error))


CALLS = "calls LOCATION >= EXPRESSION"
LATENCY = "interrupt latency [of HANDLER] < EXPRESSION [instructions|ticks]"
INTERVALS = "intervals [of PLACE|from PLACE to PLACE] max < EXPRESSION [instructions|ticks]"
INSTRUCTIONS = "instructions >= EXPRESSION"
ORDER = "order LOCATION LOCATION ..."
FORMS = (
    Form("ran LOCATION", "the function was entered, or the place ran", _ran),
    Form("not ran LOCATION", "it was not, and the trace is complete", _not_ran),
    Form("no loss", "nothing is missing between the first and the last instruction", _no_loss),
    Form(CALLS, "how often (also > < <= == !=)", _calls),
    Form(LATENCY, "from interrupts to their handler (also <=)", _interrupt_latency),
    Form(INTERVALS, "how long calls, traps, ... take (also count, min, mean, p50, p90, p95, p99)", _intervals),
    Form(INSTRUCTIONS, "how many are in the trace (also > < <= == !=)", _instructions_check),
    Form(ORDER, "the first time of each comes after that of the preceding one", _order),
    Form("value EXPRESSION", "an expression of the program's language is not zero", _value_check),
)
