"""Notes about a trace for the user, each of which is said once."""


class TraceNotes(list[str]):
    """Notes in the order in which they came up, and how many of them were returned already."""

    def __init__(self, notes: list[str]) -> None:
        super().__init__(notes)
        self._lines = self._listed = 0

    def once(self, note: str) -> None:
        """Add a note, unless it is there."""
        if note not in self:
            self.append(note)

    def unsaid(self) -> list[str]:
        """Return the notes that were not returned before."""
        notes, self._lines = self[self._lines :], len(self)
        self._listed = self._lines
        return notes

    def unlisted(self) -> list[str]:
        """Return the notes that no list has reported yet, either. `unsaid` returns them again."""
        notes, self._listed = self[self._listed :], len(self)
        return notes
