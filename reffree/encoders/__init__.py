"""Text to vectors: models, batches, the cache, and the caller's own arrays."""
