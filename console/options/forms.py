"""Options for the forms of a tandem trace: the choices that the protocol leaves to an encoder; one table lists them."""

import argparse
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.tandem.encoder import Forms
from rvtrace_gdb.decode.tandem.protocol import DIALECTS, SPECIFICATION
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
"""The forms by name; those in `OF_ENCODER` are fields of `decode.tandem.encoder.Forms`."""
OF_ENCODER = [name for name in FORMS if name.replace("-", "_") in Forms.__dataclass_fields__]


class BadForm(RvtraceError):
    """An unknown form, or two forms that exclude each other."""


class ChosenForms(NamedTuple):
    """The forms of an encoder, and which addresses it sends."""

    forms: Forms
    physical: bool
    effective: bool
    pc_physical: bool


def add_form_arguments(
    parser: "argparse.ArgumentParser | argparse._ArgumentGroup", prefix: str = "--", forms: Iterable[str] = FORMS
) -> None:
    """Add the options that `chosen_forms` reads, with *prefix*; *forms*: those that can be chosen."""
    parser.add_argument(
        f"{prefix}dialect", dest="tandem_dialect", choices=sorted(DIALECTS), metavar="NAME",
        help=f"the core whose encoder is imitated: {', '.join(DIALECTS)} (default {SPECIFICATION.name})",
    )  # fmt: skip
    parser.add_argument(
        f"{prefix}forms", dest="tandem_forms", metavar="NAME,NAME",
        help=f"choices that the protocol leaves open: {'; '.join(f'{name} {FORMS[name]}' for name in forms)}",
    )  # fmt: skip


def chosen_forms(text: str | None, option: str, forms: Iterable[str] = FORMS) -> ChosenForms:
    """Return the forms in *text*, the value of *option*; None: it was not given. Raises BadForm."""
    names = text.split(",") if text else []
    for name in names:
        if name not in forms:
            raise BadForm(f"{option} {text}: there is no form {name!r} here, there are {', '.join(forms)}")
    if {"physical", "both-addresses"} <= set(names):
        raise BadForm(f"{option} {text}: give physical or both-addresses")
    return ChosenForms(
        Forms(**{name.replace("-", "_"): name in names for name in OF_ENCODER}),
        "physical" in names or "both-addresses" in names,
        "physical" not in names,
        "physical-pc" in names,
    )
