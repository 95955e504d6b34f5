"""`trace start` in gdb: its options are explained and completed, and what is no option is refused in one line."""

import pytest

from gdbext import start_options
from tests.gdb.running import SOURCE, every_gdb, run_gdb

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
    assert start_options.parse([]) == {}


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
    ],
)
def test_what_is_no_option_is_refused(words: str, line: str) -> None:
    with pytest.raises(start_options.BadOption) as caught:
        start_options.parse(words.split())
    assert str(caught.value) == line


def test_gdb_says_so_in_one_line() -> None:
    command = "trace start -implicit-return deep"
    said = run_gdb(None, [SOURCE, command])[command]
    assert said.strip() == "trace start: -implicit-return takes one of off, on, counter, partial, full, got: deep."


def test_every_option_is_explained_within_the_terminal() -> None:
    said = run_gdb(None, [SOURCE, "help trace start"])["help trace start"]
    usage, _, rest = said.partition("\n\n")
    assert all(f"[{name}" in usage and f"\n  {name} " in "\n" + rest for name in NAMES)
    assert max(map(len, said.splitlines())) <= 80


@every_gdb
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("-a", ["-address-compression", "-all-jumps"]),
        ("-", sorted(NAMES)),
        ("-btm -c", ["-btm -context"]),
        ("-implicit-return ", [f"-implicit-return {how}" for how in ("counter", "full", "off", "on", "partial")]),
        ("-implicit-return p", ["-implicit-return partial"]),
        ("-implicit-return full -ti", ["-implicit-return full -timestamps"]),
        ("-sync-period ", []),
        ("-format ", ["-format etrace", "-format ntrace"]),
    ],
)
def test_completion(typed: str, offered: list[str], gdb: str) -> None:
    command = f"complete trace start {typed}"
    lines = run_gdb(None, [SOURCE, command], gdb=gdb)[command].splitlines()
    assert [line for line in lines if line] == [f"trace start {text}" for text in offered]
