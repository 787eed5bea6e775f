"""Meetings of AMI and ICSI: words, segments and topics in files that point to one another."""

from __future__ import annotations

from pathlib import Path

import pytest

from reffree.formats import load
from tests.helpers import refusal

ROOT = '<?xml version="1.0" encoding="ISO-8859-1" standalone="yes"?>\n<nite:root nite:id="{id}" '
ROOT += 'xmlns:nite="http://nite.sourceforge.net/">\n{inside}\n</nite:root>\n'


def write(name: str, inside: str) -> None:
    path = Path("corpus") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(ROOT.format(id=name, inside=inside), encoding="latin-1")


def word(id: str, text: str, start: float, **attributes) -> str:
    more = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f'<w nite:id="{id}" starttime="{start}" endtime="{start + 0.5}"{more}>{text}</w>'


def child(file: str, first: str, last: str | None = None) -> str:
    to = f"..id({last})" if last else ""
    return f'<nite:child href="{file}#id({first}){to}"/>'


def ami(topics: str | None = None) -> str:
    """Two speakers; a word, a comma, a sound and words again, as AMI has them."""
    write(
        "words/M.A.words.xml",
        word("M.A.words0", "Caf\xe9", 1)
        + word("M.A.words1", ",", 1.5, punc="true")
        + '<vocalsound nite:id="M.A.words2" starttime="2" type="laugh"/>'
        + word("M.A.words3", "I&#39;m", 2)
        + word("M.A.words4", "here", 3)
        + word("M.A.words5", "Next", 9)
        + word("M.A.words6", "topic", 9.5),
    )
    write("words/M.B.words.xml", word("M.B.words0", "Right", 5) + word("M.B.words1", ".", 5.2))
    segments = [("0", "3", 1, 3), ("4", "4", 3, 4), ("5", "6", 9, 10)]
    write(
        "segments/M.A.segments.xml",
        "".join(
            f'<segment nite:id="M.A.s{i}" transcriber_start="{start}" transcriber_end="{end}">'
            + child("M.A.words.xml", f"M.A.words{first}", f"M.A.words{last}")
            + "</segment>"
            for i, (first, last, start, end) in enumerate(segments)
        ),
    )
    write(
        "segments/M.B.segments.xml",
        '<segment nite:id="M.B.s0" transcriber_start="5.0" transcriber_end="6">'
        + child("M.B.words.xml", "M.B.words0", "M.B.words1")
        + "</segment>",
    )
    if topics is None:
        opening = '<nite:pointer role="scenario_topic_type" href="default-topics.xml#id(top.4)"/>'
        opening += child("M.A.words.xml", "M.A.words0", "M.A.words4")
        inner = (
            f'<topic nite:id="t1.1">{child("M.B.words.xml", "M.B.words0", "M.B.words1")}</topic>'
        )
        last = child("M.A.words.xml", "M.A.words5", "M.A.words6")
        topics = f'<topic nite:id="t1" other_description="x">{opening}{inner}</topic>'
        topics += f'<topic nite:id="t2">{last}</topic>'
    write("topics/M.topic.xml", topics)
    return "corpus"


def test_ami_turns_and_their_topics():
    corpus = load(ami())
    document = corpus.documents[0]
    assert document.id == "M"
    assert document.units == ("Caf\xe9, I'm here", "Right.", "Next topic")
    assert document.speakers == ("A", "B", "A")
    assert document.gold.masses == (2, 1)
    assert document.times == ((1.0, 4.0), (5.0, 6.0), (9.0, 10.0))
    assert corpus.notes == ()


def test_ami_segments_and_inner_topics():
    assert load(ami(), format="nxt:topics=all").documents[0].gold.masses == (1, 1, 1)
    segments = load("corpus", format="nxt:units=segment").documents[0]
    assert segments.units == ("Caf\xe9, I'm", "here", "Right.", "Next topic")
    assert segments.gold.masses == (3, 1)


def test_what_is_in_no_topic_is_a_topic_of_its_own():
    only_b = f'<topic nite:id="t">{child("M.B.words.xml", "M.B.words0")}</topic>'
    assert load(ami(only_b)).documents[0].gold.masses == (1, 1, 1)
    around = (("M.A.words0", "M.A.words4"), ("M.A.words5", "M.A.words6"))
    only_a = "".join(f"<topic>{child('M.A.words.xml', *ends)}</topic>" for ends in around)
    assert load(ami(only_a)).documents[0].gold.masses == (1, 1, 1)


def test_icsi_topics_point_to_segments_whose_ids_have_commas():
    """ICSI numbers elements through the meeting, 1,000 being written so; ranges go by the file."""
    write("Words/Bed1.A.words.xml", word("Bed1.w.999", "One", 1) + word("Bed1.w.1,000", "two", 2))
    write("Words/Bed1.B.words.xml", word("Bed1.w.1,001", "Three", 4, c="W"))
    write(
        "Segments/Bed1.A.segs.xml",
        '<segment nite:id="Bed1.segment.9" starttime="1" endtime="3" participant="me011">'
        + child("Bed1.A.words.xml", "Bed1.w.999", "Bed1.w.1,000")
        + "</segment>",
    )
    write(
        "Segments/Bed1.B.segs.xml",
        '<segment nite:id="Bed1.segment.1,382" starttime="4" endtime="5" participant="fe004">'
        + child("Bed1.B.words.xml", "Bed1.w.1,001")
        + "</segment>",
    )
    write(
        "Contributions/TopicSegmentation/Bed1.topic.xml",
        f'<topic nite:id="a" description="x">{child("Bed1.A.segs.xml", "Bed1.segment.9")}</topic>'
        f'<topic nite:id="b">{child("Bed1.B.segs.xml", "Bed1.segment.1,382")}</topic>',
    )
    document = load("corpus").documents[0]
    assert document.units == ("One two", "Three")
    assert document.speakers == ("me011", "fe004")
    assert document.gold.masses == (1, 1)


M = "corpus/topics/M.topic.xml, document 'M': found "


@pytest.mark.parametrize(
    ("topics", "sentence"),
    [
        (f"<topic>{child('M.C.words.xml', 'x')}</topic>", M + "the pointer 'M.C.words.xml#id(x)';"),
        ('<topic><nite:child href="nowhere"/></topic>', M + "the pointer 'nowhere'; expected a fi"),
        (
            f"<topic>{child('M.A.words.xml', 'M.A.words99')}</topic>",
            "corpus/topics/M.topic.xml, document 'M': found a pointer to 'M.A.words99', which M.",
        ),
        ("<topic>", "corpus/topics/M.topic.xml: found a file that is not XML (mismatched tag: "),
    ],
)
def test_meetings_that_are_refused(topics, sentence):
    assert refusal(load, ami(topics)).startswith(sentence)


def test_a_meeting_without_its_words():
    write("M.topic.xml", "")
    assert refusal(load, "corpus").startswith(
        "corpus/M.topic.xml, document 'M': found a topic file without segments; expected files such"
    )
    assert refusal(load, "corpus/M.topic.xml", format="nxt").startswith(
        "corpus/M.topic.xml: found a file; expected a folder, since a meeting of the format nxt has"
    )


def test_xml_that_could_grow_is_not_read():
    ami()
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><x>&b;</x>'
    Path("corpus/topics/M.topic.xml").write_text(bomb)
    assert refusal(load, "corpus").startswith(
        "corpus/topics/M.topic.xml: found XML with declarations of its own (<!DOCTYPE, <!ENTITY), "
    )
    Path("corpus/topics/M.topic.xml").write_bytes(bomb.encode("utf-16"))
    assert "or in UTF-16; " in refusal(load, "corpus")


def test_a_segment_without_times():
    ami()
    path = Path("corpus/segments/M.B.segments.xml")
    path.write_text(path.read_text().replace("5.0", "later"))
    assert refusal(load, "corpus").startswith(
        "corpus/segments/M.B.segments.xml, document 'M': found the time 'later' of a segment; "
    )
