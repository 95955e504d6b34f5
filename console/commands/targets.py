"""`rvtrace targets`: the boards that rvtrace knows by name, the sources of what it knows, and how far it is proved."""

import argparse
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rvtrace_gdb.console import commands, output
from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.session.description.library import shipped
from rvtrace_gdb.session.description.library.shipped import ShippedTarget
from rvtrace_gdb.session.description.model import AnyComponent, Description
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.files import atomic_output
from rvtrace_gdb.support.text import counted, json_line, printable

EXAMPLES = (
    ("targets", "all boards that rvtrace knows"),
    ("targets show hifive-premier-p550", "all that is known of one, and its description"),
    ("sim --target hifive-premier-p550 --elf app.elf", "a simulated target with its components and limits"),
    ("console --target hifive-premier-p550 --elf app.elf --connect :3333", "the board itself, behind OpenOCD"),
)
_LIST, _SHOW = "list", "show"
_NARROWEST = 40  # columns of a terminal for which lines are folded


class TargetsUsage(RvtraceError):
    """Words or options of `rvtrace targets` that do not fit together."""


@dataclass(frozen=True)
class TargetsRequest:
    """What the command line asks for. *name*: the target that is shown, None: all are listed. *base*: of a template.
    *file*: where its description is written, None: it is shown.
    """

    name: str | None
    base: int
    file: str | None
    output: OutputOptions

    @classmethod
    def from_arguments(cls, args: argparse.Namespace) -> "TargetsRequest":
        """Return what the command line says. Raises TargetsUsage."""
        if args.verb == _SHOW and args.name is None:
            raise TargetsUsage(f"show takes the name of a target, one of {', '.join(shipped.target_names())}")
        if args.verb == _LIST and (args.name is not None or args.base or args.output is not None):
            raise TargetsUsage("list takes no name, no --base and no -o: `rvtrace targets show NAME` does")
        return cls(args.name, args.base, args.output, OutputOptions.from_arguments(args))


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace targets`."""
    parser.usage = "%(prog)s [list | show NAME [--base ADDRESS] [-o FILE]]\n                       [--json] [--quiet]"
    parser.description = (
        "Lists the boards whose target descriptions come with rvtrace: where each fact comes from, and how far it is"
        " proved. Their names are what `--target` and `set trace target` take instead of a file. show: all that is"
        " known of one, what its trace hardware cannot do, and its description."
    )
    parser.add_argument("verb", nargs="?", choices=(_LIST, _SHOW), default=_LIST, help=argparse.SUPPRESS)
    parser.add_argument("name", nargs="?", metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument(
        "--base", type=commands.address_argument, default=0, metavar="ADDRESS",
        help="show: what is added to the addresses of a template, where each design has its components elsewhere",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="FILE", help='show: write the description to FILE, "-": standard output'
    )
    output.add_arguments(parser, "each target")
    parser.examples = EXAMPLES
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List, show or write targets. Raises TargetsUsage, DescriptionError, OutputError."""
    request = TargetsRequest.from_arguments(args)
    chosen = shipped.targets() if request.name is None else (shipped.shipped(request.name),)
    if request.file is not None:
        _write_description(chosen[0], request.base, request.file, request.output.quiet)
        return 0
    with CommandOutput(request.output) as shown:
        if shown.json:
            base = None if request.name is None else request.base
            shown.rows(json_line(fields(target, base)) for target in chosen)
        elif request.name is None:
            shown.rows(line for target in chosen for line in _folded(_lines(target)))
        else:
            about = _folded((*_lines(chosen[0]), *_more_lines(chosen[0])))
            shown.rows((*about, "", *chosen[0].text(request.base).rstrip("\n").split("\n")))
    return 0


def _write_description(target: ShippedTarget, base: int, file: str, quiet: bool) -> None:
    if target.template and not base:
        raise TargetsUsage(f"{target.name} is a template: say where the components are, --base ADDRESS")
    text = target.text(base)
    with atomic_output(file) as written:
        written.write(text.encode())
    if not quiet and file != "-":
        print(printable(f"{file}: {target.board}: {_counted(target.description())}"), file=sys.stderr)


def fields(target: ShippedTarget, base: int | None = None) -> dict[str, Any]:
    """Return a target as an object for programs. *base*: with the text of its description, at this base; None: without.
    """
    found: dict[str, Any] = {
        "name": target.name,
        "board": target.board,
        "trace": target.trace,
        "components": _components(target.description()),
        "harts": target.description().harts,
        "limits": list(target.limits),
        "facts": [vars(fact) for fact in target.facts],
        "proved": list(target.proved),
    }
    if target.template:
        found["template"] = target.template
    return found | ({} if base is None else {"description": target.text(base)})


def _lines(target: ShippedTarget) -> Iterator[str]:
    yield f"{target.name}: {target.board}"
    yield f"  trace: {target.trace}"
    for fact in target.facts:
        yield f"  {fact.what}: {fact.proved} ({fact.source})"
    yield f"  proved: {', '.join(target.proved)}"
    if target.template:
        yield f"  a template: {target.template}"


def _folded(lines: Iterable[str]) -> Iterator[str]:
    """Fold lines for a terminal, between words; what is read by programs or goes to a file is not folded."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        yield from textwrap.wrap(
            line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        ) if width > _NARROWEST else [line]  # fmt: skip


def _more_lines(target: ShippedTarget) -> Iterator[str]:
    yield "  limits:"
    yield from (f"    {limit}" for limit in target.limits)
    yield f"  components: {_counted(target.description())}"


def _components(description: Description) -> int:
    """Return how many devices make or pass on trace."""
    return len(description.components) + len(description.tracers) + len(description.tacit)


def _counted(description: Description) -> str:
    """Return e.g. "4 encoders, 1 funnel, 1 RAM sink"."""
    kinds: dict[str, list[AnyComponent]] = {}
    for component in description.components:
        kinds.setdefault(component.kind.replace("_", " "), []).append(component)
    numbers = {kind: len(found) for kind, found in kinds.items()}
    numbers |= {"TRACER": len(description.tracers), "TACIT encoder": len(description.tacit)}
    shown = [counted(number, kind) for kind, number in numbers.items() if number]
    return ", ".join(shown) or "none: the firmware sets them up"
