"""The axis glossary: every tensor axis of this package is named here, once.

| axis           | meaning                                         |
|----------------|-------------------------------------------------|
| ``batch``      | rows of a forward pass (prompts)                |
| ``pos``        | token positions, special tokens included        |
| ``query_pos``  | the position that attends                       |
| ``key_pos``    | the position attended to                        |
| ``source_pos`` | token positions of what an encoder reads        |
| ``d_model``    | width of the residual stream                    |
| ``head``       | attention heads of one layer                    |
| ``d_head``     | width of one head's query, key, value and ``z`` |
| ``d_mlp``      | neurons of one MLP                              |
| ``d_vocab``    | entries of the vocabulary                       |
| ``layer``      | transformer blocks                              |
| ``component``  | labelled summands of the residual stream        |

Shapes are written with jaxtyping, for example ``Float[Tensor, "batch pos d_model"]``; under
pytest, beartype checks them at run time.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor

Tokens = Int[Tensor, "batch pos"]
PaddingMask = Bool[Tensor, "batch pos"]
Residual = Float[Tensor, "batch pos d_model"]
HeadVectors = Float[Tensor, "batch pos head d_head"]
HeadResults = Float[Tensor, "batch pos head d_model"]
Pattern = Float[Tensor, "batch head query_pos key_pos"]
Neurons = Float[Tensor, "batch pos d_mlp"]
Logits = Float[Tensor, "batch pos d_vocab"]

__all__ = [
    "HeadResults",
    "HeadVectors",
    "Logits",
    "Neurons",
    "PaddingMask",
    "Pattern",
    "Residual",
    "Tokens",
]
