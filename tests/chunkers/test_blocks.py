"""Blocks and units of Markdown, reStructuredText and plain text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reffree.chunkers.blocks import LONGEST, blocks_of
from tests.chunkers.test_sizes import MARKDOWN, parts
from tests.chunkers.texts import AWKWARD, odd_texts, plain, squeezed, unit_spans
from tests.properties import examples

RST = """\
=====
Guide
=====

Bees sleep in winter. They stay warm::

    hive.open()

    hive.close()

The queen eats.

.. code-block:: python
   :linenos:

   def f():
       return 1

+---+---+
| a | b |
+---+---+

===  ===
x    y
===  ===
1    2
===  ===

Food
----

#. honey
#. more
   honey
"""


def kinds(text):
    return [(each.kind, text[each.start : each.end]) for each in blocks_of(text)]


def test_blocks_of_markdown():
    assert [(kind, part[:9]) for kind, part in kinds(MARKDOWN)] == [
        ("headings", "# Servers"),
        ("prose", "The serve"),
        ("lists", "- one ite"),
        ("tables", "| a | b |"),
        ("headings", "## Bees"),
        ("prose", "Bees make"),
        ("code", "```python"),
        ("prose", "The queen"),
    ]


def test_blocks_of_restructuredtext():
    assert kinds(RST) == [
        ("headings", "=====\nGuide\n====="),
        ("prose", "Bees sleep in winter. They stay warm::"),
        ("code", "hive.open()\n\n    hive.close()"),
        ("prose", "The queen eats."),
        ("code", ".. code-block:: python\n   :linenos:\n\n   def f():\n       return 1"),
        ("tables", "+---+---+\n| a | b |\n+---+---+"),
        ("tables", "===  ===\nx    y\n===  ===\n1    2\n===  ==="),
        ("headings", "Food\n----"),
        ("lists", "#. honey\n#. more\n   honey"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("no | table\n\n#hashtag\n", ["prose", "prose"]),
        ("a | b\n--|--\n1 | 2", ["tables"]),
        ("~~~\n```\n~~~\nx\n```\nnever closed", ["code", "prose", "code"]),
        ("````\n```\n````", ["code"]),
        ("# One\n# Two\nx", ["headings", "headings", "prose"]),
        ("One\n===\nTwo\n---\n", ["headings", "prose"]),  # no blank line before the second
        ("---\ntitle: x\n---\n\nText.", ["code", "prose"]),
        ("Text.\n\n---\n\nMore.\n\n* * *\n", ["prose", "prose", "prose"]),
        ("Text. In 1984\n12. May came\n- and went.", ["prose", "lists"]),
        ("- a\n\n  more of a\n\nText.", ["lists", "prose"]),
        ("- a\n  ```\n  x\n  ```\n- b", ["lists", "code", "lists"]),
        ("Run:\n\n    $ make\n\n    $ make install\n\nDone.", ["prose", "code", "prose"]),
        ("A verse.\n\n    It was long ago. So it was.\n", ["prose", "prose"]),
        ("<table>\n<tr><td>1</td></tr>\n</table>\nText.", ["tables", "prose"]),
        ("1. Title\n========\n\n1. item", ["headings", "lists"]),
        ("Tab:\n\n\tx = 1\n", ["prose", "code"]),
    ],
)
def test_what_is_a_block_and_what_is_not(text, expected):
    assert [kind for kind, _ in kinds(text)] == expected


def test_parts_are_blocks_sentences_and_headings_with_what_is_below():
    found = {kind: [MARKDOWN[a:b] for a, b in spans] for kind, spans in parts(MARKDOWN).items()}
    assert found["headings"] == ["# Servers\n\nT", "## Bees\n\nB"]
    assert found["tables"] == ["| a | b |\n|---|:-:|\n| 1 | two |\n| 3 | four |"]
    assert found["lists"] == ["- one item\n- another [link](http://x.y)"]
    assert [fence[:9] + fence[-4:] for fence in found["code"]] == ["```python\n```"]
    assert found["sentences"][:2] == ["The server failed at *noon*.", "Was the disk full?"]
    assert len(found["sentences"]) == 6
    assert parts("# alone")["headings"] == []  # nothing is below it


PIECES = [
    *("# h", "text. More text", "- item", "  more", "```", "| a | b |", "|---|---|", "===", "---"),
    *("", "", "    code()", "word " * 50, "x" * 700, "1. one", ".. code::", "   y::", "+--+", "\t"),
    *("== ==", "<pre>", "</table>", "* * *", "## s", "\r"),
]


@given(st.one_of(odd_texts, st.lists(st.sampled_from(PIECES), max_size=30).map("\n".join)))
@examples(500)
def test_blocks_and_units_hold_all_but_rules_once_and_in_order(text):
    blocks, units = blocks_of(text), plain(text).units("en")
    for found in (blocks, units):
        assert all(a.end <= b.start for a, b in pairwise(found))
        assert all(text[a:b] == text[a:b].strip() != "" for _, a, b in found)
        inside = {i for _, a, b in found for i in range(a, b)}
        outside = "".join(c for i, c in enumerate(text) if i not in inside)
        assert set(squeezed(outside)) <= {*"=-*"}
    assert max((unit.end - unit.start for unit in units), default=0) <= LONGEST


@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD.keys())
def test_awkward_texts_have_all_their_text_in_units(text):
    assert squeezed("".join(text[a:b] for a, b in unit_spans(text))) == squeezed(text)


def test_long_blocks_are_cut_at_their_lines_and_items():
    code = "```\n" + "\n\n".join(f"def f{i}():\n    return {i}" for i in range(80)) + "\n```"
    found = [code[a:b] for a, b in unit_spans(code)]
    assert len(found) > 2
    assert all(each.startswith("def ") for each in found[1:])
    items = "\n".join(f"- {'word ' * 40}{i}\n  and more" for i in range(9))
    assert all(items[a:b].startswith("- word") for a, b in unit_spans(items))
    blob = "x" * 1501  # no place to cut at
    assert [b - a for a, b in unit_spans(blob)] == [600, 600, 301]
