"""The wording of what every kind of past says."""

SHOWN = 16
"""How many bytes of memory a line shows at most."""


def hex_text(data: bytes) -> str:
    """Format up to 8 bytes as a little-endian number, more byte by byte."""
    return f"0x{data[::-1].hex()}" if len(data) <= 8 else data.hex(" ")


def loaded_notes(data: bytes) -> tuple[str]:
    """Return the note about memory that was read and never written."""
    return (f"Loads have read {hex_text(data)} there.",)
