"""What is written is read again, as far as a format holds it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.formats import load, save

texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(str.strip)
names = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=9)
plain_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=5,
)
ALL = "text gold systems speakers golds meta"
metas = st.dictionaries(texts.filter(lambda key: key != "golds"), plain_json, max_size=2)


@st.composite
def corpora(draw, keeps: str = ALL, most: int = 3) -> Corpus:
    """Documents that have no more than a format keeps."""
    systems = draw(st.lists(names.filter(lambda name: name != "gold"), unique=True, max_size=2))
    documents = []
    for id in draw(st.lists(names, unique=True, min_size=1, max_size=most)):
        given = draw(st.lists(texts, min_size=1, max_size=6))
        units = given if "text" in keeps else [f"unit {i}" for i in range(len(given))]
        gaps = st.lists(st.booleans(), min_size=len(units) - 1, max_size=len(units) - 1)
        masses = gaps.map(lambda labels: Segmentation.from_labels(labels, "gap"))
        speakers = st.none() | st.lists(texts, min_size=len(units), max_size=len(units))
        fields = {
            "gold": draw(st.none() | masses if keeps == ALL else masses),
            "systems": {name: draw(masses) for name in systems} if "systems" in keeps else None,
            "golds": draw(st.dictionaries(names, masses, max_size=2))
            if "golds" in keeps.split()
            else None,
            "speakers": draw(speakers) if "speakers" in keeps else None,
            "meta": draw(metas) if "meta" in keeps else None,
        }
        documents.append(Document.build(id, units, **fields))
    return Corpus(tuple(documents))


def text_of(corpus: Corpus) -> str:
    Path("text.txt").write_text("\n\n".join("\n".join(doc.units) for doc in corpus.documents))
    return "text.txt"


relaxed = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(corpora())
@relaxed
def test_jsonl(corpus):
    assert save(corpus, "c.jsonl") == []
    assert load("c.jsonl") == corpus


@given(corpora("text gold speakers"))
@relaxed
def test_dialseg(corpus):
    assert save(corpus, "out.json", format="dialseg") == []
    assert load("out.json") == corpus


@given(corpora("gold systems"))
@relaxed
def test_segeval(corpus):
    lost = save(corpus, "s.json", format="segeval")
    assert lost == ["segeval files hold no text: the units were left out"]
    assert load("s.json", text=text_of(corpus)) == corpus


@given(corpora("gold systems", most=1))
@relaxed
def test_segeval_table(corpus):
    lost = save(corpus, "t.tsv")
    assert lost[0] == "segeval-tsv files hold no text: the units were left out"
    again = load("t.tsv", text=text_of(corpus))
    assert again.hypotheses == corpus.hypotheses
    assert again[0].id == "t"


@given(corpora("gold systems"))
@relaxed
def test_nltk(corpus):
    save(corpus, "s.txt")
    again = load("s.txt", format="nltk", text=text_of(corpus))
    assert again == Corpus(tuple(replace(document, systems={}) for document in corpus))
