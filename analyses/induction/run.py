"""Does induction take two layers of attention? See README.md.

python analyses/induction/run.py --out DIR
"""

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import seaborn as sns
import torch
from torch import Tensor

from interp.model.config import TransformerConfig
from interp.model.training import TrainingConfig, train
from interp.model.transformer import HookedTransformer

D_VOCAB, N_CTX, PERIODS, LENGTHS = 40, 40, (6, 16), (6, 12)
MEASURED, CHOSEN = 10_000, 20_000
"""The seeds of the rows that are reported, and of those that the heads to ablate are chosen on."""
PREVIOUS = 0.25
"""The share of its attention that a previous-token head gives to the token before."""
SIZES = {"n_heads": 4, "d_model": 64, "d_head": 16, "d_mlp": 0, "d_vocab": D_VOCAB, "n_ctx": N_CTX}


def periodic_rows(seed: int) -> Iterator[list[int]]:
    """What is trained on: random tokens that come again and again, with a period of each row's own.

    So no fixed offset finds the copy before.
    """
    dice = np.random.default_rng(seed)
    while True:
        period = int(dice.integers(PERIODS[0], PERIODS[1] + 1))
        yield [0, *np.resize(dice.integers(1, D_VOCAB, period), N_CTX - 1).tolist()]


def repeating_rows(seed: int) -> Iterator[tuple[list[int], range, int]]:
    """What is measured on: random tokens among which one string comes twice, anywhere.

    The row, where the string comes again, and how far before it came first.
    """
    dice = np.random.default_rng(seed)
    while True:
        length = int(dice.integers(LENGTHS[0], LENGTHS[1] + 1))
        first = int(dice.integers(1, N_CTX - 2 * length + 1))
        again = int(dice.integers(first + length, N_CTX - length + 1))
        row = dice.integers(1, D_VOCAB, N_CTX)
        row[0], row[again : again + length] = 0, row[first : first + length]
        yield row.tolist(), range(again, again + length), again - first


def trained(n_layers: int, seed: int, steps: int) -> HookedTransformer:
    """A model of attention alone, trained on such rows."""
    model = HookedTransformer(
        TransformerConfig(n_layers=n_layers, **SIZES, positions="rotary", tied=False),
        seed=seed,
        name=f"{n_layers} layers",
    )
    config = TrainingConfig(steps, batch_size=64, optimizer="adamw", adamw_lr=3e-3, weight_decay=0.01, warmup_steps=50)
    train(model, periodic_rows(seed), config)
    return model


def scores(model: HookedTransformer, n: int, *, seed: int = MEASURED, ablated: tuple[int, ...] = ()) -> pd.DataFrame:
    """On rows that were not trained on: how often the string's next token is right, and where each head looks.

    Heads of layer 0 that are `ablated` write nothing. ``induction`` is a head's attention from a token's second
    occurrence to the token after its first, ``previous token`` that to the token before.
    """
    drawn = repeating_rows(seed)
    rows = [next(drawn) for _ in range(n)]
    tokens = torch.tensor([row for row, _, _ in rows])
    names = [f"blocks.{layer}.attn.hook_pattern" for layer in range(model.config.n_layers)]
    zero = [("blocks.0.attn.hook_z", partial(without, ablated))]
    with torch.inference_mode(), model.hooks(fwd_hooks=zero):
        logits, cache = model.run_with_cache(tokens, names_filter=names)
    found = []
    for number, (row, string, back) in enumerate(rows):
        inside = string[1:-1]  # whoever reads these has seen the string begin, and has more of it to come
        right = np.mean([int(logits[number, at].argmax()) == row[at + 1] for at in inside])
        for layer, name in enumerate(names):
            for head in range(SIZES["n_heads"]):
                pattern = cache[name][number, head]
                looks = {"induction": [pattern[at, at - back + 1] for at in inside]}
                looks["previous token"] = [pattern[at, at - 1] for at in inside]
                means = {kind: float(np.mean(values)) for kind, values in looks.items()}
                found.append({"row": number, "right": right, "layer": layer, "head": head, **means})
    return pd.DataFrame(found)


def without(heads: tuple[int, ...], z: Tensor, *, hook: object) -> Tensor:
    """The heads' outputs, some of them zero."""
    return z.index_fill(2, torch.tensor(heads, dtype=torch.long), 0.0)


def main() -> None:
    """Train, measure, ablate, print and draw."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    found, heads = [], []
    for seed in range(options.seeds):
        for n_layers in (1, 2):
            model = trained(n_layers, seed, options.steps)
            frame = scores(model, options.n)
            by_head = frame.groupby(["layer", "head"])[["induction", "previous token"]].mean()
            heads.append(by_head.reset_index().assign(layers=n_layers, seed=seed))
            result = {"seed": seed, "layers": n_layers, "right": frame["right"].mean()}
            result |= {f"best {kind} head": by_head[kind].max() for kind in by_head}
            if n_layers == 2:
                result |= without_previous_tokens(model, options.n)
            found.append(result)
    table, heads = pd.DataFrame(found), pd.concat(heads)
    print(table.round(3).to_string(index=False))
    table.to_csv(options.out / "scores.csv", index=False)
    heads.to_csv(options.out / "heads.csv", index=False)
    shown = heads[heads["layers"] == 2].assign(layer=lambda frame: "layer " + frame["layer"].astype(str))
    grid = sns.relplot(shown, x="previous token", y="induction", hue="layer", style="seed", palette="colorblind", s=70)
    grid.set(xlabel="attention to the token before", ylabel="attention to the token after the first copy")
    grid.savefig(options.out / "heads.png", dpi=150)


def without_previous_tokens(model: HookedTransformer, n: int) -> dict[str, object]:
    """What is left of induction without layer 0's previous-token heads, and without its other heads.

    Which heads those are is found on other rows than these.
    """
    chosen_on = scores(model, n, seed=CHOSEN)
    before = chosen_on[chosen_on["layer"] == 0].groupby("head")["previous token"].mean() >= PREVIOUS
    left: dict[str, object] = {"previous-token heads": ", ".join(f"0.{head}" for head in before.index[before])}
    for name, chosen in (("them", before), ("the others", ~before)):
        frame = scores(model, n, ablated=tuple(before.index[chosen]))
        left[f"right without {name}"] = frame["right"].mean()
        left[f"induction without {name}"] = frame[frame["layer"] == 1].groupby("head")["induction"].mean().max()
    return left


if __name__ == "__main__":
    main()
