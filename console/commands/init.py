"""`rvtrace init`: write a target description for a board that no file describes."""

import argparse
import contextlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rvtrace_gdb.console.commands.import_dt import compiled
from rvtrace_gdb.session.description import dtb
from rvtrace_gdb.session.description.dtb import Node
from rvtrace_gdb.session.description.selection import FILE_BESIDE_ELF
from rvtrace_gdb.session.survey.inquiry import BoardFacts, WrittenDescription, inquire
from rvtrace_gdb.session.survey.questions import Answered, BoardError, MissingAnswer, Question, Unfit, yes_or_no
from rvtrace_gdb.support.files import atomic_output, protect_inputs
from rvtrace_gdb.support.text import printable

AnswerValue = TypeVar("AnswerValue")


@dataclass(frozen=True)
class InterviewRequest:
    """What the command line answers: *given* has the texts by their options, and by what a repeated option names.

    *yes*: defaults are taken. *force*: a file may be replaced. *quiet*: nothing is told.
    """

    given: Mapping[tuple[str, str], str]
    yes: bool
    force: bool
    quiet: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line of `rvtrace init`."""
    parser.usage = "%(prog)s [options]"
    parser.description = (
        "Writes the target description of a board: asks OpenOCD for the harts, takes trace components from a"
        " device tree or looks for them at addresses that you allow, and asks what neither shows. Each line of the file"
        " says where its value comes from. Without a terminal options have the answers."
    )
    add = parser.add_argument
    add("--output", "-o", metavar="FILE", help="file to write (default: rvtrace.toml, beside the ELF of --elf)")
    add("--openocd", nargs="+", metavar="WHERE", help="OpenOCD's Tcl server, HOST:PORT; or its configuration files, in"
        " which tcl_port is looked for; or none")  # fmt: skip
    add("--device-tree", metavar="FILE|ADDRESS", help="the board's device tree: .dtb, .dts or /sys/firmware/fdt, or"
        " where it is in the chip's memory; or none")  # fmt: skip
    add("--known", metavar="NAME", help="take the description of this shipped target (`rvtrace targets`); or none")
    add("--probe", action="append", metavar="ADDRESS[-ADDRESS]",
        help="look for trace components here: two words of each 4 KiB are read, before the second address. No other"
        " address is read, as that can hang a chip. device-tree: at the addresses in the device tree")  # fmt: skip
    add("--coresight", action="append", metavar="ADDRESS[-ADDRESS]",
        help="look for CoreSight components here: the identification registers of each 4 KiB are read")  # fmt: skip
    add("--wake", action=argparse.BooleanOptionalAction, help="write 1 to the first word where a component may be in"
        " reset, which wakes it, and put back what was there")  # fmt: skip
    add("--harts", metavar="N,...", help="the harts that the encoders trace, in the order of their addresses")
    add("--to", action="append", default=[], type=_keyed, metavar="NAME=NAME,...",
        help="what an encoder or a funnel feeds, as in encoder0=funnel0")  # fmt: skip
    add("--buffer", action="append", default=[], type=_keyed, metavar="[SINK=]START:SIZE",
        help="memory for a RAM sink to write to, which nothing else may use; or SRAM: memory of its own")  # fmt: skip
    add("--elf", metavar="FILE", help="the program: its XLEN is compared, and buffers may not lie in it")
    add("--name", metavar="TEXT", help="name of the board, for messages")
    add("--force", action="store_true", help="replace a file that exists")
    add("--yes", "-y", action="store_true", help="take the default wherever there is one")
    add("--quiet", action="store_true", help="print only questions and problems")
    parser.set_defaults(run=run)


def _keyed(text: str) -> tuple[str, str]:
    name, _, value = text.rpartition("=")
    return name, value


def run(args: argparse.Namespace) -> int:
    """Write the description. Raises BoardError, DescriptionError, BadElf, OutputError."""
    output = args.output or str((Path(args.elf).parent if args.elf else Path()) / FILE_BESIDE_ELF)
    protect_inputs(output, [args.device_tree, args.elf, *(args.openocd or ())])
    interview = Interview(_request(args))
    interview.may_write(output)
    found = inquire(interview, _tree, BoardFacts(args.name, args.elf), output)
    interview.check_all_used()
    with atomic_output(output) as file:
        file.write(found.text.encode())
    if not args.quiet:
        _report_written(found, output, args.elf)
    return 0


def _request(args: argparse.Namespace) -> InterviewRequest:
    single: Mapping[str, str | None] = {
        "--openocd": args.openocd and "\n".join(args.openocd),
        "--device-tree": args.device_tree,
        "--known": args.known,
        "--probe": args.probe and ",".join(args.probe),
        "--coresight": args.coresight and ",".join(args.coresight),
        "--wake": None if args.wake is None else "y" if args.wake else "n",
        "--harts": args.harts,
    }
    given = {(option, ""): text for option, text in single.items() if text is not None}
    given |= {("--to", name): text for name, text in args.to}
    given |= {("--buffer", name): text for name, text in args.buffer}
    return InterviewRequest(given=given, yes=args.yes, force=args.force, quiet=args.quiet)


def _tree(name: str) -> Node:
    return dtb.read(compiled(name), name)


def _report_written(written_description: WrittenDescription, output: str, elf: str | None) -> None:
    found = written_description.description
    parts = (*found.components, *found.tracers, *found.tacit)
    names = ", ".join(f"{each.name} at {each.base:#x}" for each in parts) or found.name
    beside = elf is not None and Path(output) == Path(elf).parent / FILE_BESIDE_ELF
    select = "" if beside else f"`set trace target {os.path.abspath(output)}`, "
    print(printable(f"{output}: {names}"), file=sys.stderr)
    print(printable(f"next, in gdb: {select}`trace info` (what is missing), `trace start`"), file=sys.stderr)


class Interview:
    """Answers by options and on the terminal; an `Ask`."""

    def __init__(self, request: InterviewRequest) -> None:
        self._yes, self._force, self._quiet = request.yes, request.force, request.quiet
        self._terminal = sys.stdin.isatty() and sys.stdout.isatty()
        self._given = request.given
        self._unused = {key for key in self._given if key[0] in ("--to", "--buffer", "--harts")}

    def may_write(self, output: str) -> None:
        """Raise BoardError if *output* exists, and the user does not want it replaced."""
        if output == "-" or not os.path.exists(output) or self._force:
            return
        question = Question(f"{output} exists: replace it? y or n", "--force", yes_or_no, "n", "default")
        if not self._terminal or self._yes or not self.ask(question).value:
            raise BoardError(f"{output} exists: --force replaces it, --output names another file")

    def tell(self, line: str) -> None:
        """Print a line about what was found."""
        if not self._quiet:
            print(printable(line), file=sys.stderr, flush=True)

    def ask(self, question: Question[AnswerValue]) -> Answered[AnswerValue]:
        """Return the answer of the options, the default, or what is typed. Raises MissingAnswer, Unfit."""
        option = question.option.partition(" ")[0]
        for key in (question.key, ""):
            if (option, key) in self._given:
                self._unused.discard((option, key))
                return Answered(self._parsed(question, option, self._given[option, key]), f"given by you ({option})")
        if question.default is not None and (self._yes or question.obvious):
            return Answered(question.parse(question.default), question.because)
        if not self._terminal and question.optional and question.default is not None:
            return Answered(question.parse(question.default), question.because)
        if not self._terminal:
            raise MissingAnswer(question.text, question.spelt, question.default)
        return self._typed(question)

    @staticmethod
    def _parsed(question: Question[AnswerValue], option: str, text: str) -> AnswerValue:
        try:
            return question.parse(text)
        except Unfit as error:
            raise BoardError(f"{option}: {error}") from None

    def _typed(self, question: Question[AnswerValue]) -> Answered[AnswerValue]:
        default = f" [{question.default}]" if question.default is not None else ""
        if question.explanation:
            print(printable(question.explanation))
        while True:
            text = self._input_line(f"{printable(question.text)}{default}: ").strip()
            if not text and question.default is None:
                continue
            try:
                value = question.parse(text or question.default or "")
            except Unfit as error:
                print(printable(str(error)))
                continue
            return Answered(value, "given by you" if text else question.because)

    @staticmethod
    def _input_line(prompt: str) -> str:
        with contextlib.suppress(ImportError):  # Python was built without it: the line is read as it comes
            import readline  # noqa: F401 (it edits what `input` reads, and keeps the lines before)
        try:
            return input(prompt)
        except EOFError:
            print()
            raise BoardError("the input ended before all was answered: nothing is written") from None
        except KeyboardInterrupt:
            print()
            raise

    def check_all_used(self) -> None:
        """Raise BoardError for an option that answers nothing that was asked."""
        for option, name in sorted(self._unused):
            what = f'there is no component "{name}" that needs it' if name else "nothing needs it"
            raise BoardError(f"{option} {name + '=' if name else ''}{self._given[option, name]}: {what}")
