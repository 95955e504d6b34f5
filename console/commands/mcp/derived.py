"""The questions of the tool `ask`: what each needs, and the words of the shell's command that answers it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

TRAPS = ("trap", "interrupt", "exception")


class AskedWords(NamedTuple):
    """The arguments of a call that say what is meant. *what*, *where*: "" and () if they are not given."""

    what: str
    where: Sequence[str]
    number: int | None


class DerivedQuestion(NamedTuple):
    """A question. *needs*: the arguments without which it makes no sense, and *says* so; *words*: of the command."""

    words: Callable[[AskedWords], list[str]]
    needs: Callable[[AskedWords], bool] = lambda given: True
    says: str = ""


def _why_words(given: AskedWords) -> list[str]:
    place = [] if given.number is None else ["--at", str(given.number)]
    return [given.what, *place, "--branches"]


def _interval_words(given: AskedWords) -> list[str]:
    if given.where:
        return [*given.where]
    return ["--traps" if given.what in TRAPS else "--calls", given.what]


QUESTIONS: Mapping[str, DerivedQuestion] = {
    "explain": DerivedQuestion(lambda given: []),
    "why": DerivedQuestion(
        _why_words, lambda given: bool(given.what), "what: $REGISTER, a variable, 0xADDRESS, or $pc"
    ),
    "log": DerivedQuestion(
        lambda given: [given.where[0], given.what],
        lambda given: bool(given.what) and len(given.where) == 1, "where: one place, and what: expressions",
    ),
    "calls-of": DerivedQuestion(lambda given: [given.what], lambda given: bool(given.what), "what: a function"),
    "stack": DerivedQuestion(lambda given: []),
    "intervals": DerivedQuestion(
        _interval_words, lambda given: bool(given.what) != (len(given.where) == 2) and len(given.where) in (0, 2),
        "what: a function, trap, interrupt or exception; or where: two places",
    ),
    "sql": DerivedQuestion(lambda given: [given.what] if given.what else []),
    "diff": DerivedQuestion(lambda given: []),
}  # fmt: skip


def following_call(command: str, number: int | None) -> tuple[str, dict[str, Any]]:
    """Return the tool, and its arguments, for a command of gdb that an explanation proposes, without `trace`.
    *number*: where its `goto` leads, None without one.
    """
    verb, _, rest = command.partition(" ")
    if verb == "goto":
        return "at", {"number": int(rest)}
    if verb == "why":
        place = {} if number is None else {"number": number}
        return "ask", {"question": "why", "what": rest.removeprefix("-branches "), **place}
    if verb == "calls-of":
        function, _, numbers = rest.rpartition(" ")
        return "ask", {"question": "calls-of", "what": function if function and numbers[:1].isdigit() else rest}
    if verb in ("events", "gaps"):
        return "events", {"kind": rest or "gap"}
    return ("ask", {"question": verb}) if verb in QUESTIONS else (verb, {})
