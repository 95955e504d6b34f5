"""`trace sql`: a query in SQL, whose tables are those of the trace."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import gdb

from rvtrace_gdb.gdbext import completion, listing, results
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.commands import find
from rvtrace_gdb.gdbext.enter_key import EnterKey
from rvtrace_gdb.gdbext.text import print_line, printable
from rvtrace_gdb.gdbext.tracer import print_lines, tracer
from rvtrace_gdb.rows.log_text import log_arguments
from rvtrace_gdb.rows.sql_text import TABLE_NAMES, query_fields, query_lines

ROWS = 4096
"""How many rows an answer has: what the session gives at a time."""
_OPTION = re.compile(r"\s*--?(hart|range|time|log|calls-of)(?=\s|$)")
_WORD = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+))""")
_QUOTED = re.compile(r"""\s*(["'])(.*)\1\s*""", re.DOTALL)
_ESCAPED = re.compile(r"""\\(["\\])""")
PART = {"range": "numbers", "time": "time"}
"""The options that say which part of a history is meant, and the parameters of the request."""
_HART_MOST = (1 << 32) - 1


class SqlQuestion(NamedTuple):
    """A query. *parameters*: of the request: the harts, and what `log` and `calls_of` have."""

    query: str
    parameters: dict[str, Any]


class SqlCommand(Command, name="trace sql"):
    """Answer a query in SQL (SQLite's), whose tables are those of the trace.
    Usage: trace sql [-hart N] [-range A,B] [-time T,T] [-log WHERE EXPR]
                     [-calls-of FUNCTION] [SELECT ...]

    harts, functions, calls, invocations, coverage, lines, blocks, branches,
    jumps, instructions, events, gaps, accesses: a query reads them, and
    changes nothing. Without a query: the tables and their columns. NULL is
    what is not known.

    -hart N             the tables have this hart alone; default: all harts
    -range A,B          they have what began at these instructions alone
    -time T[,T]         the same by the time, in ticks of the trace
    -log WHERE EXPR     a table log: each time WHERE ran, with a column for
                        each expression of EXPR, as `trace log` takes them;
                        in quotes, if there are blanks. May be repeated
    -calls-of FUNCTION  a table calls_of: each call of FUNCTION, with a
                        column for each argument. May be repeated

    trace sql SELECT func, sum(calls) FROM calls GROUP BY func
    trace sql -log fib "n, $sp" SELECT n, count(*) FROM log GROUP BY n

    Rows with `position` or `begin` have the number for `trace goto`. The
    first 4096 rows are shown; Enter shows the next ones."""

    def __init__(self) -> None:
        super().__init__()
        self._enter = EnterKey()
        self._begin = 1

    def invoke(self, argument: str, from_tty: bool) -> None:
        again = self._enter.repeats(argument, from_tty)
        question = sql_question(argument, "trace sql")
        self._begin = self._begin + ROWS if again else 1
        found = answer(question, self._begin)
        print_lines(found)
        columns, rows = found["columns"], found["rows"]
        if results.WANTED:
            results.add({"columns": columns, "rows": query_fields(columns, rows)})
        if again and not rows:
            print_line("There are no more rows.")
            self._enter.forget()
            return
        for line in query_lines(columns, rows, printable, listing.paint):
            print_line(line)
        if found["more"]:
            end = self._begin + len(rows) - 1
            print_line(f"[rows {self._begin} to {end}; the next ones: Enter, or LIMIT {ROWS} OFFSET {end}]")

    def complete(self, text: str, word: str | None) -> list[str] | int:
        if re.search(r"-(?:log|calls-of)\s+\S*$", text):
            return completion.words(text, word, completion.places(text.rpartition(" ")[2]))
        options = () if "select" in text.lower() else ("-hart", "-range", "-time", "-log", "-calls-of", "SELECT")
        asked = [name for name in ("log", "calls_of") if f"-{name.replace('_', '-')} " in text]
        return completion.words(text, word, (*options, *TABLE_NAMES, *asked))


def answer(question: SqlQuestion, begin: int = 1, count: int = ROWS) -> dict[str, Any]:
    """Return the session's answer: its lines, columns, and rows from number *begin* on. Raises gdb.GdbError."""
    asked = {"query": question.query, "begin": begin, "count": count, **question.parameters}
    found: dict[str, Any] = tracer().request("sql", context=tracer().context(), **asked)
    return found


def sql_question(argument: str, command: str) -> SqlQuestion:
    """Return what an argument asks for. Raises gdb.GdbError for *command*."""
    words = _TypedOptions(argument, command)
    parameters: dict[str, Any] = {}
    while (option := words.option()) is not None:
        if option == "hart":
            parameters["hart"] = _hart(words.word("-hart: which?"), command)
        elif option in PART:
            parameters[PART[option]] = words.word(f"-{option}: which?")
        elif option == "log":
            where = words.word("-log: where? WHERE and EXPR, as `trace log` takes them")
            text = words.word(f"-log {where}: what is logged there? EXPR")
            parameters.setdefault("logs", []).append(log_parameters(where, text, command))
        else:
            function = words.word("-calls-of: of which function?")
            parameters.setdefault("calls_of", []).append({"where": find.parse_location(function, command)})
    return SqlQuestion(_unquoted(words.rest), parameters)


def log_parameters(where: str, text: str, command: str) -> dict[str, Any]:
    """Return what is logged at a place, as the request has it. Raises gdb.GdbError."""
    asks = log_arguments(text)
    if not asks.expressions or "" in asks.expressions:
        raise gdb.GdbError(f"{command}: -log {where}: what is logged there? Expressions, or a format.")
    if asks.numbers:
        raise gdb.GdbError(f"{command}: -log {where}: a query says which rows: WHERE number <= 10, not {asks.numbers}.")
    place = find.parse_location(where, command)
    return {"where": place, "expressions": asks.expressions, "condition": asks.condition, "letter": asks.letter}


def _hart(word: str, command: str) -> int:
    if not re.fullmatch("[0-9]{1,10}", word) or int(word) > _HART_MOST:
        raise gdb.GdbError(f"{command}: -hart {word}: that is no number of a hart.")
    return int(word)


def _unquoted(text: str) -> str:
    """Return a query without the quotes around it, which it does not need: no query begins with one."""
    found = _QUOTED.fullmatch(text)
    return text if found is None else found[2].replace(f"\\{found[1]}", found[1])


class _TypedOptions:
    """The options at the beginning of an argument, and their values. *rest*: what is not read yet."""

    def __init__(self, argument: str, command: str) -> None:
        self.rest, self._command = argument, command

    def option(self) -> str | None:
        """Return the option that comes next, None if there is none."""
        found = _OPTION.match(self.rest)
        if found is None:
            return None
        self.rest = self.rest[found.end() :]
        return found[1]

    def word(self, missing: str) -> str:
        """Return the word that comes next, without its quotes. Raises gdb.GdbError."""
        found = _WORD.match(self.rest)
        if found is None:
            raise gdb.GdbError(f"{self._command}: {missing}. See `help trace sql`.")
        self.rest = self.rest[found.end() :]
        doubly, singly, plain = found.groups()
        return plain or singly or _ESCAPED.sub(r"\1", doubly or "")


COMMANDS = (SqlCommand,)
