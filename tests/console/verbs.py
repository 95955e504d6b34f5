"""The verbs of `rvtrace`, out of its own tables: tests that try all of them say of which there is a reason not to."""

from collections.abc import Iterable, Mapping, Sequence

from rvtrace_gdb.console.commands import CommandParser, Subcommand, tandem
from rvtrace_gdb.console.main import COMMANDS

VERBS: dict[str, Subcommand] = {
    **{command.name: command for command in COMMANDS if command.module != "tandem"},
    **{f"tandem {command.name}": command for command in tandem.COMMANDS},
}
"""Each by the words that name it, as `decode` and `tandem show`."""


def verb_of(words: Sequence[object]) -> str:
    """Return the verb that a command line begins with."""
    return " ".join(map(str, words[: 2 if words[0] == "tandem" else 1]))


def parser_of(command: Subcommand) -> CommandParser:
    """Return the parser of the command's own arguments."""
    parser = CommandParser(prog=command.name)
    command.add_arguments(parser)
    return parser


def option_names(verbs: Iterable[str]) -> list[str]:
    """Return the names of all options of these verbs, each once."""
    parsers = [parser_of(VERBS[verb]) for verb in verbs]
    return sorted({name for parser in parsers for action in parser._actions for name in action.option_strings})


def check_all_are_tried(command_lines: Iterable[Sequence[object]], untried: Mapping[str, str]) -> None:
    """Each verb begins one of these command lines, or is among *untried*, where its reason stands; never both."""
    tried = {verb_of(words) for words in command_lines}
    assert sorted([*tried, *untried]) == sorted(VERBS)
