"""Packs as ZIP containers, taken apart and put together by Python's own module."""

import hashlib
import io
import json
import zipfile


def members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as container:
        return {name: container.read(name) for name in container.namelist()}


def zipped(parts: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as container:
        for name, data in parts.items():
            container.writestr(name, data)
    return buffer.getvalue()


def with_text(content: bytes, path: str, text: bytes) -> bytes:
    """The same pack, in which the source *path* has another text."""
    parts = members(content)
    document = json.loads(parts["pack.json"])
    (source,) = (it for it in document["sources"] if it["path"] == path)
    source |= {"size": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    parts |= {source["member"]: text, "pack.json": json.dumps(document).encode()}
    return zipped(parts)
