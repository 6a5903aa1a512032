"""``interp tasks`` and ``interp model info``: what there is to ask, and whom."""

import os
from pathlib import Path
from typing import Any

from interp.cli.hints import after_looking, say_next
from interp.cli.options import JsonOption, ModelOption
from interp.cli.saying import say


def tasks(as_json: JsonOption = False) -> None:
    """What can heads be asked? The tasks, what each says, and by what it is measured."""
    from interp.cli.terminal import console, print_json, records, verbatim
    from interp.tasks.catalogue import list_tasks

    rows = records(list_tasks())
    if as_json:
        print_json({"tasks": rows})
        return
    from rich.table import Table

    table = Table("task", "what it says", "measured by", box=None, padding=(0, 2, 1, 0))
    for row in rows:
        table.add_row(verbatim(row["name"]), verbatim(row["description"]), row["metric"].replace("_", " "))
    console().print(table)
    say_next(after_looking(None))


def model_info(model: ModelOption = None, as_json: JsonOption = False) -> None:
    """What is this model? Its architecture, parameters, tokenizer, hash and card."""
    from interp.cli.loading import can_be_asked
    from interp.cli.terminal import print_json, warnings_as_lines
    from interp.model.loading import load_model

    with warnings_as_lines():
        loaded = load_model(model)
    facts = _facts(loaded)
    card = _card(model)
    if as_json:
        print_json({**facts, "card": card})
        return
    for name, value in facts.items():
        say(f"{name}: {value}")
    if card is not None:
        say(f"\n{card.strip()}")
    say_next(after_looking(model, can_be_asked(loaded)))


def _facts(loaded: Any) -> dict[str, Any]:
    from interp.model.provenance import shown_around_texts
    from interp.model.transformer import HookedTransformer
    from interp.model.weights import weights_hash

    shape = ("n_layers", "n_heads", "d_model", "d_head", "d_mlp", "d_vocab", "n_ctx", "act_fn", "normalization_type")
    tokenizer = loaded.tokenizer
    return {
        "name": getattr(loaded, "name", None) or loaded.cfg.model_name,  # TransformerLens' own have no name and no hash
        **{name: getattr(loaded.cfg, name) for name in shape},
        **(loaded.config.beside_gpt2() if isinstance(loaded, HookedTransformer) else {}),
        "parameters": sum(parameter.numel() for parameter in loaded.parameters()),
        "tokenizer": None if tokenizer is None else f"{type(tokenizer).__name__}, {len(tokenizer)} entries",
        "special_tokens": shown_around_texts(loaded),
        "hash": getattr(loaded, "hash", None) or weights_hash(loaded),
    }


def _card(model: str | None) -> str | None:
    """The model card, `README.md` beside the weights, where there is one on this machine."""
    from interp.model.loading import embedded_models
    from interp.model.loading.load import DEFAULT, model_folder

    name = model or DEFAULT
    folder = model_folder(name) if name in embedded_models() else Path(os.path.expanduser(name))
    card = folder / "README.md"
    return card.read_text(encoding="utf-8", errors="replace") if card.is_file() else None
