"""``interp model families``: which checkpoints are read, and how many of those that TransformerLens lists."""

import re
from typing import TYPE_CHECKING, Annotated, Any

from interp.cli.dataclass_options import Fields
from interp.cli.messages import say
from interp.cli.running import Work

if TYPE_CHECKING:
    import pandas as pd

DECODER = re.compile(r"(?:ForCausalLM|LMHeadModel)$")
"""How the classes of decoders that predict the next token are called."""
QUANTISED = re.compile(r"awq|gptq|bnb|quant|mlx|hqq|exl2|fp8|w\da\d|(?:int|nf|mxfp|nvfp)[48]|\d-?bit", re.IGNORECASE)
STRETCHED = re.compile(
    r"llama-?3[._-]?[123]\b|gemma-?3|olmo-?3|gpt-oss|phi-?3.*128k|phi-?4-mini|yarn|longrope", re.IGNORECASE
)
"""Names of checkpoints whose rotary positions are stretched: the registry has no configs."""


def families(work: Annotated[Work, Fields(only=("as_json",))]) -> None:
    """Which models can be loaded? Lists the families, and counts what TransformerLens' registry has of them."""
    from interp.cli.terminal import print_json, print_table
    from interp.model.loading.huggingface import families as listed

    table, registry = listed(), registered()
    counts = registry["architecture_id"].value_counts()
    table["checkpoints"] = table["architecture"].map(counts).fillna(0).astype(int)
    found = share(registry, table["architecture"])
    if work.as_json:
        print_json({"families": table.to_dict("records"), "registry": found})
        return
    columns = ["family", "architecture", "checkpoints", "about"]
    print_table(columns, ([str(each) for each in row] for row in table[columns].itertuples(index=False)))
    say(
        f"TransformerLens lists {found['decoders']:,} decoders (...ForCausalLM, ...LMHeadModel); {found['native']:,} "
        f"({found['native'] / found['decoders']:.1%}) are of these architectures. By their names, "
        f"{found['quantised']:,} of them are quantised, which is refused, and at least {found['stretched']:,} "
        f"({found['stretched'] / found['native']:.1%}) have stretched rotary positions. Others run as bridge:NAME."
    )


def registered() -> "pd.DataFrame":
    """The checkpoints in TransformerLens' registry: ``architecture_id`` and ``model_id``."""
    import json
    from importlib import resources

    import pandas as pd

    file = resources.files("transformer_lens.tools.model_registry") / "data" / "supported_models.json"
    return pd.DataFrame(json.loads(file.read_text(encoding="utf-8"))["models"])[["architecture_id", "model_id"]]


def share(registry: "pd.DataFrame", architectures: Any) -> dict[str, int]:
    """How many decoders are listed, how many of these architectures, and of these by name: quantised, stretched."""
    decoders = registry[registry["architecture_id"].str.contains(DECODER)]
    native = decoders[decoders["architecture_id"].isin(architectures)]["model_id"]
    named = {"quantised": QUANTISED, "stretched": STRETCHED}
    counts = {what: int(native.str.contains(pattern).sum()) for what, pattern in named.items()}
    return {"decoders": len(decoders), "native": len(native), **counts}
