"""`help trace`: each command once in the overview by tasks, which fits a screen, and once in gdb's list."""

import re

from tests.gdbext.gdb_process import SOURCE, ask_gdb


def test_the_overview_names_each_command_once_and_fits_a_screen() -> None:
    said = ask_gdb(None, [SOURCE, "help trace", "trace"])
    assert said["trace"].split() == said["help trace"].split()
    overview, _, listed = said["help trace"].partition("List of trace subcommands:")
    commands = re.findall(r"^trace ([a-z-]+) -- ", listed, re.M)
    assert len(commands) > 25
    assert len(overview.rstrip().splitlines()) <= 24 and max(map(len, overview.splitlines())) < 80
    tasks = overview[overview.index("\nRecord  ") : overview.index("\n`help trace COMMAND`")]
    named = re.findall(r"[a-z-]+", re.sub(r"\(.*?\)|`.*?`", "", tasks, flags=re.S))  # without explanations
    assert {name: named.count(name) for name in commands} == dict.fromkeys(commands, 1)


def test_each_command_has_help_with_its_usage() -> None:
    listed = ask_gdb(None, [SOURCE, "help trace"])["help trace"]
    commands = [f"help trace {name}" for name in re.findall(r"^trace ([a-z-]+) -- ", listed, re.M)]
    said = ask_gdb(None, [SOURCE, *commands])
    assert [command for command in commands if f"Usage: {command.removeprefix('help ')}" not in said[command]] == []
