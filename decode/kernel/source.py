"""Which source a kernel was made of: setup.py puts this into it, and it is used only if it is that of its source now.

A kernel in a checkout is older than its source when somebody has edited that, or gone to another commit.
"""

from hashlib import sha256
from pathlib import Path


def source_hash(folder: Path) -> str:
    """Return what is different for each different source in *folder*."""
    found = sha256()
    for path in sorted([*folder.glob("**/*.c"), *folder.glob("**/*.h")]):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]
