"""Damage inside containers whose checksums and syntax stay right: members of ZIP files, values of JSON texts."""

import io
import json
import random
import zipfile
from copy import deepcopy
from typing import Any

from tests.fuzz.damage import mutations, texts

_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 3, 64, 65, 1 << 31, 1 << 32, 1 << 63, 1 << 64, -(1 << 63), 10**40, 0.5, 1e308, "", "x",
    "0x0", "0xffffffffffffffff", "0x1ffffffffffffffff", "\u0000", "\ud800", "a/../b", [], {}, [[]], [0], {"": 0},
)  # fmt: skip


def mutated_zip(rng: random.Random, content: bytes, chosen: str = "") -> bytes:
    """A ZIP file with a damaged member, or without it, or with another name; now and then damaged as bytes.

    *chosen*: the name of that member; "": any, most often the first.
    """
    if rng.random() < 0.15:
        return mutations.mutated(rng, content)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as container:
            members = [(name, container.read(name)) for name in container.namelist()]
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError, RuntimeError, OSError):
        return mutations.mutated(rng, content)
    if not members:
        return content
    at = 0 if rng.random() < 0.7 else rng.randrange(len(members))
    at = next((n for n, (name, _) in enumerate(members) if name == chosen), at)
    name, data = members[at]
    pick = rng.random()
    if pick < 0.04:
        del members[at]
    elif pick < 0.08:
        members[at] = (texts.word(rng) or "x", data)
    else:
        members[at] = (name, mutated_json(rng, data) if name.endswith(".json") else mutations.mutated(rng, data))
    return _zipped(rng, members)


def _zipped(rng: random.Random, members: list[tuple[str, bytes]]) -> bytes:
    buffer, compression = io.BytesIO(), rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(buffer, "w", compression) as container:
        for name, data in members:
            container.writestr(zipfile.ZipInfo(name), data)
    return buffer.getvalue()


def mutated_json(rng: random.Random, text: bytes) -> bytes:
    """A JSON text with one to three other values; now and then damaged as a text."""
    if rng.random() < 0.1:
        return texts.mutated(rng, text, text)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return texts.mutated(rng, text, text)
    for _ in range(rng.choice((1, 1, 2, 3))):
        document = _changed(rng, document)
    return json.dumps(document).encode()


def _changed(rng: random.Random, document: Any) -> Any:
    """With one value somewhere in it that is another, missing, or there twice."""
    places = list(_places(document))
    if not places:
        return _value(rng)
    parent, key = rng.choice(places)
    pick = rng.random()
    if pick < 0.15:
        del parent[key]
    elif pick < 0.25 and isinstance(parent, list):
        parent.insert(key, parent[key])
    elif pick < 0.35:
        other, its = rng.choice(places)
        if its in other if isinstance(other, dict) else its < len(other):
            parent[key] = json.loads(json.dumps(other[its]))
    else:
        parent[key] = _other(rng, parent[key])
    return document


def _value(rng: random.Random) -> Any:
    """One of its own each time: what is in a document may be changed."""
    return deepcopy(rng.choice(_VALUES))


def _other(rng: random.Random, value: Any) -> Any:
    """Another value, often one of the same type."""
    pick = rng.random()
    if pick < 0.4:
        return _value(rng)
    if isinstance(value, str):
        return texts.mutated(rng, value.encode(errors="surrogatepass"), b"0x10").decode(errors="replace")
    if isinstance(value, int):
        return value ^ 1 << rng.randrange(70) if pick < 0.8 else value + rng.choice((-1, 1))
    return _value(rng)


def _places(document: Any) -> Any:
    """(container, key) of each value in a JSON document."""
    waiting = [document]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list):
            for key in one if isinstance(one, dict) else range(len(one)):
                yield one, key
                waiting.append(one[key])
