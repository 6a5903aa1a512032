"""What do token ids say? Their texts, for tables that people read."""

from jaxtyping import Int
from torch import Tensor

from interp.model.transformer import HookedTransformer


def token_texts(model: HookedTransformer, ids: Int[Tensor, " token"]) -> list[str | None]:
    """The text of each id, with its leading space; None where the model has no tokenizer."""
    if model.tokenizer is None:
        return [None] * len(ids)
    distinct = ids.unique()
    texts = dict(zip(distinct.tolist(), model.to_str_tokens(distinct), strict=True))
    return [texts[each] for each in ids.tolist()]
