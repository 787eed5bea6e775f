"""Dialogue and meeting corpora as published: SuperDialseg, TIAGE, QMSum."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reffree.corpus import Corpus, Document
from reffree.errors import InputError
from reffree.formats import load, save
from reffree.segmentation import Segmentation
from tests.helpers import refusal


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(content: object, name: str = "x.json") -> str:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(content if isinstance(content, str) else json.dumps(content))
    return name


def gold(*args, **kwargs) -> list[tuple[int, ...]]:
    return [document.gold.masses for document in load(*args, **kwargs).documents]


# dialseg


def dialogue(*labels, topics=None, **fields) -> dict:
    turns: list[dict] = [
        {
            "da": "query",
            "role": "user" if i % 2 == 0 else "agent",
            "turn_id": i,
            "utterance": f"u{i}",
        }
        for i in range(len(labels or topics))
    ]
    for i, turn in enumerate(turns):
        if labels:
            turn["segmentation_label"] = labels[i]
        if topics:
            turn["topic_id"] = topics[i]
    return {"dial_id": "d1", "turns": turns, **fields}


def dialseg(*dialogues, dataset: str = "set") -> dict:
    return {"dial_data": {dataset: list(dialogues)}}


def test_dialseg_label_1_ends_a_topic_and_the_last_label_does_not_matter():
    for last in (0, 1):
        name = write(dialseg(dialogue(0, 1, 0, 0, last)))
        document = load(name).documents[0]
        assert document.id == "d1"
        assert document.units == ("u0", "u1", "u2", "u3", "u4")
        assert document.speakers == ("user", "agent", "user", "agent", "user")
        assert document.gold == Segmentation((2, 3))


def test_dialseg_conventions():
    name = write(dialseg(dialogue("1", "0", "0", "1", "0")))
    assert gold(name) == [(1, 3, 1)]
    assert gold(name, convention="start") == [(3, 2)]
    assert refusal(load, name, convention="gap").startswith(
        "x.json: found the convention 'gap'; expected 'end' or 'start', since these files label "
    )


def test_dialseg_topics_count_without_labels_and_may_return():
    name = write(dialseg(dialogue(topics=[3, 3, 4, 3, 3])))
    assert gold(name) == [(2, 1, 2)]


def test_dialseg_labels_win_over_topics_and_it_is_said():
    agreeing = dialogue(0, 1, 0, topics=[7, 7, 2], dial_id="d2")
    name = write(dialseg(dialogue(0, 1, 0, topics=[1, 2, 2]), agreeing))
    corpus = load(name)
    assert gold(name) == [(2, 1), (2, 1)]
    assert corpus.notes == (
        "x.json: found 1 of 2 dialogues whose topic ids and labels disagree; expected boundaries "
        "in the same places; the segmentation_label was used",
    )


def test_dialseg_of_one_dialogue_is_spoken_of_as_one():
    name = write(dialseg(dialogue(0, 1, 0, topics=[1, 2, 2])))
    assert load(name).notes[0].startswith("x.json: found 1 of 1 dialogue whose topic ids and ")


def test_dialseg_ids_speakers_and_gold_may_be_missing():
    turns = [{"utterance": "hi"}, {"utterance": ""}, {"utterance": "bye"}]
    first, second, third = load(
        write(
            {
                "dial_data": {
                    "a": [{"turns": turns}, {"dial_id": 5, "turns": turns}],
                    "b": [{"turns": [{"utterance": "x", "role": "user"}, {"utterance": "y"}]}],
                }
            }
        )
    ).documents
    assert (first.id, second.id, third.id) == ("a/1", "5", "b/1")
    assert (first.gold, first.speakers, first.n_dropped) == (None, None, 1)
    assert third.speakers == ("user", "")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"dial_data": [1]}, "x.json: found a list as dial_data; expected an object in braces; "),
        ({"dial_data": {"a": 1}}, "x.json: found a number as the dataset 'a'; expected a list in "),
        ({"dial_data": {}}, "x.json: found no documents; "),
        (dialseg(3), "x.json: found a number as dialogue 1 of 'set'; "),
        (dialseg({"dial_id": "d"}), "x.json, document 'd': found no 'turns' among 'dial_id'; "),
        (dialseg({"turns": [1]}), "x.json, document 'set/1': found a number as turn 1; "),
        (dialseg({"turns": []}), "x.json, document 'set/1': found no units; "),
        (dialseg({"turns": [{"text": "a"}]}), "x.json, document 'set/1': found no 'utterance' "),
        (dialseg({"turns": [{"utterance": 1}]}), "x.json, document 'set/1': found unit 1 of 1 is "),
        (dialseg(dialogue(0, dial_id=[1])), "x.json: found the dial_id [1]; expected text or a nu"),
        (
            dialseg(dialogue(0, 2, 0)),
            "x.json, document 'd1': found the segmentation_label 2 in turn 2; expected 0 or 1; ",
        ),
        (
            dialseg(dialogue(0, None, 0)),
            "x.json, document 'd1': found no 'segmentation_label' in turn 2 of 3; expected one in ",
        ),
        (
            dialseg(dialogue(0), dialogue(0)),
            "x.json, document 'd1': found the id a second time, first at x.json; ",
        ),
    ],
)
def test_dialseg_that_is_refused(content, sentence):
    assert refusal(load, write(content)).startswith(sentence)


text = st.text(st.characters(codec="utf-8"), min_size=1, max_size=9)
names = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=9)


@st.composite
def corpora(draw):
    documents = []
    for id in draw(st.lists(names, unique=True, min_size=1, max_size=3)):
        units = draw(st.lists(text.filter(str.strip), min_size=1, max_size=6))
        n = len(units)
        ids = sorted(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
        roles = st.lists(text, min_size=n, max_size=n)
        documents.append(
            Document.build(
                id,
                units,
                gold=Segmentation.from_segment_ids(ids),
                speakers=draw(st.none() | roles),
            )
        )
    return Corpus(tuple(documents))


@given(corpora())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_dialseg_round_trip(corpus):
    assert save(corpus, "out.json", format="dialseg") == []
    assert load("out.json") == corpus


# TIAGE


def tiage(*labels) -> list:
    return [[f"utterance {i}", label] for i, label in enumerate(labels)]


# TIAGE dev, dialogue 2: its 14 labels as published
def test_tiage_label_1_starts_a_topic():
    labels = ["-1", *"0000100000100"]
    corpus = load(write({"1": tiage("-1"), "2": tiage(*labels)}))
    assert [document.id for document in corpus.documents] == ["1", "2"]
    assert corpus.documents[1].gold == Segmentation((5, 6, 3))
    assert corpus.documents[1].units[5] == "utterance 5"


def test_tiage_takes_numbers_and_the_convention_it_has():
    name = write({"1": tiage(-1, 1, 0)})
    assert gold(name, convention="start") == [(1, 2)]
    for convention in ("end", "gap"):
        assert refusal(load, name, convention=convention).startswith(
            f"x.json: found the convention '{convention}'; expected 'start', since a TIAGE label 1"
        )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"1": tiage("-1", "2")}, "x.json, document '1': found the label 2 at utterance 2; expect"),
        ({"1": tiage("0", "-1")}, "x.json, document '1': found the label -1 at utterance 2; expec"),
        ({"1": tiage("-1"), "2": 3}, "x.json, document '2': found a number as a dialogue; "),
        ({"1": tiage("-1"), "2": []}, "x.json, document '2': found no units; "),
        ({"1": [["a", "-1"], ["b"]]}, "x.json, document '1': found turn 2: ['b']; expected an utt"),
        ({"1": [[7, "-1"]]}, "x.json, document '1': found unit 1 of 1 is 7 (int); "),
    ],
)
def test_tiage_that_is_refused(content, sentence):
    assert refusal(load, write(content)).startswith(sentence)


# QMSum


def meeting(n: int, *topics) -> dict:
    return {
        "topic_list": [
            {"topic": f"topic {i}", "relevant_text_span": spans} for i, spans in enumerate(topics)
        ],
        "general_query_list": [{"query": "?", "answer": "!"}],
        "specific_query_list": [],
        "meeting_transcripts": [{"speaker": f"S{i % 2}", "content": f"t{i}"} for i in range(n)],
    }


@pytest.mark.parametrize(
    ("topics", "masses"),
    [
        ([[["0", "3"]], [["4", "9"]]], (4, 6)),
        ([[["0", "3"], ["4", "5"]], [["6", "9"]]], (4, 2, 4)),  # adjacent spans of one topic
        ([[["1", "3"]], [["6", "7"]]], (1, 3, 2, 2, 2)),  # uncovered runs
        ([[["0", "5"]], [["4", "9"]]], (4, 6)),  # the later start wins
        ([[["4", "9"]], [["0", "5"]]], (4, 6)),  # whatever the order in the file
        ([[["0", "9"]], [["3", "5"]]], (3, 3, 4)),  # the earlier span goes on after a nested one
        ([[["0", "9"]], [["0", "2"]]], (3, 7)),  # of equal starts the later in the file wins
        ([[["0", "2"]], [["0", "9"]]], (10,)),
        ([[[0, 3]], [[" 4 ", 9]]], (4, 6)),
    ],
)
def test_qmsum_spans(topics, masses):
    assert gold(write(meeting(10, *topics), "m.json")) == [masses]


def test_qmsum_ids_speakers_and_meetings_without_topics():
    document = load(write(meeting(3), "Bed1.json")).documents[0]
    assert (document.id, document.gold) == ("Bed1", None)
    assert document.units == ("t0", "t1", "t2")
    assert document.speakers == ("S0", "S1", "S0")


def test_qmsum_lines_and_folders():
    lines = "\n".join(json.dumps(meeting(4, [[["0", str(i)]]][0])) for i in (1, 2))
    corpus = load(write(f"\n{lines}\n", "val.jsonl"))
    assert [document.id for document in corpus.documents] == ["val/2", "val/3"]
    assert [document.gold.masses for document in corpus.documents] == [(2, 2), (3, 1)]
    Path("all").mkdir()
    write(meeting(2, [["0", "0"]]), "all/b.json")
    write(meeting(2, [["0", "1"]]), "all/part/a.json")
    write("x", "all/notes.md")
    corpus = load("all")
    assert [document.id for document in corpus.documents] == ["b", "part/a"]
    assert corpus.notes == (
        "all: found 1 file of another kind; expected meetings (.json); it was not read, move it "
        "elsewhere to silence this",
    )


@pytest.mark.parametrize(
    "span", [["0", "3"], ["2", "1"], ["-1", "1"], ["0"], ["a", "1"], "01", [0, 1.5], [None, 1]]
)
def test_qmsum_spans_that_are_refused(span):
    sentence = refusal(load, write(meeting(3, [["0", "1"]], [span]), "m.json"))
    assert sentence.startswith("m.json, document 'm': found the span ")
    assert " of topic 2; expected first and last turn, in order, from 0 to 2; " in sentence


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"meeting_transcripts": 1}, "m.json, document 'm': found a number as meeting_transcripts"),
        ({"meeting_transcripts": []}, "m.json, document 'm': found no units; "),
        ({"meeting_transcripts": [1]}, "m.json, document 'm': found a number as turn 0; "),
        ({"meeting_transcripts": [{"text": ""}]}, "m.json, document 'm': found no 'content' among"),
        (
            {**meeting(2), "topic_list": {"a": 1}},
            "m.json, document 'm': found an object as 'topic_",
        ),
        ({**meeting(2), "topic_list": [{}]}, "m.json, document 'm': found an empty object; expect"),
        ({**meeting(2), "topic_list": [1]}, "m.json, document 'm': found a number as topic 1; "),
    ],
)
def test_qmsum_that_is_refused(content, sentence):
    assert refusal(load, write(content, "m.json")).startswith(sentence)


def test_an_empty_object_is_of_no_format():
    with pytest.raises(InputError, match="found a file of no known format"):
        load(write({}))
