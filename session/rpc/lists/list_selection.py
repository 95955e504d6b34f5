"""A list of the protocol, and which of its rows a request means."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rvtrace_gdb.rows.list_rows import Annotation, Between, Page
from rvtrace_gdb.session.queries.lists.pages import Folding, PageSelection, RowFetch
from rvtrace_gdb.session.rpc.protocol import ROWS_AT_MOST, BadRequest, JsonMessage, Params


class ListSelection(NamedTuple):
    """A list, and which of its rows are shown. *events*: what happened before rows, of lists that have that.

    The other attributes are those of `rows.list_rows.Page`.
    """

    length: int
    selection: PageSelection
    rows: RowFetch
    lines: list[str]
    hart: int | None
    events: Callable[[int, int], Sequence[Annotation]] | None = None
    overwritten: bool = False
    comes: bool = False
    now: Between | None = None
    folding: Folding | None = None
    instead: str = ""

    def fetch(self, begin: int, end: int) -> JsonMessage:
        """Return the rows numbered *begin* to *end* - 1, and what happened before them."""
        shown = begin < end
        events = self.events(begin, end) if self.events is not None and shown else []
        return {"rows": list(self.rows(begin, end)) if shown else [], "events": list(events)}

    def first_page(self, most: int) -> Page:
        """Return the answer, with at most *most* rows."""
        begin, end, notice = self.selection
        if self.folding is not None:
            rows: Sequence[object] = [row for part in self.folding.numbers for row in self.rows(*part)]
            events: Sequence[Annotation] = []
        else:
            rows, events = self.fetch(begin, min(end, begin + most)).values()
        return Page(
            begin=begin,
            end=end,
            hart=self.hart,
            rows=rows,
            events=events,
            length=self.length,
            notice=notice,
            lines=self.lines,
            overwritten=self.overwritten,
            comes=self.comes,
            now=self.now,
            folds=None if self.folding is None else self.folding.folds,
            instead=self.instead,
        )


class Range(NamedTuple):
    """The part of a list that is requested: *args* and *size*, or *most* rows from *begin* on; see the module."""

    args: str
    size: int
    begin: int | None = None
    most: int | None = None

    @classmethod
    def from_params(cls, params: Params) -> "Range":
        """Return the range in a request. Raises BadRequest."""
        if not params.given("count") and not params.given("begin"):
            return cls(params.text("args", ""), params.size())
        begin, most = params.optional_number("begin"), params.number("count")
        if most > ROWS_AT_MOST or begin == 0:
            raise BadRequest(f"page: at most {ROWS_AT_MOST} from 1 on can be requested at once")
        return cls("", 0, begin, most)

    def select(self, length: int, by_user: Callable[[str, int], PageSelection]) -> PageSelection:
        """Return which of *length* rows are shown. *by_user*: selects what the user's RANGE means."""
        return by_user(self.args, self.size) if self.most is None else self.by_number(length)

    def is_first(self, params: Params) -> bool:
        """Return whether what is requested is not the page after, or before, another one."""
        return params.given("anew") or bool(params.given("since")) or self.args not in ("", "+", "-") or not self.size

    def by_number(self, length: int) -> PageSelection:
        """Return which of *length* rows a program has requested by their numbers."""
        most = self.most or 0
        begin = max(length - most + 1, 1) if self.begin is None else self.begin
        return PageSelection(begin, min(begin + most, length + 1))
