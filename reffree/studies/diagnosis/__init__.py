"""What in a corpus makes reference-free metrics mislead, each cause in a module of its own.

`checks` turns what `near_duplicates`, `returns` and `anisotropy` measure into verdicts, `noticing`
asks which metrics notice damage, and `advice` says it in sentences.
"""
