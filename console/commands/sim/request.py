"""What the command line of `rvtrace sim` asks for, as typed values. Nothing below knows the parsed arguments."""

import argparse
from dataclasses import dataclass

from rvtrace_gdb.console.output import OutputOptions


@dataclass(frozen=True)
class CtrBuildRequest:
    """The Control Transfer Records of a hart, as the options say; None: not given. *version*: None: it has none."""

    version: str | None
    depths: str | None
    absent: tuple[str, ...]
    exponent_bits: str | None
    mispredictions: bool


@dataclass(frozen=True)
class HartsRequest:
    """How many harts, None: as the target description says, and how they are built. *xlen*: None: the program's.
    *isa*: None: all extensions, or those of the shipped target.
    """

    count: int | None
    xlen: int | None
    isa: str | None
    debug_spec: str
    ram: int | None
    ctr: CtrBuildRequest


@dataclass(frozen=True)
class EncoderBuildRequest:
    """How trace encoders are built: the words of the options."""

    options: tuple[str, ...]
    etrace_options: tuple[str, ...]
    formats: str
    absent: tuple[str, ...]
    filters: int
    comparators: int | None


@dataclass(frozen=True)
class ComponentsRequest:
    """The trace components: those of the description *target*, or an encoder for each hart and a RAM of *trace_size*.

    *devices*: a file that says how they are built. *streams*: NAME=WHERE.
    """

    target: str | None
    trace_size: int | None
    devices: str | None
    streams: tuple[str, ...]
    encoder: EncoderBuildRequest


@dataclass(frozen=True)
class TandemPortRequest:
    """The tandem trace: its file, and how it is encoded; None: not given."""

    file: str | None
    dialect: str | None
    forms: str | None


@dataclass(frozen=True)
class ServedAt:
    """Where the target is served: the socket *unix*, or else a port; and the socket of the side door."""

    port: int
    unix: str | None
    side_door: str | None


@dataclass(frozen=True)
class OpenOcdRequest:
    """What the configuration for OpenOCD says. *separate*: harts have a gdb server each."""

    gdb_port: int
    tcl_port: int
    separate: bool


@dataclass(frozen=True)
class WrittenFiles:
    """The files to write: the target description, OpenOCD's configuration, and the addresses that retired."""

    target: str | None
    openocd: str | None
    retired: str | None


@dataclass(frozen=True)
class SimRequest:
    """What `rvtrace sim` is to simulate, serve and write. *run_at_once*: the program does not wait for a debugger."""

    elf: str
    harts: HartsRequest
    components: ComponentsRequest
    tandem: TandemPortRequest
    served: ServedAt
    openocd: OpenOcdRequest
    files: WrittenFiles
    run_at_once: bool
    output: OutputOptions


def sim_request(args: argparse.Namespace) -> SimRequest:
    """Return the request. What the options say is checked where it is used."""
    ctr = CtrBuildRequest(
        version=args.ctr, depths=args.ctr_depths, absent=tuple(args.ctr_without), exponent_bits=args.ctr_exponent_bits,
        mispredictions=args.ctr_misp,
    )  # fmt: skip
    harts = HartsRequest(
        count=args.harts, xlen=None if args.xlen == "auto" else int(args.xlen), isa=args.isa,
        debug_spec=args.debug_spec, ram=args.ram, ctr=ctr,
    )  # fmt: skip
    encoder = EncoderBuildRequest(
        options=tuple(args.encoder_option), etrace_options=tuple(args.etrace_option), formats=args.formats,
        absent=tuple(args.without), filters=args.filters, comparators=args.comparators,
    )  # fmt: skip
    components = ComponentsRequest(
        target=args.target, trace_size=args.trace_size, devices=args.devices, streams=tuple(args.stream),
        encoder=encoder,
    )  # fmt: skip
    return SimRequest(
        elf=args.elf,
        harts=harts,
        components=components,
        tandem=TandemPortRequest(file=args.tandem, dialect=args.tandem_dialect, forms=args.tandem_forms),
        served=ServedAt(port=args.port, unix=args.unix, side_door=args.side_door),
        openocd=OpenOcdRequest(gdb_port=args.gdb_port, tcl_port=args.tcl_port, separate=args.separate_harts),
        files=WrittenFiles(target=args.write_target, openocd=args.write_openocd, retired=args.log_retired),
        run_at_once=args.run_at_once,
        output=OutputOptions.from_arguments(args),
    )
