"""The lines of many groups: those of plain ones are filled into templates, others are made one by one."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.views.tandem.groups import Groups, Row
from rvtrace_gdb.views.tandem.plain_groups import PlainGroups, RowKind, WalkedGroup
from rvtrace_gdb.views.tandem.templates import PlacedFields, RenderRow, RowTemplate, is_plain, row_template

AT_ONCE = 1024
"""The number of groups processed together."""
_FIRST = 64  # the first lines are there soon
_MOST_SYMBOLS = 1 << 16

SymbolAt = Callable[[int, ProgramContext], tuple[str, int] | None]
"""Returns the name at an address, and the distance from it."""
_UNSEEN = ("", 0)
_SymbolFields = tuple[str, int] | tuple[()]


class PlainRows:
    """Makes the lines of groups.

    learn     is told the rows that are made one by one, before they are
    render    makes all lines of a row; *plain*: those of a plain one, which are its template
    before    makes the lines that come before the template's, None: none; *caption*: a text that it needs
    symbol    finds the names at addresses of loads and stores, None: they are not shown
    """

    def __init__(
        self,
        groups: Groups,
        learn: Callable[[Iterable[Row]], object],
        render: RenderRow,
        plain: RenderRow | None = None,
        *,
        before: Callable[[RowKind], Iterable[str]] | None = None,
        caption: Callable[[Row], str] | None = None,
        symbol: SymbolAt | None = None,
    ) -> None:
        self._groups, self._walker = groups, PlainGroups(groups)
        self._learn, self._render, self._plain = learn, render, plain or render
        self._before, self._caption, self._symbol = before, caption, symbol
        self._symbols: dict[tuple[int | None, int | str], _SymbolFields | None] = {}

    def pages(self, numbers: Iterable[int], at_once: int = _FIRST) -> Iterator[list[str]]:
        """Yield the lines of groups by number, counted from 0, some groups at a time."""
        walked = self._walker.walk(numbers)
        while page := list(islice(walked, at_once)):
            yield self._page(page)
            at_once = AT_ONCE

    def _page(self, page: list[WalkedGroup]) -> list[str]:
        filled = list(map(self._filled, page))
        others = [self._groups.row(walked[0]) for walked, text in zip(page, filled, strict=True) if text is None]
        self._learn(others)
        rows, lines, before = iter(others), list[str](), self._before
        for walked, text in zip(page, filled, strict=True):
            if text is None:
                lines += self._row(walked, next(rows))
                continue
            if before is not None and walked[1] is not None:
                lines += before(walked[1])
            lines += text.split("\n")
        return lines

    def _filled(self, walked: WalkedGroup) -> str | None:
        """Return the text of a group by its template; None: its row is made by itself."""
        _, kind, fields, is_known = walked
        if kind is None:
            return None
        number: int = is_known
        if self._symbol is not None and kind.address >= 0:
            symbol = self._symbols.get((kind.mode, fields[3]), _UNSEEN)
            if symbol is _UNSEEN:
                symbol = self._symbol_fields(kind, fields)
            if symbol is None:
                return None
            if symbol:
                number += 2
                fields += symbol
        template = kind.templates[number]
        return template.text % template.pick(fields) if isinstance(template, RowTemplate) else None

    def _symbol_fields(self, kind: RowKind, fields: PlacedFields) -> _SymbolFields | None:
        """Return the name at the address of an access, as fields; None: it has to be written in another way."""
        if self._symbol is None or kind.address < 0:
            return ()
        key = kind.mode, fields[3]
        if key in self._symbols:
            return self._symbols[key]
        if len(self._symbols) >= _MOST_SYMBOLS:
            self._symbols.clear()
        symbol = self._symbol(int(fields[3]), ProgramContext(kind.mode))
        found: _SymbolFields | None = () if symbol is None else symbol
        if symbol is not None and not _is_simple(symbol[0]):
            found = None
        self._symbols[key] = found
        return found

    def _row(self, walked: WalkedGroup, row: Row) -> list[str]:
        """Return the lines of a row; if it is the second of a plain kind, the next ones will have a template."""
        _, kind, fields, is_known = walked
        lines = list(self._render(row))
        symbol = None if kind is None else self._symbol_fields(kind, fields)
        if kind is None or symbol is None:
            return lines
        number = is_known + 2 * bool(symbol)
        if kind.templates[number] is None:
            kind.templates[number] = 0
        elif kind.templates[number] == 0:
            made = row_template(self._plain, row, fields + symbol, named=bool(symbol)) if is_plain(row) else None
            kind.templates[number] = -1 if made is None else made
            kind.caption = "" if self._caption is None else self._caption(row)
        return lines


def _is_simple(name: str) -> bool:
    """Return whether a name looks the same in every form of output."""
    return name.isascii() and name.isprintable() and '"' not in name and "\\" not in name
