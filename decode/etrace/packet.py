"""One packet: its fields, read from a payload and written to one."""

from typing import NamedTuple


class Malformed(Exception):
    """A payload that is no packet; the text says why."""


class Packet(NamedTuple):
    """The fields of a te_inst packet, by their names in the specification.

    Values are as transmitted, not negative, with two exceptions: *address* is in bytes (shifted left by iaddress_lsb;
    sign-extended from the width of the field where it is a difference), and notify, updiscon and irreport are 1 where
    they differ from the bit before them, so where they say something. irdepth and irets: only with irreport.
    """

    format: int
    subformat: int | None
    fields: dict[str, int]
