"""What the simulated hart itself says it retired, against what came out at the other end."""

import re
from pathlib import Path

ROW = re.compile(r"^(\d+)\t(?:=> |   )0x([0-9a-f]+)(?: <[^>]*>)?:\t", re.M)


def retired_pcs(log: Path) -> list[int]:
    """The addresses in a log written by `rvtrace sim --log-retired`: one in hexadecimal per line."""
    return [int(line, 16) for line in log.read_text().split()]


def listed_pcs(listing: str) -> list[int]:
    """The addresses in a `trace history` listing whose numbers must be consecutive, and nothing else may be in it."""
    rows = ROW.findall(listing)
    assert len(rows) == len(listing.strip().splitlines()), "a line that is not an instruction"
    numbers = [int(number) for number, _ in rows]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return [int(pc, 16) for _, pc in rows]
