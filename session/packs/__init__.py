"""Packs (.rvtz): a capture with the files that it is read with, in one file that opens on another machine."""
