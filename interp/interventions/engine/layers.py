"""Runs a chunk of cells through the model: each layer once, for all trajectories that have begun.

1. Trajectories join where their first replacement is, with the base run's values, and are changed there.
2. A block's queries look at its own keys and values, its owners', and else the base run's: one fused attention a block;
   where a pattern is replaced, the explicit one. From there on a block holds all positions that can differ: those from
   its first change on, in a bidirectional model all.
3. The last layer computes only the answers' positions.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from interp.interventions.engine.base_run import BaseRun
from interp.interventions.engine.chunk import Block, Chunk, Editor, Pack, hold, join, keep
from interp.interventions.engine.plan import STAGES
from interp.model.attention import Attention, project
from interp.model.layers import linear
from interp.model.positions import Places
from interp.shapes import HeadVectors

HeadTokens = Float[Tensor, "_ head d_head"]
ReadTokens = Float[Tensor, "_ _ d_head"]  # keys, then values; several query heads may share them


class Projected(NamedTuple):
    """Queries, keys and values of the tokens that are held."""

    q: HeadTokens
    k: HeadTokens
    v: HeadTokens


def _weights(attention: Attention) -> tuple[tuple[Tensor, Tensor], ...]:
    """Weights and biases of queries, keys and values."""
    return ((attention.W_Q, attention.b_Q), (attention.W_K, attention.b_K), (attention.W_V, attention.b_V))


class BlockAttention:
    """Attention of one layer, block by block."""

    def __init__(self, base: BaseRun, layer: int, pack: Pack, editor: Editor, owner: np.ndarray | None):
        self._base, self._layer, self._pack, self._editor, self._owner = base, layer, pack, editor, owner
        like = base.at("q", layer)
        self._attention, self._causal = list(base.model.blocks)[layer].attn, base.model.config.causal
        self._everywhere = torch.arange(like.shape[1], device=like.device)[None]
        keys = self._attention.turn(self._attention.k_norm(base.at("k", layer)), self._everywhere)  # as compared
        self._read = torch.cat([keys, base.at("v", layer)], dim=2)  # together, for what is put in place by token
        self._mask = torch.ones(2 * (like.shape[1],), dtype=torch.bool, device=like.device).tril()[None, None]
        self._patterns = list(editor.entries("pattern", layer, like))
        self._replaced = {one for each, _ in self._patterns for one in each.trajectories.tolist()}

    def run(
        self, x: Float[Tensor, "_ d_model"], projected: Projected, queries: range
    ) -> tuple[Float[Tensor, "_ d_model"], HeadTokens]:
        """The residual stream before, and ``z`` of, all positions among `queries` that can change.

        The pack then holds these positions.
        """
        held, wanted = self._pack.spans(), []
        for block, _ in held:
            # Where attention looks forward, too, every position can change.
            start = max(block.first, block.own) if self._causal else 0
            wanted.append(replace(block, positions=tuple(each for each in queries if each >= start)))
        self._read_at = self._pack.place.copy()  # keys and values stay where they are
        k = self._turned(projected.k, self._attention.k_norm)  # all at once: there are many blocks
        read = torch.cat([k, projected.v], dim=1)
        base = [self._base.tokens(name, self._layer) for name in ("resid_pre", "q")]
        x, q = hold(self._pack, wanted, [x, projected.q], base)
        q = self._turned(q, self._attention.q_norm)
        pairs = zip(self._pack.spans(), held, strict=True)
        zs = [self._attend(*new, q, *old, read).flatten(0, 1) for new, old in pairs if new[0].positions]
        return x, torch.cat(zs) if zs else q

    def _turned(self, x: HeadTokens, norm: nn.Module) -> HeadTokens:
        """Queries or keys of the tokens that are held as they are compared: normalised, and turned to their places."""
        x = norm(x[None])
        if self._attention.turn.dim:  # from what is on the device: an upload would have it waited for
            each = (self._everywhere[:, _slice(list(b.positions))].repeat(1, b.n) for b in self._pack.blocks)
            x = self._attention.turn(x, torch.cat([self._everywhere[:, :0], *each], dim=1))
        return x[0]

    def _attend(
        self, wanted: Block, place: slice, q: HeadTokens, block: Block, span: slice, read: ReadTokens
    ) -> HeadVectors:
        """``z`` of the `wanted` block, whose queries stand at `place`, and its keys and values in `block` at `span`."""
        attention = self._attention
        n_keys = wanted.positions[-1] + 1 if self._causal else self._everywhere.shape[1]
        k, v = self._whole(read, block, span, n_keys).chunk(2, dim=2)
        places = self._places(wanted, n_keys)
        q = q[place].unflatten(0, (wanted.n, len(wanted.positions)))
        if self._replaced.isdisjoint(block.trajectories.tolist()):
            return attention.mixed(q, k, v, places)
        pattern = self._replace_pattern(attention.pattern(attention.scores(q, k, places)), wanted)
        return attention.mix(pattern, v, places)

    def _whole(self, new: ReadTokens, block: Block, span: slice, n_keys: int) -> Float[Tensor, "trajectory key _ _"]:
        """Keys and values: what the block holds, its owners hold, and else the base run's."""
        held = new[span].unflatten(0, (block.n, len(block.positions)))
        if block.positions == tuple(range(n_keys)):
            return held
        full = self._read[:, :n_keys].index_select(0, block.rows)
        inside = [each for each in block.positions if each < n_keys]
        full[:, _slice(inside)] = held[:, : len(inside)]
        return self._with_owners(full, new, block, n_keys)

    def _places(self, wanted: Block, n_keys: int) -> Places:
        """Where the wanted queries and all keys stand."""
        queries = slice(wanted.positions[0], wanted.positions[-1] + 1)
        mask = self._mask[:, :, queries, :n_keys] if self._causal else None
        return Places(self._everywhere[:, queries], self._everywhere[:, :n_keys], mask, causal=False)

    def _with_owners(self, full: Tensor, new: ReadTokens, block: Block, n_keys: int) -> Tensor:
        """`full` with what other trajectories hold in this block's stead."""
        shared = range(block.first, min(block.own, n_keys))
        if self._owner is None or not shared:
            return full
        trajectories = self._owner[block.trajectories][:, shared.start : shared.stop]
        places = self._read_at[trajectories, np.arange(shared.start, shared.stop)]
        held = np.nonzero(places >= 0)
        if not len(held[0]):
            return full
        index = tuple(torch.from_numpy(each).to(full.device) for each in (held[0], held[1] + shared.start))
        full[index] = new[torch.from_numpy(places[held]).to(full.device)]
        return full

    def _replace_pattern(self, pattern: Float[Tensor, "trajectory head pos key_pos"], wanted: Block) -> Tensor:
        local = {int(each): number for number, each in enumerate(wanted.trajectories)}
        places = {position: number for number, position in enumerate(wanted.positions)}
        by_token = pattern.transpose(1, 2)  # a view
        for entries, keys in self._patterns:
            mine = _among(entries.trajectories, local) & _among(entries.positions, places)
            if not bool(mine.any()):
                continue
            chosen = entries.take(mine)
            index = (_numbers(chosen.trajectories, local), _numbers(chosen.positions, places), *chosen.index[1:])
            old = by_token[index]
            new = old.clone()
            put = slice(None) if keys is None else [each for each in keys if each < old.shape[-1]]
            values = chosen.values[..., : old.shape[-1]] if chosen.values.shape[-1] > 1 else chosen.values
            changed = chosen.replacement.new(old, values).expand_as(old)
            new[..., put] = changed[..., put]
            self._editor.note(chosen, old, new)
            by_token[index] = new
        return pattern


def _slice(numbers: list[int]) -> slice | list[int]:
    """The numbers as a slice, far cheaper than a list, where they follow one another."""
    first, stop = (numbers[0], numbers[-1] + 1) if numbers else (0, 0)
    return slice(first, stop) if stop - first == len(numbers) else numbers


def _among(numbers: Tensor, known: dict[int, int]) -> Bool[Tensor, " entry"]:
    return torch.isin(numbers, torch.tensor(list(known), device=numbers.device))


def _numbers(numbers: Tensor, known: dict[int, int]) -> Tensor:
    return torch.tensor([known[each] for each in numbers.tolist()], device=numbers.device)


Stream = Float[Tensor, "_ d_model"]
BEFORE_ATTENTION, BEFORE_WRITING, BEFORE_MLP, AFTER_MLP = range(len(STAGES))


class Wavefront:
    """The tokens of a chunk on their way through the model; the ``editor`` notes how far each was changed."""

    def __init__(self, base: BaseRun, chunk: Chunk):
        self._base, self._chunk, self._model = base, chunk, base.model
        self._blocks = list(base.model.blocks)
        self._pack = Pack([], np.full((chunk.n, base.batch.length), -1, dtype=np.int64))
        self.editor = Editor(chunk, self._pack, base.batch)

    def run(self) -> Float[Tensor, "trajectory answer_pos d_model"]:
        """The residual stream that leaves the last block at the answers' positions, of every trajectory."""
        config, like = self._model.config, self._base.final
        x = like.new_empty(0, config.d_model)
        first = self._chunk.first_layer
        for layer in range(config.n_layers if first is None else first, config.n_layers):
            x = self._layer(layer, x)
        return self._final(x)

    def _layer(self, layer: int, x: Stream) -> Stream:
        narrow = self._answers_suffice(layer)
        (x,) = self._join(layer, BEFORE_ATTENTION, [x], ["resid_pre"])
        x = self.editor.apply("resid_pre", layer, x)
        x, z = self._attend(layer, x, narrow)
        x, z = self._join(layer, BEFORE_WRITING, [x, z], ["resid_pre", "z"])
        z = self.editor.apply("z", layer, z)
        mid = x + self._write(layer, z)
        return self._blocks[layer].after_mlp_norm(self._after_attention(layer, x, mid, narrow))

    def _after_attention(self, layer: int, x: Stream, mid: Stream, narrow: bool) -> Stream:
        """The sum that leaves the block; in a parallel block, the MLP reads what was there before attention wrote."""
        block = self._blocks[layer]
        if not self._model.config.d_mlp:
            post = self._join(layer, AFTER_MLP, self._answers_only(narrow, mid), ["resid_post"])
            return self._answers_only(narrow, self.editor.apply("resid_post", layer, post[0]))[0]
        streams, names = ([mid, x], ["resid_mid", "resid_pre"]) if block.parallel else ([mid], ["resid_mid"])
        streams = self._answers_only(narrow, *streams)
        streams = self._join(layer, BEFORE_MLP, streams, names)
        mid = self.editor.apply("resid_mid", layer, streams[0])
        out = self._mlp(layer, block.mlp_input(streams[-1], block.after_attention_norm(mid)))
        mid, out = self._join(layer, AFTER_MLP, [mid, out], ["resid_mid", "mlp_out"])
        out = self.editor.apply("mlp_out", layer, out)
        (x,) = self._answers_only(narrow, self.editor.apply("resid_post", layer, block.after_attention_norm(mid) + out))
        return x

    def _answers_suffice(self, layer: int) -> bool:
        """Whether this is the last layer, and nothing has to be measured in it away from the answers' positions."""
        last = layer == self._model.config.n_layers - 1
        return last and not self._changed_again(layer) and not self.editor.has("pattern", layer)

    def _changed_again(self, layer: int) -> bool:
        """Whether a trajectory that has begun is changed after the attention of this layer."""
        begun: np.ndarray = np.any(self._pack.place >= 0, axis=1)
        for stage in range(len(STAGES)):
            for block in self._chunk.wanted.get((layer, stage), ()):
                if stage > BEFORE_ATTENTION and begun[block.trajectories].any():
                    return True
                begun[block.trajectories] = True
        return False

    def _join(self, layer: int, stage: int, tensors: list[Tensor], names: list[str]) -> list[Tensor]:
        wanted = self._chunk.wanted.get((layer, stage))
        base = [self._base.tokens(name, layer) for name in names]
        return tensors if wanted is None else join(self._pack, wanted, tensors, base)

    def _answers_only(self, narrow: bool, *streams: Stream) -> list[Tensor]:
        return keep(self._pack, self._base.answers.positions, streams) if narrow else list(streams)

    def _attend(self, layer: int, x: Stream, narrow: bool) -> tuple[Stream, HeadTokens]:
        attention = self._blocks[layer].attn
        y = self._blocks[layer].read_by_attention(x)
        projected = Projected(*(project(y, *each) for each in _weights(attention)))
        self._replace_inputs(layer, x, projected)
        for name, tensor in zip(("q", "k", "v"), projected, strict=True):
            self.editor.apply(name, layer, tensor)
        queries = self._base.answers.positions if narrow else range(self._base.batch.length)
        run = BlockAttention(self._base, layer, self._pack, self.editor, self._chunk.owner)
        return run.run(x, projected, queries)

    def _replace_inputs(self, layer: int, x: Stream, projected: Projected) -> None:
        """Have single heads read something else than the stream."""
        attention, read = self._blocks[layer].attn, self._blocks[layer].read_by_attention
        for tensor, (weight, bias), name in zip(projected, _weights(attention), ("q", "k", "v"), strict=True):
            for head, changes in self.editor.by_head(f"{name}_input", layer, x, len(bias)):
                tokens = torch.cat([each.tokens for each in changes]).unique()
                inputs = self.editor.apply_in_order(changes, tokens, x[tokens])
                tensor[tokens, head] = read(inputs) @ weight[head] + bias[head]

    def _write(self, layer: int, z: HeadTokens) -> Stream:
        """What the heads write together."""
        attention = self._blocks[layer].attn
        out = linear(z.flatten(1), attention.W_O.flatten(0, 1), attention.b_O)
        for head, changes in self.editor.by_head("result", layer, out, z.shape[1]):
            tokens = torch.cat([each.tokens for each in changes]).unique()
            result = z[tokens, head] @ attention.W_O[head]
            out.index_add_(0, tokens, self.editor.apply_in_order(changes, tokens, result) - result)
        return self.editor.apply("attn_out", layer, self._blocks[layer].ln1_post(out))

    def _mlp(self, layer: int, x: Stream) -> Stream:
        block = self._blocks[layer]
        if self.editor.has("mlp_in", layer):
            x = self.editor.apply("mlp_in", layer, x.clone())
        mlp, y = block.mlp, block.read_by_mlp(x)
        if self._model.config.n_experts:
            return block.ln2_post(mlp(y))
        if self.editor.has("mlp_pre", layer):
            post = mlp.neurons(self.editor.apply("mlp_pre", layer, mlp.pre(y)), y)
        else:
            post = mlp.neurons_at_once(y)
        return block.ln2_post(linear(self.editor.apply("mlp_post", layer, post), mlp.W_out, mlp.b_out))

    def _final(self, x: Stream) -> Float[Tensor, "trajectory answer_pos d_model"]:
        """The tokens at the answers' positions; where a trajectory holds none, the base run's."""
        positions = self._base.answers.positions
        final = self._base.final[torch.from_numpy(self._chunk.rows).to(x.device)]
        columns, trajectories = np.arange(positions.start, positions.stop), np.arange(self._chunk.n)[:, None]
        place = self._pack.place[trajectories if self._chunk.owner is None else self._chunk.owner[:, columns], columns]
        held = np.nonzero(place >= 0)
        index = tuple(torch.from_numpy(each).to(x.device) for each in held)
        final[index] = x[torch.from_numpy(place[held]).to(x.device)]
        return final

    def squares(self) -> Float[np.ndarray, " trajectory"]:
        """``||a' - a||^2`` of every trajectory, with what its owners computed in its stead."""
        squares = self.editor.squares.cpu().numpy()
        if self._chunk.owner is None:
            return squares.sum(axis=1)
        return squares[self._chunk.owner, np.arange(squares.shape[1])].sum(axis=1)

    def fired(self) -> Int[np.ndarray, " trajectory"]:
        """How often an intervention acted on every trajectory."""
        return self.editor.fired + self._chunk.idle
