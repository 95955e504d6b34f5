"""Which program this is."""

from importlib import metadata


def tool() -> str:
    """Name and version of this program."""
    try:
        return f"rvtrace {metadata.version('rvtrace')}"
    except metadata.PackageNotFoundError:
        return "rvtrace"
