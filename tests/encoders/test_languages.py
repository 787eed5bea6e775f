"""Text that an encoder was not made for is noted, in results, too; all other text is not."""

from __future__ import annotations

import json

import numpy as np
import pytest

import reffree
from reffree.encoders.aliases import ALIASES, main_script, readers, unread_units
from reffree.encoders.embed import Embeddings
from reffree.encoders.models import find_model
from reffree.encoders.options import ModelSettings
from reffree.evaluate import corpus_counts
from reffree.evaluate.corpus_counts import CorpusCounts, dropped_notes
from reffree.util.words import language_of
from tests.checkpoints import save_checkpoint

ENGLISH, E5 = ALIASES["minilm"].model, ALIASES["multilingual-e5"].model
CHINESE = ["蜜蜂会跳舞。", "它们用舞蹈说话!", "今天的利率上升了。", "银行不再贷款。"]
SENTENCES = {
    "danish": "Det er ikke det samme som i går, for nu har vi alle været med til at se på det.",
    "dutch": "Het is niet de eerste keer dat we in de tuin zijn geweest met al onze vrienden.",
    "english": "It is not the first time that we have been in the garden with all of our friends.",
    "french": "Ce n'est pas la première fois que nous sommes dans le jardin avec tous nos amis.",
    "german": "Es ist nicht das erste Mal, dass wir mit all unseren Freunden in dem Garten waren.",
    "italian": "Non è la prima volta che siamo stati nel giardino con tutti i nostri amici.",
    "portuguese": "Não é a primeira vez que nós estamos no jardim com todos os nossos amigos.",
    "russian": "Это не первый раз, когда мы были в саду со всеми нашими друзьями.",
    "spanish": "No es la primera vez que estamos en el jardín con todos nuestros amigos.",
    "swedish": "Det är inte första gången som vi har varit i den trädgården med alla våra vänner.",
    "turkish": "Bu çok güzel bir şey ama biz de o bahçede hiç kimse ile değil mi diye sorduk.",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_languages_are_told_apart(language):
    found = language_of([SENTENCES[language]] * 5)
    assert found == language or {found, language} == {"danish", "norwegian"}


def test_no_language_where_it_is_not_clear():
    assert language_of([SENTENCES["german"]]) is None, "too few words"
    assert language_of(["Zürich Genf Basel Bern Luzern"] * 50) is None
    mixed = [SENTENCES["german"]] * 15 + [SENTENCES["english"]] * 10
    assert language_of(mixed) is None
    assert language_of([]) is None


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Bees dance.", "Latin"),
        ("naïve — café", "Latin"),
        ("１２３ ＡＢＣ", "Latin"),
        ("蜜蜂", "Han"),
        ("ハチは", "Kana"),
        ("ﾊﾁ", "Kana"),
        ("пчёлы", "Cyrillic"),
        ("꿀벌", "Hangul"),
        ("ผึ้ง", "Thai"),
        ("मधुमक्खी", "Devanagari"),
        ("42 …", ""),
        ("", ""),
    ],
)
def test_scripts(text, script):
    assert main_script(text) == script


def test_units_that_a_model_was_not_made_for():
    german = [SENTENCES["german"]] * 5
    assert unread_units(ENGLISH, [SENTENCES["english"]] * 9 + CHINESE) == {"Han script": 4}
    assert unread_units(ENGLISH, german + CHINESE) == {"Han script": 4, "German": 5}
    assert unread_units(E5, german + CHINESE) == {}
    assert unread_units(E5, ["ᏣᎳᎩ"]) == {"Cherokee script": 1}
    assert unread_units("someone/model", german + CHINESE) == {}
    assert unread_units(ENGLISH, ["42", "?"]) == {}
    many = [SENTENCES["english"]] * 2000
    assert unread_units(ENGLISH, many) == {}


def test_who_reads_it():
    assert readers(["Han script", "German"]) == [
        *("multilingual-minilm", "multilingual-mpnet", "multilingual-e5")
    ]
    assert readers(["Tamil script"]) == ["multilingual-e5"]
    assert readers(["Cherokee script"]) == []


def note_of(unread, n_units=100):
    corpus = reffree.Corpus((reffree.Document.build("d", ["x"] * n_units, gold=[n_units]),))
    spec = find_model("minilm").spec
    embedded = Embeddings([np.ones((n_units, 2))], spec, 1, 0, "cpu", unread)
    return dropped_notes(CorpusCounts.of(corpus), embedded)


def test_the_note():
    assert note_of({}) == note_of({"Han script": 5}) == []
    (note,) = note_of({"Han script": 50, "German": 6, "Thai script": 1})
    assert note == (
        "50 of 100 units in Han script and 6 of 100 units in German: "
        "sentence-transformers/all-MiniLM-L6-v2 was not made for that, and its vectors may say "
        "little; choose one that was: multilingual-minilm or multilingual-mpnet or "
        "multilingual-e5 (reffree models)."
    )


def test_scores_and_studies_note_it(run, write_corpus):
    units = [f"{text}{i}" for i in range(3) for text in CHINESE]
    path = write_corpus([{"id": "d", "units": units, "gold": [6, 6], "systems": {"s": [4, 8]}}])
    told = "12 of 12 units in Han script: sentence-transformers/all-MiniLM-L6-v2 was not made"
    for command in (("score",), ("compare", "-m", "arp_pair"), ("boundaries",)):
        done = run(*command, path, "-f", "json")
        assert done.returncode == 0, done.stderr
        assert told in done.stderr
        assert sum(told in note for note in json.loads(done.stdout)["notes"]) == 1
    gold = run("score", path, "-m", "pk", "-f", "json")
    assert told not in gold.stderr, "no encoder, no note"


def test_blocks_of_documents_are_counted_together(monkeypatch):
    monkeypatch.setattr(corpus_counts, "BLOCK_UNITS", 8)
    documents = [
        reffree.Document.build(f"d{i}", [f"{text}{i}" for text in CHINESE], systems={"s": [2, 2]})
        for i in range(5)
    ]
    corpus = reffree.Corpus(tuple(documents))
    for how in ({"cache": False}, {"embeddings": reffree.embed(corpus, cache=False)}):
        table = reffree.score(corpus, metrics=["arp_pair"], **how)
        assert sum("20 of 20 units in Han script" in note for note in table.notes) == 1


def test_aliases_have_languages_and_prompts(run, monkeypatch, tmp_path):
    listed = {row["alias"]: row for row in json.loads(run("models", "-f", "json").stdout)}
    assert listed["minilm"]["languages"] == ["en"]
    assert {"de", "en", "ja", "zh"} < set(listed["multilingual-minilm"]["languages"])
    assert all(row["languages"] for row in listed.values())
    table = run("models", COLUMNS="300").stdout.splitlines()
    assert "languages" in table[0]
    save_checkpoint("roberta", tmp_path / "model")
    monkeypatch.setattr(
        "reffree.encoders.models.hub_folder", lambda name, **how: tmp_path / "model"
    )
    assert find_model("multilingual-e5").spec.prompt == "query: "
    settings = ModelSettings(prompt="")
    assert find_model("multilingual-e5", settings=settings).spec.prompt == ""
    assert find_model("multilingual-minilm").spec.prompt == ""
