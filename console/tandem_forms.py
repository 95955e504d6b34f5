"""What a tandem-trace encoder does of what the protocol leaves open, on the command line: one table."""

import argparse
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.tandem.dialect import DIALECTS, SPECIFICATION
from rvtrace_gdb.decode.tandem.encoder import Forms
from rvtrace_gdb.support.errors import RvtraceError

FORMS: Mapping[str, str] = {
    "implied-end": "leaves an end group out before a begin group",
    "increment-pc": "sends the pc as an increment where the next instruction follows in memory",
    "incremental": "sends a register as an offset where it is small",
    "incremental-or": "sends a register as bits that were set where there are no others",
    "memory": "sends stores, loads and atomic operations as memory requests, too",
    "fetch": "sends the fetch of each instruction as a memory request, too",
    "physical": "sends physical addresses of loads and stores instead of effective ones",
    "both-addresses": "sends physical and effective addresses of loads and stores",
    "physical-pc": "sends the physical address of the pc, too",
}
"""What can be asked for, by name; the first six are fields of `decode.tandem.encoder.Forms`."""
OF_ENCODER = [name for name in FORMS if name.replace("-", "_") in Forms.__dataclass_fields__]


class BadForm(RvtraceError):
    """A form that there is not, or two that cannot be together."""


class Chosen(NamedTuple):
    """*forms*: of the encoder. The others: which addresses are told."""

    forms: Forms
    physical: bool
    effective: bool
    pc_physical: bool


def add_arguments(
    parser: "argparse.ArgumentParser | argparse._ArgumentGroup", prefix: str = "--", forms: Iterable[str] = FORMS
) -> None:
    """The options `chosen` reads, with *prefix*; *forms*: those that can be asked for."""
    parser.add_argument(
        f"{prefix}dialect", dest="tandem_dialect", choices=sorted(DIALECTS), metavar="NAME",
        help=f"whose encoder to be like: {', '.join(DIALECTS)} (default {SPECIFICATION.name})",
    )  # fmt: skip
    parser.add_argument(
        f"{prefix}forms", dest="tandem_forms", metavar="NAME,NAME",
        help=f"what the protocol leaves open: {'; '.join(f'{name} {FORMS[name]}' for name in forms)}",
    )  # fmt: skip


def chosen(args: argparse.Namespace, option: str, forms: Iterable[str] = FORMS) -> Chosen:
    """What the command line says; *option*: what the one with the forms is called. Raises BadForm."""
    names = args.tandem_forms.split(",") if args.tandem_forms else []
    for name in names:
        if name not in forms:
            raise BadForm(f"{option} {args.tandem_forms}: there is no form {name!r} here, there are {', '.join(forms)}")
    if {"physical", "both-addresses"} <= set(names):
        raise BadForm(f"{option} {args.tandem_forms}: give physical or both-addresses")
    return Chosen(
        Forms(**{name.replace("-", "_"): name in names for name in OF_ENCODER}),
        "physical" in names or "both-addresses" in names,
        "physical" not in names,
        "physical-pc" in names,
    )
