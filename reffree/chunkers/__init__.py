"""Chunkers of other libraries: plain text cut into chunks, and chunks as segments of sentences.

How well a chunker's segments hold together says little about how well text is found again by it:
the HOPE study (arXiv 2505.02171) found that concept unity within a chunk had minimal impact on
retrieval-augmented answers. Scores of chunkers must not be read as a forecast of retrieval quality.
"""
