"""Expected errors along the assumed number of segments."""
