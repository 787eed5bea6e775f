"""Static word vectors: the packaged model's, any model folder's, and text files of vectors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from reffree.encoders.base import encode_texts
from reffree.encoders.models import find_model
from reffree.encoders.opening import open_encoder
from reffree.encoders.options import EncoderOptions
from reffree.encoders.word_vectors import (
    FileWordVectors,
    open_word_vectors,
)
from reffree.util.errors import EncoderError, InputError
from tests.checkpoints import save_checkpoint


@pytest.fixture(scope="module")
def minilm():
    return open_word_vectors("minilm", pieces=True)


@pytest.fixture(scope="module")
def rows():
    """Vectors of the packaged model's pieces, read without its tokenizer."""
    folder = find_model("minilm").path
    matrix = load_file(folder / "model.safetensors")["embeddings.word_embeddings.weight"].numpy()
    pieces = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    return {piece: matrix[i].astype(np.float64) for i, piece in enumerate(pieces)}


# Words through encoders ------------------------------------------------------------------------


@pytest.mark.parametrize("encoder", ["minilm", "wordllama"])
def test_a_word_is_a_text_of_its_own_and_encoded_once(encoder, monkeypatch):
    found = open_word_vectors(encoder)
    words = ["cities", "washing", "cities", "states"]
    vectors, known = found.look_up(words)
    assert known.all()
    texts, _ = encode_texts(open_encoder(EncoderOptions(encoder=encoder, cache=False)), words)
    assert_allclose(vectors, texts, atol=1e-5)
    assert_array_equal(vectors[0], vectors[2])
    monkeypatch.setattr(found._encoder, "stream", None)  # nothing is left to encode
    again, _ = found.look_up(["states", "cities"])
    assert_array_equal(again, vectors[[3, 0]])
    nothing, known = found.look_up([])
    assert (len(nothing), len(known)) == (0, 0)


def test_a_word_that_the_encoder_cannot_read_is_unknown():
    _, known = open_word_vectors().look_up(["city", "𓀀", "cities"])
    assert known.tolist() == [True, False, True]


def test_vectors_say_from_which_cosine_on_words_are_related(tmp_path):
    path = tmp_path / "small.txt"
    path.write_text("ash 1 0\n")
    folder = save_checkpoint("roberta", tmp_path / "roberta")
    sources = ["minilm", "wordllama", str(folder), str(path)]
    assert [open_word_vectors(one).threshold for one in sources] == [0.51, 0.32, 0.7, 0.7]
    assert open_word_vectors("minilm", pieces=True).threshold == 0.7


# Models ----------------------------------------------------------------------------------------


def test_a_word_is_the_mean_of_its_pieces(minilm, rows):
    vectors, known = minilm.look_up(["city", "washes", "segmentations"])
    assert known.all()
    assert vectors.dtype == np.float64
    assert_array_equal(vectors[0], rows["city"])
    assert_allclose(vectors[1], (rows["wash"] + rows["##es"]) / 2)
    assert_allclose(vectors[2], (rows["segment"] + rows["##ations"]) / 2)


def test_unknown_words_are_told_and_get_no_vector(minilm, rows):
    vectors, known = minilm.look_up(["city", "𓀀", "a" * 200, "cities"])
    assert known.tolist() == [True, False, False, True]
    assert not vectors[1:3].any()
    assert_array_equal(vectors[3], rows["cities"])
    vectors, known = minilm.look_up(["𓀀"])
    assert vectors.shape == (1, 384)
    assert not known.any()
    vectors, known = minilm.look_up([])
    assert vectors.shape == (0, 384)
    assert known.shape == (0,)


def test_names_say_which_vectors(minilm, tmp_path):
    model = "sentence-transformers/all-MiniLM-L6-v2@sha256:53aa51172d142c89"
    assert (minilm.name, open_word_vectors().name) == (f"{model}:pieces", model)
    path = tmp_path / "small.txt"
    path.write_text("ash 1 0\n")
    # printf 'ash 1 0\n' | sha256sum
    assert FileWordVectors(path).name == "small.txt@sha256:4cc2416bfd17f247"


@pytest.mark.parametrize("architecture", ["roberta", "mpnet", "falcon", "llama"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_any_architecture(architecture, dtype, tmp_path):
    from transformers import AutoModel

    folder = save_checkpoint(architecture, tmp_path / architecture, dtype=dtype)
    model = AutoModel.from_pretrained(folder, dtype=torch.float32)
    expected = model.get_input_embeddings().weight.detach().double().numpy()
    found = open_word_vectors(str(folder), pieces=True)
    vectors, known = found.look_up(["bees", "unheard", "honey"])
    # Tokens 0 to 3 are special, then come the words of tests.checkpoints.
    assert_array_equal(vectors[[0, 2]], expected[[8, 9]])
    assert known.tolist() == [True, False, True]


def byte_level_folder(folder):
    """Model folder whose tokenizer tells a word inside a text from one at its start."""
    alphabet = ["a", "c", "t", "Ġ", "Ġa", "ca", "cat", "Ġcat"]
    merges = [("c", "a"), ("ca", "t"), ("Ġ", "cat"), ("Ġ", "a")]
    core = Tokenizer(models.BPE({piece: i for i, piece in enumerate(alphabet)}, merges))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=core).save_pretrained(folder)
    weights = torch.arange(len(alphabet) * 2, dtype=torch.float32).reshape(-1, 2)
    save_file({"model.embed_tokens.weight": weights}, folder / "model.safetensors")
    return folder


def test_words_are_looked_up_as_inside_a_text(tmp_path):
    found = open_word_vectors(str(byte_level_folder(tmp_path)), pieces=True)
    vectors, known = found.look_up(["cat", "tac"])
    assert_array_equal(vectors[0], [14, 15])  # Ġcat, not cat
    # Ġ, t, a, c; the space before the word is not a piece of it.
    assert_array_equal(vectors[1], np.mean([[4, 5], [0, 1], [2, 3]], axis=0))
    assert known.all()


def test_input_embeddings_are_told_from_others_and_found_in_any_part(tmp_path):
    folder = byte_level_folder(tmp_path)
    (folder / "model.safetensors").unlink()
    real = torch.ones(8, 2)
    save_file({"lm_head.weight": real * 2, "x.shared.weight": real * 3}, folder / "a.safetensors")
    save_file({"model.embed_tokens.weight": real}, folder / "b.safetensors")
    vectors, _ = open_word_vectors(str(folder), pieces=True).look_up(["cat"])
    assert_array_equal(vectors, [[1, 1]])


def test_folders_that_cannot_serve(tmp_path):
    folder = byte_level_folder(tmp_path)
    weights = folder / "model.safetensors"
    save_file({"lm_head.weight": torch.ones(8, 2)}, weights)
    with pytest.raises(EncoderError, match=r"found no input embeddings; expected a tensor named"):
        open_word_vectors(str(folder), pieces=True).look_up(["cat"])
    save_file({"embed_tokens.weight": torch.ones(5, 2)}, weights)
    with pytest.raises(EncoderError, match="found token 7 and 5 embeddings; expected a tokenizer"):
        open_word_vectors(str(folder), pieces=True).look_up(["cat"])
    weights.write_bytes(b"broken")
    with pytest.raises(EncoderError, match=r"found model\.safetensors unreadable .*use another"):
        open_word_vectors(str(folder), pieces=True).look_up(["cat"])


# Text files ------------------------------------------------------------------------------------


def write(tmp_path, content, name="vectors.txt"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "content",
    [
        "ash 1 -0.5 2e-3\nüber 0 1 1\n",  # GloVe
        "2 3\nash 1 -0.5 2e-3\nüber 0 1 1\n",  # word2vec
        "2 3 \nash 1 -0.5 2e-3 \nüber 0 1 1 \n",  # fastText, spaces at the end
        "ash\t1\t-0.5\t2e-3\r\nüber\t0\t1\t1\r\n",
        "ash  1 -0.5 2e-3\nüber 0 1 1",
        "2 3\nash 1 -0.5 2e-3\nüber 0 1 1\n\n",
    ],
    ids=["glove", "word2vec", "fasttext", "tabs", "two spaces", "empty line"],
)
def test_text_formats(content, tmp_path):
    vectors = FileWordVectors(write(tmp_path, content))
    assert vectors.dimension == 3
    found, known = vectors.look_up(["über", "gnu", "ash", "über"])
    assert known.tolist() == [True, False, True, True]
    assert_array_equal(found, [[0, 1, 1], [0, 0, 0], [1, -0.5, 0.002], [0, 1, 1]])
    assert vectors.look_up([])[0].shape == (0, 3)


def test_phrases_repeats_and_entries_without_a_word(tmp_path):
    content = "ash 1 0\nash tree 5 5\nash 7 7\n 3 3\nbay 0 1\n"
    vectors = FileWordVectors(write(tmp_path, content))
    found, known = vectors.look_up(["ash", "tree", "3", "bay"])
    assert_array_equal(found, [[1, 0], [0, 0], [0, 0], [0, 1]])
    assert known.tolist() == [True, False, False, True]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "txt: found no words; expected lines of a word and its numbers; give vectors in"),
        ("ash\n", "line 1: found no vector; expected a word and its numbers"),
        ("ash 1 2\nbay 1\n", "line 2: found 1 number; expected 2 after the word; give vectors in"),
        ("3 2\nash 1 2\nbay 1 2\n", "line 1: found a header of 3 words and 2 lines; expected as"),
        (b"2 4\nash \x00\x01\x02\x03\nbay \x01", "line 2: found 1 number; expected 4 after"),
    ],
    ids=["empty", "word only", "short line", "cut off", "binary"],
)
def test_files_that_are_refused(content, message, tmp_path):
    with pytest.raises(InputError, match=message):
        FileWordVectors(write(tmp_path, content))


@pytest.mark.parametrize("line", ["bay 1 x", "bay 1 nan", "bay inf 1", "bay  1"])
def test_numbers_are_checked_when_they_are_looked_up(line, tmp_path):
    vectors = FileWordVectors(write(tmp_path, f"ash 1 2\n{line}\n"))
    assert vectors.look_up(["ash"])[1].all()
    with pytest.raises(InputError, match=r"line 2: found 'bay .*'; expected a word and 2 finite"):
        vectors.look_up(["ash", "bay"])


def test_missing_files(tmp_path):
    with pytest.raises(InputError, match=r"glove\.txt: found no readable file .*; expected a text"):
        open_word_vectors(str(tmp_path / "glove.txt"))
    path = write(tmp_path, "ash 1 2\n")
    vectors = open_word_vectors(str(path))
    path.unlink()
    with pytest.raises(InputError, match=r"found no readable file .*; check the path"):
        vectors.look_up(["ash"])
