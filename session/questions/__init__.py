"""Questions about a past: what a value came from, how a run ended, where two runs part.

Each is a package of its own; a list of what happened is in `queries/`.
"""
