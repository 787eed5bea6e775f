"""The papers' own experiments: a module a study, named as its command."""
