"""Several captures that one command reads: one after the other, by processes side by side, or by a Dask cluster."""
