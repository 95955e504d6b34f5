"""TACIT's encoder and its DMA sink, which are not of the Trace Control Interface: their registers and procedures."""
