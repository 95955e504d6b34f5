"""Long traces: their index, histories of which only what is looked at is decoded, and pieces that are decoded apart."""
