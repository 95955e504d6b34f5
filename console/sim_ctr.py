"""The Control Transfer Records of `rvtrace sim`: whether the hart has them, and how they are built."""

import argparse

from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.transport.simulated.ctr.build import DEPTHS, VERSIONS, CtrBuild, CtrNotBuildable
from rvtrace_gdb.transport.simulated.ctr.follower import CtrFollower


class BadCtrOption(RvtraceError):
    """An option of Control Transfer Records that cannot be."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options `built` reads."""
    parser.add_argument("--ctr", choices=list(VERSIONS), help="the hart has Control Transfer Records of this version")
    parser.add_argument(
        "--ctr-depths", metavar="N,N",
        help=f"the depths they have, of {', '.join(map(str, DEPTHS))} (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--ctr-without", action="append", default=[], metavar="FIELD",
        help="a field they lack, may be repeated: RASEMU, LCOFIFRZ, EXCINH, TYPE, ...",
    )  # fmt: skip
    parser.add_argument(
        "--ctr-exponent-bits", choices=("none", "0", "1", "2", "3", "4"), metavar="N",
        help="bits of a cycle count's exponent, 0 to 4, or none: no cycle counts (default 4)",
    )  # fmt: skip
    parser.add_argument(
        "--ctr-misp", action="store_true",
        help="they tell mispredicted transfers (MISP) of a simple predictor: backward branches are taken, ...",
    )  # fmt: skip


def built(args: argparse.Namespace) -> CtrBuild | None:
    """What the command line says of them, None for a hart without. Raises BadCtrOption."""
    if args.ctr is None:
        if args.ctr_depths or args.ctr_without or args.ctr_exponent_bits or args.ctr_misp:
            raise BadCtrOption(f"say which Control Transfer Records the hart has: --ctr {' or '.join(VERSIONS)}")
        return None
    standard = CtrBuild(args.ctr)
    bits = args.ctr_exponent_bits or str(standard.exponent_bits)
    try:
        return CtrBuild(
            args.ctr,
            depths=_depths(args.ctr_depths) if args.ctr_depths else standard.depths,
            absent=standard.absent - ({"MISP"} if args.ctr_misp else set()) | set(args.ctr_without),
            exponent_bits=None if bits == "none" else int(bits),
        )
    except CtrNotBuildable as error:
        raise BadCtrOption(f"--ctr {args.ctr}: {error}") from None


def _depths(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted(int(number, 0) for number in text.split(",")))
    except ValueError:
        raise BadCtrOption(f"--ctr-depths {text}: give numbers with commas between them") from None


def openocd_lines(ctr: CtrFollower) -> str:
    """What makes OpenOCD 0.12 know the CSRs; they are called csr_mctrctl and so on then."""
    exposed = ",".join(f"{number}={csr.name}" for number, csr in sorted(ctr.csrs.items()))
    return f"riscv expose_csrs {exposed}\n"
