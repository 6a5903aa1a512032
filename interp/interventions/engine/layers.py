"""Runs a chunk of cells through the model: each layer once, for all trajectories that have begun.

1. Trajectories join where their first replacement is, with the base run's values, and are changed there.
2. A layer computes only what is held: after its attention, all positions from the first change on.
3. The last layer computes only the answers' positions.
"""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.interventions.engine.attention import BlockAttention, HeadTokens, Projected, project
from interp.interventions.engine.base import BaseRun
from interp.interventions.engine.chunk import STAGES, Chunk
from interp.interventions.engine.edits import Editor
from interp.interventions.engine.pack import BaseTokens, Pack, join, keep
from interp.interventions.engine.products import activated, linear

Stream = Float[Tensor, "_ d_model"]
BEFORE_ATTENTION, BEFORE_WRITING, BEFORE_MLP, AFTER_MLP = range(len(STAGES))


class Wavefront:
    """The tokens of a chunk on their way through the model.

    Attributes:
        editor: What was changed, and how far.
    """

    def __init__(self, base: BaseRun, chunk: Chunk):
        self._base, self._chunk, self._model = base, chunk, base.model
        self._blocks = list(base.model.blocks)
        self._pack = Pack.empty(chunk.n, base.batch.length)
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
        block = self._blocks[layer]
        x = self._with_mlp(layer, x, mid, narrow) if self._model.config.d_mlp else self._without_mlp(layer, mid, narrow)
        return block.left(x)

    def _without_mlp(self, layer: int, mid: Stream, narrow: bool) -> Stream:
        (mid,) = self._answers_only(narrow, mid)
        (mid,) = self._join(layer, AFTER_MLP, [mid], ["resid_post"])
        (mid,) = self._answers_only(narrow, self.editor.apply("resid_post", layer, mid))
        return mid

    def _with_mlp(self, layer: int, x: Stream, mid: Stream, narrow: bool) -> Stream:
        """The sum that leaves the block; in a parallel block, the MLP reads what was there before attention wrote."""
        block = self._blocks[layer]
        streams, names = ([mid, x], ["resid_mid", "resid_pre"]) if block.parallel else ([mid], ["resid_mid"])
        streams = self._answers_only(narrow, *streams)
        streams = self._join(layer, BEFORE_MLP, streams, names)
        mid = self.editor.apply("resid_mid", layer, streams[0])
        out = self._mlp(layer, block.seen_by_mlp(streams[-1], block.attended(mid)))
        mid, out = self._join(layer, AFTER_MLP, [mid, out], ["resid_mid", "mlp_out"])
        out = self.editor.apply("mlp_out", layer, out)
        (x,) = self._answers_only(narrow, self.editor.apply("resid_post", layer, block.attended(mid) + out))
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
        return tensors if wanted is None else join(self._pack, wanted, tensors, [self._of(n, layer) for n in names])

    def _of(self, name: str, layer: int) -> BaseTokens:
        return lambda rows, positions: self._base.tokens_of(name, layer, rows, positions)

    def _answers_only(self, narrow: bool, *streams: Stream) -> list[Tensor]:
        return keep(self._pack, self._base.answers.positions, streams) if narrow else list(streams)

    def _attend(self, layer: int, x: Stream, narrow: bool) -> tuple[Stream, HeadTokens]:
        attention = self._blocks[layer].attn
        projected = project(attention, self._blocks[layer].read_by_attention(x))
        projected = self._replace_inputs(layer, x, projected)
        for name, tensor in zip(("q", "k", "v"), projected, strict=True):
            self.editor.apply(name, layer, tensor)
        queries = self._base.answers.positions if narrow else range(self._base.batch.length)
        run = BlockAttention(self._base, layer, self._pack, self.editor, self._chunk.owner)
        return run.run(x, projected, queries)

    def _replace_inputs(self, layer: int, x: Stream, projected: Projected) -> Projected:
        """What single heads read in place of the stream."""
        attention, read = self._blocks[layer].attn, self._blocks[layer].read_by_attention
        weights = {
            "q_input": (projected.q, attention.W_Q, attention.b_Q),
            "k_input": (projected.k, attention.W_K, attention.b_K),
            "v_input": (projected.v, attention.W_V, attention.b_V),
        }
        for name, (tensor, weight, bias) in weights.items():
            for head, changes in self.editor.by_head(name, layer, x, len(bias)):
                tokens = torch.cat([each.tokens for each in changes]).unique()
                inputs = self.editor.apply_in_order(changes, tokens, x[tokens])
                tensor[tokens, head] = read(inputs) @ weight[head] + bias[head]
        return projected

    def _write(self, layer: int, z: HeadTokens) -> Stream:
        """What the heads write together."""
        attention = self._blocks[layer].attn
        out = linear(z.flatten(1), attention.W_O.flatten(0, 1), attention.b_O)
        for head, changes in self.editor.by_head("result", layer, out, z.shape[1]):
            tokens = torch.cat([each.tokens for each in changes]).unique()
            result = z[tokens, head] @ attention.W_O[head]
            out.index_add_(0, tokens, self.editor.apply_in_order(changes, tokens, result) - result)
        return self.editor.apply("attn_out", layer, out)

    def _mlp(self, layer: int, x: Stream) -> Stream:
        block = self._blocks[layer]
        mlp, y = block.mlp, block.read_by_mlp(self._mlp_input(layer, x))
        if not self.editor.has("mlp_pre", layer) and not self._model.config.gated:
            post = activated(y, mlp.W_in, mlp.b_in, self._model.config.act_fn)
        else:
            post = mlp.neurons(self.editor.apply("mlp_pre", layer, mlp.pre(y, linear)), y, linear)
        return linear(self.editor.apply("mlp_post", layer, post), mlp.W_out, mlp.b_out)

    def _mlp_input(self, layer: int, x: Stream) -> Stream:
        """The stream, or a copy with what the MLP reads in its place."""
        return self.editor.apply("mlp_in", layer, x.clone()) if self.editor.has("mlp_in", layer) else x

    def _final(self, x: Stream) -> Float[Tensor, "trajectory answer_pos d_model"]:
        """The tokens at the answers' positions; where a trajectory holds none, the base run's."""
        positions = self._base.answers.positions
        final = self._base.final[torch.from_numpy(self._chunk.rows).to(x.device)]
        trajectories = np.arange(self._chunk.n)[:, None] if self._chunk.owner is None else self._chunk.owner
        place = self._pack.place[
            trajectories[:, positions.start : positions.stop] if self._chunk.owner is not None else trajectories,
            np.arange(positions.start, positions.stop),
        ]
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
