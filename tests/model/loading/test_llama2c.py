"""llama2.c's models and its tokenizer, which encodes as its C program does."""

import itertools
import random
import struct

import pytest
import torch
from refusals import refused
from tiny_models import random_tokens, relative_error, word_tokenizer
from written_checkpoints import MAGIC, export, llama
from written_models import LLAMA

from interp.errors import LoadError
from interp.model.loading import load_model
from interp.model.loading.tokenizer import read_tokenizer_bin


def error(source, theirs, dtype="float64"):
    model = load_model(source, dtype=dtype)
    tokens = random_tokens(model, length=model.config.n_ctx)
    with torch.no_grad():
        return relative_error(model(tokens), theirs(tokens))


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    "fields", [{}, {"tied": False}, {"n_kv_heads": 4}, {"n_kv_heads": 1, "hidden_dim": 7}], ids=str
)
def test_logits(tmp_path, fields, version):
    theirs = llama(**fields)
    path = export(theirs, tmp_path / "model.bin", version)
    assert error(path, theirs, "float32") < 1e-5
    assert error(path, theirs.double()) < 1e-10
    assert load_model(tmp_path).config.tied == fields.get("tied", True)


def test_the_training_checkpoint_is_the_same_model(tmp_path):
    theirs = llama()
    state = {f"_orig_mod.{name}": tensor for name, tensor in theirs.state_dict().items()}
    state["_orig_mod.freqs_cos"] = torch.ones(10, 3)
    content = {"model": state, "model_args": LLAMA | {"multiple_of": 32, "dropout": 0.0}, "iter_num": 5}
    torch.save(content, tmp_path / "ckpt.pt")
    model = load_model(tmp_path)
    assert model.hash == load_model(export(theirs, tmp_path / "model.bin", 1)).hash
    message = "'layers.0.feed_forward.w1.weight' is not a matrix here, which would say how many neurons there are"
    state["_orig_mod.layers.0.feed_forward.w1.weight"] = torch.tensor(1.0)
    torch.save(content, tmp_path / "ckpt.pt")
    refused(tmp_path / "ckpt.pt", message)
    del state["_orig_mod.layers.0.feed_forward.w1.weight"]
    torch.save(content, tmp_path / "ckpt.pt")
    refused(tmp_path / "ckpt.pt", message)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("change", [-4, -1, 4])
def test_a_file_of_another_length(tmp_path, version, change):
    path = export(llama(), tmp_path / "model.bin", version)
    content = path.read_bytes()
    path.write_bytes(content[:change] if change < 0 else content + bytes(change))
    sizes = f"expected {len(content)} bytes of a llama2.c model of version {version} .*, got {len(content) + change};"
    refused(path, sizes)


def test_a_header_of_more_than_can_be_held(tmp_path):
    path = export(llama(), tmp_path / "model.bin")
    content = bytearray(path.read_bytes())
    content[8:12] = struct.pack("<i", 2**31 - 1)
    path.write_bytes(content)
    refused(path, r"expected \d{14} bytes of a llama2.c model")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a llama2.c header of at least 28 bytes, got 0"),
        (b"hello", "expected a llama2.c header of at least 28 bytes, got 5"),
        (bytes(100), "header: dim: expected a whole number of at least 1, got 0"),
        (struct.pack("<7i", 24, 20, 2, 5, 5, 43, 10), "header: dim=24 is not a multiple of n_heads=5"),
        (struct.pack("<7i", 24, 20, 2, 4, 3, 43, 10), "header: n_kv_heads: expected a divisor of n_heads=4"),
        (struct.pack("<Ii", MAGIC, 1) + bytes(50), "expected a llama2.c header of 256 bytes, got 58"),
        (struct.pack("<Ii", MAGIC, 2) + bytes(300), "version 2 of llama2.c's format is quantised to 8 bits"),
        (struct.pack("<Ii", MAGIC, 7) + bytes(300), "version 7 of llama2.c's format is unknown here"),
    ],
)
def test_what_is_no_such_file(tmp_path, content, message):
    (tmp_path / "model.bin").write_bytes(content)
    refused(tmp_path / "model.bin", message)


def test_numbers_that_are_none(tmp_path):
    theirs = llama()
    with torch.no_grad():
        theirs.layers[1].attention["wk"].weight[0, 0] = torch.nan
    refused(export(theirs, tmp_path / "model.bin", 1), "'layers.1.attention.wk.weight': 1 of its 288 values are NaN")


BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
LETTERS = " abcé\n"


def random_vocabulary(rng, n_merges):
    """Tokens as a byte-pair training would find them: each is two older ones, and scores fall."""
    pieces = ["<unk>", "\n<s>\n", "\n</s>\n", *BYTES, *LETTERS]
    scores = [0.0] * (3 + 256) + [-1000.0 - each for each in range(len(LETTERS))]
    made = list(LETTERS)
    while len(made) < len(LETTERS) + n_merges:
        new = rng.choice(made) + rng.choice(made)
        if new not in made and len(new) < 9:
            made.append(new)
            pieces.append(new)
            scores.append(-float(len(made)))
    return pieces, scores


def write(path, pieces, scores):
    content = struct.pack("<I", max(len(piece.encode()) for piece in pieces))
    for piece, score in zip(pieces, scores, strict=True):
        content += struct.pack("<fI", score, len(piece.encode())) + piece.encode()
    path.write_bytes(content)
    return path


def encode(text, pieces, scores):
    """What run.c does, in Python: characters or bytes, then the best pair, the left one of equals."""
    ids = {piece: index for index, piece in reversed(list(enumerate(pieces)))}
    tokens = [ids[" "]] if text else []
    for character in text:
        tokens += [ids[character]] if character in ids else [byte + 3 for byte in character.encode()]
    while True:
        best = None
        for i, (left, right) in enumerate(itertools.pairwise(tokens)):
            merged = ids.get(pieces[left] + pieces[right])
            if merged is not None and (best is None or scores[merged] > scores[best[1]]):
                best = (i, merged)
        if best is None:
            return tokens
        tokens[best[0] : best[0] + 2] = [best[1]]


@pytest.mark.parametrize("seed", range(5))
def test_it_encodes_as_the_c_program_does(tmp_path, seed):
    rng = random.Random(seed)
    pieces, scores = random_vocabulary(rng, n_merges=60)
    tokenizer = read_tokenizer_bin(write(tmp_path / "tokenizer.bin", pieces, scores), len(pieces))
    merged = 0
    for _ in range(300):
        text = "".join(rng.choices(" abcé\nzü€😀", weights=[4, 8, 8, 8, 4, 1, 1, 1, 1, 1], k=rng.randint(0, 40)))
        expected = encode(text, pieces, scores)
        assert tokenizer.encode(text, add_special_tokens=False) == expected, repr(text)
        assert tokenizer.decode(expected) == text
        merged += sum(token >= len(pieces) - 60 for token in expected)
    assert merged > 200


def test_beside_the_model_it_is_read(tmp_path):
    pieces, scores = random_vocabulary(random.Random(0), n_merges=30)
    path = export(llama(vocab_size=len(pieces)), tmp_path / "model.bin")
    assert load_model(path).tokenizer is None
    write(tmp_path / "tokenizer.bin", pieces, scores)
    for source in (path, tmp_path):
        model = load_model(source)
        assert model.to_tokens("abc").tolist() == [[1, *encode("abc", pieces, scores)]]
        assert model.tokenizer.bos_token == "<s>"
        assert model.to_str_tokens("ab")[0] == "<s>"
    assert load_model(path, tokenizer=model.tokenizer).tokenizer is model.tokenizer


@pytest.mark.parametrize("kind", ["bin", "pt"])
def test_one_of_a_vocabulary_of_its_own(tmp_path, kind):
    """It is called after its size, and lies there beside Llama's."""
    pieces, scores = random_vocabulary(random.Random(0), n_merges=30)
    theirs = llama(vocab_size=len(pieces))
    if kind == "bin":
        path = export(theirs, tmp_path / "model.bin")
    else:
        path = tmp_path / "ckpt.pt"
        arguments = LLAMA | {"vocab_size": len(pieces), "norm_eps": 1e-5}
        torch.save({"model": theirs.state_dict(), "model_args": arguments}, path)
    write(tmp_path / "tokenizer.bin", pieces[:-1], scores[:-1])
    refused(path, rf"tokenizer.bin: .*put its own tokenizer beside it, as tok{len(pieces)}.bin, or give load_model")
    write(tmp_path / f"tok{len(pieces)}.bin", pieces, scores)
    for source in (path, tmp_path):
        model = load_model(source)
        assert model.to_tokens("abc").tolist() == [[1, *encode("abc", pieces, scores)]]


def test_one_of_transformers_beside_the_model(tmp_path):
    """As the command line advises where there is none."""
    tokenizer = word_tokenizer()
    path = export(llama(vocab_size=len(tokenizer)), tmp_path / "model.bin")
    assert load_model(path).tokenizer is None
    tokenizer.save_pretrained(tmp_path)
    assert load_model(path).tokenizer.get_vocab() == tokenizer.get_vocab()


def test_it_travels_along(tmp_path):
    from interp.model.loading import save_model

    pieces, scores = random_vocabulary(random.Random(0), n_merges=30)
    write(tmp_path / "tokenizer.bin", pieces, scores)
    model = load_model(export(llama(vocab_size=len(pieces)), tmp_path / "model.bin"))
    again = load_model(save_model(model, tmp_path / "ours"))
    for text in ("ab ca\nb", "é€", ""):
        assert again.tokenizer.encode(text) == model.tokenizer.encode(text)
        assert again.tokenizer.decode(again.tokenizer.encode(text)) == text


def test_one_of_another_model(tmp_path):
    pieces, scores = random_vocabulary(random.Random(0), n_merges=30)
    write(tmp_path / "tokenizer.bin", pieces, scores)
    refused(export(llama(), tmp_path / "model.bin"), f"{len(pieces)} tokens, but the model's vocabulary has 43")


def test_damaged(tmp_path):
    pieces, scores = random_vocabulary(random.Random(0), n_merges=30)
    path = write(tmp_path / "tokenizer.bin", pieces, scores)
    content = path.read_bytes()
    for cut in (len(content) - 1, len(content) - 9, 4 + 8 + 3):
        path.write_bytes(content[:cut])
        with pytest.raises(LoadError, match=r"ends in the middle of token \d+; fetch or export it again"):
            read_tokenizer_bin(path, len(pieces))
    path.write_bytes(content.replace("é".encode(), b"\xff\xff"))
    with pytest.raises(LoadError, match=r"token \d+ is no UTF-8 text"):
        read_tokenizer_bin(path, len(pieces))
