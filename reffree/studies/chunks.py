"""Score text splitters on documents, and search their parameters without gold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from reffree.chunkers.base import Chunker
from reffree.chunkers.chunked import (
    CUT,
    ChunkReport,
    PlainText,
    characters_a_chunk,
    check_sized,
    chunked,
    measure_chunks,
    parts_of,
    with_characters,
    with_size,
)
from reffree.chunkers.libraries import ChonkieSemantic
from reffree.chunkers.registry import CHUNKERS, FLAG, chunker_of
from reffree.data.sentences import splitter
from reffree.encoders.address import is_endpoint
from reffree.encoders.base import encode_texts
from reffree.encoders.embed import from_file
from reffree.encoders.models import find_model
from reffree.encoders.opening import open_encoder
from reffree.encoders.options import EncoderOptions
from reffree.evaluate.result import DocumentText, Field, Result, Table, columns, estimate
from reffree.evaluate.score import score
from reffree.evaluate.table import DECIMALS, ScoreTable, judged_by, rounded
from reffree.evaluate.verdict import Rivals, rank, tested
from reffree.formats import read_system, save
from reffree.statistics.losses import as_loss
from reffree.statistics.paired import paired_tests
from reffree.studies.chunks_texts import read_texts
from reffree.studies.keywords import AverageOption, StudyKeywords, UnsegmentedOption, metric_option
from reffree.studies.study import StudySettings
from reffree.util.bounds import Bounds
from reffree.util.declare import Option, declared
from reffree.util.errors import InputError, OptionError, counted, listed, mistake
from reffree.util.grid import Row
from reffree.util.naming import parse_named, spelling_of

RANKED_BY = "placement"
METRICS = (RANKED_BY, "granularity", "expected_pk")

CHARACTERS = (150, 200, 300, 400, 600, 800, 1200, 1600, 2400, 3200)
"""Sizes that a search tries, in characters."""

A_WORD = 5
"""Characters of a word or a token, for sizes in those."""

NEAR = 0.01
"""Settings whose score is this near to the best are named beside it."""

TEXTS = 3
"""Documents whose chunks the page shows."""

MOSTLY = 0.1
"""Share of chunks that merged, or are too long for the encoder, from which on it is said."""

SIZES = (
    *columns("text", chunker="chunker"),
    *columns("count", chunks="chunks", per_document="a document"),
    *columns("count", tokens_mean="tokens: mean", tokens_p95="95 %", tokens_max="most"),
    *columns("share", over_limit="not encoded whole"),
    *columns("count", characters_mean="characters: mean", characters_p95="95 %"),
    *columns("count", characters_max="most"),
    *columns("share", at_cap="at the cap"),
    *columns("number", seconds="seconds"),
)
CUTS = (
    *columns("text", "chunker"),
    *(field for kind in CUT for field in columns("count", **{kind: kind, f"{kind}_cut": "cut"})),
)
STARTS = (
    *columns("text", "chunker"),
    *columns("count", "starts"),
    *columns("share", inside="inside a unit"),
    *columns("count", distance="moved by", furthest="at most", left_out="too far"),
    *columns("count", merged="merged chunks"),
    *columns("count", overlapping="overlapping", shared="characters shared"),
    *columns("count", outside="units in no chunk"),
)
SETTING = (
    Field("corpus", "", "text"),
    *columns("text", "splitter", "setting"),
    *columns("count", size="characters a chunk", segments="segments"),
)
READING = {
    "placement": "Where chunks start: 0 is what blind cuts of the same sizes in characters get, 1 "
    "the best that is possible with as many chunks; it says nothing of how many there are.",
    "granularity": "Chunks by the number of topics that the text suggests.",
    "segments": "Chunks whose starts were moved to the same unit are one segment.",
    "at_cap": "Chunks of at least 95 % of the size that was asked for.",
    "over_limit": "Chunks of more tokens than the encoder reads; the rest is not encoded.",
    "inside": "Starts of chunks within a sentence, or within a block of code, a table or a list.",
    "distance": "Characters by which starts were moved to the nearest unit's, on average.",
    "size": "Characters of the texts by the number of chunks.",
}


@declared
def chunks(
    texts: object,
    chunkers: Annotated[
        Sequence[Any],
        Option(
            "A chunker, such as chonkie:sentence,chunk_size=500: langchain:recursive, :character; "
            "chonkie:recursive, :token, :sentence, :semantic; semantic-text-splitter; "
            "llamaindex:sentence, :token; docling:hybrid, :hierarchical; or MODULE:FUNCTION; may "
            "be repeated.",
            "--chunker",
            "SPEC",
            check=chunker_of,
            names="chunkers",
        ),
    ] = (),
    *,
    values: Annotated[
        Sequence[str],
        Option(
            "Search: every chunker with each of these values of an option, in all combinations; "
            "size alone stands for ten sizes from 150 to 3200 characters; may be repeated.",
            metavar="OPTION=V,V,…",
        ),
    ] = (),
    equal_size: Annotated[
        int | None, Bounds(1), Option("Choose sizes so that all have N characters a chunk.")
    ] = None,
    language: Annotated[str, Option("Of the text, to split sentences.", metavar="CODE")] = "en",
    metrics: Annotated[
        Sequence[str],
        metric_option("As in reffree score; may be repeated.", default=", ".join(METRICS)),
    ] = (),
    null: Annotated[
        int, Bounds(0), Option("Random arrangements to hold every score against, for p.")
    ] = 0,
    unsegmented: UnsegmentedOption = "neutral",
    average: AverageOption = "macro",
    systems: Annotated[
        Mapping[str, str] | None,
        Option("One more system, from its file; may be repeated.", "--system"),
    ] = None,
    embeddings: Annotated[
        str | None,
        Option("Your vectors instead of an encoder's: .npz by document id.", metavar="FILE"),
    ] = None,
    fail_under: Mapping[str, float] | None = None,
    save_corpus: Annotated[
        str | None,
        Option(
            "Also write sentences and systems as corpus JSONL, for reffree score.", "--save", "FILE"
        ),
    ] = None,
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Score text splitters on documents, without gold labels, or search their parameters.

    TEXT is a file (- is standard input), a folder or a pattern: .md, .rst, .txt, .html, .docx,
    .pdf, or a corpus (.jsonl), whose units stay. Sentences, headings, code, tables and lists are
    units, every --chunker a system, whose starts move to the nearest unit's. Chunkers are ranked by
    placement: 0 is what blind cuts of the same sizes get, 1 the best possible with as many chunks.

    These scores do not predict retrieval quality: the HOPE study (arXiv 2505.02171) found that
    concept unity within chunks had minimal impact on it.

    \b
    reffree chunks docs/ --chunker langchain:recursive,chunk_size=1000
    reffree chunks a.txt --chunker langchain:recursive --values chunk_size=200,400
    reffree chunks a.txt b.txt --chunker my_module:my_function

    A function takes the text and returns its chunks, as strings or (start, end) in characters.
    Libraries are installed apart, those for .html, .docx and .pdf with reffree[documents].

    Args:
        texts: a path, a text, several of either, or texts by name.
        chunkers: as on the command line; or splitters of LangChain, LlamaIndex, chonkie or
            semantic-text-splitter, or functions of a text.
        fail_under: limits by metric; the setting ``worse`` of the result says who is beyond one.
    """  # noqa: D301  (click reads the backslash)
    settings = StudySettings(**keywords)
    bases = _find_chunkers(chunkers)
    wanted = _parse_values(values)
    made = [each for base in bases for each in (_settings(base, wanted) if wanted else [base])]
    for each in made if equal_size is not None else ():
        check_sized(each)
    if equal_size is not None and wanted:
        both = "values beside an equal size"
        raise OptionError(both, expected="one of the two", remedy="leave one out")
    made = _with_encoder(made, settings, embeddings)
    read, notes = read_texts(texts, settings.progress)
    if equal_size is not None:
        made = _of_equal_size(made, read, equal_size, notes)
    units = [text.units(language) for text in read]
    corpus, reports = chunked(read, units, made, settings.progress)
    if wanted:
        made, alike = _distinct(made, reports)
        corpus = corpus.only_systems([name for name in corpus[0].systems if name not in alike])
        notes += alike.values()
    remarks: dict[str | None, list[str]] = {}
    for each in bases if wanted else made:
        remarks.setdefault(each.remark, []).append(spelling_of(each))
    notes += [f"{', '.join(named)}: {remark}." for remark, named in remarks.items() if remark]
    for name, file in (systems or {}).items():
        corpus = read_system(file, name, corpus)
    if save_corpus is not None:
        save(corpus, save_corpus, format="jsonl")
    asked = {_by_characters(metric): metric for metric in metrics or METRICS}
    table = score(
        replace(corpus, notes=tuple(notes)),
        metrics=list(asked),
        embeddings=None if embeddings is None else from_file(corpus, Path(embeddings)),
        null=null,
        unsegmented=unsegmented,
        average=average,
        per_document=True,
        **keywords,
    )
    table = _renamed(table, asked)
    by = next((m for m in table.metrics if m.split(":")[0] == RANKED_BY), judged_by(table.metrics))
    table = table.sorted_by(by)
    counter, limit = _token_counter(settings) if embeddings is None else (None, None)
    parts = [parts_of(t.text, t.blocks, own) for t, own in zip(read, units, strict=True)]
    plain = [text.text for text in read]
    chunker_of_name = {spelling_of(each): each for each in made}
    measured: list[Row] = []
    for name in [row.system for row in table.systems if row.system in chunker_of_name]:
        report = reports[name]
        found = [text[a:b] for text, cut in zip(plain, report.cuts, strict=True) for a, b in cut]
        tokens = None if counter is None else counter(found)
        row = measure_chunks(chunker_of_name[name], plain, report.cuts, parts, tokens, limit)
        about = {"chunker": name, "seconds": report.seconds}
        about["size"] = sum(map(len, plain)) / report.snap.chunks
        measured.append({**report.snap.row, **row, **about})
    scored = {row.system: row for row in table.systems}
    size_of = {row["chunker"]: row["size"] for row in measured}
    curve = [
        {
            **{"corpus": "texts", "splitter": chunker.name, "setting": name, "size": size_of[name]},
            **{"segments": scored[name].segments, "value": cell.value, "value_ci": cell.ci},
        }
        for name, chunker in chunker_of_name.items()
        if (cell := scored[name].metrics[by]).value is not None
    ]
    if wanted:
        best, verdict = _search(curve, measured, by, table)
    else:
        best, verdict = _recommend(table, by, measured, limit, settings.seed)
    fields = (*SETTING, *estimate("value", by))
    tables = [
        Table.of("curve", f"Settings by {by}", fields, curve, shown=bool(wanted)),
        Table.of("systems", f"Chunkers, best first by {by}", *_system_rows(table)),
        _table("sizes", "Sizes of chunks, and seconds to make them", SIZES, measured),
        _table("starts", "Where chunks start", STARTS, measured),
        _table("cut", "What no chunk holds whole", CUTS, measured),
    ]
    return Result(
        command="chunks",
        question="Which setting of the chunkers is best?"
        if wanted
        else "Which chunker cuts where the text does?",
        verdict=tuple(verdict),
        signature=f"{table.signature}|{_versions(made, read, language)}",
        settings={
            "chunkers": [spelling_of(each) for each in bases],
            "best": best,
            "worse": table.worse_than(fail_under or {}),
        },
        corpora=({"name": "texts", **table.corpus},),
        tables=tuple(tables),
        notes=table.notes,
        reading=READING,
        texts=tuple(
            DocumentText("texts", d.id, d.units, {n: s.masses for n, s in d.segmentations.items()})
            for d in corpus.documents[:TEXTS]
        ),
    )


def _table(name: str, title: str, fields: Sequence[Field], rows: Sequence[Row]) -> Table:
    """Make a table of which columns of nothing but zeros and undefined values are not shown."""
    is_empty = {f.name: not any(row[f.name] for row in rows) for f in fields}
    hidden = [replace(f, label="") if is_empty[f.name] else f for f in fields]
    return Table.of(name, title, hidden, rows)


def _find_chunkers(given: Sequence[object]) -> list[Chunker]:
    """Make the chunkers, at least one, each once; splitters of one name are numbered."""
    found: dict[str, Chunker] = {}
    for one in given:
        chunker = chunker_of(one)
        name = spelling_of(chunker)
        if name in found and isinstance(one, str):
            remedy = "leave one out"
            raise OptionError(f"{FLAG} {one} twice", expected="each chunker once", remedy=remedy)
        if name in found:
            n = sum(each.name.startswith(chunker.name) for each in found.values()) + 1
            chunker = replace(cast(Any, chunker), name=f"{chunker.name} ({n})")
        found[spelling_of(chunker)] = chunker
    if not found:
        remedy = f"name one: {FLAG} langchain:recursive"
        raise OptionError("no chunker", expected="at least one", remedy=remedy)
    return list(found.values())


def _with_encoder(
    chunkers: Sequence[Chunker], options: EncoderOptions, embeddings: str | None
) -> list[Chunker]:
    """Give those that compare sentences the encoder that will score, opened once."""
    semantic = [each for each in chunkers if isinstance(each, ChonkieSemantic)]
    if semantic and embeddings is not None:
        found = f"embeddings, which have no vectors for what {semantic[0].name} compares"
        raise OptionError(found, expected="an encoder", remedy="leave one of the two out")
    if not semantic:
        return list(chunkers)
    encoder = open_encoder(options)

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        rows = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        vectors, _ = encode_texts(encoder, list(rows))
        return vectors[[rows[text] for text in texts]]

    return [
        replace(each, embed=embed) if isinstance(each, ChonkieSemantic) else each
        for each in chunkers
    ]


def _parse_values(values: Sequence[str]) -> dict[str, list[str]]:
    """Read OPTION=V,V,… by option; ``size`` alone has no values yet."""
    found: dict[str, list[str]] = {}
    for text in values:
        option, _, given = text.partition("=")
        each = given.split(",") if text != "size" else []
        if not option or not all(each):
            remedy = "write such as chunk_size=200,400, or size for ten sizes"
            raise OptionError(f"values {text!r}", expected="OPTION=V,V,…", remedy=remedy)
        if option in found:
            remedy = "put all into one"
            raise OptionError(f"values of {option} twice", expected="them once", remedy=remedy)
        found[option] = each
    return found


def _settings(base: Chunker, values: Mapping[str, Sequence[str]]) -> list[Chunker]:
    """Return the chunker with every combination of values; those it refuses are refused."""
    if base.name not in CHUNKERS:
        expected = "a chunker with options"
        remedy = "score functions of several settings without values"
        raise OptionError(f"{base.name!r}, a function", expected=expected, remedy=remedy)
    texts = [
        [f"{option}={value}" for value in given] if given else _sizes(base)
        for option, given in values.items()
    ]
    start = spelling_of(base) + ("," if ":" in spelling_of(base) else ":")
    # Read as on the command line, for the same sentences; what comes later counts.
    spelt = [start + ",".join(chosen) for chosen in product(*texts)]
    return [parse_named(each, CHUNKERS, "chunker", FLAG) for each in spelt]


def _sizes(base: Chunker) -> list[str]:
    """Return ten sizes of a chunker, without those smaller than the overlap it was given."""
    check_sized(base)
    is_in_characters = base.size("Ten words make a sentence that says how sizes count.") > 20
    found = []
    for characters in CHARACTERS:
        size = characters if is_in_characters else characters // A_WORD
        try:
            with_size(base, size)
        except InputError:
            continue
        found.append(f"{base.sized_by}={size}")
    if not found:
        none = f"no size that goes with {spelling_of(base)!r}"
        remedy = f"name some with --values {base.sized_by}=…"
        raise OptionError(none, expected="one of ten", remedy=remedy)
    return found


def _of_equal_size(
    chunkers: Sequence[Chunker], texts: Sequence[PlainText], characters: int, notes: list[str]
) -> list[Chunker]:
    """Give all the size at which they have so many characters a chunk; note what came out."""
    found: dict[str, Chunker] = {}
    for chunker in chunkers:
        sized = with_characters(chunker, texts, characters)
        name, size = spelling_of(sized), characters_a_chunk(sized, texts)
        if name in found:
            notes.append(f"{spelling_of(chunker)} is {name}, too, at this size: scored once.")
            continue
        found[name] = sized
        asked = f"where {characters:,} were asked for"
        notes.append(f"{name}: {size:,.0f} characters a chunk, {asked}.")
    return list(found.values())


def _distinct(
    chunkers: Sequence[Chunker], reports: Mapping[str, ChunkReport]
) -> tuple[list[Chunker], dict[str, str]]:
    """Leave out settings that cut the texts as an earlier one of that splitter; say which."""
    first: dict[tuple[object, ...], Chunker] = {}
    alike = {}
    for chunker in chunkers:
        name = spelling_of(chunker)
        kept = first.setdefault((chunker.name, *map(tuple, reports[name].cuts)), chunker)
        if kept is not chunker:
            alike[name] = f"{name} cuts the texts as {spelling_of(kept)} does."
    return list(first.values()), alike


def _by_characters(metric: str) -> str:
    """Return placement with sizes in characters, any other metric as it is."""
    name, _, options = metric.partition(":")
    if name != RANKED_BY or "sizes=" in options:
        return metric
    return f"{name}:{','.join(filter(None, [options, 'sizes=characters']))}"


def _renamed(table: ScoreTable, names: Mapping[str, str]) -> ScoreTable:
    """Call metrics of a table as they were asked for."""

    def called(row: Any) -> Any:  # noqa: ANN401  (of systems or of documents)
        return replace(row, metrics={names.get(m, m): s for m, s in row.metrics.items()})

    return replace(
        table,
        systems=tuple(map(called, table.systems)),
        documents=tuple(map(called, table.documents or ())),
        incomparable=frozenset(names.get(m, m) for m in table.incomparable),
    )


def _token_counter(
    options: EncoderOptions,
) -> tuple[Callable[[Sequence[str]], list[int]] | None, int | None]:
    """Return what counts tokens as the encoder does, and how many it reads; None where unknown.

    A tokenizer's file is enough, so that cached vectors need no model.
    """
    if is_endpoint(options.model):
        return None, None  # a server counts for itself
    folder = find_model(
        options.model, offline=options.offline, settings=options.model_settings, check_weights=False
    )
    limit, file = folder.spec.max_length, folder.path / "tokenizer.json"
    if not file.exists():
        encoder = open_encoder(replace(options, cache=False))
        return getattr(encoder, "count_tokens", None), limit
    import tokenizers  # comes with transformers, which takes seconds to import

    tokenizer = tokenizers.Tokenizer.from_file(str(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    prompt = folder.spec.prompt

    def count(texts: Sequence[str]) -> list[int]:
        return [len(each.ids) for each in tokenizer.encode_batch([prompt + t for t in texts])]

    return count, limit


def _system_rows(table: ScoreTable) -> tuple[list[Field], list[Row]]:
    """Columns and a row per system: segments, and every metric with its interval."""
    fields = [*columns("text", "system"), *columns("count", "segments")]
    for name, found in table.systems[0].metrics.items():
        value, interval = estimate(name, name)
        if found.direction in ("lower", "higher") and name not in table.incomparable:
            value = replace(value, best="low" if found.direction == "lower" else "high")
        has_null = any(row.metrics[name].null is not None for row in table.systems)
        fields += [value, interval, *(columns("p", **{f"{name}_p": "p"}) if has_null else ())]
    rows: list[Row] = []
    for row in table.systems:
        rows.append({"system": row.system, "segments": row.segments})
        for name, found in row.metrics.items():
            p = None if found.null is None else found.null.p
            rows[-1] |= {name: found.value, f"{name}_ci": found.ci, f"{name}_p": p}
    return fields, rows


def _rivals(table: ScoreTable, metric: str, seed: int) -> Rivals:
    """Rank the systems by a metric, and hold the best against each of the others."""
    score = table.systems[0].metrics[metric]
    values = {row.system: rounded(row.metrics[metric].value) for row in table.systems}
    rivals = rank(metric, score.direction, values)
    order = list(rivals.values)
    if len(order) < 2:
        return rivals
    scored = [[d.metrics[metric] for d in table.documents or () if d.system == s] for s in order]
    shown = [[np.nan if cell.value is None else cell.value for cell in each] for each in scored]
    weights = [[1.0 if cell.weight is None else cell.weight for cell in each] for each in scored]
    pairs = [(i, 0) for i in range(1, len(order))]
    rng = np.random.default_rng(seed)
    tests = paired_tests(np.round(shown, DECIMALS), np.array(weights), pairs, rng)
    return tested(rivals, dict(zip(order[1:], tests, strict=True)))


def _recommend(
    table: ScoreTable, by: str, measured: Sequence[Row], limit: int | None, seed: int
) -> tuple[str | None, list[str]]:
    """Return the chunker to take, and what speaks for and against it."""
    rivals = _rivals(table, by, seed)
    if rivals.best is None:
        return None, [f"{by} is undefined for every chunker on these texts."]
    said = list(table.verdict if by == judged_by(table.metrics) else rivals.sentences())
    value = rivals.values[rivals.best]
    if by.split(":")[0] == RANKED_BY:
        blind = "blind cuts of the same sizes" if "sizes=" in by else "the same in random order"
        above = f"0 is what {blind} get, 1 the best that is possible with as many."
        said.append(above if value > 0 else f"{blind.capitalize()} do as well.")
    unlike = rivals.unlike
    rivalling = {rivals.best} if unlike is None else rivals.values.keys() - unlike
    rows = [row for row in measured if row["chunker"] in rivalling]
    if len(rows) > 1:
        least = min(rows, key=lambda row: row["inside"] or 0.0)
        said.append(
            f"Of those that cannot be told apart, {least['chunker']} starts the fewest chunks "
            f"inside a unit: {least['inside'] or 0.0:.1%}."
        )
    elif rows and len(rivals.values) > 1 and value > 0 and unlike is not None:
        said.append(f"Take {rivals.best}.")
    for row in [row for row in rows if row["chunker"] == rivals.best]:
        if (share := row["over_limit"] or 0) >= MOSTLY:
            said.append(
                f"{share:.0%} of {rivals.best}'s chunks are longer than the {limit} tokens that "
                "the encoder reads, and lose their ends in it."
            )
        if row["merged"] >= MOSTLY * row["chunks"]:
            said.append(
                f"{row['merged']:,} of its {counted(row['chunks'], 'chunk')} start within the same "
                "unit as another, and are judged as one."
            )
    return rivals.best, said


def _search(
    curve: Sequence[Row], measured: Sequence[Row], metric: str, table: ScoreTable
) -> tuple[str | None, list[str]]:
    """Return the best setting, and what to say of it; an end of the range is no optimum.

    Settings many of whose chunks start in one unit are finer than the metric can see.
    """
    if not curve:
        expected = "texts of three sentences or more, in two chunks or more"
        remedy = "take longer texts, or smaller chunks"
        raise mistake(None, f"no chunker with a defined {metric}", expected, remedy)
    direction = table.systems[0].metrics[metric].direction
    merging = {row["chunker"] for row in measured if row["merged"] >= MOSTLY * row["chunks"]}
    too_fine = [row["setting"] for row in curve if row["setting"] in merging]
    usable = [row for row in curve if row["setting"] not in merging] or curve
    order = sorted(usable, key=lambda row: as_loss(row["value"], direction))
    best, worst = order[0], order[-1]
    low, high = ("highest", "lowest") if direction == "higher" else ("lowest", "highest")
    numbers = (
        f"{best['value']:.3f} at {best['setting']}, of {len(usable)} settings; the {high} is "
        f"{worst['value']:.3f} ({worst['setting']})"
    )
    said = [f"{best['setting']} is best: the {low} {metric} is {numbers}."]
    sizes = sorted(row["size"] for row in usable if row["splitter"] == best["splitter"])
    if len(sizes) > 1 and best["size"] in (sizes[0], sizes[-1]):
        end, beyond = ("finest", "smaller") if best["size"] == sizes[0] else ("coarsest", "larger")
        said = [
            f"No optimum within the range: the {low} {metric}, {numbers}, is at its {end} end: try "
            f"{beyond} sizes before you take it."
        ]
    said.append("It was chosen on these texts, so its score flatters.")
    if near := [row["setting"] for row in order[1:] if abs(row["value"] - best["value"]) <= NEAR]:
        said.append(f"Within {NEAR:g} of it: {listed(near)}.")
    if too_fine:
        said.append(f"Finer than sentences, so that {metric} cannot judge it: {listed(too_fine)}.")
    found = [(row.metrics.get("granularity"), row.system) for row in table.systems]
    grains = [(cell.value, name) for cell, name in found if cell is not None and cell.value]
    if grains:
        factor, name = min(grains, key=lambda grain: abs(math.log(grain[0])))
        said.append(
            f"{name} is nearest to as many chunks as the text suggests: {factor:.1f} times."
        )
    if any("rests on the prior" in note for note in table.notes):
        said.append("The texts say too little to choose: what is assumed of lengths chose.")
    return str(best["setting"]), said


def _versions(chunkers: Sequence[Chunker], texts: Sequence[PlainText], language: str) -> str:
    """Fields of the signature: what split the text, since other versions may split otherwise."""
    packages = dict.fromkeys(chunker.package for chunker in chunkers if chunker.package)
    chunked_by = "+".join(f"{each}@{version(each)}" for each in packages)
    is_split = any(text.document is None for text in texts)
    sentences = f"sentences:{splitter(language) if is_split else 'given'}"
    return f"{sentences}|chunkers:{chunked_by}" if packages else sentences
