"""Results for people and programs: terminal, JSON, CSV, markdown, LaTeX."""
