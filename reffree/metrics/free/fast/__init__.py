"""The compiled loops that score documents on CPUs, beside the torch path for any device."""
