"""Waveform viewers that follow the debugger in the past, and lead it: Surfer and others by WCP, GTKWave by Tcl."""
