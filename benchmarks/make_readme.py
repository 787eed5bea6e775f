"""Write ``benchmarks/README.md`` from the results of the last runs, and all tables beside them.

python benchmarks/make_readme.py
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path

HERE = Path(__file__).parent

OPENING = """# Benchmarks

Never collected by pytest, never asserting. Each runs its contestants interleaved in one
process, keeps the best of several rounds, and writes JSON with versions and threads to
`results/`; `python benchmarks/make_readme.py` makes this page of it, and a page of all tables a
benchmark.
"""

SECTIONS = {
    "scoring": """\
Time per hypothesis of one document, all five metrics without a search, against (a) a careful
NumPy implementation, vectorised inside a segment, (b) scikit-learn's `silhouette_samples` and
(c) `torch.cdist` segment by segment, the last two for one metric only. Peak memory is what
NumPy and Python allocate while reffree scores.""",
    "scoring_limits": """\
How scoring grows, how far it is from what memory and matrix products allow, and where the time
goes.""",
    "reference": """Gold-based metrics against segeval 2.0.11 and nltk.""",
    "alignment_simulations": """\
The three simulations of Ocampo Diaz and Ouyang (2022): for every reference, a small and a large
error of the same kind; how often a metric cannot tell them apart. A always can.""",
    "encoding": """\
Units per second through reffree's batches and backends against plain
`SentenceTransformer.encode(batch_size=32)`, on the corpora named on the command line. A batch on
the CPU takes padding only up to 256 tokens; texts are tokenised once, in a thread of their own;
batches are computed side by side, one a thread; equal units are encoded once.""",
    "gpu": """\
A card measured: encoding against plain sentence-transformers, scoring against the compiled loop of
the CPU, training, and each against the prediction below.""",
    "gpu_model": """\
Nothing here was measured on a card: it is what `gpu_costs.py` predicts from the cards' data sheets
and the models' shapes, until `gpu.py` has run on one.""",
    "start": """\
What a command costs in a process of its own, on the demo's corpus with its vectors in the cache:
CPU seconds, before this version and now, and what of it is spent importing. Threads of linear
algebra that wait for each other count, too.""",
    "load": """\
A million units through a static encoder, the cache and `reffree score`, with an interrupt in the
middle. Peak memory is of the process.""",
    "scale": """\
Large inputs with drawn vectors of 32 numbers, three systems where there are not 10,000. What
explanations take grows with the square of a document's units: beyond 5,000 they are refused.
Of 20,000 documents a tenth was measured: what they take grows with their number.""",
    "truth": """\
How far can each score be trusted? Every reference-free metric and three sentinels, which read no
text, against gold-based metrics: over independent systems (gold, random, perturbed and lexical
ones), over cohesion-seeking ones, over all, and over the systems a corpus came with; pools with
`+ posterior` have the segmenter among them that minimises `expected_pk` itself. The corpora
are Wiki-50, Choi, TIAGE, QMSum (val), three stories with 20 readers and 120 outputs of language
models, and five that `public_corpora.py` makes of packages: a handbook, the Linux kernel's
documentation, programming manuals, a novel and spliced talks. `expected_pk:length` knows the mean
length of gold segments.""",
    "chains": """\
Does a cut into a few pieces come before gold in long chains of short texts? Documents one after the
other, some 900 units, four chains each; gold is their own segments, the documents, or their
segments in random order. In 0.4.0, which took all of them to have 16 or 17 segments, it did in all
rows of Choi and TIAGE (gold .48 to .58, the best even cut .42 to .44). In TIAGE's training set,
whose chains are the least clear, it still does where gold has four units a segment, and in chains
of two or three meetings. Chosen on these.""",
    "interval_coverage": """\
How often the intervals of correlations hold, and how often the tests reject what is true, by
simulation.""",
    "segmenters": """1,000 documents of 75 sentences through each lexical segmenter.""",
}


DETAILS = {
    "scoring_limits": """\
The rest of a hypothesis's time is in divisions and roots (one of each a unit, some
fifteen a boundary). `torch.compile` was tried on the torch formulas: equal within 3e-15 and 2.1
times as fast (100 hypotheses of 200 units, 5.8 to 2.8 ms), after compiling for 58 s, and again
for every other shape; the compiled loop, which numba keeps on disk, scores that many in well
under a millisecond.""",
    "encoding": """\
In one thread, 77 % of torch's time is in matrix products at 59 billion multiply-adds a second, what
this processor does in float32: there is little left to gain without other numbers. In meetings
repeats are short: equal units are a third of QMSum's turns and 7 % of its tokens. By tokens,
padding and repeats together allow 1.37 times plain speed on QMSum and on Wiki-50; the rest of the
ratio is what batches side by side save.""",
    "gpu_model": """\
Counted are the
operations of all matrix products (a test holds them to what torch counts) and the bytes that
kernels read and write. Assumed are, among others, 70 % of the peak in products, 80 % of the
bandwidth elsewhere, batches of 65,536 tokens without padding, 8 host cores a card with 500,000
tokens a second each, and one thread that writes the cache in 10 µs a row and 2.5 ns a byte; every
assumption is a constant there, with its reason. Stages work at the same time, copies in both
directions among them: the slowest bounds. Python is what threads of one process take turns at.

Scoring is not described by formulas but counted while it runs on torch's meta device
(`gpu_scoring_costs.py`): operations of the distances of vectors and of directions in
float64, bytes of all arrays as if none stayed in a card's cache, and kernels, which
Python starts in 10 µs each. Reading is that of lists of masses by the host. One card scores,
however many encode. Few hypotheses of one document are bound by starting kernels, and there the
compiled loop of a CPU may be faster (`scoring.py`): cards are for many hypotheses or documents.""",
    "truth": """\
The posterior sees no gold, but `expected_pk` was made while looking at these corpora: the form of
its evidence, how sources are weighed and how levels are (`evidence.py`, `posterior.py`, `cues.py`)
were chosen by the probability of gold and by correlations on them, so the figures are in-sample.
What can be said of other text: the weights of cues, fitted without the corpus they are used on, add
to the probability of gold on six of seven; with cues fitted without TIAGE, its correlation over all
systems of a smaller pool (36 systems, MiniLM) is .26 instead of .42; among weights of sources that
do well the mean over corpora hardly differs. The kernel's documentation and
the talks were looked at last: as first measured, before the last choice of weights, .75 and .81
over all systems of that pool (MiniLM), not better than the version before, which had .76 and
.85.""",
}
"""What only the page of all tables says."""


def main() -> None:
    """Put the sections together, as far as there are results."""
    parts = [OPENING]
    for name, text in SECTIONS.items():
        results = HERE / "results" / f"{name}.json"
        if not results.exists():
            continue
        found = json.loads(results.read_text())
        module = importlib.import_module(name)
        about = f"{text}\n\n{DETAILS[name]}" if name in DETAILS else text
        command = f"```console\n$ python benchmarks/{name}.py\n```"
        shown = module.table(found)
        if hasattr(module, "summary"):
            whole = shown.replace("](results/", "](")
            page = f"# {name}.py\n\n{about}\n\n{whole.rstrip()}\n"
            results.with_suffix(".md").write_text(page)
            shown = f"{module.summary(found)}\n\n[All figures](results/{name}.md)"
        parts.append(f"## {name}.py\n\n{text}\n\n{command}\n\n{shown}\n")
    (HERE / "README.md").write_text("\n".join(parts))


if __name__ == "__main__":
    main()
