"""The parts of a correlation study: its cases, its tables and what they say."""
