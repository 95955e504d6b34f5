"""The help of a command: short, with examples; options that few people need are pages of their own.

`rvtrace decode --help` has what everybody needs, and names the other pages: `--help-raw` has the options for raw bytes,
`--help-all` everything. The table of options is argparse's; the completion of shells and the manual pages read it as
well.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple


class HelpPage(NamedTuple):
    """A page of help: `--help-NAME` prints it, and `rvtrace help NAME` that of *command*."""

    name: str
    text: str
    command: str


RAW = HelpPage("raw", "the options for raw bytes that no capture has", "decode")
ENCODER = HelpPage("encoder", "the options of the encoder: what it sends, and how", "encode")
HARDWARE = HelpPage("hardware", "the options of the simulated hardware: harts, encoders, records, ports", "sim")
FORMS = HelpPage("forms", "the forms that --to takes", "export")
PERF = HelpPage("perf", "the letters of --itrace and the fields of -F", "perf-script")
THREADS = HelpPage("threads", "the options for tasks, processes and threads", "decode")
PAGES = (RAW, ENCODER, HARDWARE, FORMS, PERF, THREADS)
ALL = "all"


class ParserWithPages(argparse.ArgumentParser):
    """A parser whose help is short."""

    examples: Sequence[tuple[str, str]] = ()
    """Command lines after `rvtrace`, and what they do."""
    variants: Sequence[Sequence[str]] = ((),)
    """Words of a command line that change which options there are."""

    def __init__(self, *words: Any, **settings: Any) -> None:
        super().__init__(*words, **settings)
        self._paged: dict[HelpPage, list[argparse._ArgumentGroup]] = {}

    def add_page(self, page: HelpPage) -> None:
        """Add the option of a page."""
        if page in self._paged:
            return
        if not self._paged:
            self._add_help(ALL, "all options")
        self._paged[page] = []
        self._add_help(page.name, page.text)

    def _add_help(self, name: str, text: str) -> None:
        """Add the option, right after --help."""
        action = self.add_argument(f"--help-{name}", action=_Help, const=name, help=f"show {text}")
        shown = self._optionals._group_actions
        shown.remove(action)
        shown.insert(1, action)

    def add_to_page(self, page: HelpPage, title: str, text: str | None) -> argparse._ArgumentGroup:
        """Return a new group of options on a page."""
        self.add_page(page)
        group = self.add_argument_group(title, text)
        self._paged[page].append(group)
        return group

    def format_help(self) -> str:
        """Return the short help."""
        return self._formatted(self.short_groups(), with_all_groups=True)

    def short_groups(self) -> list[argparse._ArgumentGroup]:
        """Return the groups of options in the short help."""
        hidden = [group for groups in self._paged.values() for group in groups]
        return [group for group in self._action_groups if group not in hidden]

    def groups_of(self, name: str) -> list[argparse._ArgumentGroup]:
        """Return the groups of options on a page."""
        return next(groups for page, groups in self._paged.items() if page.name == name)

    def format_page(self, name: str) -> str:
        """Return the help of a page, or with all options."""
        if name == ALL:
            return self._formatted(self._action_groups, with_all_groups=True)
        return self._formatted(self.groups_of(name), with_all_groups=False)

    def _formatted(self, groups: Sequence[argparse._ArgumentGroup], *, with_all_groups: bool) -> str:
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        if with_all_groups:
            formatter.add_text(self.description)
        for group in groups:
            formatter.start_section(group.title)
            formatter.add_text(group.description)
            formatter.add_arguments(group._group_actions)
            formatter.end_section()
        text = formatter.format_help()
        return text + "".join(self._examples()) if with_all_groups else text

    def _examples(self) -> Iterator[str]:
        if self.examples:
            yield "\nexamples:\n"
        width = max((len(words) for words, _ in self.examples), default=0)
        longest = max((len(text) for _, text in self.examples), default=0)
        between = f"\n{'':10}" if width + longest > 66 else "  "
        for words, text in self.examples:
            yield f"  rvtrace {words if between[0] == chr(10) else f'{words:<{width}}'}{between}{text}\n"


def group_of(
    parser: argparse.ArgumentParser, page: HelpPage, title: str, text: str | None = None
) -> argparse._ArgumentGroup:
    """Return a new group of options that are on a page, not in the short help."""
    if isinstance(parser, ParserWithPages):
        return parser.add_to_page(page, title, text)
    return parser.add_argument_group(title, text)


class _Help(argparse.Action):
    """Prints a page of the help, and exits."""

    def __init__(self, option_strings: Sequence[str], const: str, dest: str = "", help: str | None = None) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, const=const, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *words: Any) -> None:
        assert isinstance(parser, ParserWithPages)
        parser._print_message(parser.format_page(str(self.const)), sys.stdout)
        parser.exit()
