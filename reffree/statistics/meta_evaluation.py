"""Metrics against metrics over the same systems and documents, on one set of resamples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from reffree.statistics.coefficients import (
    COEFFICIENTS,
    MIN_SYSTEMS,
    AnyFloats,
    Coefficient,
    TieCalibratedAccuracy,
    correlation,
    mean_over,
    normal_p,
    permutation_p,
    sign_flips,
    soft_pairwise_accuracy,
)
from reffree.statistics.losses import SystemLosses, without_noise
from reffree.statistics.resampling import (
    MIN_DOCUMENTS,
    RESAMPLES,
    Counts,
    centred,
    percentile_interval,
    percentiles,
    resampled_documents,
    symmetric,
)
from reffree.statistics.significance import (
    PERMUTATIONS,
    PermutationTest,
    Swap,
    WilliamsTest,
    permutation_test,
    williams,
)
from reffree.util.arrays import Booleans, Floats, Integers
from reffree.util.errors import OptionError, UnknownNameError, mistake

CorpusMeasure = Literal["pearson", "spearman", "kendall", "spa"]
DocumentMeasure = Literal["pearson", "spearman", "kendall", "acc_eq"]

CORPUS_MEASURES: tuple[CorpusMeasure, ...] = get_args(CorpusMeasure)
DOCUMENT_MEASURES: tuple[DocumentMeasure, ...] = get_args(DocumentMeasure)

RIDGE = 1e-9
"""Of unit variance: metrics that are linear in one another leave their covariance invertible."""

RESAMPLED_P_KEPT = 8
"""Metrics whose p-values of all pairs and resamples are held: the largest arrays here."""

TOO_FEW_DOCUMENTS = f"fewer than {MIN_DOCUMENTS} documents"
TOO_MANY_UNDEFINED = "undefined in more than 5 % of the resamples"

Name = TypeVar("Name", bound=str)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A measure of agreement with its 95 % interval over documents, which holds it.

    ``noiseless`` is what a coefficient over corpus scores would be without the noise that few
    documents leave in the scores, with an interval of its own.
    """

    systems: int  # with a score under every metric involved
    documents: int  # that take part
    undefined: int  # documents that do not
    value: float | None = None
    reason: str | None = None  # why there is no value
    ci: tuple[float, float] | None = None
    ci_reason: str | None = None  # why there is no interval
    undefined_resamples: int = 0
    p: float | None = None  # of differences: two-sided, of none
    epsilon: float | None = None  # acc_eq's tie threshold
    noiseless: float | None = None
    noiseless_ci: tuple[float, float] | None = None

    def undefined_because(self, reason: str) -> Estimate:
        """Say why there is neither value nor interval."""
        return replace(self, reason=reason, ci_reason=reason)

    def with_interval(self, ci: tuple[float, float] | None, resampled: Floats) -> Estimate:
        """Add the interval; without one, too many of the resampled values are undefined."""
        reason = None if ci else TOO_MANY_UNDEFINED
        n_undefined = int(np.isnan(resampled).sum())
        return replace(self, ci=ci, ci_reason=reason, undefined_resamples=n_undefined)


class MetaEvaluation:
    """Agreement of metrics over systems.

    All metrics are losses of the same systems on the same documents, in the same order. Documents
    are the resampling unit and all metrics share the resamples. The same metrics and generators
    give the same results, in whatever order they are asked for.

    >>> from reffree.statistics.losses import MeanOverDocuments
    >>> rng = np.random.default_rng(0)
    >>> quality = rng.normal(size=(12, 1))
    >>> losses = {name: quality + rng.normal(size=(12, 80)) for name in ("arp_pair", "pk")}
    >>> metrics = {name: MeanOverDocuments(values) for name, values in losses.items()}
    >>> evaluation = MetaEvaluation(metrics, rng=lambda purpose: np.random.default_rng(1))
    >>> found = evaluation.corpus("arp_pair", "pk", "kendall")
    >>> round(found.value, 2), [round(bound, 1) for bound in found.ci], found.systems
    (0.97, [0.8, 1.0], 12)
    """

    def __init__(
        self,
        metrics: Mapping[str, SystemLosses],
        *,
        rng: Callable[[str], np.random.Generator],
        resamples: int = RESAMPLES,
    ) -> None:
        """Score the corpus and draw the resamples, which are scored when they are asked for.

        ``rng`` makes a new generator, always the same, for the purpose it is given: resamples, sign
        flips, expected scores, permutations.
        """
        shapes = sorted({metric.values.shape for metric in metrics.values()})
        if len(shapes) != 1:
            found = f"metrics of {len(shapes)} different shapes: {', '.join(map(str, shapes))}"
            remedy = "score the same systems on the same documents"
            raise mistake(None, found, "one shape (systems, documents)", remedy)
        self._metrics = dict(metrics)
        self._systems = np.arange(shapes[0][0])  # that count, of those with losses
        self._rng = rng
        self._n_systems, self._n_documents = shapes[0]
        drawn = resampled_documents(self._n_documents, rng("resamples"), resamples)
        self._counts = drawn.astype(np.float64)
        everything = np.ones((1, self._n_documents))
        self._scores = {name: metric.over(everything)[0] for name, metric in metrics.items()}
        self._resampled = cache(lambda name: self._metrics[name].over(self._counts))
        self._p = cache(lambda name: permutation_p(self._metrics[name].contributions, self._flips))
        self._resampled_p = lru_cache(RESAMPLED_P_KEPT)(self._find_resampled_p)
        self._expected: tuple[tuple[str, ...], Floats] = ((), np.empty(0))

    def among(self, systems: Integers) -> MetaEvaluation:
        """Return the same of some of the systems, whose numbers ascend, on the same resamples."""
        part = copy(self)
        part._systems = self._systems[systems]
        part._scores = {name: scores[systems] for name, scores in self._scores.items()}
        part._expected = ((), np.empty(0))
        return part

    def corpus(self, x: str, y: str, measure: CorpusMeasure) -> Estimate:
        """Agreement of two metrics over the systems' scores.

        ``pearson``, ``spearman``, ``kendall`` (tau-b): `coefficients.correlation`, range [-1, 1].
        ``spa``: `soft_pairwise_accuracy`, range [0, 1]. Systems that either metric leaves
        without a score are left out; undefined with fewer than three systems or where a metric
        gives all the same score.

        The interval is that of the measure's expectation over corpora of as many documents, and
        holds the value: value ± the larger distance to the middle 95 % of resampled ones
        (`resampling.symmetric`), since resampling attenuates a correlation; that of ``spa`` is
        moved onto the value (`resampling.centred`). ``noiseless`` is the correlation that the
        systems' expected scores have (`expected_scores`): what more documents would bring the
        value to, with an interval of its own. How often all of these hold is in
        ``benchmarks/interval_coverage.py``.

        ``x`` and ``y`` may also be one metric under two encoders: ``kendall`` is then the stability
        of its ranking.
        """
        return self._agreement((x, y), measure)

    def corpus_difference(
        self, first: str, second: str, y: str, measure: CorpusMeasure
    ) -> Estimate:
        """How much better the first metric agrees with ``y`` than the second does.

        On the systems that have a score under all three. The p is two-sided, of no difference on
        these very systems.
        """
        return self._agreement((first, second, y), measure)

    def documents(self, x: str, y: str, measure: DocumentMeasure) -> Estimate:
        """Agreement of two metrics over the systems of one document, averaged over documents.

        ``pearson``, ``spearman``, ``kendall``: `coefficients.correlation` over the systems defined
        on the document, range [-1, 1]. ``acc_eq``: `coefficients.TieCalibratedAccuracy` with ``y``
        as gold, range [0, 1]. Documents where it is undefined are counted. Intervals are
        percentiles over resampled documents.
        """
        _check(measure, DOCUMENT_MEASURES)
        self._kept((x, y))
        values = np.stack([self._metrics[name].values[self._systems] for name in (x, y)])
        is_cell = np.logical_and.reduce(~np.isnan(values))  # (s, d)
        one, gold = np.where(is_cell, values, np.nan)
        epsilon = None
        if measure == "acc_eq":
            accuracy = TieCalibratedAccuracy(one, gold)
            each, over, epsilon = accuracy.documents, accuracy.over, accuracy.epsilon
        else:
            each = correlation(one.T, gold.T, measure)  # (d,)

            def over(counts: Counts) -> Floats:
                return mean_over(counts, each[:, None])[:, 0]

        n_defined = int((~np.isnan(each)).sum())
        made = Estimate(int(is_cell.any(1).sum()), n_defined, self._n_documents - n_defined)
        if made.systems < MIN_SYSTEMS:
            return made.undefined_because(f"fewer than {MIN_SYSTEMS} systems with a loss")
        if not n_defined:
            return made.undefined_because("undefined in every document")
        value = float(over(np.ones((1, self._n_documents)))[0])
        made = replace(made, value=value)
        if n_defined < MIN_DOCUMENTS:
            return replace(made, ci_reason=TOO_FEW_DOCUMENTS)
        resampled = over(self._counts)
        ci = percentile_interval(value, resampled)
        return replace(made.with_interval(ci, resampled), epsilon=epsilon)

    def permutation_test(
        self,
        first: str,
        second: str,
        y: str,
        coefficient: Coefficient,
        *,
        swap: Swap = "systems",
        permutations: int = PERMUTATIONS,
    ) -> PermutationTest:
        """Test whether two metrics would correlate differently with ``y`` on other systems, too.

        See `significance.permutation_test`. Whether they do on these very systems, had they been
        scored on other documents, is the question of `corpus_difference`.
        """
        self._kept((first, second, y))
        return permutation_test(
            self._metrics[first].contributions[self._systems],
            self._metrics[second].contributions[self._systems],
            self._scores[y],
            _check(coefficient, COEFFICIENTS),
            self._rng("permutations"),
            swap=_check(swap, get_args(Swap)),
            permutations=permutations,
        )

    def williams_test(
        self, first: str, second: str, y: str, coefficient: Coefficient
    ) -> WilliamsTest:
        """Williams' test of the same difference (`significance.williams`), secondary."""
        _check(coefficient, COEFFICIENTS)
        kept = self._kept((first, second, y))
        one, other, gold = (self._scores[name][kept] for name in (first, second, y))
        return williams(
            float(correlation(one, gold, coefficient)),
            float(correlation(other, gold, coefficient)),
            float(correlation(one, other, coefficient)),
            n=len(gold),
        )

    def _agreement(self, names: tuple[str, ...], measure: CorpusMeasure) -> Estimate:
        """Agreement of the first metric, or of the first less that of the second, with the last."""
        _check(measure, CORPUS_MEASURES)
        kept = self._kept(names)
        own = self._systems[kept]
        has = [~np.isnan(self._metrics[name].contributions[own]) for name in names]
        shared = int(np.logical_and.reduce(has).any(0).sum())
        made = Estimate(int(kept.sum()), shared, self._n_documents - shared)
        if made.systems < MIN_SYSTEMS:
            return made.undefined_because(f"fewer than {MIN_SYSTEMS} systems with a score")
        scores = [self._scores[name][kept] for name in names]
        for name, given in zip(names, scores, strict=True):
            if np.ptp(given) == 0:
                return made.undefined_because(f"{name} gives all systems the same score")
        if measure == "spa":
            scores = [self._p(name)[self._pairs(kept)] for name in names]
        value = float(_agreement(scores, measure))
        if np.isnan(value):
            return made.undefined_because("two systems have no document in common")
        if shared < MIN_DOCUMENTS:
            return replace(made, value=value, ci_reason=TOO_FEW_DOCUMENTS)
        return self._resampled_agreement(replace(made, value=value), names, kept, measure)

    def _resampled_agreement(
        self, made: Estimate, names: tuple[str, ...], kept: Booleans, measure: CorpusMeasure
    ) -> Estimate:
        """Add the interval; for differences a p, for coefficients what they are without noise."""
        value, is_difference = float(made.value or 0.0), len(names) == 3
        resampled = np.stack([self._resampled(name)[:, self._systems[kept]] for name in names])
        # A resample without a score of every system would compare other systems.
        resampled[:, np.isnan(resampled).any((0, 2))] = np.nan
        if measure == "spa":
            p = [self._resampled_p(name)[self._pairs(kept)] for name in names]
            over = np.where(np.isnan(resampled).any((0, 2)), np.nan, _agreement(p, "spa"))
            found = centred(value, over, (-1.0, 1.0) if is_difference else (0.0, 1.0))
        else:
            over = _agreement(list(resampled), measure)
            found = symmetric(value, over, (-2.0, 2.0) if is_difference else (-1.0, 1.0))
        if found is None:
            return made.with_interval(None, over)
        made = made.with_interval((found.low, found.high), over)
        if is_difference:
            return replace(made, p=found.p)
        if measure == "spa":
            return made
        if self._expected[0] != names:  # measures of the same metrics follow one another
            point = np.stack([self._scores[name][kept] for name in names])
            rng, sampled = self._rng("expected scores"), resampled[:, ~np.isnan(over)]
            self._expected = names, expected_scores(point, sampled, made.documents, rng)
        # A draw in which a metric expects no differences between systems might have any
        # correlation: such draws count as the lowest and the highest in turn.
        drawn = _agreement(list(self._expected[1]), measure)
        is_free = np.isnan(drawn)
        drawn[is_free] = np.where(np.arange(is_free.sum()) % 2, 1.0, -1.0)
        noiseless = float(np.median(drawn))
        low, high = percentiles(noiseless, drawn)
        if measure != "pearson":  # ranks do not forgive that clusters of systems are not normal
            low, high = min(low, found.low), max(high, found.high)
        return replace(made, noiseless=noiseless, noiseless_ci=(low, high))

    def _kept(self, names: tuple[str, ...]) -> Booleans:
        """Systems (s,) with a score under all these metrics."""
        for name in names:
            if name not in self._metrics:
                raise UnknownNameError("metric", name, self._metrics)
        kept: Booleans = ~np.isnan(np.stack([self._scores[name] for name in names])).any(0)
        return kept

    def _pairs(self, kept: Booleans) -> Booleans:
        """Which pairs of all systems, in the order of `itertools.combinations`, are kept ones."""
        is_kept = np.isin(np.arange(self._n_systems), self._systems[kept])
        first, second = np.triu_indices(self._n_systems, 1)
        pairs: Booleans = is_kept[first] & is_kept[second]
        return pairs

    def _find_resampled_p(self, name: str) -> NDArray[np.float32]:
        """Find p-values (pairs, r) of all systems' resampled scores, 0 where they have none."""
        return normal_p(self._metrics[name].contributions, np.nan_to_num(self._resampled(name)))

    @cached_property
    def _flips(self) -> NDArray[np.int8]:
        return sign_flips(self._n_documents, self._rng("sign flips"))


def _agreement(sides: Sequence[AnyFloats], measure: CorpusMeasure) -> Floats:
    """Agreement of the first with the last, less that of the second if there are three."""
    *others, gold = sides
    measured = [
        soft_pairwise_accuracy(side, gold)
        if measure == "spa"
        else correlation(side.astype(np.float64), gold.astype(np.float64), measure)
        for side in others
    ]
    return measured[0] if len(measured) == 1 else measured[0] - measured[1]


def expected_scores(
    point: Floats, resampled: Floats, n_documents: int, rng: np.random.Generator
) -> Floats:
    r"""Draw systems' expected scores under ``k`` metrics, (k, resamples, systems).

    A system's score is its expectation over documents plus noise. Resampling documents adds noise
    once more, so correlations of resampled scores are attenuated twice and their percentiles miss
    the correlation of the expected scores, the more so the more systems there are. Here the noise
    of each resample is taken off instead. With :math:`m_i` the scores of system i less their mean
    over systems, :math:`e_i` what a resample adds to them, N the covariance of the noise (pooled
    over systems) and M that of the scores,

    .. math:: \mu_i = (I - N M^{-1})\,m_i + A e_i,\qquad A N A^\top = N - N M^{-1} N

    which is a draw from the posterior of i's expected scores where these are normal over systems
    with covariance :math:`T = M - N` (Fay and Herriot 1979, without covariates). M is drawn anew
    for each resample from its posterior given the S systems, inverse Wishart with S - 1 degrees of
    freedom; directions in which the noise exceeds M get no expected difference. Where noise is
    small, draws are the resampled scores. What all systems have in common, such as hard documents,
    cancels.

    ``point`` are scores (k, systems) over the corpus, none constant, ``resampled`` (k, resamples,
    systems). The bootstrap's variance is short by (D - 1) / D.
    """
    k, n_systems = point.shape
    apart = point - point.mean(1, keepdims=True)
    largest = np.abs(apart).max(1)  # squares of tiny scores would vanish
    size = largest * (apart / largest[:, None]).std(1)
    scores = apart / size[:, None]  # (k, s)
    noise = (resampled - point[:, None]) / size[:, None, None]  # (k, r, s)
    noise -= noise.mean(2, keepdims=True)
    noise -= noise.mean(1, keepdims=True)
    noise *= np.sqrt(n_documents / (n_documents - 1))
    freedom = n_systems - 1
    ridge = RIDGE * np.eye(k)
    n = np.einsum("krs,lrs->kl", noise, noise) / (noise.shape[1] * freedom) + ridge
    drawn = rng.standard_normal((noise.shape[1], freedom, k))
    wishart = np.swapaxes(drawn, 1, 2) @ drawn / freedom  # (r, k, k)
    root = np.linalg.cholesky(scores @ scores.T / freedom + ridge)
    # M = root wishart⁻¹ rootᵀ = u uᵀ, with u = root l⁻ᵀ where wishart = l lᵀ
    u = root @ np.linalg.inv(np.swapaxes(np.linalg.cholesky(wishart), 1, 2))  # (r, k, k)
    u_inverse = np.linalg.inv(u)
    share, v = np.linalg.eigh(u_inverse @ n @ np.swapaxes(u_inverse, 1, 2))  # noise in units of M
    share = share.clip(0, 1)[:, None, :]
    uv, vu = u @ v, np.swapaxes(v, 1, 2) @ u_inverse
    kept = (uv * (1 - share)) @ vu  # I - N M⁻¹
    covariance = (uv * (share * (1 - share))) @ np.swapaxes(uv, 1, 2)  # N - N M⁻¹ N
    map_noise = _root(covariance) @ np.linalg.inv(_root(n))
    draws = np.einsum("rkl,ls->krs", kept, scores) + np.einsum("rkl,lrs->krs", map_noise, noise)
    draws = draws * size[:, None, None] + point.mean(1)[:, None, None]
    return np.stack([without_noise(x, y) for x, y in zip(draws, point, strict=True)])


def _root(covariance: Floats) -> Floats:
    """Symmetric square roots (…, k, k)."""
    values, vectors = np.linalg.eigh(covariance)
    scaled = vectors * np.sqrt(values.clip(min=0))[..., None, :]
    root: Floats = scaled @ np.swapaxes(vectors, -1, -2)
    return root


def _check(name: Name, names: tuple[Name, ...]) -> Name:
    """Refuse a name that is none of these."""
    if name not in names:
        raise OptionError(f"{name!r}", expected=", ".join(names), remedy="choose one of these")
    return name
