"""Subtitles, transcripts and chapters: text with times."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from reffree.data.corpus import Document, clock
from reffree.formats import load, save
from tests.formats.conftest import write
from tests.helpers import invoke, refusal

# WebVTT as its standard has it: a note, a style, names of cues, settings behind the times, voices
VTT = """WEBVTT - a talk

NOTE this is
no text

STYLE
::cue { color: red }

intro
00:00:01.000 --> 00:00:03.000 align:start
<v Ann Lee>Bees <i>fly</i> out.</v>

00:03.000 --> 00:06.500
<v.loud Bob>They bring
nectar home.

00:01:00.000 --> 00:01:05.000
<v Ann Lee>A router fails.
"""
SRT = """1
00:00:01,000 --> 00:00:03,000
Ann: Bees <b>fly</b> out,

2
00:00:03,000 --> 00:00:06,500
and home again.

3
00:01:00,000 --> 00:01:05,000
Bob: A router
fails.

4
01:01:05,000 --> 01:01:09,000
Ann: Yes.
"""


def test_webvtt():
    corpus = load(write(VTT, "talk.vtt"))
    document = corpus.documents[0]
    assert document.id == "talk"
    assert document.units == ("Bees fly out.", "They bring nectar home.", "A router fails.")
    assert document.speakers == ("Ann Lee", "Bob", "Ann Lee")
    assert document.times == ((1.0, 3.0), (3.0, 6.5), (60.0, 65.0))
    assert corpus.notes == ()


def test_subrip_with_names_before_a_colon():
    corpus = load(write(SRT, "talk.srt"))
    document = corpus.documents[0]
    assert document.units == ("Bees fly out,", "and home again.", "A router fails.", "Yes.")
    assert document.speakers == ("Ann", "Ann", "Bob", "Ann")
    assert document.clocks == ("0:01", "0:03", "1:00", "1:01:05")
    assert corpus.notes == (
        "talk.srt: found 3 units of 4 that begin as Ann: does; expected speakers there; they were "
        "taken for speakers, keep them in the text with --format subtitles:speakers=none",
    )
    kept = load("talk.srt", format="subtitles:speakers=none").documents[0]
    assert kept.units[2] == "Bob: A router fails."
    assert kept.speakers is None


def test_a_colon_alone_makes_no_speaker():
    text = SRT.replace("Ann: Yes", "Note: yes").replace("Ann: Bees", "Bees").replace("Bob: ", "")
    corpus = load(write(text, "talk.srt"))
    assert corpus.documents[0].units[-1] == "Note: yes."
    assert corpus.notes == ()
    asked = load("talk.srt", format="subtitles:speakers=prefix").documents[0]
    assert asked.speakers == ("", "", "", "Note")


def test_cues_may_be_put_together_by_sentences():
    document = load(write(SRT, "t.srt"), format="subtitles:units=sentence").documents[0]
    assert document.units == ("Bees fly out, and home again.", "A router fails.", "Yes.")
    assert document.times[0] == (1.0, 6.5)
    assert document.speakers == ("Ann", "Bob", "Ann")


# as YouTube makes them: the line before stays on the screen while words come
ROLLING = """WEBVTT
Kind: captions
Language: en

00:00:00.160 --> 00:00:02.000 align:start position:0%
{SPACE}
bees<00:00:00.480><c> fly</c><00:00:00.800><c> out</c>

00:00:02.000 --> 00:00:02.010 align:start position:0%
bees fly out
{SPACE}

00:00:02.010 --> 00:00:04.000 align:start position:0%
bees fly out
bees<00:00:02.480><c> come</c><00:00:03.000><c> home</c>

00:00:04.000 --> 00:00:04.010 align:start position:0%
bees come home
{SPACE}
""".replace("{SPACE}", " ")


def test_lines_that_scroll_count_once():
    document = load(write(ROLLING, "auto.en.vtt")).documents[0]
    assert document.units == ("bees fly out", "bees come home")
    assert document.times == ((0.16, 2.01), (2.01, 4.01))
    spoken = "".join(f"00:0{i}.000 --> 00:0{i}.900\nYes.\n\n" for i in range(3))
    assert load(write(f"WEBVTT\n\n{spoken}", "x.vtt")).documents[0].units == ("Yes.",) * 3


def test_a_folder_of_subtitles():
    Path("talks").mkdir()
    write(VTT, "talks/b.vtt")
    write(SRT, "talks/a.srt")
    corpus = load("talks")
    assert [document.id for document in corpus] == ["a", "b"]
    assert len(corpus.notes) == 1


@pytest.mark.parametrize("text", ["", "just words\n", "WEBVTT\n\nNOTE\n"])
def test_subtitles_without_cues(text):
    assert refusal(load, write(text, "x.vtt")).startswith("x.vtt: found no cues; expected lines ")


def test_without_pysubs2_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pysubs2", None)
    assert refusal(load, write(VTT, "talk.vtt")) == (
        "talk.vtt: found subtitles, but no pysubs2; expected pysubs2 to read them; run python -m "
        "pip install pysubs2"
    )


# transcripts


# the second is what whisper writes
@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("[00:00:05] Ann: Hi.\n[00:01:00] Bob: Ho,\nthere.\n[01:00:00] Ann: He.\n", (5, 60, 3600)),
        (
            "[00:05.000 --> 00:09.000]  Ann: Hi.\n[01:00.000 --> 01:03.000]  Bob: Ho,\n there.\n"
            "[60:00.000 --> 60:01.000]  Ann: He.\n",
            (5, 60, 3600),
        ),
        ("(0:05)\nAnn: Hi.\n\n(1:00)\nBob: Ho,\nthere.\n\n(1:00:00)\nAnn: He.\n", (5, 60, 3600)),
    ],
)
def test_transcripts(text, times):
    document = load(write(text, "t.txt")).documents[0]
    assert document.units == ("Hi.", "Ho, there.", "He.")
    assert document.speakers == ("Ann", "Bob", "Ann")
    assert tuple(start for start, _ in document.times) == times


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Minutes\n[0:05] a\n", "t.txt, line 1: found the line 'Minutes'; expected a time such as"),
        ("[0:05] a\n[0:04] b\n", "t.txt, line 2: found the time [0:04] after a later one; expect"),
        ("[0:05]\n[0:06]\n", "t.txt, document 't': found no units; "),
    ],
)
def test_transcripts_that_are_refused(text, sentence):
    assert refusal(load, write(text, "t.txt"), format="transcript").startswith(sentence)


# chapters


# from the specification of podcast chapters; a silent one, too
CHAPTERS = {
    "version": "1.2.0",
    "chapters": [
        {"startTime": 0, "title": "Intro"},
        {"startTime": 2, "title": "Silent", "toc": False},
        {"startTime": 58.5, "title": "Routers", "img": "x.jpg"},
    ],
}


def test_podcast_chapters_are_gold_of_a_text_with_times():
    chapters, text = write(CHAPTERS, "c.json"), write(VTT, "talk.vtt")
    document = load(chapters, text=text).documents[0]
    assert document.gold.masses == (2, 1)
    assert document.id == "talk"


def test_chapter_lines_are_gold_of_a_text_with_times():
    text = write("[0:01] a\n[0:30] b\n[0:59] c\n[1:40] d\n", "t.txt")
    for lines in ("0:00 Intro\n1:00 - Routers\n", "00:00:00 Intro\n00:01:00 | Routers\n"):
        # the middle of c, from 0:59 to 1:40, lies in the second chapter
        assert load(write(lines, "c.txt"), text=text).documents[0].gold.masses == (2, 2)
    corpus = load(write("Hello!\n0:00 A\n1:00 B\nBye\n", "c.txt"), format="youtube", text=text)
    assert corpus.documents[0].gold.masses == (2, 2)
    assert corpus.notes[0].startswith("c.txt: found 2 lines without a time; ")


def test_a_unit_belongs_to_the_chapter_of_its_middle():
    text = write("[0:00 - 0:10] a\n[0:10 - 0:20] b\n[0:20 - 0:30] c\n", "t.txt")
    for start, masses in ((14.9, (1, 2)), (15, (1, 2)), (15.1, (2, 1)), (40, (3,)), (1, (3,))):
        chapters = {"chapters": [{"startTime": 0.5}, {"startTime": start}]}
        assert load(write(chapters, "c.json"), text=text).documents[0].gold.masses == masses, start


def test_a_chapter_list_is_told_only_where_nothing_else_fits():
    for lines in ("0:10 A\n1:00 B\n", "0:00 A\n0:00 B\n", "0:00 A\nand then\n", "0:00 A\n"):
        assert "plain text" in refusal(load, write(lines, "c.txt"))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"chapters": []}, "c.json: found no chapters; "),
        ({"chapters": [{"title": "a"}]}, "c.json: found no 'startTime' among 'title'; "),
        ({"chapters": [{"startTime": "0:10"}]}, "c.json: found the startTime 0:10 of chapter 1; "),
        ({"chapters": [{"startTime": -1}]}, "c.json: found the startTime -1 of chapter 1; "),
        ({"chapters": [{"startTime": 9}, {"startTime": 5}]}, "c.json: found chapter 2, which star"),
    ],
)
def test_chapters_that_are_refused(content, sentence):
    assert refusal(load, write(content, "c.json"), text=write(VTT, "t.vtt")).startswith(sentence)


def test_chapters_need_a_text_with_times():
    name = write(CHAPTERS, "c.json")
    assert "found segmentations without text" in refusal(load, name)
    plain = write('{"id": "a", "units": ["x", "y"]}', "t.jsonl")
    assert "found text without times; expected subtitles or a transcript" in refusal(
        load, name, text=plain
    )


# times


def test_times_survive_a_round_trip_and_units_that_drop_out():
    corpus = load(write(VTT, "talk.vtt"))
    save(corpus, "x.jsonl")
    assert load("x.jsonl") == corpus
    times = [[0, 1], [1, 2], [70, 80]]
    document = Document.build("a", ["x", " ", "z"], meta={"times": times})
    assert document.times == ((0.0, 1.0), (70.0, 80.0))
    assert document.clocks == ("0:00", "1:10")


@pytest.mark.parametrize(
    "times",
    [None, 3, "ab", [[0, 1]], [[0, 1], [2]], [[0, 1], [3, 2]], [[0, 1], ["0", "1"]], [1, 2]],
)
def test_what_is_no_times_is_none(times):
    assert Document.build("a", ["x", "y"], meta={"times": times}).times is None


def test_times_are_shown_with_the_text():
    args = (write(CHAPTERS, "c.json"), "--text", write(VTT, "talk.vtt"), "--offline")
    explained = invoke("score", *args, "-m", "arp_pair", "--explain")
    assert explained.exit_code == 0, explained.output
    assert "    3  [1:00] A router fails." in explained.output
    drawn = invoke("boundaries", *args)
    assert "[1:00] A router fails." in drawn.output
    shown = json.loads(invoke("boundaries", *args, "-f", "json").stdout)["texts"][0]
    assert shown["clocks"] == ["0:01", "0:03", "1:00"]
    assert invoke("boundaries", *args, "-o", "b.html").exit_code == 0
    assert "[1:00] A router fails." in Path("b.html").read_text()
    assert clock(59.999) == "0:59"
