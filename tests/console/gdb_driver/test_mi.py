"""The client of gdb's machine interface, against a program that does what a gdb seldom does.

Sources: "GDB/MI Output Syntax" in gdb's manual; the lines of progress as gdbext/tracer.py draws them.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from rvtrace_gdb.console.gdb_driver.mi import GdbError, GdbGone, GdbTimeout, Mi, MiRecord, MissingLibrary, quoted

FAKE = [sys.executable, str(Path(__file__).with_name("fake_gdb.py"))]
Drawn = list[tuple[str, int, int | None]]


class Heard:
    def __init__(self) -> None:
        self.records: list[MiRecord] = []
        self.drawn: Drawn = []
        self.mi = Mi(FAKE, os.environ, self.records.append, self.draw)

    def draw(self, label: str, done: int, total: int | None = None) -> None:
        self.drawn.append((label, done, total))

    def texts(self, kind: str) -> list[str]:
        return [record.text for record in self.records if record.kind == kind]


@pytest.fixture
def heard() -> Iterator[Heard]:
    heard = Heard()
    with heard.mi:
        yield heard
    assert heard.mi.process.returncode is not None


def test_an_answer_that_comes_late_is_not_taken_for_the_next_ones(heard: Heard) -> None:
    late = heard.mi.send("-slow")
    assert heard.mi.command("-other") == {}
    assert heard.mi.answer(late, "-slow").fields == {"value": "late"}


def test_commands_sent_at_once_are_answered_by_token(heard: Heard) -> None:
    tokens = [heard.mi.send(command) for command in ("-slow", "-other", "-slow")]
    found = [heard.mi.answer(token, "").fields for token in reversed(tokens)]
    assert found == [{"value": "late"}, {}, {"value": "late"}]


def test_who_shows_signs_of_life_is_waited_for(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sign comes 10 s after the one before it, by this clock: that is within the 15 s that silence is borne."""
    heard.mi.command("-other")  # it has started
    monkeypatch.setattr(
        "rvtrace_gdb.console.gdb_driver.mi.time", SimpleNamespace(monotonic=lambda: 10.0 * len(heard.drawn))
    )
    heard.mi.command("-alive", 15)
    monkeypatch.undo()
    shares = [done for label, done, total in heard.drawn if (label, total) == ("reading trace", 100)]
    assert shares and shares == sorted(shares) and set(shares) <= set(range(0, 100, 10))


def test_who_is_silent_is_not(heard: Heard) -> None:
    with pytest.raises(GdbTimeout, match=r"^gdb, -silent: no answer within 0\.3 s$"):
        heard.mi.command("-silent", 0.3)
    heard.mi.process.kill()


def test_the_last_words_of_who_is_gone(heard: Heard) -> None:
    with pytest.raises(GdbGone, match=r"^gdb has ended: fatal: the sky is falling$"):
        heard.mi.command("-gone")
    with pytest.raises(GdbGone):
        heard.mi.command("-other")


def test_a_second_answer(heard: Heard) -> None:
    token = heard.mi.send("-twice")
    assert heard.mi.answer(token, "").name == "running"
    with pytest.raises(GdbError, match=r"^later$"):
        heard.mi.answer(token, "")
    assert [record.name for record in heard.records if record.kind == "notify"] == ["running", "stopped"]


def test_records_of_all_kinds(heard: Heard) -> None:
    heard.mi.command("-odd")
    assert heard.texts("output") == ["plain text\n"]
    assert heard.texts("target") == ["from the target\n"]
    assert heard.texts("console") == ['a "quoted" ü\t\\\n']
    (download,) = [record for record in heard.records if record.kind == "status"]
    assert (download.name, download.fields["total-sent"], download.fields["total-size"]) == ("download", "10", "20")


def test_a_signal_is_gdbs_and_nobody_elses(heard: Heard) -> None:
    heard.mi.command("-other")
    heard.mi.signal()
    assert heard.mi.wait(lambda: heard.texts("target") == ["interrupted\n"], seconds=60)
    assert os.getpgid(heard.mi.process.pid) != os.getpgrp()  # Ctrl-C on the terminal does not reach it


def test_waiting_ends_in_time(heard: Heard) -> None:
    began = time.monotonic()
    assert not heard.mi.wait(lambda: False, seconds=0.2)
    assert 0.2 <= time.monotonic() - began < 60


def test_what_cannot_be_started() -> None:
    with pytest.raises(GdbGone, match=r"^/nonsense/gdb cannot be started: No such file or directory$"):
        Mi(["/nonsense/gdb"], os.environ)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygdbmi.gdbmiparser", None)
    with pytest.raises(MissingLibrary, match=r"^pygdbmi is not installed: \S*python\S* -m pip install pygdbmi$"):
        Mi(FAKE, os.environ)


@pytest.mark.parametrize("text", ["plain", 'a "b"', "back\\slash", "tab\there", 'both \\"'])
def test_quoted_as_a_c_string(text: str) -> None:
    assert quoted(text)[0] == quoted(text)[-1] == '"'
    inner = quoted(text)[1:-1]
    assert inner.encode().decode("unicode_escape") == text and '"' not in inner.replace('\\"', "")


def test_nothing_is_left_behind_by_who_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gdb that hangs is killed."""
    monkeypatch.setattr("rvtrace_gdb.console.gdb_driver.mi.LEAVE_SECONDS", 0.2)
    heard = Heard()
    heard.mi.send("-silent")
    heard.mi.close()
    assert heard.mi.process.returncode == -signal.SIGKILL
