"""What a dprintf at a place would have printed, each time the program was there: `trace log`."""
