"""Where does the answer travel through the model? See README.md.

python analyses/activation_patching/run.py --out DIR
"""

import argparse
from pathlib import Path

import pandas as pd
import seaborn as sns
import torch
from matplotlib.figure import Figure

import interp
from interp.tasks.catalogue import TASKS

DIRECTIONS = ("denoise", "noise")
SHOWN = 3
"""Heads at positions that are printed of each task and direction."""


def patched(model: interp.HookedTransformer, name: str, n: int, seed: int) -> dict[str, pd.DataFrame]:
    """The residual stream by layer and position, and heads by position, in both directions."""
    task = interp.load_task(name, n=n, seed=seed, tokenizer=model.tokenizer, n_ctx=model.cfg.n_ctx)
    sweeps = {"stream": ("resid_pre", ("layer", "pos")), "heads": ("z", ("layer", "head", "pos"))}
    frames: dict[str, list[pd.DataFrame]] = {kind: [] for kind in sweeps}
    for kind, (site, by) in sweeps.items():
        for direction in DIRECTIONS:
            result = interp.patch(model, task, site=site, by=by, direction=direction, seed=seed)
            frames[kind].append(result.summary().assign(task=name, direction=direction))
    return {kind: pd.concat(parts, ignore_index=True) for kind, parts in frames.items()}


def strongest(heads: pd.DataFrame) -> pd.DataFrame:
    """For each task and direction, the heads at positions that move the answer most."""
    heads = heads.assign(
        head=heads["layer"].astype(str) + "." + heads["head"].astype(str),
        interval=[f"[{row.normalised_low:.2f}, {row.normalised_high:.2f}]" for row in heads.itertuples()],
        # What a patch moves: from 0 (corrupted) up, or from 1 (clean) down.
        moved=(heads["value"] - heads["base"]).abs(),
    )
    ranked = heads.sort_values("moved", ascending=False).groupby(["task", "direction"], sort=False).head(SHOWN)
    columns = ["task", "direction", "head", "pos", "normalised", "interval", "n_units"]
    return ranked.sort_values(["task", "direction", "moved"], ascending=[True, True, False])[columns].round(2)


def along_the_stream(stream: pd.DataFrame) -> pd.DataFrame:
    """Normalised effect of patching the stream, denoising: positions down, layers across."""
    denoised = stream[stream["direction"] == "denoise"]
    table = denoised.pivot(index=["task", "pos"], columns="layer", values="normalised")
    return table[table.max(axis=1) >= 0.1].round(2)


def draw(stream: pd.DataFrame) -> Figure:
    """One panel a task: the stream's positions down, layers across; 1 is the clean run's answer."""
    figure = Figure(figsize=(15, 4.5), layout="constrained")
    axes = figure.subplots(1, len(TASKS))
    for ax, task in zip(axes, TASKS, strict=True):
        here = stream[(stream["task"] == task) & (stream["direction"] == "denoise")]
        wide = here.pivot(index="pos", columns="layer", values="normalised").reindex(here["pos"].drop_duplicates())
        sns.heatmap(wide, ax=ax, cmap="vlag", center=0, vmin=-1, vmax=1, cbar=task == TASKS[-1], annot=True, fmt=".2f")
        ax.set(title=task, xlabel="resid_pre of layer", ylabel="")
    return figure


def main() -> None:
    """Measure, print the tables and write them with the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--n", type=int, default=200, help="minimal pairs a task")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)  # a model this small is fastest on one thread
    given.out.mkdir(parents=True, exist_ok=True)
    model = interp.load_model()
    parts = [patched(model, name, given.n, given.seed) for name in TASKS]
    stream, heads = (pd.concat([part[kind] for part in parts], ignore_index=True) for kind in ("stream", "heads"))
    stream.to_csv(given.out / "stream.csv", index=False)
    heads.to_csv(given.out / "heads.csv", index=False)
    draw(stream).savefig(given.out / "stream.png", dpi=120)
    print("Denoising the residual stream: the share of the clean answer that one position brings back, by layer.")
    print(along_the_stream(stream).to_string())
    print("\nThe heads and positions that move the answer most (0: the corrupted run, 1: the clean run):")
    print(strongest(heads).to_string(index=False))


if __name__ == "__main__":
    main()
