"""What belongs to somebody else."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

OTHER = 1234


def given_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """*path* belongs to somebody else: root can give it to them, unless its container knows nobody else; where it
    cannot be given, it is seen so.
    """
    try:
        os.chown(path, OTHER, OTHER)
    except OSError:
        given = os.lstat(path)
        for name in ("stat", "lstat"):
            monkeypatch.setattr(os, name, partial(_seen, getattr(os, name), given))


def _seen(really: Callable[..., os.stat_result], given: os.stat_result, *words: Any, **more: Any) -> os.stat_result:
    found = really(*words, **more)
    return os.stat_result((*found[:4], OTHER, OTHER, *found[6:])) if os.path.samestat(found, given) else found
