"""Random inputs against promises: some in the suite, as many as you like from the command line."""
