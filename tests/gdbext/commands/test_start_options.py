"""`trace start` in gdb: its options are explained and completed, and what is not an option is refused in one line."""

import re

import pytest

from rvtrace_gdb.gdbext import start_options
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.sources.options import trace_request
from tests.gdbext.gdb_process import SOURCE, ask_gdb, every_gdb

NAMES = [option.name for option in start_options.OPTIONS]


def test_options_become_a_request() -> None:
    words = ["-btm", "-implicit-return", "partial", "-sync-period", "64", "-stop-on-wrap", "-timestamps"]
    assert start_options.parse(words) == {
        "btm": True, "implicit_return": "partial", "sync_period": 64, "stop_on_wrap": True, "timestamps": True,
    }  # fmt: skip
    words = ["-format", "etrace", "-implicit-return", "on", "-jump-target-cache", "-no-data-values"]
    assert start_options.parse(words) == {
        "format": "etrace", "implicit_return": "on", "jump_target_cache": True, "no_data_values": True,
    }  # fmt: skip
    words = ["-ring", "-drop", "-timestamp-source", "core", "-timestamp-prescale", "16"]
    assert start_options.parse(words) == {
        "stop_on_wrap": False, "stall": False, "timestamp_source": "core", "timestamp_prescale": 16,
    }  # fmt: skip
    words = ["-hart", "2,0", "--hart", "0,1", "-to", "ram0,Ram_1", "-to", "pib", "-priv", "u", "-priv", "m,u"]
    assert start_options.parse(words) == {"harts": [2, 0, 1], "to": ["ram0", "Ram_1", "pib"], "priv": ["u", "m"]}
    words = ["-trigger-on", "main,a.c:5", "-trigger-on", "f(int, int)", "-trigger-control", "0x1F"]
    assert start_options.parse(words) == {"trigger_on": ["main,a.c:5", "f(int, int)"], "trigger_control": 31}
    assert start_options.parse(["-trigger-control", "0", "-sync-period", "010"]) == {
        "trigger_control": 0, "sync_period": 10,
    }  # fmt: skip
    assert start_options.parse([]) == {}


def test_the_session_has_the_same_options() -> None:
    """The very same names; and every word that can stand after one means something to it."""
    with pytest.raises(BadOption) as caught:
        trace_request({"speed": 1})
    refusal, _, known = str(caught.value).partition("; it has ")
    assert refusal == "trace start has no option speed"
    assert sorted(known.split(", ")) == sorted({it.key for it in start_options.OPTIONS})
    for option in start_options.OPTIONS:
        for words in [[option.name, word] for word in option.words] or [[option.name]] * (not option.takes_value):
            trace_request(start_options.parse(words))


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("-fast", "unknown option -fast. See `help trace start`."),
        ("btm", "unknown option btm. See `help trace start`."),
        ("-implicit-return", "-implicit-return takes one of off, on, counter, partial, full, got: none."),
        ("-implicit-return -btm", "-implicit-return takes one of off, on, counter, partial, full, got: -btm."),
        ("-sync-period", "-sync-period takes a number of halfwords, got: none."),
        ("-sync-period 0", "-sync-period takes a number of halfwords, got: 0."),
        ("-sync-period 1e3", "-sync-period takes a number of halfwords, got: 1e3."),
        ("-format nexus", "-format takes one of ntrace, etrace, got: nexus."),
        ("-stall yes", "unknown option yes. See `help trace start`."),
        ("-stall -btm -drop", "-stall and -drop exclude each other."),
        ("-ring -stop-on-wrap", "-ring and -stop-on-wrap exclude each other."),
        ("-hart", "-hart takes numbers of harts, separated by commas, got: none."),
        ("-hart 1,", "-hart takes numbers of harts, separated by commas, got: 1,."),
        ("-hart cpu1", "-hart takes numbers of harts, separated by commas, got: cpu1."),
        ("-to", "-to takes names of sinks, separated by commas, got: none."),
        ("-to ram0,,ram1", "-to takes names of sinks, separated by commas, got: ram0,,ram1."),
        ("-to -btm", "-to takes names of sinks, separated by commas, got: -btm."),
        ("-timestamp-prescale 2", "-timestamp-prescale takes one of 1, 4, 16, 64, got: 2."),
        ("-timestamp-source", "-timestamp-source takes one of system, core, external, shared, got: none."),
        ("-trigger-control 0x", "-trigger-control takes a number of the register's value, got: 0x."),
    ],
)
def test_what_is_no_option_is_refused(words: str, line: str) -> None:
    with pytest.raises(start_options.OptionError) as caught:
        start_options.parse(words.split())
    assert str(caught.value) == line


def test_gdb_says_so_in_one_line() -> None:
    command = "trace start -implicit-return deep"
    said = ask_gdb(None, [SOURCE, command])[command]
    assert said.strip() == "trace start: -implicit-return takes one of off, on, counter, partial, full, got: deep."


def test_every_option_is_explained_within_the_terminal() -> None:
    said = ask_gdb(None, [SOURCE, "help trace start"])["help trace start"]
    usage, _, rest = said.partition("\n\n")
    assert all(f"[{name}" in usage and re.search(rf"^  {name}( [A-Z,.]+)?( |\n {{25}})", rest, re.M) for name in NAMES)
    assert max(map(len, said.splitlines())) <= 80


@every_gdb
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("-a", ["-address-compression", "-all-jumps"]),
        ("-", sorted(NAMES)),
        ("-btm -c", ["-btm -context"]),
        ("-implicit-return ", [f"-implicit-return {value}" for value in ("counter", "full", "off", "on", "partial")]),
        ("-implicit-return p", ["-implicit-return partial"]),
        ("-implicit-return full -timestamps", ["-implicit-return full -timestamps"]),
        ("-d", ["-data", "-drop"]),
        ("-timestamp-source ", [f"-timestamp-source {value}" for value in ("core", "external", "shared", "system")]),
        ("-sync-period ", []),
        ("-format ", ["-format etrace", "-format ntrace"]),
    ],
)
def test_completion(typed: str, offered: list[str], gdb: str) -> None:
    command = f"complete trace start {typed}"
    lines = ask_gdb(None, [SOURCE, command], gdb=gdb)[command].splitlines()
    assert [line for line in lines if line] == [f"trace start {text}" for text in offered]
