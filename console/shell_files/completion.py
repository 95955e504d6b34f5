"""Completion for bash, zsh and fish: functions of these shells that know all commands, options and values.

They are complete texts, so that pressing Tab starts no Python.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from shlex import quote

from rvtrace_gdb.console.help_pages import PAGES
from rvtrace_gdb.console.shell_files.command_line import Described, ShellOption, commands_of, options_of

_HEAD = "# Completion of rvtrace, made by `rvtrace completion {}` of the table of its commands.\n"


def completion(shell: str, parser: argparse.ArgumentParser) -> str:
    """Return the completion of the command line of *parser* for a shell, a key of `SHELLS`."""
    commands = [*commands_of(parser), _help(parser)]
    return "".join(f"{line}\n" for line in SHELLS[shell](commands, options_of(parser)))


def _help(parser: argparse.ArgumentParser) -> Described:
    """Return `rvtrace help`, which is not a command of the parser."""
    names = [command.words[0] for command in commands_of(parser) if len(command.words) == 1]
    arguments = (*names, *(page.name for page in PAGES))
    return Described(("help",), "show the help of a command, or a page of it", parser, (), arguments)  # type: ignore[arg-type]


def _below(commands: Sequence[Described], words: tuple[str, ...]) -> list[Described]:
    """Return the commands right below one."""
    return [command for command in commands if command.words[:-1] == words]


def _by_option(commands: Sequence[Described]) -> dict[ShellOption, list[Described]]:
    """Return the commands that have an option, by the options."""
    found: dict[ShellOption, list[Described]] = {}
    for command in commands:
        for one in command.options:
            found.setdefault(one, []).append(command)
    return found


def _bash(commands: Sequence[Described], options: Sequence[ShellOption]) -> Iterator[str]:
    yield _HEAD.format("bash").rstrip()
    yield from _BASH_BEGIN.splitlines()
    yield '    case "$command $prev" in'
    for one, having in _by_option(commands).items():
        if one.value:
            patterns = (quote(f"{' '.join(command.words)} {name}") for command in having for name in one.names)
            yield f"        {'|'.join(patterns)}) {_bash_value(one)}; return ;;"
    yield "    esac"
    yield '    case "$command" in'
    for words in [(), *(command.words for command in commands)]:
        known = options if not words else next(it.options for it in commands if it.words == words)
        names = " ".join(dict.fromkeys(name for one in known for name in one.names))
        plain = [it.words[-1] for it in _below(commands, words)]
        plain += next((list(it.arguments) for it in commands if it.words == words), [])
        yield f"        {quote(' '.join(words))}) options={quote(names)} arguments={quote(' '.join(plain))} ;;"
    yield "    esac"
    yield from _BASH_END.splitlines()


def _bash_value(one: ShellOption) -> str:
    if one.choices:
        return f'COMPREPLY=($(compgen -W {quote(" ".join(one.choices))} -- "$cur"))'
    if one.is_folder:
        return 'COMPREPLY=($(compgen -d -- "$cur"))'
    return "COMPREPLY=()" if one.is_file else "compopt +o default +o bashdefault 2>/dev/null"


_BASH_BEGIN = """
_rvtrace() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command="" word options="" arguments=""
    local -i place=1
    # bash takes `=` for a word of its own: --color=auto is three words.
    if [[ $cur == = ]]; then cur=""; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi
    for ((; place < COMP_CWORD; place++)); do
        word=${COMP_WORDS[place]}
        if [[ $word != -* ]]; then
            if [[ -z $command ]]; then command=$word; [[ $word == tandem ]] || break; else command+=" $word"; break; fi
        fi
    done
    COMPREPLY=()"""
_BASH_END = """    if [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$cur"))
    elif [[ -n $arguments ]]; then
        COMPREPLY=($(compgen -W "$arguments" -- "$cur"))
    fi
}
complete -o bashdefault -o default -F _rvtrace rvtrace"""


def _zsh(commands: Sequence[Described], options: Sequence[ShellOption]) -> Iterator[str]:
    yield "#compdef rvtrace"
    yield _HEAD.format("zsh").rstrip()
    shared = _shared(commands)
    for name, (_, some) in shared.items():
        yield from [f"typeset -ga {name}=(", *(f"    {spec}" for one in some for spec in _zsh_option(one)), ")"]
    for command in reversed(commands):
        if _below(commands, command.words):
            yield from _zsh_menu(command.words, commands, command.options, shared)
    yield from _zsh_menu((), commands, options, shared)
    yield 'if [[ $funcstack[1] == _rvtrace ]]; then _rvtrace "$@"; else compdef _rvtrace rvtrace; fi'


_Shared = Mapping[str, tuple[Sequence[tuple[str, ...]], Sequence[ShellOption]]]
"""Options that several commands have: by a name, the words of these commands, and the options."""


def _shared(commands: Sequence[Described]) -> _Shared:
    found: dict[tuple[tuple[str, ...], ...], list[ShellOption]] = {}
    for one, having in _by_option(commands).items():
        if len(having) > 1:
            found.setdefault(tuple(command.words for command in having), []).append(one)
    return {f"_rvtrace_options_{n}": (list(words), some) for n, (words, some) in enumerate(found.items())}


def _zsh_menu(
    words: tuple[str, ...], commands: Sequence[Described], options: Sequence[ShellOption], shared: _Shared
) -> Iterator[str]:
    """The function for a command with commands below it."""
    below = _below(commands, words)
    yield f"{_zsh_name(words)}() {{"
    yield "    local curcontext=$curcontext state line"
    yield "    local -a names"
    yield "    names=("
    yield from (f"        {quote(f'{it.words[-1]}:{it.meaning}')}" for it in below)
    yield "    )"
    yield "    _arguments -C \\"
    yield from (f"        {spec} \\" for one in options for spec in _zsh_option(one))
    yield "        '1:command:->command' '*::argument:->argument'"
    yield "    case $state in"
    yield "        command) _describe command names ;;"
    yield "        argument)"
    yield "            case $words[1] in"
    for it in below:
        yield f"                {it.words[-1]})"
        if _below(commands, it.words):
            yield f"                    {_zsh_name(it.words)} ;;"
            continue
        yield "                    _arguments \\"
        arrays = [name for name, (having, _) in shared.items() if it.words in having]
        rest = [one for one in it.options if all(one not in shared[name][1] for name in arrays)]
        yield from (f"                        ${name} \\" for name in arrays)
        yield from (f"                        {spec} \\" for one in rest for spec in _zsh_option(one))
        values = f"({' '.join(it.arguments)})" if it.arguments else "_files"
        yield f"                        {quote(f'*:argument:{values}')} ;;"
    yield from ["            esac ;;", "    esac", "}"]


def _zsh_name(words: tuple[str, ...]) -> str:
    return "_".join(["_rvtrace", *words])


def _zsh_option(one: ShellOption) -> Iterator[str]:
    text = one.short.replace("\\", "\\\\").replace("[", r"\[").replace("]", r"\]").replace(":", r"\:")
    called = one.value.replace("[", "").replace("]", "").replace(":", " ")
    values = f"({' '.join(one.choices)})" if one.choices else "_files" if one.is_file else " "
    values = "_files -/" if one.is_folder and not one.choices else values
    for name in one.names:
        equals = "=" if one.value and name.startswith("--") else ""
        value = f":{called}:{values}" if one.value else ""
        yield quote(f"{'*' if one.repeated else ''}{name}{equals}[{text}]{value}")


def _fish(commands: Sequence[Described], options: Sequence[ShellOption]) -> Iterator[str]:
    yield _HEAD.format("fish").rstrip()
    yield "complete -c rvtrace -e"
    for words in [(), *(command.words for command in commands)]:
        below = _below(commands, words)
        when = _fish_condition(words, [it.words[-1] for it in below])
        for it in below:
            yield f"complete -c rvtrace -n {quote(when)} -f -a {it.words[-1]} -d {_fish_text(it.meaning)}"
        plain = next((it.arguments for it in commands if it.words == words), ())
        if plain:
            yield f"complete -c rvtrace -n {quote(when)} -f -a {quote(' '.join(plain))}"
    yield from (f"complete -c rvtrace -n __fish_use_subcommand {_fish_option(one)}" for one in options)
    for one, having in _by_option(commands).items():
        names = " ".join(command.words[-1] for command in having)
        yield f"complete -c rvtrace -n '__fish_seen_subcommand_from {names}' {_fish_option(one)}"


def _fish_condition(words: tuple[str, ...], below: Sequence[str]) -> str:
    seen = [f"__fish_seen_subcommand_from {word}" for word in words]
    if below and words:
        seen.append(f"not __fish_seen_subcommand_from {' '.join(below)}")
    return "; and ".join(seen) if words else "__fish_use_subcommand"


def _fish_option(one: ShellOption) -> str:
    names = [f"-l {name[2:]}" if name.startswith("--") else f"-{'s' if len(name) == 2 else 'o'} {name[1:]}"
             for name in one.names]  # fmt: skip
    kind = f"-x -a {quote(' '.join(one.choices))}" if one.choices else "-r -F" if one.is_file else "-x"
    kind = "-x -a '(__fish_complete_directories)'" if one.is_folder and not one.choices else kind
    return " ".join([*names, *([kind] if one.value else []), f"-d {_fish_text(one.short)}"])


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SHELLS: Mapping[str, Callable[[Sequence[Described], Sequence[ShellOption]], Iterator[str]]] = {
    "bash": _bash, "zsh": _zsh, "fish": _fish,
}  # fmt: skip
