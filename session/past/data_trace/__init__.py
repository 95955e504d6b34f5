"""The past of a data trace, which contains loads and stores, and no registers."""
