"""Static funnels of CoreSight in a target description: they merge trace, and have no registers.

    [[component]]
    name = "static0"
    type = "coresight_static_funnel"
    to = ["main"]                # what it feeds

What feeds one feeds what is behind it: so nothing else has to know of them. In the `inputs` of a funnel behind one its
name stands for all that feeds it, which arrive at one port.
"""

from collections.abc import Iterator, Mapping, Sequence

from rvtrace_gdb.session.description.connections import table_of
from rvtrace_gdb.session.description.tables import Tables, TomlTable

KIND = "coresight_static_funnel"
_KEYS = ("name", "type", "to")


def without_static_funnels(read: Tables, components: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    """Return the tables of all other components, connected to what is behind static funnels.

    Raises DescriptionError.
    """
    static = {
        read.string(table, f"[[component]] {number}", "name"): table
        for number, table in enumerate(components, 1)
        if table.get("type") == KIND
    }
    if not static:
        return list(components)
    for name, table in static.items():
        read.check_keys(table, table_of(name), _KEYS)
        if not read.names(table, table_of(name), "to"):
            raise read.error("missing: what it feeds", table_of(name), "to")
        list(_names_behind(read, name, static, ()))  # which checks that it does not feed itself
    return [_connected_table(read, table, static, components) for table in components if table.get("type") != KIND]


def _connected_table(
    read: Tables, table: dict[str, object], static: Mapping[str, TomlTable], components: Sequence[TomlTable]
) -> dict[str, object]:
    name = str(table.get("name"))
    joined = dict(table)
    if "to" in table:
        fed = (it for to in read.names(table, table_of(name), "to") for it in _names_behind(read, to, static, ()))
        joined["to"] = list(dict.fromkeys(fed))
    inputs = table.get("inputs")
    if isinstance(inputs, dict):
        feeders = {it: list(_feeders_of(read, it, static, components)) if it in static else [it] for it in inputs}
        joined["inputs"] = {feeder: number for it, number in inputs.items() for feeder in feeders[it]}
    return joined


def _names_behind(read: Tables, name: str, static: Mapping[str, TomlTable], passed: tuple[str, ...]) -> Iterator[str]:
    """Yield what trace reaches that goes to *name*: that itself, or what is behind static funnels."""
    if name not in static:
        yield name
        return
    if name in passed:
        raise read.error(f"it cannot feed itself: {' -> '.join((*passed, name))}", table_of(name), "to")
    for to in read.names(static[name], table_of(name), "to"):
        yield from _names_behind(read, to, static, (*passed, name))


def _feeders_of(
    read: Tables, name: str, static: Mapping[str, TomlTable], components: Sequence[TomlTable]
) -> Iterator[str]:
    """Yield what feeds a static funnel, directly or through others."""
    for table in components:
        feeder = str(table.get("name"))
        if name in read.names(table, table_of(feeder), "to"):
            yield from _feeders_of(read, feeder, static, components) if feeder in static else (feeder,)
