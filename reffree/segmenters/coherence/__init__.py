"""A coherence model of neighbouring units (CSM): trained on dialogues without gold."""
