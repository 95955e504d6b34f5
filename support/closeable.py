"""Objects that are closed at the end of a `with` block."""

from abc import ABC, abstractmethod
from typing import Self


class Closeable(ABC):
    """In a `with` block it is itself, and at the end of the block it is closed, whatever happened."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """End what it uses. Called at the end of the `with` block."""
