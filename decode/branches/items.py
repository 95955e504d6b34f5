"""An entry of a trace of transfers."""

from typing import NamedTuple


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
