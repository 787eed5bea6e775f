"""Models found, trusted, loaded and run: the packaged one and tiny checkpoints of others."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from reffree.data.corpus import Corpus, Document
from reffree.encoders.aliases import PACKAGED, check_files, packaged_folder
from reffree.encoders.base import encode_texts
from reffree.encoders.embed import encode_corpus, from_arrays, from_file
from reffree.encoders.models import find_model
from reffree.encoders.options import EncoderOptions
from reffree.encoders.sentence_transformer import SentenceTransformerEncoder
from reffree.util.errors import EncoderError, InputError, UnknownNameError
from tests.checkpoints import save_checkpoint
from tests.encoders.streams import CPU, TEXTS, encode, opened

ON_CPU = EncoderOptions(device="cpu")
SENTENCES = [
    "The budget is two thousand over.",
    "Bees dance to show where the flowers are.",
    "Yes.",
    "The conservator starts in March, and the office moves to the second floor in April.",
    "Bees find their way home by the sun.",
]


@pytest.fixture(scope="module")
def minilm():
    return opened("minilm")


def test_default_encoder_is_the_official_minilm(minilm):
    spec = minilm.spec
    assert (spec.pooling, spec.normalisation, spec.max_length) == ("mean", "l2", 256)
    assert spec.revision == "sha256:53aa51172d142c89"
    vectors, tokens = encode_texts(minilm, SENTENCES)
    assert vectors.shape == (5, 384)
    assert vectors.dtype == np.float32
    assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert tokens[2] == 4  # [CLS] yes . [SEP]
    similar, other = vectors[1] @ vectors[4], vectors[1] @ vectors[0]
    assert similar > 0.4 > 0.2 > other


MINILM = PACKAGED["minilm"]


@pytest.fixture
def copy_of_minilm(tmp_path):
    """The package's model folder in links, whose files may be replaced."""
    folder = tmp_path / "model"
    shutil.copytree(packaged_folder("minilm"), folder, copy_function=os.symlink)
    return folder


@pytest.mark.parametrize("name", sorted(MINILM.files))
def test_a_changed_file_of_the_package_is_refused(copy_of_minilm, name):
    data = bytearray((copy_of_minilm / name).read_bytes())
    data[len(data) // 2] ^= 1
    (copy_of_minilm / name).unlink()
    (copy_of_minilm / name).write_bytes(data)
    with pytest.raises(EncoderError, match=r"found sha256 .* expected .* reinstall version 0.1.0"):
        check_files(MINILM, copy_of_minilm)


def test_missing_and_added_files_of_the_package_are_refused(copy_of_minilm):
    (copy_of_minilm / "adapter_config.json").write_text("{}")
    with pytest.raises(EncoderError, match=r"adapter_config.json: found a file that does not"):
        check_files(MINILM, copy_of_minilm)
    (copy_of_minilm / "adapter_config.json").unlink()
    check_files(MINILM, copy_of_minilm)
    (copy_of_minilm / "tokenizer.json").unlink()
    with pytest.raises(EncoderError, match=r"tokenizer.json: found sha256 no file"):
        check_files(MINILM, copy_of_minilm)


def test_a_chat_template_stays_away_from_plain_text(checkpoint):
    expected = encode(opened(checkpoint("llama")), TEXTS)
    assert_allclose(encode(opened(checkpoint("llama", chat=True)), TEXTS), expected, atol=1e-6)


def test_a_model_that_brings_modules_of_its_own_is_refused(tmp_path):
    marker = tmp_path / "ran"
    folder = save_checkpoint("roberta", tmp_path / "module")
    (folder / "evil.py").write_text(f"open({str(marker)!r}, 'w').close()\nclass Evil: pass\n")
    modules = [{"idx": 0, "name": "0", "path": "", "type": "evil.Evil"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(EncoderError, match="try another encoder"):
        encode(opened(folder), ["text"])
    assert not marker.exists()


def test_pickled_weights_and_missing_tokenizers_are_refused(tmp_path):
    folder = save_checkpoint("roberta", tmp_path / "m")
    dense = folder / "2_Dense"
    dense.mkdir()
    torch.save({"linear.weight": torch.eye(2)}, dense / "pytorch_model.bin")
    with pytest.raises(EncoderError, match=r"found weights that may hold code; expected .safetens"):
        find_model(str(folder))
    shutil.rmtree(dense)
    for path in folder.glob("tok*"):
        path.unlink()
    with pytest.raises(EncoderError, match="found no tokenizer"):
        find_model(str(folder))


def test_every_file_of_a_folder_is_in_the_fingerprint(tmp_path):
    folder = save_checkpoint("roberta", tmp_path / "m")
    before = find_model(str(folder)).spec.fingerprint
    (folder / "extra.weird").write_text("1")
    changed = find_model(str(folder)).spec.fingerprint
    (folder / "extra.weird").write_text("2")
    assert len({before, changed, find_model(str(folder)).spec.fingerprint}) == 3
    (folder / "extra.weird").unlink()
    (folder / "README.md").write_text("only for people")
    assert find_model(str(folder)).spec.fingerprint == before


@pytest.mark.parametrize(
    ("file", "content", "found"),
    [
        ("modules.json", '{"a": 1}', "modules.json: found no list of modules; expected a model's"),
        ("modules.json", '[{"path": ""}]', "modules.json: found no list of modules"),
        ("config.json", "[]", "config.json: found no JSON object; expected a model's config"),
        ("config.json", "{", "config.json: found broken JSON"),
        ("config.json", '{"model_type": "no-such"}', "try another encoder"),
        ("sentence_bert_config.json", "[]", "found no JSON object"),
        ("model.safetensors", "short", "expected a model that sentence-transformers loads"),
    ],
)
def test_damaged_model_files_get_a_sentence(tmp_path, file, content, found):
    folder = save_checkpoint("roberta", tmp_path / "m")
    (folder / file).write_text(content)
    with pytest.raises(EncoderError) as error:
        encode(opened(folder), ["text"])
    assert found in str(error.value)
    with pytest.raises(EncoderError, match=r"found no .safetensors weights"):
        find_model(str(tmp_path))


def test_exactly_the_maximum_length_is_not_truncated(tmp_path):
    folder = save_checkpoint("roberta", tmp_path / "m")  # reads 32 tokens, two of them special
    texts = [" ".join(["bees"] * 30), " ".join(["bees"] * 31)]
    document = Document.build("a", texts, gold=[1, 1])
    encoder = opened(folder)
    assert encode_corpus(Corpus((document,)), encoder, ON_CPU).n_truncated == 1


@pytest.mark.parametrize("name", ["", "  ", "/no/such/folder", "./nothing", "x" * 5000])
def test_names_that_lead_nowhere_get_a_sentence(name):
    with pytest.raises((EncoderError, UnknownNameError)):
        find_model(name, offline=True)


def test_not_a_number_is_never_a_vector(tmp_path):
    folder = save_checkpoint("roberta", tmp_path / "m")
    encoder = opened(folder)
    with torch.no_grad():
        encoder._model[0].model.embeddings.LayerNorm.weight.fill_(torch.nan)
    with pytest.raises(EncoderError, match="found NaN or infinity in the vector of 'the budget'"):
        list(encoder.stream(["the budget"]))


def corpus():
    return Corpus(
        (
            Document.build("a", ["the bees", "  ", "the bees", "a lens " * 20], gold=[2, 2]),
            Document.build("b", ["honey", "the bees"], gold=[1, 1]),
        )
    )


class Counting:
    """Passes everything on and remembers what it was asked."""

    def __init__(self, inner):
        self.inner, self.spec, self.texts = inner, inner.spec, []

    def stream(self, texts):
        self.texts += texts
        return self.inner.stream(texts)


def test_distinct_texts_are_encoded_once_and_truncation_is_counted(tmp_path):
    model = find_model(str(save_checkpoint("roberta", tmp_path / "m")))
    encoder = Counting(SentenceTransformerEncoder(model, CPU))
    done = []
    embedded = encode_corpus(
        corpus(), encoder, ON_CPU, lambda stage, total: nullcontext(done.append)
    )
    assert sorted(encoder.texts) == ["a lens " * 20, "honey", "the bees"]
    assert [len(x) for x in embedded.vectors] == [3, 2]
    assert_array_equal(embedded.vectors[0][0], embedded.vectors[0][1])
    assert_array_equal(embedded.vectors[0][0], embedded.vectors[1][1])
    assert (embedded.n_distinct, embedded.n_truncated, sum(done)) == (3, 1, 3)


def test_arrays_may_cover_dropped_units_or_not():
    whole = [np.arange(8.0).reshape(4, 2), np.ones((2, 2))]
    kept = [whole[0][[0, 2, 3]], whole[1]]
    for given_arrays in (whole, kept, [torch.tensor(x) for x in whole]):
        assert_array_equal(from_arrays(corpus(), given_arrays).vectors[0], kept[0])
    assert from_arrays(corpus(), whole).spec == from_arrays(corpus(), kept).spec
    half = from_arrays(corpus(), [torch.tensor(x).bfloat16() for x in whole])
    assert_array_equal(half.vectors[0], kept[0])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([np.ones((4, 2))], "found 1 arrays of embeddings; expected 2"),
        ([np.ones((5, 2)), np.ones((2, 2))], "document 'a': found embeddings with 5 rows"),
        ([np.ones((4, 2)), np.ones((2, 3))], "found embeddings of 2 and 3 dimensions"),
        ([np.ones(4), np.ones((2, 3))], "found embeddings of shape (4,)"),
        ([[["x"]] * 4, np.ones((2, 3))], "type <U1"),
    ],
)
def test_arrays_that_do_not_fit_get_a_sentence(arrays, message):
    with pytest.raises(InputError) as error:
        from_arrays(corpus(), arrays)
    assert message in str(error.value)


def test_arrays_from_files(tmp_path):
    a, b = np.arange(8.0).reshape(4, 2), np.ones((2, 2))
    np.savez(tmp_path / "v.npz", a=a, b=b)
    np.save(tmp_path / "v.npy", np.concatenate([a, b]))
    named, stacked = (from_file(corpus(), tmp_path / f"v.{kind}") for kind in ("npz", "npy"))
    for x, y in zip(named.vectors, stacked.vectors, strict=True):
        assert_array_equal(x, y)
    np.savez(tmp_path / "few.npz", a=a)
    np.savez(tmp_path / "more.npz", a=a, b=b, z=b)
    np.save(tmp_path / "few.npy", a)
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    (tmp_path / "text.npy").write_text("no array")
    for name, message in {
        "few.npz": "no array for document 'b' (1 missing)",
        "few.npy": "found an array of shape (4, 2); expected 6 rows",
        "objects.npy": "without pickled objects",
        "text.npy": "a file that is no array of numbers; expected a .npy or .npz file",
        "absent.npy": "a file that cannot be opened (No such file or directory)",
        "more.npz": "an array for 'z', which the corpus does not have",
    }.items():
        with pytest.raises(InputError) as error:
            from_file(corpus(), tmp_path / name)
        assert message in str(error.value), name
        assert name in str(error.value)
