"""Statistics of meta-evaluation: how well one metric ranks systems as another does, and how surely.

`evaluation.MetaEvaluation` is the door: metrics by name (`losses`), then correlations with their
intervals, differences and tests. `multiplicity` corrects families of tests, `curves` describes a
loss against the strength of a perturbation.
"""
