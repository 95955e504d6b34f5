"""What belongs to somebody else."""

import os
from pathlib import Path

import pytest

OTHER = 1234


def given_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """*path* belongs to somebody else: root can give it to them, others are somebody else from now on."""
    if os.geteuid() == 0:
        os.chown(path, OTHER, OTHER)
    else:
        mine = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
