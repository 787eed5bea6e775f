"""Words of all scripts, held to their definition, and what methods that need words make of them."""

from __future__ import annotations

import random
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reffree
from reffree.reference import pk
from reffree.util.words import PLAIN, WORD, _patterns, words_of
from tests.oracles import words as oracle
from tests.properties import examples

SIGNS = (
    "aZß9_-' .,’—éÀ"
    "e\u0301x\u0302\u0345"  # with marks, composed and not
    "蜜蜂会跳舞、。〇々日本カタナーひらがな"
    "ภาษาไทยที่ก็ພາສາລາວភាសាខ្មែរမြန်မာ"
    "हिन्दीকথাالعربيةעִבְרִית한국어Ωж"
    "٣๓"  # digits of scripts with and without spaces
)
TOPICS = {
    "zh": (
        "蜜蜂 花粉 蜂巢 采蜜 蜂王 翅膀 花园 授粉",
        "银行 利率 贷款 存款 股票 债券 投资 货币",
        "足球 球员 进球 教练 比赛 球队 守门 裁判",
    ),
    "ja": (
        "蜜蜂 花粉 はちみつ 巣箱 女王蜂 つばさ 花園 受粉",
        "銀行 金利 ローン 預金 株式 債券 投資 通貨",
        "サッカー 選手 ゴール 監督 試合 チーム 守備 審判",
    ),
    "th": (
        "ผึ้ง น้ำหวาน รังผึ้ง ดอกไม้ ปีก เกสร สวน นางพญา",
        "ธนาคาร ดอกเบี้ย เงินกู้ เงินฝาก หุ้น พันธบัตร ลงทุน สกุลเงิน",
        "ฟุตบอล นักเตะ ประตู โค้ช แข่งขัน ทีม กรรมการ สนาม",
    ),
    "hi": (
        "मधुमक्खी पराग छत्ता शहद रानी पंख बगीचा फूल",
        "बैंक ब्याज ऋण जमा शेयर निवेश मुद्रा बाज़ार",
        "फुटबॉल खिलाड़ी गोल प्रशिक्षक मैच टीम गोलकीपर रेफरी",
    ),
}
FILLERS = {
    "zh": "我们 今天 觉得 也是",
    "ja": "それは とても でした",
    "th": "และ ที่ เป็น",
    "hi": "और यह है",
}


@examples(300)
@given(st.text(st.sampled_from(SIGNS), max_size=30))
def test_words_are_those_of_the_definition(text):
    assert words_of(text) == oracle.words_of(text)


def test_plain_texts_have_the_same_words_either_way():
    for code in range(0x110000):
        sign = chr(code)
        if PLAIN.fullmatch(sign) and unicodedata.category(sign) != "Cn":
            found = [word.group() for word in _patterns()[0].finditer(f"a{sign}b")]
            assert found == WORD.findall(f"a{sign}b"), hex(code)


def documents(language: str):
    """Three topics in units of four to six words, some of them no topic's."""
    rng = random.Random(language)
    space = " " if language == "hi" else ""
    for i in range(4):
        units, masses = [], []
        for topic in rng.sample(TOPICS[language], 3):
            masses.append(rng.randint(8, 12))
            for _ in range(masses[-1]):
                words = rng.choices(topic.split(), k=4) + rng.choices(
                    FILLERS[language].split(), k=2
                )
                rng.shuffle(words)
                units.append(space.join(words) + "。")
        yield reffree.Document.build(f"d{i}", units, gold=masses)


@pytest.mark.parametrize("language", TOPICS)
@pytest.mark.parametrize(
    "method", ["c99:k=2", "texttiling:block=10,cutoff=conservative,min_gap=3", "textseg"]
)
def test_methods_that_need_words_find_topics_in_every_script(language, method):
    corpus = reffree.Corpus(tuple(documents(language)))
    made = reffree.segment(corpus, {"found": method}).hypotheses["found"]
    errors = [pk(found, document.gold) for found, document in zip(made, corpus, strict=True)]
    whole = [pk([sum(d.gold.masses)], d.gold) for d in corpus]
    assert sum(errors) < 0.5 * sum(whole), (errors, whole)
