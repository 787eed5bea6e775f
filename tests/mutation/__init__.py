"""Small faults put into the code one at a time, to see which the tests do not notice."""
