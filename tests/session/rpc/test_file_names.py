"""Names that no file can have, wherever a request has a string: one clear line each, and the session goes on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.session.rpc.lists.pages import LISTS
from rvtrace_gdb.session.rpc.server import Methods
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import RvtraceError
from tests.session.board import board

BAD = ("\0", "a\0b", "/tmp/\ud800", "\ud800x", "\udfff", "x" * 5000, "~nobody-of-that-name/x", "/a/" * 2000, "")
"""NUL, halves of characters, too long for a name, no such home, too long for a path."""
ACCESSES = ("openocd", "gdb", "packets", "usb", "\0")


@pytest.fixture(scope="module")
def methods(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Methods]:
    """Of a session that looks at a capture."""
    folder = tmp_path_factory.mktemp("names")
    demo, file = board(folder), folder / "x.rvt"
    session, context = Session(demo.connect, {}), demo.describe()
    session.start(context)
    demo.run(400)
    session.save(file, context)
    session.stop()
    session.open(file, None)
    yield Methods(session)
    session.close()


def requests(bad: str, elf: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each request with a string, with a bad one there."""
    yield "save", {"path": bad, "context": {"elf": elf}}
    yield "open", {"path": bad}
    yield "open", {"path": elf, "elf": bad}
    contexts: list[dict[str, Any]] = [{"elf": bad}, {"elf": elf, "target_file": bad}]
    contexts += [{"elf": elf, "overrides": {key: bad}} for key in ("openocd_host", "openocd_port", "encoder_base", bad)]
    contexts += [{"elf": elf, "overrides": {"openocd_host": bad, "encoder_base": 0, "ram_sink_base": 4096}}]
    for context in contexts:
        for method in ("start", "status", "info", "regs", "ctr_start", "ctr_csrs", "snapshot"):
            yield method, {"context": context, "args": bad, "names": [bad], "options": {bad: bad}, "elves": [bad]}
        for what in LISTS:
            yield "page", {"context": context, "args": bad, "what": what, "name": bad, "first": 0, "depth": 1}
        for listen in ({"socket": bad}, {"host": bad, "port": 1}):
            yield "connect", {"context": context, **listen}
    good = {"context": {"elf": elf}}
    yield "connect", {**good, "socket": bad}
    yield "connect", {**good, "host": bad, "port": 1}
    for way in ACCESSES:
        access = {"way": way, "host": bad, "port": 1, "registers": {bad: bad}, "name": bad}
        for method in ("ctr_start", "page", "ctr_stop", "ctr_connected", "regs"):
            yield method, {**good, "access": access, "options": {"only": bad}, "names": [bad], "what": "records"}
    yield "snapshot", {"context": {"elf": elf}, "elves": [bad]}
    for kind in ("events", "gaps", "executions", bad):
        yield "page", {**good, "what": kind, "kinds": [bad], "name": bad, "first": 0, "args": bad}
        yield "goto", {**good, "what": kind, "kinds": [bad], "name": bad, "first": 0, "to": bad}


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: ascii(bad[:8]))
def test_one_clear_line(bad: str, methods: Methods, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a name may be one, after all
    elf = str(board(tmp_path).elf)
    escaped = []
    for method, params in requests(bad, elf):
        try:
            methods.call(method, params, lambda *_: None)
        except RvtraceError as error:
            line = str(error)
            assert line and "\n" not in line and "Traceback" not in line, (method, params)
        except Exception as error:  # noqa: BLE001 - the session calls it an internal error
            escaped.append((method, params, repr(error)))
    assert escaped == []
