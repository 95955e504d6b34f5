"""Where the captures of real cores are. They state no licence, so they are no part of this repository."""

import os
from pathlib import Path

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "vectors"
VECTORS = Path(os.environ.get("RVTRACE_VECTORS") or _BESIDE)


def sifive(name: str) -> Path:
    """A file of the SiFive captures. Fails, saying so, where they are absent."""
    return vector(f"ntrace/sifive/{name}")


def vector(name: str) -> Path:
    """Any of the vectors beside the repository. Fails, saying so, where they are absent."""
    path = VECTORS / name
    assert path.exists(), f"{path} is missing: these tests need the vectors beside the repository, or RVTRACE_VECTORS"
    return path
