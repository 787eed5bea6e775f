"""Score text splitters on plain text, and search their parameters without gold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from reffree.chunkers.base import Chunker
from reffree.chunkers.chunked import (
    ChunkReport,
    PlainText,
    characters_a_chunk,
    check_sized,
    chunked,
    with_characters,
    with_size,
)
from reffree.chunkers.libraries import ChonkieSemantic
from reffree.chunkers.registry import CHUNKERS, FLAG, find_chunker
from reffree.chunkers.sizes import KINDS, measure_chunks
from reffree.data.sentences import splitter
from reffree.encoders.base import encode_texts
from reffree.encoders.embed import from_file
from reffree.encoders.opening import open_encoder
from reffree.encoders.options import EncoderOptions
from reffree.evaluate.result import Field, Result, Table, columns, estimate
from reffree.evaluate.score import score
from reffree.evaluate.table import ScoreTable, judged_by
from reffree.formats import load, read_system, save
from reffree.formats.source import Source, checked_name
from reffree.statistics.losses import as_loss
from reffree.studies.keywords import AverageOption, StudyKeywords, UnsegmentedOption, metric_option
from reffree.studies.study import StudySettings
from reffree.util.bounds import Bounds
from reffree.util.declare import Option, declared
from reffree.util.errors import InputError, OptionError, Place, listed
from reffree.util.naming import parse_named, spelling_of

CORPUS_ENDINGS = (".jsonl", ".ndjson", ".json")
SEARCHED_BY = ("expected_pk",)
"""Metrics of a search, unless others are named; it goes by the first of these or `expected_pk`."""

CHARACTERS = (150, 200, 300, 400, 600, 800, 1200, 1600, 2400, 3200)
"""Sizes that a search tries, in characters."""

A_WORD = 5
"""Characters of a word or a token, for sizes in those."""

NEAR = 0.01
"""Settings whose score is this near to the best are named beside it."""

SIZES = (
    *columns("text", chunker="chunker"),
    *columns("count", chunks="chunks"),
    *columns("count", characters_p50="characters: 50 %", characters_p95="95 %"),
    *columns("count", characters_max="most", tokens_p50="tokens: 50 %", tokens_p95="95 %"),
    *columns("count", tokens_max="most"),
    *columns("share", at_cap="at the cap"),
)
SETTING = (
    *columns("text", "corpus", "splitter", "setting"),
    *columns("number", size="characters a chunk"),
    *columns("count", "segments"),
)
CUT = (
    *columns("text", "chunker"),
    *(
        field
        for kind in KINDS
        for field in columns("count", **{f"{kind}_cut": f"{kind} cut", kind: "of"})
    ),
)


@declared
def chunks(
    texts: Sequence[str | Path] | Mapping[str, str],
    *,
    chunkers: Annotated[
        Sequence[str],
        Option(
            "A chunker, such as chonkie:sentence,chunk_size=500: langchain:recursive, :character; "
            "chonkie:recursive, :token, :sentence, :semantic; semantic-text-splitter; "
            "llamaindex:sentence, :token; docling:hybrid, :hierarchical; or MODULE:FUNCTION; may "
            "be repeated.",
            flag="--chunker",
            metavar="SPEC",
            check=find_chunker,
            names="chunkers",
        ),
    ] = (),
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
        metric_option(
            "As in reffree score; may be repeated.",
            default="those of reffree score; of a search, expected_pk",
        ),
    ] = (),
    null: Annotated[
        int, Bounds(0), Option("Random arrangements to hold every score against, for p.")
    ] = 0,
    unsegmented: UnsegmentedOption = "neutral",
    average: AverageOption = "macro",
    systems: Annotated[
        Mapping[str, str] | None,
        Option("One more system, from its file; may be repeated.", flag="--system"),
    ] = None,
    embeddings: Annotated[
        str | None,
        Option("Your vectors instead of an encoder's: .npz by document id.", metavar="FILE"),
    ] = None,
    save_corpus: Annotated[
        str | None,
        Option(
            "Also write sentences and systems as corpus JSONL, for reffree score.",
            flag="--save",
            metavar="FILE",
        ),
    ] = None,
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Score text splitters on plain text, without gold labels, or search their parameters.

    TEXT is the plain text of one document (- is standard input) or a corpus (.jsonl), whose units
    stay as they are. Sentences become units, every --chunker a system: a chunk's start moves to the
    nearest sentence's, and overlapping chunks count by their starts. Further tables have chunks'
    sizes, how many are at 95 % of the cap, and what they cut apart. With --values chunkers are
    tried with several settings and the best by expected_pk is named; those that cut the texts alike
    are scored once. Chosen on the texts it is judged by, the best score flatters.

    These scores do not predict retrieval quality: the HOPE study (arXiv 2505.02171) found that
    concept unity within chunks had minimal impact on it.

    \b
    reffree chunks a.txt --chunker langchain:recursive,chunk_size=1000
    reffree chunks a.txt --chunker langchain:recursive --values chunk_size=200,400
    reffree chunks a.txt b.txt --chunker my_module:my_function

    A function takes the text and returns its chunks, as strings or (start, end) in characters.
    Libraries are installed apart; plain text needs sentencex.
    """  # noqa: D301  (click reads the backslash)
    settings = StudySettings(**keywords)
    bases = _find_chunkers(chunkers)
    wanted = _parse_values(values)
    made = [each for base in bases for each in (_settings(base, wanted) if wanted else [base])]
    if equal_size is not None:
        for each in made:
            check_sized(each)
        if wanted:
            raise OptionError(
                "values beside an equal size", expected="one of the two", remedy="leave one out"
            )
    made = _with_encoder(made, settings, embeddings)
    read, notes = _read_texts(texts)
    if equal_size is not None:
        made = [with_characters(each, read, equal_size) for each in made]
        notes += [
            f"{spelling_of(each)}: {characters_a_chunk(each, read):,.0f} characters a chunk, where "
            f"{equal_size:,} were asked for."
            for each in made
        ]
    corpus, reports = chunked(read, made, language)
    if wanted:
        made, alike = _distinct(made, reports)
        corpus = corpus.only_systems([name for name in corpus[0].systems if name not in alike])
        notes += alike.values()
    else:
        notes += [f"{name}: {report.snap}." for name, report in reports.items()]
    notes += _remarks(bases if wanted else made)
    for name, file in (systems or {}).items():
        corpus = read_system(file, name, corpus)
    if save_corpus is not None:
        save(corpus, save_corpus, format="jsonl")
    table = score(
        replace(corpus, notes=tuple(notes)),
        metrics=list(metrics) or (list(SEARCHED_BY) if wanted else None),
        embeddings=None if embeddings is None else from_file(corpus, Path(embeddings)),
        null=null,
        unsegmented=unsegmented,
        average=average,
        **keywords,
    )
    sized = _measure(made, read, reports, settings, is_counted=embeddings is None)
    tables = [
        Table.of("systems", "Splitters as systems", *_system_rows(table)),
        Table.of("sizes", "Sizes of chunks: 50 % and 95 % have at most", SIZES, sized),
    ]
    if any(row[kind] for row in sized for kind in KINDS):
        tables.append(Table.of("cut", "What no chunk holds whole", CUT, sized))
    verdict, chosen = table.verdict, {}
    if wanted:
        n_characters = sum(len(text.text) for text in read)
        sizes = {name: n_characters / report.snap.chunks for name, report in reports.items()}
        curve, best = _search(table, made, sizes)
        verdict, chosen = tuple(_describe_search(curve, best, table)), {"best": best["setting"]}
        fields = (*SETTING, *estimate("value", judged_by(table.metrics)))
        tables.insert(0, Table.of("curve", "Score of every setting", fields, curve))
    return Result(
        command="chunks",
        question="Which setting of the splitters is best?"
        if wanted
        else "How good are these splitters?",
        verdict=verdict,
        signature=f"{table.signature}|{_versions(made, read, language)}",
        settings=chosen,
        corpora=({"name": "texts", **table.corpus},),
        tables=tuple(tables),
        notes=table.notes,
        reading={
            "segments": "Chunks whose starts were moved to the same sentence are one segment.",
            "at_cap": "Chunks of at least 95 % of the size that was asked for.",
            "size": "Characters of the texts by the number of chunks.",
        },
    )


def _find_chunkers(specs: Sequence[str]) -> list[Chunker]:
    """Make the chunkers, at least one, each once."""
    found: dict[str, Chunker] = {}
    for spec in specs:
        chunker = find_chunker(spec)
        if spelling_of(chunker) in found:
            raise OptionError(
                f"{FLAG} {spec} twice", expected="each chunker once", remedy="leave one out"
            )
        found[spelling_of(chunker)] = chunker
    if not found:
        raise OptionError(
            "no chunker", expected="at least one", remedy=f"name one: {FLAG} langchain:recursive"
        )
    return list(found.values())


def _with_encoder(
    chunkers: Sequence[Chunker], options: EncoderOptions, embeddings: str | None
) -> list[Chunker]:
    """Give those that compare sentences the encoder that will score, opened once."""
    semantic = [each for each in chunkers if isinstance(each, ChonkieSemantic)]
    if semantic and embeddings is not None:
        raise OptionError(
            f"embeddings, which have no vectors for what {semantic[0].name} compares",
            expected="an encoder",
            remedy="leave one of the two out",
        )
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
            raise OptionError(
                f"values {text!r}",
                expected="OPTION=V,V,…",
                remedy="write such as chunk_size=200,400, or size for ten sizes",
            )
        if option in found:
            raise OptionError(
                f"values of {option} twice", expected="them once", remedy="put all into one"
            )
        found[option] = each
    return found


def _settings(base: Chunker, values: Mapping[str, Sequence[str]]) -> list[Chunker]:
    """Return the chunker with every combination of values; those it refuses are refused."""
    if base.name not in CHUNKERS:
        raise OptionError(
            f"{base.name!r}, a function",
            expected="a chunker with options",
            remedy="score functions of several settings without values",
        )
    texts = [
        [f"{option}={value}" for value in given] if given else _sizes(base)
        for option, given in values.items()
    ]
    spelt = spelling_of(base)
    start = f"{spelt}," if ":" in spelt else f"{spelt}:"
    return [
        # Read as on the command line, for the same sentences; what comes later counts.
        parse_named(start + ",".join(chosen), CHUNKERS, "chunker", FLAG)
        for chosen in product(*texts)
    ]


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
        raise OptionError(
            f"no size that goes with {spelling_of(base)!r}",
            expected="one of ten",
            remedy=f"name some with --values {base.sized_by}=…",
        )
    return found


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


def _read_texts(
    texts: Sequence[str | Path] | Mapping[str, str],
) -> tuple[list[PlainText], list[str]]:
    """Read one document per file, or those of a corpus, and what there is to note about the files.

    Documents are called by their files without folder and extension, where that keeps them apart.
    """
    if isinstance(texts, Mapping):
        return [PlainText(id, text, Place(document=id)) for id, text in texts.items()], []
    paths = [str(path) for path in texts]
    if not paths or paths.count("-") > 1:
        raise OptionError(
            "standard input (-) twice" if paths else "no text",
            expected="files of text, or corpora",
            remedy="name each once",
        )
    sources = [Source(path) for path in paths]
    ids = [source.stem for source in sources]
    if len(set(ids)) < len(ids):
        ids = [checked_name(source.name, source.place()) for source in sources]
    found: list[PlainText] = []
    notes: list[str] = []
    for id, source, path in zip(ids, sources, paths, strict=True):
        if source.suffix in CORPUS_ENDINGS:
            corpus = load(path)
            found += [PlainText.of(document) for document in corpus]
            notes += corpus.notes
            notes.append(f"{path}: a corpus; its units stay as they are, joined by line breaks.")
        else:
            text = "\n".join(line for _, line in source.lines())
            _refuse_json(text, source.place())
            found.append(PlainText(id, text, source.place()))
            notes += source.notes
    return found, notes


def _refuse_json(text: str, place: Place) -> None:
    """Refuse a corpus that was to be read as prose."""
    first = text.lstrip()[:1] == "{" and text.lstrip().splitlines()[0]
    try:
        found = json.loads(first) if first else None
    except ValueError:
        return  # prose, or code
    if isinstance(found, dict):
        raise InputError(
            "JSON, one object a line",
            expected="plain text, or a corpus whose file is called .jsonl",
            remedy="name the file so, or take the text out of it",
            place=place,
        )


def _remarks(chunkers: Sequence[Chunker]) -> list[str]:
    """Say what a reader of chunkers' scores must know."""
    remarks: dict[str, list[str]] = {}
    for chunker in chunkers:
        if chunker.remark is not None:
            remarks.setdefault(chunker.remark, []).append(spelling_of(chunker))
    return [f"{', '.join(names)}: {remark}." for remark, names in remarks.items()]


def _measure(
    chunkers: Sequence[Chunker],
    texts: Sequence[PlainText],
    reports: Mapping[str, ChunkReport],
    options: EncoderOptions,
    *,
    is_counted: bool,
) -> list[dict[str, Any]]:
    """Sizes of every chunker's chunks, tokens as the encoder counts them, where there is one."""
    # The cache leaves the model unopened, a server counts for itself.
    encoder = open_encoder(replace(options, cache=False)) if is_counted else None
    count = getattr(encoder, "count_tokens", None)
    plain = [text.text for text in texts]
    rows = []
    for chunker in chunkers:
        cuts = reports[spelling_of(chunker)].cuts
        found = [text[a:b] for text, cut in zip(plain, cuts, strict=True) for a, b in cut]
        tokens = None if count is None else list(count(tuple(found)))
        measured = measure_chunks(chunker, plain, cuts, tokens)
        rows.append({"chunker": spelling_of(chunker), **measured})
    return rows


def _system_rows(table: ScoreTable) -> tuple[list[Field], list[dict[str, Any]]]:
    """Columns and a row per system: segments, and every metric with its interval."""
    fields = [*columns("text", "system"), *columns("count", "segments")]
    for name, found in table.systems[0].metrics.items():
        value, interval = estimate(name, name)
        if found.direction in ("lower", "higher") and name not in table.incomparable:
            value = replace(value, best="low" if found.direction == "lower" else "high")
        has_null = any(row.metrics[name].null is not None for row in table.systems)
        fields += [value, interval, *(columns("p", **{f"{name}_p": "p"}) if has_null else ())]
    rows = []
    for row in table.systems:
        cells: dict[str, Any] = {"system": row.system, "segments": row.segments}
        for name, found in row.metrics.items():
            cells |= {name: found.value, f"{name}_ci": found.ci}
            cells[f"{name}_p"] = None if found.null is None else found.null.p
        rows.append(cells)
    return fields, rows


def _search(
    table: ScoreTable, chunkers: Sequence[Chunker], sizes: Mapping[str, float]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return a row per setting with a score, by the metric that is judged by, and the best."""
    metric = judged_by(table.metrics)
    found = {row.system: row for row in table.systems}
    rows = []
    for chunker in chunkers:
        name = spelling_of(chunker)
        score, n_segments = found[name].metrics[metric], found[name].segments
        if score.value is not None:
            row: dict[str, Any] = {"corpus": "texts", "splitter": chunker.name, "setting": name}
            row |= {"size": sizes[name], "segments": n_segments}
            rows.append(row | {"value": score.value, "value_ci": score.ci})
    if not rows:
        raise InputError(
            f"no setting with a defined {metric}",
            expected="a text of three sentences or more",
            remedy="search on longer texts",
        )
    direction = table.systems[0].metrics[metric].direction
    return rows, min(rows, key=lambda row: as_loss(row["value"], direction))


def _describe_search(
    curve: Sequence[dict[str, Any]], best: dict[str, Any], table: ScoreTable
) -> Iterator[str]:
    """Name the best setting and those near it; say where the search ended too early."""
    metric = judged_by(table.metrics)
    is_lower = as_loss(1.0, table.systems[0].metrics[metric].direction) > 0
    worst = (max if is_lower else min)(curve, key=lambda row: row["value"])
    low, high = ("lowest", "highest") if is_lower else ("highest", "lowest")
    yield (
        f"{best['setting']} has the {low} {metric}, {best['value']:.3f}, of {len(curve)} settings; "
        f"the {high} is {worst['value']:.3f} ({worst['setting']}). It was chosen on these texts, "
        "so its score flatters."
    )
    others = [row for row in curve if row is not best]
    if near := [row["setting"] for row in others if abs(row["value"] - best["value"]) <= NEAR]:
        yield f"Within {NEAR:g} of it: {listed(near)}."
    of_splitter = sorted(row["size"] for row in curve if row["splitter"] == best["splitter"])
    if len(of_splitter) > 2 and best["size"] in (of_splitter[0], of_splitter[-1]):
        end = "finest" if best["size"] == of_splitter[0] else "coarsest"
        yield f"It is the {end} that was tried: what lies beyond may be better."
    if any("rests on the prior" in note for note in table.notes):
        yield "The texts say too little to choose: what is assumed of segments' lengths chose."


def _versions(chunkers: Sequence[Chunker], texts: Sequence[PlainText], language: str) -> str:
    """Fields of the signature: what split the text, since other versions may split otherwise."""
    packages = dict.fromkeys(chunker.package for chunker in chunkers if chunker.package)
    chunked_by = "+".join(f"{each}@{version(each)}" for each in packages)
    is_split = any(text.document is None for text in texts)
    sentences = f"sentences:{splitter(language) if is_split else 'given'}"
    return f"{sentences}|chunkers:{chunked_by}" if packages else sentences
