"""How would a head sweep scale over many GPUs? See README.md.

python analyses/scaling/run.py gpt2-xl --hardware h100 --dtype bfloat16 --prompts 1000 --gpus 8,64,512
"""

import argparse
import json

import pandas as pd

from analyses.scaling.scaling import Parts, scaled
from interp.errors import InterpError
from interp.methods.plan import hardware_called, plan
from interp.model.loading import configuration_and_tokenizer
from interp.model.presets import preset

SHOWN = {"devices": "devices", "workers": "workers", "seconds": "seconds", "speedup": "speed-up"}
SHOWN |= {"efficiency": "efficiency", "limit": "most is lost to"}


def counts(text: str) -> list[int]:
    """Numbers of devices, separated by commas."""
    numbers = [each.strip() for each in text.split(",")]
    if not all(each.isdecimal() and int(each[:9]) >= 1 for each in numbers):
        raise argparse.ArgumentTypeError(
            f"expected numbers from 1, separated by commas, such as 8,64,512, got {text!r}"
        )
    return [int(each[:9]) for each in numbers]


def main() -> None:
    """Plan and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("preset", nargs="?", default="gpt2-xl", help="as of interp model plan")
    parser.add_argument("--model", help="in place of a preset: a folder, a hub name, or an embedded model")
    parser.add_argument("--hardware", default="h100", help="a100, h100, h200, or cpu (measured now)")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--prompts", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=20)
    parser.add_argument("--gpus", type=counts, default=[8, 64, 512], help="how many devices, such as 8,64,512")
    parser.add_argument("--devices", type=int, default=1, help="how many hold the model between them: one worker")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        config = (
            preset(options.preset).config if options.model is None else configuration_and_tokenizer(options.model)[0]
        )
        hardware = hardware_called(options.hardware)
        how = {"dtype": options.dtype, "n_prompts": options.prompts, "n_tokens": options.tokens}
        plan(config, hardware, devices=options.devices, **how)  # refuses what does not fit
        parts = Parts.of(config, hardware, **how)
        found = scaled(parts, options.gpus, options.devices)
    except InterpError as error:
        parser.error(str(error))
    saturates = parts.saturates * options.devices
    if options.json:
        print(json.dumps({"parts": parts.n, "scaling": [vars(each) for each in found], "saturates": saturates}))
        return
    print(
        f"As {parts.n:,} parts of {parts.seconds:,.3g} s on {parts.batches:,} batches; a worker begins in "
        f"{parts.begin_seconds:,.1f} s:"
    )
    table = pd.DataFrame([vars(each) for each in found])[[*SHOWN]].rename(columns=SHOWN)
    print(table.round(2).to_string(index=False))
    print(f"Twice the devices bring less than a tenth from {saturates:,} on.")


if __name__ == "__main__":
    main()
