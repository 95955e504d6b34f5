"""The places of captures of real cores. These state no licence, so they are not part of this repository."""

import os
from pathlib import Path

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "vectors"
VECTORS = Path(os.environ.get("RVTRACE_VECTORS") or _BESIDE)


def sifive(name: str) -> Path:
    """Return the path of a file of the SiFive captures. Fails with a message where they are absent."""
    return vector(f"ntrace/sifive/{name}")


def vector(name: str) -> Path:
    """Return the path of a vector beside the repository. Fails with a message where they are absent."""
    path = VECTORS / name
    assert path.exists(), f"{path} is missing: these tests need the vectors beside the repository, or RVTRACE_VECTORS"
    return path
