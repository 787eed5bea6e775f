"""Statistics: arrays in, numbers out; nothing here knows where the numbers come from.

`resampling` draws documents and makes intervals of them, `paired` tests differences of systems and
`significance` those of correlations, `coefficients` measure the agreement of metrics, and
`meta_evaluation.MetaEvaluation` is all of these over metrics by name (`losses`).
"""
