"""Where the memory of a window may have changed without anybody knowing what changed."""

from bisect import bisect_left, insort

KilledRegion = tuple[int, int]
"""The first and the last address of some bytes."""

_MOST_REGIONS = 64


class Kills:
    """Accesses, by their numbers, that may have stored to any address, or to any in a region."""

    def __init__(self) -> None:
        self.everywhere: list[int] = []
        """In order."""
        self._regions: dict[KilledRegion, list[int]] = {}
        self._region_of: dict[int, KilledRegion] = {}

    def add(self, op: int, region: KilledRegion | None = None) -> None:
        """Add an access. *region*: all that it may have stored to; None: all memory."""
        if region is None or (region not in self._regions and len(self._regions) >= _MOST_REGIONS):
            insort(self.everywhere, op)
        else:
            insort(self._regions.setdefault(region, []), op)
            self._region_of[op] = region

    def region(self, op: int) -> KilledRegion | None:
        """Return the region of an access, None if it has none."""
        return self._region_of.get(op)

    def remove(self, op: int) -> None:
        """Remove an access, if it is there."""
        region = self._region_of.pop(op, None)
        ops = self.everywhere if region is None else self._regions[region]
        at = bisect_left(ops, op)
        if at < len(ops) and ops[at] == op:
            del ops[at]

    def before(self, op: int, address: int, size: int) -> int:
        """Return the last one before an access that may have changed some bytes, -1 without one."""
        at = bisect_left(self.everywhere, op)
        found = self.everywhere[at - 1] if at else -1
        for (low, high), ops in self._regions.items():
            if low < address + size and address <= high:
                at = bisect_left(ops, op)
                if at and ops[at - 1] > found:
                    found = ops[at - 1]
        return found

    def after(self, op: int, address: int, size: int) -> int | None:
        """Return the first one at or behind an access that may have changed some bytes."""
        at = bisect_left(self.everywhere, op)
        found = self.everywhere[at] if at < len(self.everywhere) else None
        for (low, high), ops in self._regions.items():
            if low < address + size and address <= high:
                at = bisect_left(ops, op)
                if at < len(ops) and (found is None or ops[at] < found):
                    found = ops[at]
        return found
