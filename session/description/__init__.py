"""The target description: which trace components there are, where they are, and how they are reached."""
