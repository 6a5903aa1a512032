"""Runs a chunk of cells through the model: each layer once, for all trajectories that have begun.

1. Trajectories join where their first replacement is, with the base run's values, and are changed there.
2. A block's queries look at its own keys and values, its owners', and else the base run's: one fused attention a block;
   where a pattern is replaced, the explicit one. From there on a block holds all positions that can differ: those from
   its first change on, in a bidirectional model all.
3. The last layer computes only the answers' positions.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from interp.interventions.engine.base_run import BaseRun
from interp.interventions.engine.chunk import Chunk, Gather
from interp.interventions.engine.editor import Editor
from interp.interventions.engine.schedule import (
    AFTER_MLP,
    BEFORE_ATTENTION,
    BEFORE_MLP,
    BEFORE_WRITING,
    Attended,
    LayerSteps,
    Schedule,
)
from interp.model.attention import Attention, project
from interp.model.layers import linear
from interp.shapes import HeadVectors

Stream = Float[Tensor, "_ d_model"]
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


class Wavefront:
    """The tokens of a chunk on their way through the model; the ``editor`` notes how far each was changed."""

    def __init__(self, base: BaseRun, chunk: Chunk):
        self._base, self._chunk, self._model = base, chunk, base.model
        self._blocks = list(base.model.blocks)
        self._schedule = Schedule(chunk, base.model, base.batch.length, base.answers.positions)
        self._numbers = self._schedule.numbers.on(base.batch.tokens.device)
        self.editor = Editor(chunk, base.batch, self._numbers)

    @property
    def rows(self) -> Int[Tensor, " trajectory"]:
        """The row of the batch that each trajectory is of."""
        return self._numbers[self._schedule.rows]

    def run(self) -> Float[Tensor, "trajectory answer_pos d_model"]:
        """The residual stream that leaves the last block at the answers' positions, of every trajectory.

        Where a trajectory holds none, the base run's.
        """
        x = self._base.final.new_empty(0, self._model.config.d_model)
        for layer, steps in self._schedule.layers.items():
            x = self._layer(layer, steps, x)
        return self._final(x)

    def _layer(self, layer: int, steps: LayerSteps, x: Stream) -> Stream:
        (x,) = self._moved(steps.joins.get(BEFORE_ATTENTION), layer, [x], ["resid_pre"])
        x = self.editor.apply(steps, "resid_pre", x)
        x, z = self._attend(layer, steps, x)
        x, z = self._moved(steps.joins.get(BEFORE_WRITING), layer, [x, z], ["resid_pre", "z"])
        z = self.editor.apply(steps, "z", z)
        mid = x + self._write(layer, steps, z)
        return self._blocks[layer].after_mlp_norm(self._after_attention(layer, steps, x, mid))

    def _after_attention(self, layer: int, steps: LayerSteps, x: Stream, mid: Stream) -> Stream:
        """The sum that leaves the block; in a parallel block, the MLP reads what was there before attention wrote."""
        block, (before, behind) = self._blocks[layer], steps.kept
        streams, names = ([mid, x], ["resid_mid", "resid_pre"]) if block.parallel else ([mid], ["resid_mid"])
        streams = self._moved(before, layer, streams, names)
        if self._model.config.d_mlp:
            streams = self._moved(steps.joins.get(BEFORE_MLP), layer, streams, names)
            mid = self.editor.apply(steps, "resid_mid", streams[0])
            out = self._mlp(layer, steps, block.mlp_input(streams[-1], block.after_attention_norm(mid)))
            mid, out = self._moved(steps.joins.get(AFTER_MLP), layer, [mid, out], ["resid_mid", "mlp_out"])
            post = block.after_attention_norm(mid) + self.editor.apply(steps, "mlp_out", out)
        else:
            (post,) = self._moved(steps.joins.get(AFTER_MLP), layer, streams[:1], ["resid_post"])
        return self._moved(behind, layer, [self.editor.apply(steps, "resid_post", post)], ["resid_post"])[0]

    def _moved(
        self, gather: Gather | None, layer: int, tensors: Sequence[Tensor], names: Sequence[str]
    ) -> list[Float[Tensor, "_ ..."]]:
        """The tokens as they stand now; those that join have the base run's activations of these `names`."""
        if gather is None:
            return list(tensors)
        rows, positions = self._numbers[gather.rows], self._numbers[gather.positions]
        found = []
        for tensor, name in zip(tensors, names, strict=True):
            held = tensor
            if len(rows):
                new = self._base.at(name, layer)[rows, positions]
                held = torch.cat([tensor, new]) if len(tensor) else new
            found.append(held if gather.order is None else held.index_select(0, self._numbers[gather.order]))
        return found

    def _attend(self, layer: int, steps: LayerSteps, x: Stream) -> tuple[Stream, HeadTokens]:
        """The residual stream before, and ``z`` of, all positions that can change."""
        attention = self._blocks[layer].attn
        y = self._blocks[layer].read_by_attention(x)
        projected = Projected(*(project(y, *each) for each in _weights(attention)))
        self._replace_inputs(layer, steps, x, projected)
        for name, tensor in zip(("q", "k", "v"), projected, strict=True):
            self.editor.apply(steps, name, tensor)
        run = BlockAttention(self._base, layer, self.editor, self._numbers)
        read = run.read(projected, steps)
        x, q = self._moved(steps.attention, layer, [x, projected.q], ["resid_pre", "q"])
        return x, run.run(q, read, steps)

    def _replace_inputs(self, layer: int, steps: LayerSteps, x: Stream, projected: Projected) -> None:
        """Have single heads read something else than the stream."""
        attention, read = self._blocks[layer].attn, self._blocks[layer].read_by_attention
        for tensor, (weight, bias), name in zip(projected, _weights(attention), ("q", "k", "v"), strict=True):
            with self.editor.one_site():
                for each in steps.by_head.get(f"{name}_input", ()):
                    tokens = self._numbers[each.tokens]
                    inputs = self.editor.of_head(each, x[tokens])
                    tensor[tokens, each.head] = read(inputs) @ weight[each.head] + bias[each.head]

    def _write(self, layer: int, steps: LayerSteps, z: HeadTokens) -> Stream:
        """What the heads write together."""
        attention = self._blocks[layer].attn
        out = linear(z.flatten(1), attention.W_O.flatten(0, 1), attention.b_O)
        with self.editor.one_site():
            for each in steps.by_head.get("result", ()):
                tokens = self._numbers[each.tokens]
                result = z[tokens, each.head] @ attention.W_O[each.head]
                out.index_add_(0, tokens, self.editor.of_head(each, result) - result)
        return self.editor.apply(steps, "attn_out", self._blocks[layer].ln1_post(out))

    def _mlp(self, layer: int, steps: LayerSteps, x: Stream) -> Stream:
        block = self._blocks[layer]
        if "mlp_in" in steps.changes:
            x = self.editor.apply(steps, "mlp_in", x.clone())
        mlp, y = block.mlp, block.read_by_mlp(x)
        if self._model.config.n_experts:
            return block.ln2_post(mlp(y))
        if "mlp_pre" in steps.changes:
            post = mlp.neurons(self.editor.apply(steps, "mlp_pre", mlp.pre(y)), y)
        else:
            post = mlp.neurons_at_once(y)
        return block.ln2_post(linear(self.editor.apply(steps, "mlp_post", post), mlp.W_out, mlp.b_out))

    def _final(self, x: Stream) -> Float[Tensor, "trajectory answer_pos d_model"]:
        final = self._base.final[self.rows]
        trajectories, positions, tokens = (self._numbers[each] for each in self._schedule.final)
        final[trajectories, positions] = x[tokens]
        return final

    def fired(self) -> Int[np.ndarray, " trajectory"]:
        """How often an intervention acted on every trajectory."""
        return self.editor.fired + self._chunk.idle


class BlockAttention:
    """Attention of one layer, block by block."""

    def __init__(self, base: BaseRun, layer: int, editor: Editor, numbers: Int[Tensor, " number"]):
        self._attention, self._causal = list(base.model.blocks)[layer].attn, base.model.config.causal
        self._editor, self._numbers = editor, numbers
        self._everywhere = base.places
        keys = self._everywhere.turned(self._attention.turn, self._attention.k_norm(base.at("k", layer)))  # as compared
        self._base = torch.cat([keys, base.at("v", layer)], dim=2)  # together, for what is put in place by token

    def read(self, projected: Projected, steps: LayerSteps) -> ReadTokens:
        """The keys as they are compared, and the values, of the tokens that are held."""
        k = self._turned(projected.k, self._attention.k_norm, steps.key_positions)  # at once: there are many blocks
        return torch.cat([k, projected.v], dim=1)

    def run(self, q: HeadTokens, read: ReadTokens, steps: LayerSteps) -> HeadTokens:
        """``z`` of the queries."""
        q = self._turned(q, self._attention.q_norm, steps.query_positions)
        with self._editor.one_site():
            zs = [self._attend(each, q, read).flatten(0, 1) for each in steps.attended]
        return torch.cat(zs) if zs else q

    def _turned(self, x: HeadTokens, norm: nn.Module, positions: slice | None) -> HeadTokens:
        """Queries or keys as they are compared: normalised, and turned to their places."""
        x = norm(x[None])
        if positions is None:
            return x[0]
        angles = self._everywhere.angles(self._attention.turn, x).index_select(1, self._numbers[positions])
        return self._attention.turn.by(angles, x)[0]

    def _attend(self, each: Attended, q: HeadTokens, read: ReadTokens) -> HeadVectors:
        attention, queries = self._attention, slice(each.queries.start, each.queries.stop)
        k, v = self._whole(each, read).chunk(2, dim=2)
        places = self._everywhere.part(queries, each.n_keys)
        q = q[each.place].unflatten(0, (each.n, len(each.queries)))
        if not each.patterns:
            return attention.mixed(q, k, v, places)
        pattern = attention.pattern(attention.scores(q, k, places))
        for change in each.patterns:
            self._editor.replace_pattern(change, pattern)
        return attention.mix(pattern, v, places)

    def _whole(self, each: Attended, read: ReadTokens) -> Float[Tensor, "trajectory key _ _"]:
        """Keys and values: what the block holds, its owners hold, and else the base run's."""
        held = read[each.span].unflatten(0, (each.n, each.n_held))
        if each.rows is None:
            return held
        full = self._base[:, : each.n_keys].index_select(0, self._numbers[each.rows])
        if each.scattered:
            inside = self._numbers[each.inside]
            full[:, inside] = held[:, : len(inside)]
        else:
            full[:, each.inside] = held[:, : each.inside.stop - each.inside.start]
        if each.owned is not None:
            trajectories, positions, tokens = (self._numbers[one] for one in each.owned)
            full[trajectories, positions] = read[tokens]
        return full
