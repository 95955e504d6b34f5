"""The options of `trace ctr start`: what is asked of the session, what is refused, help and completion in the real gdb.

The numbers of types are those of RISC-V Control Transfer Records 1.0, "Control Transfer Type Definitions".
"""

import re
from typing import Any

import pytest

from rvtrace_gdb.controlregs.ctr.entries import TransferType
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS
from rvtrace_gdb.decode.ctr.records import TYPE_NAMES
from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.gdbext import start_options
from rvtrace_gdb.gdbext.options import OptionError
from tests.gdbext.gdb_process import SOURCE, ask_gdb, every_gdb

PLAIN: dict[str, Any] = {
    "modes": None, "inhibit": [], "not_taken": False, "depth": None, "ras": False, "freeze": [], "external": [],
    "version": None, "harts": None,
}  # fmt: skip
NAMES = [option.name for option in start_options.CTR_OPTIONS]


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("", {}),
        ("-modes m,u", {"modes": ["m", "u"]}),
        ("-modes M,VS,m", {"modes": ["m", "vs"]}),
        ("--depth 64 --ras", {"depth": 64, "ras": True}),
        ("-only calls", {"inhibit": [1, 2, 3, 5, 10, 11, 13, 14, 15]}),
        ("-only calls,returns", {"inhibit": [1, 2, 3, 5, 10, 11, 14, 15]}),
        ("-only jumps", {"inhibit": [1, 2, 3, 5, 8, 9, 12, 13]}),
        ("-only branches", {"inhibit": [1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15]}),
        ("-only branches -not-taken", {"inhibit": [1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15], "not_taken": True}),
        ("-only not-taken-branch,traps", {"inhibit": [5, 8, 9, 10, 11, 12, 13, 14, 15], "not_taken": True}),
        ("-without traps", {"inhibit": [1, 2, 3]}),
        ("-without Branches,interrupt,other-direct-jump", {"inhibit": [2, 5, 15]}),
        ("-without not-taken-branch", {}),
        ("-freeze lcofi,breakpoint", {"freeze": ["lcofi", "breakpoint"]}),
        ("-external m,s", {"external": ["m", "s"]}),
        ("-ctr-version 0.1.4", {"version": "0.1.4"}),
        ("-all", {"harts": [0, 3]}),
    ],
)
def test_options_become_a_request(words: str, asked: dict[str, Any]) -> None:
    assert start_options.ctr_request(words.split(), lambda: [0, 3]) == PLAIN | asked


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("-fast", "unknown option -fast. See `help trace ctr start`."),
        ("ras", "unknown option ras. See `help trace ctr start`."),
        ("---ras", "unknown option ---ras. See `help trace ctr start`."),
        ("-depth", "-depth takes one of 16, 32, 64, 128, 256, got: none."),
        ("-depth 17", "-depth takes one of 16, 32, 64, 128, 256, got: 17."),
        ("-ctr-version 2", "-ctr-version takes one of 1.0, 0.1.4, got: 2."),
        (
            "-modes m,,u",
            "-modes takes privilege modes (m, s, u, vs, vu), separated by commas, got: m,,u.",
        ),
        (
            "-only call",
            "-only takes types of transfers, separated by commas, got: call. There are calls, returns, jumps, branches,"
            " traps, exception, interrupt, trap-return, not-taken-branch, taken-branch, indirect-call, direct-call,"
            " indirect-jump, direct-jump, co-routine-swap, function-return, other-indirect-jump, other-direct-jump.",
        ),
        (
            "-freeze",
            "-freeze takes breakpoint, lcofi, or both, separated by commas, got: none.",
        ),
        ("-only calls -without traps", "-only and -without do not go together."),
        (
            "-not-taken -without not-taken-branch",
            "-not-taken and -without not-taken-branch contradict each other.",
        ),
        ("-ras -only calls", "-ras and -only do not go together: RAS emulation records only calls and returns."),
        (
            "-external m -ras",
            "-ras and -external do not go together: RAS emulation records only calls and returns.",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(words: str, line: str) -> None:
    with pytest.raises(OptionError) as caught:
        start_options.ctr_request(words.split())
    assert str(caught.value) == line


def test_depths_and_versions_are_those_that_there_are() -> None:
    assert set(start_options.CTR_VERSIONS) == VERSIONS.keys()
    for version in VERSIONS.values():
        assert set(start_options.CTR_DEPTHS) == set(map(str, version.depth_codes))


def test_every_type_of_the_document_has_its_name() -> None:
    codes = {it.value for it in TransferType} - {0, 6, 7}
    assert sorted(start_options.TRANSFER_TYPES.values()) == sorted(codes)
    named = {name.replace(" ", "-"): int(code) for code, name in TYPE_NAMES.items() if name != "unknown"}
    assert named == start_options.TRANSFER_TYPES


def test_every_type_but_the_not_taken_branch_is_in_a_group() -> None:
    grouped = {name for names in start_options.TRANSFER_GROUPS.values() for name in names}
    assert set(start_options.TRANSFER_TYPES) - grouped == {"not-taken-branch"}
    assert start_options.TRANSFER_TYPES["not-taken-branch"] == IType.NOT_TAKEN


def test_gdb_says_it_in_one_line() -> None:
    commands = ["trace ctr start -depth 17", "trace ctr go", "trace ctr stop now", "trace ctr show /x"]
    commands += ["trace ctr start"]
    said = ask_gdb(None, [SOURCE, *commands])
    assert [said[command].strip() for command in commands] == [
        "trace ctr start: -depth takes one of 16, 32, 64, 128, 256, got: 17.",
        'Undefined trace ctr command: "go".  Try "help trace ctr".',
        "Usage: trace ctr stop",
        "Invalid modifier: x.",
        "Nothing to record: gdb is not connected to a target. `trace connect` does that.",
    ]


def test_every_option_is_explained_within_the_terminal() -> None:
    said = ask_gdb(None, [SOURCE, "help trace ctr start"])["help trace ctr start"]
    usage, _, rest = said.partition("\n\n")
    assert all(f"[{name}" in usage and f"\n  {name} " in "\n" + rest for name in NAMES)
    assert all(name in rest for name in (*start_options.TRANSFER_TYPES, *start_options.TRANSFER_GROUPS))
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize("name", ["start", "stop", "clear", "status", "show", "stack"])
def test_each_command_has_help_with_its_usage(name: str) -> None:
    said = ask_gdb(None, [SOURCE, f"help trace ctr {name}", "help trace ctr"])
    assert f"Usage: trace ctr {name}" in said[f"help trace ctr {name}"]
    assert f"trace ctr {name} -- " in said["help trace ctr"]
    gdbs_own = re.compile(r'Type "|.* -- ')
    ours = [line for text in said.values() for line in text.splitlines() if not gdbs_own.match(line)]
    assert max(map(len, ours)) <= 80


@every_gdb
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("", ["clear", "count", "counts", "sample", "show", "stack", "start", "status", "stop"]),
        ("start -", [f"start {name}" for name in sorted(NAMES)]),
        ("start --mo", ["start --modes"]),
        ("start -not-taken -ex", ["start -not-taken -external"]),
        ("start -depth ", [f"start -depth {depth}" for depth in ("128", "16", "256", "32", "64")]),
        ("start -depth 1", ["start -depth 128", "start -depth 16"]),
        ("start -modes v", ["start -modes vs", "start -modes vu"]),
        ("start -only calls,re", ["start -only calls,returns"]),
        ("start -without other-", ["start -without other-direct-jump", "start -without other-indirect-jump"]),
        ("start -freeze breakpoint,", ["start -freeze breakpoint,lcofi"]),
        ("start -ctr-version ", ["start -ctr-version 0.1.4", "start -ctr-version 1.0"]),
    ],
)
def test_completion(typed: str, offered: list[str], gdb: str) -> None:
    command = f"complete trace ctr {typed}"
    lines = ask_gdb(None, [SOURCE, command], gdb=gdb)[command].splitlines()
    assert [line for line in lines if line] == [f"trace ctr {text}" for text in offered]
