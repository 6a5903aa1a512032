"""Writing on from a prompt: greedy, or sampled with temperature, top-k and top-p (Holtzman et al. 2020).

1. Prompts are tokenised, and padded on the left.
2. Each step runs the new tokens against the cached keys and values, and draws the next token of every row.
3. A row ends at an end-of-text token, or where it fills the context; what follows is padding.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from interp.arguments import named_arguments
from interp.errors import InputError, shown
from interp.model.attention import KeyValueCache
from interp.model.devices import documented, ordinary_modes
from interp.model.text import TextMixin, as_padding_mask
from interp.shapes import PaddingMask, Residual, Tokens

ReturnType = Literal["input", "str", "tokens", "embeds"]
Prompts = str | Sequence[str] | Tokens | Int[Tensor, " pos"] | Residual
Step = tuple[Int[Tensor, " batch"], Bool[Tensor, " batch"]]


@dataclass(frozen=True)
class GenerationOptions:
    """How prompts are continued.

    Attributes:
        do_sample: False takes the most probable token whatever the rest says; True samples, at a temperature of 1
            unless one is given; None samples where `temperature` is above 0.
        temperature: 0 takes the most probable token; above, logits are divided by it and sampled.
        top_k: Sample among this many most probable tokens only.
        top_p: Sample among the smallest set of tokens that holds this probability.
        seed: Of the sampling.
        stop_at_eos: Whether a row ends at an end-of-text token.
        eos_token_id: Which that is, or are; None for the tokenizer's, if there is one.
        prepend_bos: Of text, as of ``to_tokens``.
        attention_mask: Of token ids and embeddings: 1 for tokens, 0 for padding on the left.
        use_past_kv_cache: Whether keys and values are kept, so that each position is computed once.
        verbose: As in TransformerLens; nothing is printed here.

    Raises:
        InputError: A setting is out of range.
    """

    do_sample: bool | None = None
    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0
    stop_at_eos: bool = True
    eos_token_id: int | Sequence[int] | None = None
    prepend_bos: bool | None = None
    attention_mask: Tensor | None = None
    use_past_kv_cache: bool = True
    verbose: bool = False

    def __post_init__(self) -> None:
        if self.do_sample is False:
            return
        if not 0 <= self.temperature < math.inf:
            raise InputError(f"temperature: expected 0 (greedy) or more, got {self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise InputError(f"top_k: expected at least 1, got {self.top_k}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise InputError(f"top_p: expected a share above 0 and at most 1, got {self.top_p}")
        if self.do_sample is None and self.temperature == 0 and (self.top_k is not None or self.top_p is not None):
            raise InputError("top_k and top_p choose what is sampled from, but temperature=0 samples nothing; raise it")

    @classmethod
    def of(cls, call: str, options: dict[str, Any]) -> "GenerationOptions":
        """Those of a call's keyword arguments; an unknown one, or one of a wrong kind, raises."""
        unknown = options.keys() - {each.name for each in fields(cls)}
        if unknown:
            raise InputError(f"{call}: has no option {', '.join(sorted(unknown))}; see help(model.generate)")
        return named_arguments(cls)(**options)

    def choose(self, logits: Float[Tensor, "batch d_vocab"], generator: torch.Generator) -> Int[Tensor, " batch"]:
        """A token of each row."""
        temperature = self.temperature or float(bool(self.do_sample))
        if self.do_sample is False or temperature == 0:
            return logits.argmax(-1)
        below = logits - logits.max(-1, keepdim=True).values  # the same distribution, and no quotient overflows
        smallest = torch.finfo(logits.dtype).tiny  # below it, the temperature itself would become 0
        ordered, index = (below / max(temperature, smallest)).sort(-1, descending=True)
        if self.top_k is not None:
            ordered[:, self.top_k :] = -torch.inf
        probability = ordered.softmax(-1)
        if self.top_p is not None:
            before = probability.cumsum(-1) - probability
            probability = probability.masked_fill(before >= self.top_p, 0.0)
        draw = torch.multinomial(probability.cpu(), 1, generator=generator).to(index.device)
        return index.gather(-1, draw)[:, 0]


class GenerationMixin(TextMixin):
    """TransformerLens' ``generate`` and ``generate_stream``, for a model that runs with hooks and reads text."""

    @documented
    @torch.no_grad()
    def generate(
        self, input: Prompts = "", max_new_tokens: int = 20, *, return_type: ReturnType = "input", **options: Any
    ) -> str | list[str] | Int[Tensor, "batch written"] | Float[Tensor, "batch written d_model"]:
        """Continue each prompt; the prompt and what follows is returned.

        Prompts of unequal length are padded on the left; padding changes nothing. A prompt stops at the end-of-text
        token, or where it fills the context.

        Args:
            input: One text or several; token ids ``[batch pos]``; or embeddings of tokens ``[batch pos d_model]``, as
                ``hook_embed`` holds them.
            max_new_tokens: Tokens to write, at most.
            return_type: ``"str"``: a text for one text or row of ids, a list for several; ``"tokens"``: ids, with
                padding in front of shorter prompts and behind rows that end early; ``"embeds"``: their embeddings;
                ``"input"``: what was given. Embeddings have no tokens: ``"str"`` and ``"tokens"`` are then what is new.
            options: The fields of ``GenerationOptions``: ``temperature``, ``top_k``, ``top_p``, ``seed``, ...

        Returns:
            What `return_type` says.

        Raises:
            InputError: A setting is out of range, a prompt leaves no room in the context, there is text and no
                tokenizer, or the model is bidirectional.
        """
        if return_type not in get_args(ReturnType):
            raise InputError(
                f"return_type: expected one of {', '.join(get_args(ReturnType))}, got {shown(return_type)}"
            )
        prompts, steps = _continued(self, input, max_new_tokens, GenerationOptions.of("generate", options))
        new, kept = (torch.stack(each, dim=1) for each in zip(*steps, strict=True))
        if return_type == "input":
            kind: ReturnType = "tokens" if isinstance(input, Tensor) else "str"
            return_type = kind if prompts.embeddings is None else "embeds"
        if return_type == "embeds":
            before = self.embed(prompts.tokens) if prompts.embeddings is None else prompts.embeddings
            return torch.cat([before, self.embed(new)], dim=1)
        if prompts.embeddings is None:
            new, kept = torch.cat([prompts.tokens, new], dim=1), torch.cat([prompts.mask, kept], dim=1)
        if return_type == "tokens":
            return new
        texts = [self.decoded(row[keep], skip_special_tokens=True) for row, keep in zip(new, kept, strict=True)]
        return texts[0] if isinstance(input, str) or (isinstance(input, Tensor) and len(texts) == 1) else texts

    @documented
    def generate_stream(
        self, input: Prompts = "", max_new_tokens: int = 20, *, max_tokens_per_yield: int = 25, **options: Any
    ) -> Iterator[Int[Tensor, "batch new"]]:
        """What ``generate`` writes, in pieces of token ids while it is written; the first holds the prompts, too.

        Args:
            input: As of ``generate``.
            max_new_tokens: Tokens to write, at most.
            max_tokens_per_yield: At how many tokens of a row a piece is given out; those of the prompt count.
            options: As of ``generate``.

        Returns:
            An iterator of ids ``[batch new]``.

        Raises:
            InputError: As ``generate``.
        """
        if max_tokens_per_yield < 1:
            raise InputError(f"max_tokens_per_yield: expected at least 1, got {max_tokens_per_yield}")
        chosen = GenerationOptions.of("generate_stream", options)
        return _pieces(*_continued(self, input, max_new_tokens, chosen), max_tokens_per_yield)


@dataclass(frozen=True)
class _Prompts:
    """What is continued: tokens, of which the mask says which are no padding; given embeddings take their place."""

    tokens: Tokens
    mask: PaddingMask
    embeddings: Residual | None


def _continued(
    model: Any, input: Any, max_new_tokens: int, options: GenerationOptions
) -> tuple[_Prompts, Iterator[Step]]:
    """The prompts, checked, and the steps that will continue them."""
    if max_new_tokens < 1:
        raise InputError(f"max_new_tokens: expected at least 1, got {max_new_tokens}")
    prompts = _read(model, input, options)
    if not model.config.causal:
        raise InputError("generate: a bidirectional model has no next token; read its logits where a token is masked")
    if prompts.tokens.shape[1] >= model.config.n_ctx:
        raise InputError(
            f"generate: the longest prompt has {prompts.tokens.shape[1]} tokens, expected at most "
            f"{model.config.n_ctx - 1} (the context less one); shorten it"
        )
    if not bool(prompts.mask[:, -1].all()):
        raise InputError(
            "attention_mask: what is written follows a row's last column, but one is padding; pad on the left"
        )
    stops = _stops(model, options.eos_token_id) if options.stop_at_eos else []
    return prompts, _steps(model, prompts, max_new_tokens, options, stops)


def _stops(model: Any, eos_token_id: int | Sequence[int] | None) -> list[int]:
    """Which tokens end a row; one that the model cannot write ends none."""
    own = getattr(model.tokenizer, "eos_token_id", None)
    if eos_token_id is not None:
        try:
            own = model.to_ids(eos_token_id, of_tokenizer=True).flatten().tolist()
        except InputError as error:
            raise InputError(f"eos_token_id: {error}") from None
    stops = [] if own is None else torch.as_tensor(own).flatten().tolist()
    return [each for each in stops if each < len(model.embed.W_E)]


def _read(model: Any, input: Any, options: GenerationOptions) -> _Prompts:
    mask = options.attention_mask
    if not (isinstance(input, Tensor) and input.is_floating_point()):
        tokens, mask = model.as_tokens(input, mask, prepend_bos=options.prepend_bos, padding_side="left")
        return _Prompts(tokens, mask, None)
    width = model.config.d_model
    if input.ndim != 3 or input.shape[-1] != width or not input.numel():
        raise InputError(f"embeddings: expected shape [batch pos {width}], got {tuple(input.shape)}")
    tokens = torch.zeros(input.shape[:2], dtype=torch.long, device=model.W_E.device)
    return _Prompts(tokens, as_padding_mask(mask, tokens), input.to(model.W_E))


def _steps(
    model: Any, prompts: _Prompts, max_new_tokens: int, options: GenerationOptions, stops: list[int]
) -> Iterator[Step]:
    """Each new token of every row, and whether it is one: what follows a row's end is padding."""
    generator = torch.Generator(device="cpu").manual_seed(options.seed)
    cache = KeyValueCache.empty(model.config.n_layers) if options.use_past_kv_cache else None
    written, mask = new, new_mask = prompts.tokens, prompts.mask
    running = torch.ones(len(new), dtype=torch.bool, device=new.device)
    ends = torch.tensor(stops, device=new.device, dtype=torch.long)
    hooks: Any = []
    if (given := prompts.embeddings) is not None:  # they take the place of those of the tokens that stand for them
        hooks = [("hook_embed", lambda x, hook: torch.cat([given, x[:, given.shape[1] :]], dim=1))]
    for _ in range(max_new_tokens):
        how: Any = {"attention_mask": new_mask, "cache": cache, "last_only": True}
        with ordinary_modes(), torch.no_grad():  # not those of who takes the step
            logits = model.run_with_hooks(new, fwd_hooks=hooks, **how)[:, -1]
            choice = options.choose(logits.float(), generator)
            choice = torch.where(running, choice, ends[0] if stops else 0)
        yield choice, running
        written, mask = torch.cat([written, choice[:, None]], 1), torch.cat([mask, running[:, None]], 1)
        running = running & ~torch.isin(choice, ends) & (mask.sum(-1) < model.config.n_ctx)
        if not running.any():
            return
        new, new_mask = (written, mask) if cache is None else (choice[:, None], mask[:, -1:])
        hooks = hooks if cache is None else []


def _pieces(prompts: _Prompts, steps: Iterator[Step], size: int) -> Iterator[Int[Tensor, "batch new"]]:
    """The prompts and what is written, in pieces of at least `size` tokens but for the last."""
    piece = prompts.tokens if prompts.embeddings is None else prompts.tokens[:, :0]
    for new, _ in steps:
        with ordinary_modes():
            piece = torch.cat([piece, new[:, None]], dim=1)
        if piece.shape[1] >= size:
            yield piece
            piece = piece[:, :0]
    if piece.shape[1]:
        yield piece
