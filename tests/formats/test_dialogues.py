"""Dialogue and meeting corpora as published: SuperDialseg, TIAGE, QMSum."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reffree.data.segmentation import Segmentation
from reffree.formats import load
from reffree.util.errors import OptionError
from tests.formats.conftest import write
from tests.helpers import refusal


def gold(*args, **kwargs) -> list[tuple[int, ...]]:
    return [document.gold.masses for document in load(*args, **kwargs).documents]


# dialseg


def dialogue(*labels, topics=None, **fields) -> dict:
    turns = []
    for i in range(len(labels or topics)):
        turn = {"da": "query", "role": ("user", "agent")[i % 2], "utterance": f"u{i}"}
        turn |= {"segmentation_label": labels[i]} if labels else {}
        turns.append(turn | ({"topic_id": topics[i]} if topics else {}))
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
    assert gold(name, format="dialseg:convention=start") == [(3, 2)]
    with pytest.raises(OptionError, match="expected convention=end or convention=start"):
        load(name, format="dialseg:convention=gap")


def test_dialseg_topics_count_without_labels_and_may_return():
    name = write(dialseg(dialogue(topics=[3, 3, 4, 3, 3])))
    assert gold(name) == [(2, 1, 2)]


def test_dialseg_labels_win_over_topics_and_it_is_said():
    agreeing = dialogue(0, 1, 0, topics=[7, 7, 2], dial_id="d2")
    one = load(write(dialseg(dialogue(0, 1, 0, topics=[1, 2, 2]))))
    assert one.notes[0].startswith("x.json: found 1 of 1 dialogue whose topic ids and ")
    name = write(dialseg(dialogue(0, 1, 0, topics=[1, 2, 2]), agreeing))
    corpus = load(name)
    assert gold(name) == [(2, 1), (2, 1)]
    assert corpus.notes == (
        "x.json: found 1 of 2 dialogues whose topic ids and labels disagree; expected boundaries "
        "in the same places; the segmentation_label was used",
    )


def test_dialseg_ids_speakers_and_gold_may_be_missing():
    turns = [{"utterance": "hi"}, {"utterance": ""}, {"utterance": "bye"}]
    named = [{"utterance": "x", "role": "user"}, {"utterance": "y"}]
    sets = {"a": [{"turns": turns}, {"dial_id": 5, "turns": turns}], "b": [{"turns": named}]}
    first, second, third = load(write({"dial_data": sets})).documents
    assert (first.id, second.id, third.id) == ("a/1", "5", "b/1")
    assert (first.gold, first.speakers, first.n_dropped) == (None, None, 1)
    assert third.speakers == ("user", "")


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


def test_tiage_takes_numbers_and_no_convention():
    name = write({"1": tiage(-1, 1, 0)})
    assert gold(name) == [(1, 2)]
    with pytest.raises(OptionError, match="'convention=end' of tiage; expected no options"):
        load(name, format="tiage:convention=end")


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


# DialSeg711 of TADAM, and as JSON of utterances and segments


TADAM = "call_id_0\n0 check the weather\n0 What city?\n1 a hotel please\n\ncall_id_1\n0 hi\n"


def test_tadam_segments_are_numbered():
    corpus = load(write(TADAM, "en.txt"))
    assert [document.id for document in corpus] == ["call_id_0", "call_id_1"]
    assert corpus.documents[0].units == ("check the weather", "What city?", "a hotel please")
    assert gold("en.txt") == [(2, 1), (1,)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0 hi\n", "en.txt, line 1: found the line '0 hi'; expected call_id_N on the first line; "),
        ("call_id_0\nhi\n", "en.txt, line 2: found the line 'hi'; expected call_id_N, or the num"),
        ("call_id_0\ncall_id_1\n0 a\n", "en.txt, line 1, document 'call_id_0': found no units; "),
        (
            "call_id_0\n0 a\ncall_id_0\n0 b\n",
            "en.txt, line 3, document 'call_id_0': found the id a second time, first at en.txt, "
            "line 1; ",
        ),
    ],
)
def test_tadam_that_is_refused(text, sentence):
    assert refusal(load, write(text, "en.txt"), format="tadam").startswith(sentence)


def test_utterances_and_the_lengths_of_segments():
    rows = [
        {"dial_id": 0, "utterances": ["a", "b", "c"], "segments": [2, 1], "set": "test"},
        {"utterances": ["d"], "segments": [1]},
    ]
    corpus = load(write(rows, "dialseg_711.json"))
    assert [document.id for document in corpus] == ["0", "dialseg_711/2"]
    assert gold("dialseg_711.json") == [(2, 1), (1,)]
    lines = write("\n".join(map(json.dumps, rows)), "x.jsonl")
    assert gold(lines) == [(2, 1), (1,)]
    bad = write([{"dial_id": 7, "utterances": ["a"], "segments": [2]}])
    assert refusal(load, bad).startswith(
        "x.json, system 'gold', document '7': found a segmentation that covers 2 units; expected 1"
    )
    worse = write([{"dial_id": 7, "utterances": "a", "segments": [2]}])
    assert refusal(load, worse).startswith("x.json, document '7': found a string as 'utterances'; ")


# TIAGE's tables: the first lines of anno_test_dialogs.tsv are such


def test_tiage_tables():
    lines = ["0\thello\t0", "1\ti am well\t0", "2\tmy favorite season\t1", "0\thi\t0", "1\tho\t0"]
    corpus = load(write("\n".join(lines), "test.tsv"))
    assert [document.id for document in corpus] == ["test/1", "test/2"]
    assert gold("test.tsv") == [(2, 1), (2,)]


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["0\ta\t0", "2\tb\t0"], "t.tsv, line 2: found the line '2\\tb\\t0'; expected index 0 or"),
        (["0\ta\t0", "1\tb"], "t.tsv, line 2: found the line '1\\tb'; expected index 0 or 1, tab"),
        (["0\ta\t0", "1\tb\t2"], "t.tsv, line 2: found the label 2 at utterance 2; expected 0 or "),
    ],
)
def test_tiage_tables_that_are_refused(lines, sentence):
    assert refusal(load, write("\n".join(lines), "t.tsv")).startswith(sentence)


# MultiWOZ


def multiwoz(*turns) -> dict:
    """2.2: turns are (speaker, service → (intent, slots, requested))."""
    keys = ("active_intent", "slot_values", "requested_slots")
    made = []
    for i, (speaker, frames) in enumerate(turns):
        states = {service: dict(zip(keys, each, strict=True)) for service, each in frames.items()}
        listed = [{"service": service, "state": state} for service, state in states.items()]
        made.append({"frames": listed, "speaker": speaker, "utterance": f"u{i}"})
    return {"dialogue_id": "PMUL1.json", "services": ["restaurant", "taxi"], "turns": made}


def test_multiwoz_2_2_boundaries_are_changes_of_domain():
    food = {"restaurant-food": ["chinese"]}
    taxi = {"taxi-to": ["x"]}
    day = {**food, "restaurant-day": ["monday"]}
    dialogue = multiwoz(
        ("USER", {"restaurant": ("find_restaurant", food, []), "taxi": ("NONE", {}, [])}),
        ("SYSTEM", {}),
        ("USER", {"restaurant": ("book_restaurant", day, [])}),
        ("SYSTEM", {}),
        # the restaurant's state stays as it was, the taxi's is new
        ("USER", {"restaurant": ("book_restaurant", day, []), "taxi": ("book_taxi", taxi, [])}),
        ("SYSTEM", {}),
        ("USER", {"restaurant": ("find_restaurant", day, ["restaurant-phone"])}),
    )
    document = load(write([dialogue], "dialogues_001.json")).documents[0]
    assert document.id == "PMUL1.json"
    assert document.units == tuple(f"u{i}" for i in range(7))
    assert document.speakers[:2] == ("USER", "SYSTEM")
    assert document.gold.masses == (4, 2, 1)


def test_multiwoz_2_1_boundaries_are_changes_of_domain():
    acts = [
        {"general-greet": []},
        {"Hotel-Inform": []},
        {"Booking-Inform": [], "general-reqmore": []},
        {"Taxi-Request": [], "Hotel-Inform": []},
        {"Taxi-Inform": []},
        {"general-bye": []},
    ]
    log = [{"text": f"u{i}", "metadata": {}, "dialog_act": act} for i, act in enumerate(acts)]
    document = load(write({"SNG1.json": {"goal": {}, "log": log}}, "data.json")).documents[0]
    assert document.id == "SNG1.json"
    assert document.speakers[:2] == ("USER", "SYSTEM")
    assert document.gold.masses == (4, 2)
    older = load(write({"SNG1.json": {"log": [{"text": "a"}]}}, "data.json"))
    assert older.documents[0].gold is None
    assert older.notes[0].startswith("data.json: found dialogues without 'dialog_act'; ")


# DailyDialog


def dailydialog(topics: str | None = "1\n1\n8\n") -> str:
    Path("dd").mkdir(exist_ok=True)
    text = "Hi . __eou__ Hello . __eou__\nHow ? __eou__ So . __eou__\nA job . __eou__\n"
    write(text, "dd/dialogues_text.txt")
    if topics is not None:
        write(topics, "dd/dialogues_topic.txt")
    return "dd"


def test_dailydialog_topics_change_where_dialogues_are_joined():
    corpus = load(dailydialog())
    assert corpus.documents[0].units == ("Hi .", "Hello .")
    assert gold("dd") == [(2,), (2,), (1,)]
    joined = load("dd/dialogues_text.txt", format="dailydialog:join=3")
    assert joined.documents[0].id == "dialogues_text/1+2"
    assert joined.documents[0].gold.masses == (4, 1)  # the first two have one topic
    assert gold("dd", format="dailydialog:join=2") == [(4,), (1,)]


def test_dailydialog_without_topics_has_a_segment_a_dialogue():
    corpus = load(dailydialog(None), format="dailydialog:join=3")
    assert corpus.documents[0].gold.masses == (2, 2, 1)
    assert corpus.notes[0].startswith("dd: found no dialogues_topic.txt; expected it beside ")


@pytest.mark.parametrize(
    ("topics", "sentence"),
    [
        ("1\n2\n", "dd/dialogues_topic.txt: found 2 topics; expected 3, one for every dialogue"),
        ("1\nx\n2\n", "dd/dialogues_topic.txt, line 2: found the topic 'x'; expected a number; "),
    ],
)
def test_dailydialog_that_is_refused(topics, sentence):
    assert refusal(load, dailydialog(topics)).startswith(sentence)
    with pytest.raises(OptionError, match="join = 0 in 'dailydialog:join=0'; expected a whole num"):
        load("dd", format="dailydialog:join=0")


# Taskmaster


def conversation(id: str, *names: str) -> dict:
    utterances = []
    for i, name in enumerate(names):
        segment = {"text": "x", "annotations": [{"name": name}] if name else []}
        speaker = ("USER", "ASSISTANT")[i % 2]
        utterances.append({"speaker": speaker, "text": f"{id}{i}", "segments": [segment]})
    return {"conversation_id": id, "instruction_id": "pizza-1", "utterances": utterances}


def test_taskmaster_labels_are_tasks_or_subtasks():
    a = conversation("a", "", "pizza_ordering.name.store", "pizza_ordering.size.pizza", "")
    b = conversation("b", "auto_repair.date.appt")
    name = write([a, b], "self-dialogs.json")
    assert gold(name) == [(4,), (1,)]
    assert gold(name, format="taskmaster:level=subtask") == [(2, 2), (1,)]
    joined = load(name, format="taskmaster:join=2").documents[0]
    assert (joined.id, joined.gold.masses) == ("a+1", (4, 1))
    assert joined.speakers == ("USER", "ASSISTANT", "USER", "ASSISTANT", "USER")
    without = write([{"conversation_id": "c", "utterances": [{"text": "x"}, {"text": "y"}]}])
    assert load(without).documents[0].gold is None


# Topical-Chat


def test_topical_chat_labels_are_fact_sections():
    sources = [["Personal Knowledge"], ["FS1"], ["AS2"], ["FS2", "FS1"], ["FS2"], ["FS3"]]
    content = [
        {"message": f"m{i}", "agent": f"agent_{i % 2 + 1}", "knowledge_source": source}
        for i, source in enumerate(sources)
    ]
    chat = {"t_1": {"article_url": "x", "config": "A", "content": content}}
    del content[1]["agent"]
    document = load(write(chat, "train.json")).documents[0]
    assert (document.id, document.speakers[:2]) == ("t_1", ("agent_1", ""))
    assert document.gold.masses == (4, 1, 1)


# Coen's appendix D, by its formula: i is a boundary where the labels of i and i + 1 differ


@given(st.lists(st.sampled_from(["", "FS1", "FS2", "FS3"]), min_size=1, max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_boundaries_are_changes_of_label(labels):
    filled = [label for label in labels if label]
    content = [{"message": "m", "knowledge_source": [label] if label else []} for label in labels]
    document = load(write({"t": {"content": content}})).documents[0]
    if not filled:
        assert document.gold is None
        return
    current = filled[0]
    carried = []
    for label in labels:
        current = label or current
        carried.append(current)
    expected = [i for i in range(1, len(labels)) if carried[i - 1] != carried[i]]
    assert list(document.gold.boundaries) == expected


# What is refused, of every format


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"dial_data": [1]}, "x.json: found a list as 'dial_data'; expected an object in"),
        ({"dial_data": {"a": 1}}, "x.json: found a number as the dataset 'a'; expected a list in "),
        ({"dial_data": {}}, "x.json: found no documents; "),
        (dialseg(3), "x.json: found a number as dialogue 1 of 'set'; "),
        (dialseg({"dial_id": "d"}), "x.json, document 'd': found no 'turns' among 'dial_id'; "),
        (dialseg({"turns": [1]}), "x.json, document 'set/1': found a number as turn 1; "),
        (dialseg({"turns": []}), "x.json, document 'set/1': found no units; "),
        (dialseg({"turns": [{"text": "a"}]}), "x.json, document 'set/1': found no 'utterance' "),
        (dialseg({"turns": [{"utterance": 1}]}), "x.json, document 'set/1': found unit 1 of 1 is "),
        (dialseg(dialogue(0, dial_id=[1])), "x.json: found the dial_id [1]; expected text or a nu"),
        (dialseg(dialogue(0, 2, 0)), "x.json, document 'd1': found the label 2 as segmentation_la"),
        (dialseg(dialogue(0, None, 0)), "x.json, document 'd1': found no 'segmentation_label' in "),
        (dialseg(dialogue(0), dialogue(0)), "x.json, document 'd1': found the id a second time, f"),
        ({"1": tiage("-1", "2")}, "x.json, document '1': found the label 2 at utterance 2; expect"),
        ({"1": tiage("0", "-1")}, "x.json, document '1': found the label -1 at utterance 2; expec"),
        ({"1": tiage("-1"), "2": 3}, "x.json, document '2': found a number as a dialogue; "),
        ({"1": tiage("-1"), "2": []}, "x.json, document '2': found no units; "),
        ({"1": [["a", "-1"], ["b"]]}, "x.json, document '1': found turn 2: ['b']; expected an utt"),
        ({"1": [[7, "-1"]]}, "x.json, document '1': found unit 1 of 1 is 7 (int); "),
        ([{"dialogue_id": "a", "turns": [1]}], "x.json, document 'a': found a number as turn 1; "),
        ([{"dialogue_id": "a", "turns": [{}]}], "x.json, document 'a': found an empty object; "),
        ([{"dialogue_id": [], "turns": []}], "x.json: found the dialogue_id []; expected text or"),
        ({"a": {"log": [{"txt": "b"}]}}, "x.json, document 'a': found no 'text' among 'txt', 'sp"),
        ({"a": {"log": 3}}, "x.json, document 'a': found a number as turns; "),
        ({"t": {"content": 1}}, "x.json, document 't': found a number as messages; "),
        ({"t": {"content": [{}]}}, "x.json, document 't': found an empty object; "),
        (
            {"t": {"content": [{"message": "a", "knowledge_source": "FS1"}]}},
            "x.json, document 't': found a string as 'knowledge_source'; ",
        ),
        (
            {"t": {"content": [{"message": "a"}]}, "u": 3},
            "x.json, document 'u': found a number as a conversation; ",
        ),
        ({"meeting_transcripts": 1}, "x.json, document 'x': found a number as turns; "),
        ({"meeting_transcripts": []}, "x.json, document 'x': found no units; "),
        ({"meeting_transcripts": [1]}, "x.json, document 'x': found a number as turn 1; "),
        ({"meeting_transcripts": [{"text": ""}]}, "x.json, document 'x': found no 'content' among"),
        ({**meeting(2), "topic_list": {"a": 1}}, "x.json, document 'x': found an object as topics"),
        ({**meeting(2), "topic_list": [{}]}, "x.json, document 'x': found an empty object; expect"),
        ({**meeting(2), "topic_list": [1]}, "x.json, document 'x': found a number as topic 1; "),
        (
            [{"conversation_id": "a", "utterances": 1}],
            "x.json, document 'a': found a number as utterances; ",
        ),
        (
            [{"conversation_id": "a", "utterances": [{"txt": 1}]}],
            "x.json, document 'a': found no 'text' among 'txt'; ",
        ),
        (
            [{"conversation_id": "a", "utterances": [{"text": "x", "segments": [3]}]}],
            "x.json, document 'a': found a number as segment 1; ",
        ),
    ],
)
def test_content_that_is_refused(content, sentence):
    assert refusal(load, write(content)).startswith(sentence)
