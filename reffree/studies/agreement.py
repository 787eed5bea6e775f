"""How far the annotators of each corpus agree on its boundaries, beyond chance."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Annotated, Any

from reffree.data.corpus import Corpus
from reffree.evaluate.result import Result, Table, columns
from reffree.metrics.gold.agreement import agreement as agreement_of
from reffree.studies.study import check_study
from reffree.util.bounds import Bounds
from reffree.util.declare import Option, declared
from reffree.util.errors import InputError, counted
from reffree.util.progress import Progress, no_progress

FIELDS = (
    *columns("text", "corpus", "coefficient"),
    *columns("number", value="value", observed="observed", expected="by chance"),
    *columns("number", mean_similarity="mean similarity"),
    *columns("count", "documents", "annotators", "pairs"),
)


@declared
def agreement(
    corpora: Mapping[str, Corpus],
    *,
    systems: Annotated[
        bool, Option("Take the corpus's systems as annotators, as in segeval files.")
    ] = False,
    n_t: Annotated[
        int, Bounds(1), Option("Boundaries nearer than this many units are near misses.")
    ] = 2,
    progress: Progress = no_progress,
) -> Result:
    """Measure how far annotators agree on the same documents, beyond chance.

    CORPUS has several annotators' segmentations under "golds": annotator, then masses; or is a
    segeval file read with coders=golds. No text is needed.
    """
    check_study(corpora, None)
    rows: list[tuple[Any, ...]] = []
    verdict, notes = [], []
    with progress("Comparing annotators", len(corpora)) as advance:
        for name, corpus in corpora.items():
            given = {document.id: dict(document.golds) for document in corpus}
            if systems:
                made = corpus.hypotheses
                given = {id: {who: made[who][d] for who in made} for d, id in enumerate(given)}
            if all(len(each) < 2 for each in given.values()):
                example = '"golds", such as {"ann": [3, 4], "bob": [2, 5]}'
                raise InputError(
                    f"no document of two or more {'systems' if systems else 'annotators'}",
                    expected=f"several segmentations under {example}",
                    remedy="add them, or take the systems as annotators with --systems",
                    place=corpus[0].place,
                )
            found = agreement_of(given, n_t=n_t)
            shared = (found.mean_similarity, found.n_documents, found.n_annotators, found.n_pairs)
            pi = ("multi-π (Fleiss)", found.pi, found.observed, found.expected_pi)
            kappa = ("multi-κ (Davies and Fleiss)", found.kappa, found.observed)
            rows += [(name, *pi, *shared), (name, *kappa, found.expected_kappa, *shared)]
            coefficients = (
                f"undefined: {found.undefined}"
                if found.pi is None or found.kappa is None
                else f"π {found.pi:.3f}, κ {found.kappa:.3f}"
            )
            verdict.append(
                f"{name}: {coefficients} ({counted(found.n_documents, 'document')}, "
                f"{counted(found.n_annotators, 'annotator')}, {counted(found.n_pairs, 'pair')} of "
                f"segmentations; mean boundary similarity {found.mean_similarity:.3f})."
            )
            notes += [f"{name}: {note}" for note in corpus.notes]
            if found.n_left_out:
                left_out = counted(found.n_left_out, "document")
                notes.append(f"{name}: {left_out} with fewer than two annotators left out.")
            advance(1)
    return Result(
        command="agreement",
        question="How far do annotators agree?",
        verdict=tuple(verdict),
        signature=f"agreement:boundary_similarity(n_t={n_t})|reffree:{version('reffree')}",
        settings={},
        corpora=tuple({"name": name, "documents": len(each)} for name, each in corpora.items()),
        tables=(Table.of("agreement", "Agreement of annotators beyond chance", FIELDS, rows),),
        notes=tuple(notes),
    )
