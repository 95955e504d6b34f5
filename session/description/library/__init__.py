"""The library of targets: descriptions of boards that are shipped with rvtrace, with the source of each fact.

Each folder of `targets/` is a target, which `--target` and `set trace target` take by its name: `about.toml` says what
it is, where its facts come from and how far they are proved, `rvtrace.toml` is its description, and `devices.toml`, if
it is there, says how `rvtrace sim` builds its trace components, with exactly the limits of the board's.
"""
