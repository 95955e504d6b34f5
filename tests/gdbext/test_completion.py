"""What gdb offers at the end of a `trace` command that is not finished: its words, and where the program has code."""

from pathlib import Path

import pytest

from rvtrace_gdb.session.queries.lists import search
from tests.gdbext.gdb_process import SOURCE, ask_gdb, every_gdb
from tests.helpers.cross_compiler import demo

KINDS = sorted(search.KINDS)
"""Of the session: gdb's own list, which it cannot import, must be the same."""
OFFERED = {
    "goto e": ["end", "event"],
    "goto -": ["-next", "-why", "-wrote"],
    "goto f": ["fib", "finish", "first"],
    "goto last exc": ["exception"],
    "goto event ": KINDS,
    "goto -next event trace": ["trace-off", "trace-on"],
    "goto -next f": ["fib", "finish"],
    "goto -wrote oper": ["operation", "operations"],
    "coverage -": ["-all", "-live"],
    "coverage f": ["fib", "finish"],
    "connect -": ["-listen"],
    "events ex": ["exception", "external-trigger"],
    "sql -": ["-calls-of", "-hart", "-log", "-range", "-time"],
    "sql -log f": ["fib", "finish"],
    "sql -log fib n SELECT n FROM l": ["lines", "log"],
}
BESIDES = {"goto ": {"begin", "end", "event", "live", "-next", "fib"}, "goto -next ": {"event", "fib"},
           "coverage ": {"-all", "-live", "fib"}}  # fmt: skip


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo(tmp_path_factory.mktemp("completing"))


@every_gdb
def test_words_and_places(gdb: str, elf: Path) -> None:
    commands = {typed: f"complete trace {typed}" for typed in (*OFFERED, *BESIDES)}
    out = ask_gdb(elf, [SOURCE, *commands.values()], gdb=gdb)
    said = {typed: out[command].strip().splitlines() for typed, command in commands.items()}
    for typed, offered in OFFERED.items():
        before = f"trace {typed.rpartition(' ')[0]} "
        assert said[typed] == [before + word for word in offered], typed
    for typed, offered_too in BESIDES.items():
        assert {f"trace {typed}{word}" for word in offered_too} <= set(said[typed]), typed
