"""What the model would say if it stopped after each block: the logit lens (nostalgebraist 2020).

1. A run keeps the residual stream at every boundary: before the first block, and after each block.
2. The last norm and the unembedding read each of them as if it were the last: ``unembed(ln_final(x))``. At the last
   boundary that is the model's own output, bit by bit.
3. Each reading is compared with what came next in the prompt, and with the model's own distribution.

A translator may change the streams before they are read: with a trained one, this is the tuned lens
(``tuned_lens.py``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.errors import InputError
from interp.model.devices import documented
from interp.model.provenance import model_provenance
from interp.model.transformer import HookedTransformer
from interp.residual.readout import boundary_streams, kl_divergence, log_probabilities, read_out, token_texts
from interp.result import Result
from interp.shapes import PaddingMask, Residual, Tokens

Translate = Callable[[Residual, int], Residual]
UNKNOWN = -1
PLACES, MEASURES = ["depth", "example", "pos"], ["rank", "log_prob", "entropy", "kl"]


@dataclass(frozen=True, eq=False, repr=False)
class LensReading(Result):
    """What the model would say at each boundary between its blocks.

    A boundary's ``depth`` is the number of blocks before it: at 0 the stream holds the embeddings, at ``n_layers`` what
    the model's own output is made of.

    Attributes:
        examples: One row a boundary and token: ``depth``, ``example``, ``pos``, ``token`` (the id read there), its
            ``text`` (None without a tokenizer), ``next_token`` (the one that follows; missing where it is not known),
            its ``rank`` (how many tokens have a larger logit; 0 is the first guess) and ``log_prob`` (nats), the
            distribution's ``entropy`` (nats), and ``kl``, ``sum p (log p - log q)`` in nats, of the model's own
            distribution ``p`` from this ``q``.
        provenance: How it was made.
        top: One row a boundary, token and likely next token: ``depth``, ``example``, ``pos``, ``place`` (from 0),
            ``token``, ``text`` (None without a tokenizer), ``log_prob`` (nats).
    """

    top: pd.DataFrame

    shown_by: ClassVar[str] = "results.stream"

    def summary(self) -> pd.DataFrame:
        """One row a boundary: the means of ``rank``, ``log_prob``, ``entropy`` and ``kl``, over ``n`` tokens.

        Rank and log-probability are means over those tokens whose next token is known; ``right`` is the share of them
        that is the first guess.
        """
        first_guess = self.examples["rank"].eq(0).astype("Float64")
        groups = self.examples.assign(right=first_guess).groupby("depth")
        return groups[[*MEASURES, "right"]].mean().astype(float).assign(n=groups.size()).reset_index()


@documented
@torch.inference_mode()
def logit_lens(
    model: HookedTransformer,
    prompts: str | Sequence[str] | Int[Tensor, "batch pos"],
    *,
    attention_mask: Tensor | None = None,
    answer: Int[Tensor, " batch"] | int | str | None = None,
    translate: Translate | None = None,
    top: int = 5,
) -> LensReading:
    """Read the stream at every boundary as if it were the last.

    The logits of one boundary are held at a time.

    Source: nostalgebraist (2020), "interpreting GPT: the logit lens".

    Args:
        model: The model. Hooks on the stream, the last norm and the unembedding are seen.
        prompts: Texts (with what ``interp.special_tokens`` puts around them) or token ids.
        attention_mask: With token ids: 1 for tokens, 0 for padding.
        answer: The token that follows the prompts, one for all or one each; without, it is not known.
        translate: From a boundary's stream and depth to the stream that is read, such as a ``TunedLens``. The last
            boundary is never translated.
        top: How many likely next tokens are listed.

    Returns:
        One row per boundary, prompt and token in ``examples``, with what is likely there in nats.

    Raises:
        InputError: The prompts do not fit the model, `answer` or `top` is none, or the logits are no numbers.

    Examples:
        >>> from interp.residual.logit_lens import logit_lens
        >>> reading = logit_lens(interp.load_model(), "The keys to the cabinet", answer=" are")
        >>> reading.examples.query("pos == pos.max()")["rank"].tolist()
        [1577, 2174, 48, 8]
    """
    tokens, mask = model.as_tokens(prompts, attention_mask)
    if not 1 <= top <= model.config.d_vocab:
        raise InputError(f"top: expected 1 to {model.config.d_vocab} tokens (the vocabulary), got {top}")
    following = _following(model, tokens, mask, answer)[mask]
    example, pos = mask.nonzero().T.cpu().numpy()
    read = pd.DataFrame({"example": example, "pos": pos, "token": tokens[mask].cpu().numpy()})
    read["text"], read["next_token"] = token_texts(model, tokens[mask]), _known(following, following)
    streams = boundary_streams(model, tokens, mask)
    final = log_probabilities(read_out(model, streams[-1])[mask])
    frames, tops = [], []
    for depth, x in enumerate(streams):
        translated = x if translate is None or depth == len(streams) - 1 else translate(x, depth).to(x.device)
        logits = read_out(model, translated)[mask]
        nats = log_probabilities(logits)
        frames.append(read.assign(depth=depth, **_measures(logits, nats, final, following)))
        tops.append(_top(model, nats, read, top).assign(depth=depth))
    examples, listed = pd.concat(frames, ignore_index=True), pd.concat(tops, ignore_index=True)
    how = {**model_provenance(model), "lens": "logit lens" if translate is None else "translated", "top": top}
    return LensReading(
        examples[[*PLACES, "token", "text", "next_token", *MEASURES]],
        {**how, "n_prompts": len(tokens), "n_tokens": len(read)},
        listed[[*PLACES, "place", "token", "text", "log_prob"]],
    )


def _following(model: HookedTransformer, tokens: Tokens, mask: PaddingMask, answer: object) -> Tokens:
    """The token after each one, the answer after a prompt's last; ``UNKNOWN`` where there is none.

    A bidirectional model does not predict what comes next, so there it is not known at all.
    """
    after = torch.full_like(tokens, UNKNOWN)
    if model.config.causal:
        after[:, :-1] = tokens[:, 1:].masked_fill(~mask[:, 1:], UNKNOWN)
    elif answer is not None:
        raise InputError("answer: a bidirectional model does not predict what follows a prompt; leave it out")
    if answer is None:
        return after
    ids = model.to_ids(answer)
    if ids.shape not in ((), (len(tokens),)):
        expected = f"one token, or one for each of the {len(tokens)} prompts"
        raise InputError(f"answer: expected {expected}, got shape {tuple(ids.shape)}")
    place = torch.arange(tokens.shape[1], device=tokens.device)
    last = torch.where(mask, place, -1).max(-1, keepdim=True).values
    return torch.where(place == last, ids.expand(len(tokens))[:, None], after)


def _measures(
    logits: Float[Tensor, "token d_vocab"],
    nats: Float[Tensor, "token d_vocab"],
    final: Float[Tensor, "token d_vocab"],
    following: Int[Tensor, " token"],
) -> dict[str, object]:
    """The ``MEASURES`` of one boundary."""
    index = following.clamp(min=0)[:, None]
    rank = (logits > logits.gather(1, index)).sum(-1)
    return {
        "rank": _known(rank, following),
        "log_prob": _known(nats.gather(1, index)[:, 0], following),
        "entropy": torch.special.entr(nats.exp()).sum(-1).cpu().numpy(),
        "kl": kl_divergence(final, nats).cpu().numpy(),
    }


def _known(values: Int[Tensor, " token"] | Float[Tensor, " token"], following: Int[Tensor, " token"]) -> pd.Series:
    """`values`, missing where the next token is not known: whole numbers stay whole."""
    series = pd.Series(values.cpu().numpy())
    kept = series if values.is_floating_point() else series.astype("Int64")
    return kept.where(pd.Series((following != UNKNOWN).cpu().numpy()))


def _top(model: HookedTransformer, nats: Float[Tensor, "token d_vocab"], tokens: pd.DataFrame, n: int) -> pd.DataFrame:
    """The `n` likeliest next tokens of each of the `tokens`."""
    best = nats.topk(n)
    rows = tokens[["example", "pos"]].loc[tokens.index.repeat(n)].reset_index(drop=True)
    ids = best.indices.flatten()
    return rows.assign(
        place=list(range(n)) * len(tokens),
        token=ids.cpu().numpy(),
        text=token_texts(model, ids),
        log_prob=best.values.flatten().cpu().numpy(),
    )
