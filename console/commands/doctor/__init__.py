"""`rvtrace doctor`: what of the programs and packages that rvtrace is used with is here, and what else would give."""

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rvtrace_gdb.console import output
from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.doctor import installation, programs
from rvtrace_gdb.console.commands.doctor.adapters import found_adapters, found_libusb
from rvtrace_gdb.console.commands.doctor.finding import Finding, this_system
from rvtrace_gdb.console.commands.doctor.gdbs import found_gdb
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.support.text import json_line

CHECKS: Mapping[str, Callable[[], Finding]] = {
    "rvtrace": installation.found_rvtrace,
    "gdb": found_gdb,
    "openocd": programs.program_check(programs.OPENOCD),
    "qemu": programs.program_check(programs.QEMU),
    "adapters": found_adapters,
    "kernel": installation.found_kernel,
    "cache": installation.found_cache,
    "console": installation.extra_check(installation.CONSOLE),
    "views": installation.extra_check(installation.VIEWS),
    "usb": installation.extra_check(installation.USB),
    "libusb": found_libusb,
    "cluster": installation.extra_check(installation.CLUSTER),
    "agents": installation.extra_check(installation.AGENTS),
    "perf": installation.extra_check(installation.PERF),
    "spike": installation.extra_check(installation.SPIKE),
    "riscv-compiler": programs.program_check(programs.CROSS_COMPILER),
    "compiler": programs.program_check(programs.COMPILER),
    "objdump": programs.program_check(programs.OBJDUMP),
    "dtc": programs.program_check(programs.DTC),
    "gtkwave": programs.program_check(programs.GTKWAVE),
}
"""What is looked at, by the words of the command line, in the order of the rows."""
NEEDED = ("rvtrace", "gdb")
"""What has to be usable when nothing is named: the rest is for some uses only."""
EXAMPLES = (
    ("doctor", "everything, in some seconds"),
    ("doctor gdb openocd", "in CI: the exit status says whether these two can be used"),
    ("doctor --json", "for programs"),
)


class _NamesOrNone(tuple[str, ...]):
    """The choices for names of which there may be none: argparse asks whether the empty list is one of them."""

    def __contains__(self, value: object) -> bool:
        return value == [] or super().__contains__(value)


@dataclass(frozen=True)
class DoctorRequest:
    """What the command line asks for. *names*: what is looked at, and has to be usable; none: everything."""

    names: tuple[str, ...]
    output: OutputOptions

    @classmethod
    def from_arguments(cls, args: argparse.Namespace) -> "DoctorRequest":
        """Return what the command line says."""
        return cls(tuple(dict.fromkeys(args.names or ())), OutputOptions.from_arguments(args))

    def findings(self, shown: CommandOutput, usable: dict[str, bool]) -> Iterator[tuple[str, Finding]]:
        """Yield the names, and what is found, one by one; *usable* notes which of it rvtrace can use."""
        names = self.names or tuple(CHECKS)
        for number, name in enumerate(names):
            shown.progress("looking (things)", number, len(names))
            found = CHECKS[name]()
            usable[name] = found.is_usable
            yield name, found


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace doctor`."""
    parser.usage = "%(prog)s [NAME ...] [--json] [--quiet]"
    parser.description = (
        "Says what of gdb, OpenOCD, QEMU, Spike, compilers, adapters and Python packages is here, in which version,"
        " what that version lacks, and of what is missing what it would give and how to install it. gdb is started"
        " once, and loads rvtrace. Exit status: 0 if what is named can be used (if nothing is named: gdb), 1 if not."
    )
    names = f"what to look at, of {', '.join(CHECKS)} (default: all)"
    parser.add_argument("names", nargs="*", metavar="NAME", choices=_NamesOrNone(CHECKS), help=names)
    output.add_arguments(parser, "each thing")
    parser.examples = EXAMPLES
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what is found; the exit status says whether what is needed can be used."""
    request = DoctorRequest.from_arguments(args)
    usable: dict[str, bool] = {}
    system = this_system()
    with CommandOutput(request.output, "looking (things)") as shown:
        found = request.findings(shown, usable)
        if shown.json:
            shown.rows(json_line(finding.fields(name)) for name, finding in found)
        else:
            shown.rows(line for _, finding in found for line in finding.lines(system))
    return 0 if all(usable[name] for name in request.names or NEEDED) else 1
