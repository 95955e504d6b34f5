"""`rvtrace import-dt`: convert the trace components of a device tree to a target description."""

import argparse
import shutil
import subprocess
import sys

from rvtrace_gdb.console import commands
from rvtrace_gdb.session.description import devicetree, dtb
from rvtrace_gdb.session.description.dtb import DeviceTreeError
from rvtrace_gdb.support.files import atomic_output, protect_inputs
from rvtrace_gdb.support.inputs import is_pipe, read_input
from rvtrace_gdb.support.text import columns


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line of `rvtrace import-dt`."""
    parser.usage = "%(prog)s FILE -o rvtrace.toml [--buffer [SINK=]START:SIZE ...]"
    parser.description = (
        "Finds the trace components of a device tree (riscv,trace-component, sifive,trace-encoder0,"
        " sifive,trace-funnel0, XuanTie's xuantie_ntrace,..., the SpacemiT K3's with CoreSight), and writes a target"
        " description with their addresses and connections. The head of the file and standard error list what the"
        " device tree leaves open."
    )
    what = "a compiled device tree, such as board.dtb or Linux' /sys/firmware/fdt, or its source (needs dtc)"
    parser.add_argument("file", metavar="FILE", help=what)
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help='file to write, "-": standard output')
    parser.add_argument(
        "--buffer",
        action="append",
        default=[],
        type=_buffer_argument,
        metavar="[SINK=]START:SIZE",
        help="memory for a RAM sink to write to, which nothing else may use; SINK: its name in the description",
    )
    parser.add_argument("--quiet", action="store_true", help="print only problems")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the description. Raises `DeviceTreeError`, `DescriptionError`, `OutputError`."""
    protect_inputs(args.output, [args.file])
    root = dtb.read(compiled(args.file), args.file)
    found = devicetree.trace_components(root, dict(args.buffer))
    with atomic_output(args.output) as output:
        output.write(found.text.encode())
    counted = ", ".join(f"{component.name} at {component.base:#x}" for component in found.description.components)
    for line in () if args.quiet else (f"{args.output}: {counted}", *found.notes):
        print(columns(line), file=sys.stderr)
    return 0


def compiled(file: str) -> bytes:
    """Return a compiled device tree; its source is compiled by dtc. Raises DeviceTreeError."""
    try:
        data = read_input(file)
    except (OSError, ValueError) as error:
        raise DeviceTreeError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file) from None
    return data if data.startswith(dtb.MAGIC) or b"\0" in data else _from_source(file)


def _from_source(file: str) -> bytes:
    dtc = shutil.which("dtc")
    if dtc is None:
        problem = "is the source of a device tree, and dtc is not here: install it (Debian: device-tree-compiler)"
        raise DeviceTreeError(problem, file)
    name, given = ("-", read_input(file)) if is_pipe(file) else (file, None)
    command = [dtc, "-q", "-I", "dts", "-O", "dtb", "--", name]
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").splitlines() or [f"it ended with {done.returncode}"]
        raise DeviceTreeError(f"dtc cannot compile it: {said[0]}", file)
    return done.stdout


def _buffer_argument(text: str) -> tuple[str, tuple[int, int]]:
    name, _, place = text.rpartition("=")
    start, colon, size = place.partition(":")
    try:
        numbers = commands.address(start), int(size, 0)
    except commands.Unclear as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    except ValueError:
        numbers = -1, -1
    if not colon or min(numbers) < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not START:SIZE, as in 0x80000000:0x10000")
    return name, numbers
