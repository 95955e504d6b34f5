"""Whether the fast path of an encoder implements the options that it is built with.

The fast path of an encoder names the options that it honours. With any other option that is not at its default, also
one that was added later and that nobody thought of, the encoder takes the slow path, which honours all of them.
"""

from dataclasses import MISSING, fields
from typing import Any


class HonouredOptions:
    """The fields of dataclasses of options that a fast path honours, by their names."""

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)
        self._others: dict[type[Any], dict[str, object]] = {}

    def suffice(self, *options: Any) -> bool:
        """Return whether all other fields of the dataclasses *options* have their default values."""
        return all(
            getattr(part, name) == default for part in options for name, default in self._others_of(part).items()
        )

    def _others_of(self, part: Any) -> dict[str, object]:
        """Return the default values of the fields that are not honoured: few, and the same for each encoder."""
        others = self._others.get(type(part))
        if others is None:
            others = self._others[type(part)] = {
                field.name: field.default if field.default_factory is MISSING else field.default_factory()
                for field in fields(part)
                if field.name not in self._names
            }
        return others
