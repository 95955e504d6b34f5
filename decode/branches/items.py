"""An entry of a trace of transfers, and what has to be known to read it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

Settings = Mapping[str, int]
"""The registers of what sent a trace, by name, as they were while tracing."""
NO_SETTINGS: Settings = MappingProxyType({})


class BranchItem(NamedTuple):
    """Consecutive bytes: an entry, or bytes that are none (*problem* says why). *text*: its line in `trace dump`."""

    offset: int
    raw: bytes
    text: str
    problem: str = ""

    @property
    def end(self) -> int:
        return self.offset + len(self.raw)

    @property
    def is_idle(self) -> bool:
        """False: there is no filling."""
        return False
