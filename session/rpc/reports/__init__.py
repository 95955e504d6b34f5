"""The methods of the session protocol for reports and files: what is made of a whole trace, or of a part."""
