"""Results of the stream, of lenses and of circuits: equal where their numbers are, and saved as a page with tables."""

import html
from dataclasses import replace
from functools import partial

import pandas as pd
import pytest
from tiny_models import random_model, word_tokenizer

from interp.report.sections import Sentences, page_of
from interp.report.words import legible
from interp.residual.circuits import composition_scores, copying_scores, looks_for, writes
from interp.residual.logit_lens import logit_lens
from interp.residual.stream import direct_logit_attribution, residual_stream
from interp.residual.tuned_lens import TunedLensFitter, compare_lenses

pytestmark = pytest.mark.unchecked

PROMPTS = ["The keys to the cabinet are", "Mary"]


def attributed(model):
    return direct_logit_attribution(model, residual_stream(model, PROMPTS), " keys", " key")


def compared(model):
    tokens = model.to_tokens(PROMPTS[0])
    return compare_lenses(model, tokens, TunedLensFitter(model).update(tokens).lens)


CALLS = {
    "stream": (partial(residual_stream, prompts=PROMPTS), "components", 14, "14 components sum to the residual stream"),
    "attribution": (attributed, "components", 15, "logit difference is .*, the mean of 2 prompts"),
    "lens": (partial(logit_lens, prompts=PROMPTS), "depths", 3, "Read at 3 depths, over 9 tokens of 2 prompts"),
    "lenses": (compared, "depths", 3, r"nearer to the model's own output at \d of 2 depths"),
    "copying": (copying_scores, "heads", 6, r"Head \d\.\d copies most: -?\d"),
    "composition": (composition_scores, "pairs", 27, r"head 1\.\d of head 0\.\d \(\w, 0\.\d\d\)"),
    "looks for": (
        partial(looks_for, layer=1, head=2, word=" keys"),
        "words",
        10,
        "From “keys”, head 1.2 looks most for",
    ),
    "writes": (
        partial(writes, layer=1, head=2, word=" keys"),
        "words",
        20,
        "Where it attends to “keys”, head 1.2 raises",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_result_is_one(name, tmp_path):
    call, table, n_rows, said = CALLS[name]
    model = random_model(tokenizer=word_tokenizer())
    result = call(model)
    assert result == call(model)
    assert result != replace(result, examples=result.examples.iloc[1:])
    assert result.provenance["model_hash"] == model.hash
    assert len(result.summary()) == n_rows
    sentences = [text for each in page_of(result).sections if isinstance(each, Sentences) for text in each.texts]
    assert pd.Series(" ".join(sentences)).str.contains(said).all(), sentences
    out = result.save(tmp_path / "report")
    assert len(pd.read_parquet(out / f"{table}.parquet")) == n_rows
    assert (out / f"{table}.csv").exists()
    assert len(pd.read_parquet(out / "examples.parquet")) == len(result.examples)
    assert result.save(out) == out, "its own report is replaced"
    assert legible(sentences[0]) in html.unescape(result._repr_html_())


def test_streams_differ_where_their_tensors_do():
    model = random_model(tokenizer=word_tokenizer())
    stream = residual_stream(model, PROMPTS)
    assert stream != replace(stream, total=stream.total + 1e-9)
    assert stream != replace(stream, mask=~stream.mask)
    nothing = replace(stream, total=stream.total * float("nan"))
    assert nothing == replace(nothing, total=nothing.total.clone())
