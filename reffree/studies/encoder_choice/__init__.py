"""The correlation study under several encoders, with their speed and agreement."""
