"""`rvtrace usb`: adapters, harts, registers and memory of a target that is reached over USB, without OpenOCD."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rvtrace_gdb.console import commands
from rvtrace_gdb.console.progress import ProgressLine
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description.model import DescriptionError, UsbDescription
from rvtrace_gdb.session.queries.hardware.known_chip import lines_of_usb
from rvtrace_gdb.session.target import usb
from rvtrace_gdb.session.target.usb import HartState, UsbBench
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.files import atomic_output
from rvtrace_gdb.support.text import columns, counted, printable

_MOST_SHOWN = 1 << 16  # bytes of memory on the terminal
_ROW = 16


class UsbUsage(RvtraceError):
    """Options of `rvtrace usb` that do not fit together."""


@dataclass(frozen=True)
class AdapterRequest:
    """Which adapter, and how the target is reached through it, as the command line says it; None: not given."""

    target: str | None
    adapter: str | None
    serial: str | None
    khz: int | None
    interface: int | None
    tap: int | None
    ir_lengths: tuple[int, ...] | None


@dataclass(frozen=True)
class UsbRequest:
    """What the command line of `rvtrace usb` asks for. *hart*: None: not given. *output*: the file of -o."""

    verb: str
    words: tuple[str, ...]
    adapter: AdapterRequest
    hart: int | None
    output: str | None
    json: bool
    quiet: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `rvtrace usb`."""
    parser.usage = (
        "%(prog)s [list | harts | halt | resume | step | reg [NAME[=VALUE] ...]\n"
        "                    | read ADDRESS [BYTES] | write ADDRESS VALUE ...] [options]"
    )
    parser.description = (
        "Reaches a RISC-V debug module through a USB adapter (Espressif's built-in USB-JTAG, FTDI's MPSSE)."
        " list (the default): the adapters that are plugged in. harts: what the harts do. halt, resume: all harts, or"
        " the one of --hart. step: one instruction. reg: pc and general registers, or those that are named (a0, mepc,"
        " 0x341, ...); NAME=VALUE writes. read: physical memory, shown, or written to a file by -o. write: words of 32"
        " bits. Harts stay as they are when it ends."
    )
    parser.add_argument("verb", nargs="?", choices=sorted(_VERBS), default="list", help=argparse.SUPPRESS)
    parser.add_argument("words", nargs="*", metavar="WORD", help=argparse.SUPPRESS)
    parser.add_argument(
        "--target", metavar="FILE|NAME",
        help="target description with a table [usb] (default: $RVTRACE_TARGET; without one, the only adapter there is)",
    )  # fmt: skip
    parser.add_argument("--adapter", choices=sorted(usb.ADAPTER_NAMES), help="the kind of adapter, instead of --target")
    parser.add_argument("--serial", metavar="SERIAL", help="its serial number, if there are several")
    parser.add_argument("--khz", type=_number_argument, metavar="KHZ", help="of TCK")
    parser.add_argument("--interface", type=_number_argument, metavar="N", help="channel of an FTDI chip, 0 is A")
    parser.add_argument(
        "--tap", type=_number_argument, metavar="N", help="which TAP of the scan chain, counted from TDO"
    )
    parser.add_argument("--ir-lengths", type=_numbers_argument, metavar="N,N", help="of the TAPs, in bits, from TDO on")
    parser.add_argument(
        "--hart", type=_number_argument, metavar="N", help="one hart (default: 0; of halt and resume: all)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="read: write the bytes to FILE, -: standard output")
    parser.add_argument("--json", action="store_true", help="print one JSON object; also of an error")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do what the verb says. Raises UsbUsage, DescriptionError, BadOption, OutputError, and the transport's errors."""
    request = _request(args)
    try:
        _check(request)
        found, lines = _list() if request.verb == "list" else _with_target(request)
    except RvtraceError as error:
        if request.json:
            print(json.dumps({"error": str(error)}))
        raise
    _print_result(request, found, lines)
    return 0


def _request(args: argparse.Namespace) -> UsbRequest:
    lengths = None if args.ir_lengths is None else tuple(args.ir_lengths)
    adapter = AdapterRequest(
        target=args.target, adapter=args.adapter, serial=args.serial, khz=args.khz, interface=args.interface,
        tap=args.tap, ir_lengths=lengths,
    )  # fmt: skip
    return UsbRequest(
        verb=args.verb, words=tuple(args.words), adapter=adapter, hart=args.hart, output=args.output, json=args.json,
        quiet=args.quiet,
    )  # fmt: skip


def _check(request: UsbRequest) -> None:
    """Raise UsbUsage for options that do not fit the verb, or each other."""
    if request.words and request.verb not in ("reg", "read", "write"):
        raise UsbUsage(f"{request.verb} takes no arguments, got: {' '.join(request.words)}")
    if request.output is not None and request.verb != "read":
        raise UsbUsage("-o is for `read`")
    if request.output == "-" and request.json:
        raise UsbUsage("-o - and --json both want standard output")


def _print_result(request: UsbRequest, fields: Mapping[str, object], lines: list[str]) -> None:
    if request.json:
        print(json.dumps(fields))
    else:
        for line in lines:
            print(columns(line), file=sys.stderr if request.output == "-" else sys.stdout)


def _list() -> tuple[Mapping[str, object], list[str]]:
    found = usb.adapters()
    rows = [{"adapter": name, **vars(it)} for name, it in found]
    lines = [f"{name:6} {it.kind}, {usb.where(it)}" + _trouble(it.problem) for name, it in found]
    return {"adapters": rows}, lines or ["no adapter is plugged in that rvtrace knows"]


def _trouble(problem: str | None) -> str:
    return "" if problem is None else f": {problem}"


def _with_target(request: UsbRequest) -> tuple[Mapping[str, object], list[str]]:
    do = _VERBS[request.verb]
    assert do is not None
    with usb.bench(_usb(request.adapter)) as bench:
        return do(bench, request)


def _usb(request: AdapterRequest) -> UsbDescription:
    """Return the adapter given by options, else by a description, else the only one that is plugged in."""
    if request.adapter is None and request.serial is None:
        described = _described(request)
        if described is not None:
            return described
    elif request.target is not None:
        raise UsbUsage("--target says which adapter: leave out --adapter and --serial, or --target")
    return UsbDescription(
        adapter=request.adapter or usb.only_adapter(request.serial), serial=request.serial, khz=request.khz,
        interface=request.interface or 0, tap=request.tap or 0, ir_lengths=request.ir_lengths,
    )  # fmt: skip


def _described(request: AdapterRequest) -> UsbDescription | None:
    """Return the adapter in the description of --target or $RVTRACE_TARGET. Raises UsbUsage, DescriptionError."""
    if request.target is None and not os.environ.get("RVTRACE_TARGET"):
        return None
    description = Context(target_file=request.target).description()
    if description.usb is None:
        if request.target is None:
            return None
        raise DescriptionError("there is no table [usb]", description.file)
    for name in ("khz", "interface", "tap", "ir_lengths"):
        if getattr(request, name) is not None:
            raise UsbUsage(f"--{name.replace('_', '-')}: {description.file} says it, in the table [usb]")
    return description.usb


def _show_harts(bench: UsbBench, request: UsbRequest) -> tuple[Mapping[str, object], list[str]]:
    described = bench.description()
    found, lines = _states(bench.harts())
    known = [] if _has_components(request.adapter) else lines_of_usb(bench)
    return {"debug_module": described, **found, "known": known}, [described, *lines, *known]


def _has_components(request: AdapterRequest) -> bool:
    """Return whether a target description says what the chip has."""
    named = request.target is not None or os.environ.get("RVTRACE_TARGET")
    return bool(named and Context(target_file=request.target).description().encoders)


def _halt(bench: UsbBench, request: UsbRequest) -> tuple[Mapping[str, object], list[str]]:
    return _states(bench.halt(request.hart))


def _resume_hart(bench: UsbBench, request: UsbRequest) -> tuple[Mapping[str, object], list[str]]:
    return _states(bench.resume(request.hart))


def _step_hart(bench: UsbBench, request: UsbRequest) -> tuple[Mapping[str, object], list[str]]:
    return _states(bench.step(request.hart or 0))


def _states(harts: list[HartState]) -> tuple[Mapping[str, object], list[str]]:
    rows = [{"hart": it.hart, "state": it.state, "pc": None if it.pc is None else f"{it.pc:#x}"} for it in harts]
    return {"harts": rows}, usb.hart_lines(harts)


def _reg(bench: UsbBench, request: UsbRequest) -> tuple[Mapping[str, object], list[str]]:
    hart = request.hart or 0
    found = bench.registers(hart, request.words)
    values = {it.name: f"{it.value:#x}" if isinstance(it.value, int) else None for it in found}
    refused = {it.name: it.value for it in found if isinstance(it.value, str)}
    return {"hart": hart, "registers": values, "refused": refused}, usb.register_lines(found)


def _read_memory(bench: UsbBench, request: UsbRequest) -> tuple[Mapping[str, object], list[str]]:
    if not 1 <= len(request.words) <= 2:
        raise UsbUsage("read takes an address, and how many bytes (default 4)")
    address, size = _address_argument(request.words[0]), _word(request.words[1], "a number") if request.words[1:] else 4
    if not size or address + size > 1 << 64:
        raise UsbUsage(f"{counted(size, 'byte')} at {address:#x}: there is no such memory")
    if request.output is None and size > _MOST_SHOWN:
        raise UsbUsage(f"{size} bytes are too many to show: write them to a file by -o FILE")
    told = {"address": f"{address:#x}", "bytes": size}
    if request.output is None:
        data = _data(bench, request, address, size)
        return {**told, "data": data.hex()}, _rows(address, data)
    with atomic_output(request.output) as output:
        output.write(_data(bench, request, address, size))
    return {**told, "file": request.output}, [f"{request.output}: {counted(size, 'byte')} from {address:#x}"]


def _data(bench: UsbBench, request: UsbRequest, address: int, size: int) -> bytes:
    try:
        with ProgressLine(not request.quiet) as progress:
            return bench.read(address, size, progress)
    except RvtraceError as error:
        _keep(getattr(error, "partial", b""), address, request.output, quiet=request.json)
        raise


def _keep(partial: bytes, address: int, file: str | None, *, quiet: bool) -> None:
    """Save what was read before an error: in a file with the suffix .part, or shown."""
    if not partial:
        return
    if file in (None, "-"):
        for line in [] if quiet else _rows(address, partial):
            print(line)
        return
    with atomic_output(f"{file}.part", like=file) as output:
        output.write(partial)
    print(f"rvtrace: {printable(file)}.part: {counted(len(partial), 'byte')} from {address:#x}", file=sys.stderr)


def _rows(address: int, data: bytes) -> list[str]:
    """Return rows of 32-bit words if address and size are multiples of 4, else of bytes."""
    if address % 4 or len(data) % 4:
        return [f"{address + n:#x}: {data[n : n + _ROW].hex(' ')}" for n in range(0, len(data), _ROW)]
    words = [int.from_bytes(data[n : n + 4], "little") for n in range(0, len(data), 4)]
    return [
        f"{address + 4 * n:#x}: {' '.join(f'{it:08x}' for it in words[n : n + 4])}" for n in range(0, len(words), 4)
    ]


def _write_memory(bench: UsbBench, request: UsbRequest) -> tuple[Mapping[str, object], list[str]]:
    if len(request.words) < 2:
        raise UsbUsage("write takes an address and words of 32 bits")
    address, words = _address_argument(request.words[0]), [_word(word, "a number") for word in request.words[1:]]
    for word in words:
        if word >> 32:
            raise UsbUsage(f"{word:#x} is not a word of 32 bits")
    bench.write(address, words)
    return {"address": f"{address:#x}", "words": len(words)}, []


def _address_argument(text: str) -> int:
    try:
        return commands.address(text)
    except commands.NoAddress as error:
        raise UsbUsage(str(error)) from None


def _word(text: str, what: str) -> int:
    try:
        value = int(text, 0)
    except ValueError:
        value = -1
    if not 0 <= value < 1 << 64:
        raise UsbUsage(f"{text!r} is not {what}")
    return value


def _number_argument(text: str) -> int:
    try:
        value = int(text, 0)
    except ValueError:
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return value


def _numbers_argument(text: str) -> list[int]:
    return [_number_argument(part) for part in text.split(",")]


_UsbVerb = Callable[[UsbBench, UsbRequest], tuple[Mapping[str, object], list[str]]]
_VERBS: Mapping[str, _UsbVerb | None] = {
    "list": None, "harts": _show_harts, "halt": _halt, "resume": _resume_hart, "step": _step_hart, "reg": _reg,
    "read": _read_memory, "write": _write_memory,
}  # fmt: skip
