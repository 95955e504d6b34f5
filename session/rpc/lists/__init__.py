"""The lists of the session protocol, which are answered in pages."""
