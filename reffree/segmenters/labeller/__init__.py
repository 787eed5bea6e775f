"""Supervised sequence labellers: the vectors of a whole document in, a logit for every gap out."""
