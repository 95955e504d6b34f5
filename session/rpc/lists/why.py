"""The list `why` of the session protocol: why a value is what it is.

    page {what: "why", name, at, register or where, branches, thin, depth, row, anew}

*name*, *at*, *register*, *where*: as in the request `who_wrote` (`session.rpc.questions.analysis`). *branches*: also
the branches that let it run. *thin*: without what addresses are made of. *depth*: how many levels, null:
`answer.DEPTH`. *anew*: it is asked now; without that, the next page goes into what was left out. *row*: go on from a
row of the answer before. The rows of what was asked on from an answer are behind those that it has.
"""

from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.history.positions import history_position
from rvtrace_gdb.decode.tandem.wording import regno_of
from rvtrace_gdb.rows.list_rows import WhyRow
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.past.past import PC
from rvtrace_gdb.session.queries.lists.pages import PageSelection, RangeError
from rvtrace_gdb.session.queries.lists.search import size_at
from rvtrace_gdb.session.questions.why.answer import DEPTH, WhyAnswer
from rvtrace_gdb.session.questions.why.asking import WhyQuestion, answer
from rvtrace_gdb.session.rpc.protocol import BadRequest, Params
from rvtrace_gdb.session.rpc.questions.analysis import SIZE_MOST, NoRegister
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress

_DEPTH_MOST = 1000
NOTHING_LEFT = "Nothing is left that was not gone into."
_LEAST = 10  # rows that are added at once


class _LastAnswer(NamedTuple):
    """The answer that was given last about a history."""

    answers: list[WhyAnswer]


class WhyPage(NamedTuple):
    """The answer that was given last, and from which row on it is new."""

    answer: WhyAnswer
    begin: int

    @classmethod
    def requested(cls, session: Session, params: Params, progress: Progress) -> "tuple[WhyPage, SelectedHistory]":
        """Return the answer to a request, and what it is about. Raises BadRequest, NoRegister, NoTrace, RangeError, and
        as `Session.history`.
        """
        selected = session.selected(params.context(), progress)
        kept = session.cached(_LastAnswer, selected.history, lambda: _LastAnswer([]))
        for last in kept.answers:
            last.show_progress(progress)
        if params.given("register") or params.given("where"):
            question = _question(session, selected, params)
            if params.given("anew") or not kept.answers:
                kept.answers[:] = [answer(session, selected, question, progress)]
                return cls(kept.answers[0], 1), selected
            return cls(kept.answers[0], _deepened(kept.answers[0])), selected
        if not kept.answers:
            raise NoTrace("nothing was asked yet: `trace why EXPRESSION`")
        begin = 1
        if params.given("row"):
            begin = len(kept.answers[0].rows) + 1
            _ask_row(kept.answers[0], params.number("row"))
        return cls(kept.answers[0], begin), selected

    @property
    def rows(self) -> Sequence[WhyRow]:
        return self.answer.rows

    def fetch(
        self, session: Session, selected: SelectedHistory, begin: int, end: int, progress: Progress
    ) -> Sequence[WhyRow]:
        """Return the rows numbered *begin* to *end* - 1, with who ran then."""
        from rvtrace_gdb.session.tasks.labels import runner_at  # few programs have tasks

        return [
            it if it.position is None
            else it._replace(**runner_at(session, selected, history_position(it.position), progress)._asdict())
            for it in self.rows[begin - 1 : end - 1]
        ]  # fmt: skip

    def select(self, args: str) -> PageSelection:
        """Return which rows a RANGE means. Raises RangeError."""
        length = len(self.rows)
        if args in ("", "+"):
            return PageSelection(self.begin, length + 1, None if self.begin <= length else NOTHING_LEFT)
        numbers = [part.strip() for part in args.split(",")]
        if not all(part.isdecimal() for part in numbers) or len(numbers) > 2:
            raise RangeError(f"{args}: give rows of the answer as A or A,B")
        first, last = int(numbers[0]), int(numbers[-1])
        if not 1 <= first <= min(last, length):
            raise RangeError(f"{args}: the answer has the rows 1 to {length}")
        return PageSelection(first, min(last, length) + 1)


def _deepened(last: WhyAnswer) -> int:
    """Go into what was left out. Return the number of the first row that is new."""
    first = len(last.rows) + 1
    while len(last.rows) < first + _LEAST and last.deepen():
        pass
    return first


def _ask_row(last: WhyAnswer, row: int) -> None:
    if not 1 <= row <= len(last.rows):
        raise RangeError(f"-row {row}: the answer has the rows 1 to {len(last.rows)}")
    if not last.ask_row(row):
        raise RangeError(f"-row {row}: no instruction made it: there is nothing to go into")


def _question(session: Session, selected: SelectedHistory, params: Params) -> WhyQuestion:
    at, context, depth = params.optional_number("at"), params.context(), params.optional_number("depth")
    at = session.number_of_selected_hart(context) if at is None else at
    length = len(selected.history)
    position = length if at is None else min(max(history_position(at), 0), length)
    if depth is not None and not 1 <= depth <= _DEPTH_MOST:
        raise BadRequest(f"page: depth is 1 to {_DEPTH_MOST}")
    found = WhyQuestion(
        position, branches=params.given("branches"), thin=params.given("thin"), depth=DEPTH if depth is None else depth
    )
    if params.given("register"):
        return found._replace(register=_register(params.text("register"), branches=found.branches))
    where = params.place("where")
    if where is None or where[1] > SIZE_MOST:
        raise BadRequest(f"page: register is needed, or where with at most {SIZE_MOST} bytes")
    image = selected.program.image_of(selected.history.context_at(max(min(position, length - 1), 0)))
    return found._replace(where=(where[0], where[1] or min(size_at(where[0], image), SIZE_MOST)))


def _register(name: str, *, branches: bool) -> int:
    number = PC if name == "pc" else regno_of(name)
    if number is None:
        raise NoRegister(f"there is no register ${name}, or a trace does not have it")
    if number == PC and not branches:
        raise NoRegister("every instruction writes the pc: ask with -branches what let the instruction here run")
    if name in ("zero", "x0"):
        raise NoRegister(f"${name} is always 0: nothing can write it")
    return number
