"""What everything else works on: segmentations, documents, corpora."""
