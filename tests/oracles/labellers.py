"""Labellers by definition: a plain LSTM, Sheikh's comparison, the choice of a threshold."""

from __future__ import annotations

import math

import numpy as np

from tests.oracles.reference_based import pk


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, weights, prefix, layers):
    """States of a one-directional LSTM, unit by unit (Hochreiter & Schmidhuber, with forget)."""
    for layer in range(layers):
        w, u = weights[f"{prefix}.weight_ih_l{layer}"], weights[f"{prefix}.weight_hh_l{layer}"]
        bias = weights[f"{prefix}.bias_ih_l{layer}"] + weights[f"{prefix}.bias_hh_l{layer}"]
        hidden = u.shape[1]
        h, c, states = np.zeros(hidden), np.zeros(hidden), []
        for unit in x:
            z = w @ unit + u @ h + bias
            enter, forget, new, show = (z[i * hidden : (i + 1) * hidden] for i in range(4))
            c = sigmoid(forget) * c + sigmoid(enter) * np.tanh(new)
            h = sigmoid(show) * np.tanh(c)
            states.append(h)
        x = states
    return x


def sheikh_logits(x, weights, layers):
    """One logit per gap: what came before it against what comes after, read backwards."""
    before = lstm(x, weights, "before", layers)
    after = lstm(x[::-1], weights, "after", layers)[::-1]
    found = []
    for t in range(len(x) - 1):
        a = weights["project_before.weight"] @ before[t] + weights["project_before.bias"]
        b = weights["project_after.weight"] @ after[t + 1] + weights["project_after.bias"]
        found.append(sum(a[i] * b[i] for i in range(len(a))))
    return found


def masses_above(scores, threshold):
    """Put a boundary in every gap with at least the threshold."""
    masses, length = [], 1
    for score in scores:
        if score >= threshold:
            masses.append(length)
            length = 0
        length += 1
    return (*masses, length)


def f1_of_boundaries(hypothesis, gold):
    found = [set(np.cumsum(masses)[:-1].tolist()) for masses in (hypothesis, gold)]
    if not found[0] and not found[1]:
        return 1.0
    return 2 * len(found[0] & found[1]) / (len(found[0]) + len(found[1]))


def best_value(criterion, scores, golds):
    """Best mean of Pk or F1 over documents, over all thresholds that leave a boundary somewhere."""
    best = math.inf if criterion == "pk" else -math.inf
    for threshold in sorted({score for each in scores for score in each}):
        values = []
        for each, gold in zip(scores, golds, strict=True):
            if len(each):
                masses = masses_above(each, threshold)
                value = pk(masses, gold) if criterion == "pk" else f1_of_boundaries(masses, gold)
                values += [] if value is None else [value]
        if values:
            best = (min if criterion == "pk" else max)(best, sum(values) / len(values))
    return best
