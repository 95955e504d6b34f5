"""Captures that one command reads: one by one, by processes side by side, by a Dask cluster; a long one in pieces."""
