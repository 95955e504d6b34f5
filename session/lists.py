"""The lists of things in a history that were asked for last - accesses, what was found, functions, calls - and which of
their rows are shown."""

from functools import partial
from typing import TYPE_CHECKING

from rvtrace_gdb.session.accesses import Accesses, AccessRow, Where
from rvtrace_gdb.session.calls import CallRow, FunctionRow, Functions
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.finding import Found, Question
from rvtrace_gdb.session.finding import Row as FoundRow
from rvtrace_gdb.session.frames import call_history, functions_of
from rvtrace_gdb.session.reading import Listing
from rvtrace_gdb.session.selected import Selected
from rvtrace_gdb.support.progress import Progress, silent

if TYPE_CHECKING:
    from rvtrace_gdb.session.session import Session


class Lists:
    """Of a *session*'s trace. A trace that runs is read out first; each raises as `Session.history`."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._accesses: Accesses | None = None
        self._functions: Functions | None = None
        self._found: Found | None = None
        self._earlier: dict[type[Question], Found] = {}  # by kind of question: each is paged on its own

    def accesses(
        self, args: str, size: int | None, where: Where | None, context: Context, progress: Progress = silent
    ) -> Listing:
        """Which accesses of the context's hart `trace data ARGS` shows, all or those to the memory *where*."""
        it = self._session.selected_or_empty(context, progress)
        if self._accesses is None or not self._accesses.is_of(it.history, where):
            self._accesses = Accesses(it.history, it.program, where)
        return Listing(*self._accesses.select(args, size), it.lines, it.hart)

    def access_rows(self, begin: int, end: int) -> list[AccessRow]:
        """The accesses numbered *begin* to *end* - 1, of those asked for last. Raises `NoTrace`."""
        if self._accesses is None:
            raise NoTrace("no accesses were asked for yet")
        return self._accesses.rows(begin, end)

    def find(
        self, question: Question, args: str, size: int | None, context: Context, progress: Progress = silent
    ) -> Listing:
        """Which of what *question* finds in the history of the context's hart are shown; see `session.finding`.

        Raises also BadQuestion.
        """
        it = self._session.selected_or_empty(context, progress)
        self._found = self.answer(question, it, progress)
        listing = Listing(*self._found.select(args, size), it.lines, it.hart)
        return listing if len(self._found) else listing._replace(notice=it.unless_earlier(self._found.none))

    def answer(self, question: Question, it: Selected, progress: Progress = silent) -> Found:
        """All that *question* finds in a history. Raises BadQuestion."""
        self._earlier = {kind: found for kind, found in self._earlier.items() if found.history is it.history}
        found = self._earlier.get(type(question))
        if found is None or not found.is_of(it.history, question):
            calls = partial(call_history, self._session, it, progress)
            found = self._earlier[type(question)] = Found(it.history, it.program, question, progress, calls)
        return found

    def found(self, begin: int, end: int) -> list[FoundRow]:
        """Those numbered *begin* to *end* - 1 of what was found last. Raises `NoTrace`."""
        if self._found is None:
            raise NoTrace("nothing was looked for yet")
        return self._found.rows(begin, end)

    def functions(self, args: str, size: int | None, context: Context, progress: Progress = silent) -> Listing:
        """Which functions of the context's hart `trace functions ARGS` shows."""
        functions, it = self._functions_of(context, progress)
        return Listing(*functions.select(args, size), it.lines, it.hart)

    def function_rows(self, begin: int, end: int, *, lines: bool = False) -> list[FunctionRow]:
        """The functions numbered *begin* to *end* - 1 of the history asked for last. Raises `NoTrace`."""
        return self._the_functions().rows(begin, end, lines=lines)

    def calls(self, depth: int, context: Context, progress: Progress = silent) -> Listing:
        """How many lines the tree of calls has, down to *depth* levels."""
        functions, it = self._functions_of(context, progress)
        return Listing(1, functions.tree(depth, progress) + 1, None, it.lines, it.hart)

    def call_rows(self, begin: int, end: int) -> list[CallRow]:
        """Lines of the tree of calls asked for last. Raises `NoTrace`."""
        return self._the_functions().tree_rows(begin, end)

    def _functions_of(self, context: Context, progress: Progress) -> tuple[Functions, Selected]:
        it = self._session.selected(context, progress)
        self._functions = functions_of(self._session, it, progress)
        return self._functions, it

    def _the_functions(self) -> Functions:
        if self._functions is None:
            raise NoTrace("no functions were asked for yet")
        return self._functions
