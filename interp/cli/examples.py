"""What does one type? The examples at the end of each command's help, each under what it is for."""

EXAMPLES: dict[str, dict[str, str]] = {
    "heads": {
        "every head on the five default tasks": "interp heads --out report",
        "two tasks, quickly, and no page for each head": (
            "interp heads --task agreement --task ioi --n 100 --no-cards --out report"
        ),
        "real sentences, on the model of real English": (
            "interp heads --task agreement:gum-dev.conllu --model books --out verbs"
        ),
        "do other seeds of the training come to the same verdicts?": (
            "interp heads --sibling sibling-1 --sibling sibling-2 --processes 2 --out report"
        ),
    },
    "head": {
        "a head of `interp heads`, as a page": "interp head 2.2 --out card",
        "on one task alone, for a script": "interp head 2.2 --task agreement --json",
    },
    "ablate": {
        "one head, with its interval": "interp ablate --head 2.1 --task agreement",
        "every head by itself, as a page": "interp ablate --task agreement --out ablation",
        "each MLP's output replaced by its output on another example": (
            "interp ablate --task ioi --components mlps --replacement resample --out ablation"
        ),
        "every place of the residual stream": "interp ablate --task ioi --site resid_pre --by layer,pos --out ablation",
    },
    "patch": {
        "which heads bring the answer back?": "interp patch --task agreement --out patching",
        "through which layers and words does it travel?": (
            "interp patch --task ioi --site resid_pre --by layer,pos --out patching"
        ),
        "what is needed, in place of what suffices": "interp patch --task ioi --direction noise --out patching",
        "many cells: gradients choose the strongest, which are measured": (
            "interp patch --task ioi --site mlp_post --by layer,neuron --screen --out patching"
        ),
    },
    "attend": {
        "subjects, objects and coreference in a treebank": (
            "interp attend --data gum-test.conllu --relation nsubj,obj,coref --model books --out relations"
        ),
        "one head of each relation, chosen on other text": (
            "interp attend --data gum-test.conllu --choose-on gum-train.conllu --model books --out relations"
        ),
    },
    "probe": {
        "can number be read in what the heads write?": "interp probe --feature number --task agreement --out probes",
        "the same in the residual stream": "interp probe --feature number --task agreement --site resid_post",
        "parts of speech in a treebank": (
            "interp probe --feature upos --data gum-test.conllu --model books --min-examples 50 --out probes"
        ),
        "from activations that were stored": "interp probe --feature upos --store store --model books",
    },
    "calibrate": {
        "in minutes, on two processes": "interp calibrate --quick --processes 2 --out calibration",
        "in full, with seeds of your own": "interp calibrate --seed 40000 --processes 2 --out calibration",
    },
    "doctor": {
        "is all well here?": "interp doctor",
        "for a script, or for a report of what went wrong": "interp doctor --json",
    },
    "tasks": {
        "what can be asked?": "interp tasks",
        "for a script": "interp tasks --json",
        "what does a tokenizer carry?": "interp tasks --tokenizer books",
    },
    "model info": {
        "the embedded default and its card": "interp model info",
        "one of your own": "interp model info --model ./my-gpt2",
    },
    "model plan": {
        "on one GPU": "interp model plan gpt2-xl --device a100 --dtype bfloat16",
        "one of your own, on a task": "interp model plan --model ./my-gpt2 --task agreement --n 200",
    },
    "model convert": {
        "a nanoGPT checkpoint": "interp model convert ./nanogpt/ckpt.pt my-model",
        "llama.cpp's file": "interp model convert ./model.gguf my-model",
        "a folder of transformers, in half precision": "interp model convert ./llama my-model --dtype bfloat16",
    },
    "model fetch": {"a real language model of 135 million parameters": "interp model fetch smollm2"},
    "model families": {"which are read here?": "interp model families", "for a script": "interp model families --json"},
    "activations collect": {
        "what heads write at every word of a treebank": (
            "interp activations collect --data gum-test.conllu --model books --site z --out store"
        ),
        "the stream where a task's answer is predicted": (
            "interp activations collect --task agreement --site resid_mid,resid_post --out store"
        ),
    },
    "activations verify": {"is every byte as it was written?": "interp activations verify store"},
    "runs ls": {
        "the latest first": "interp runs ls",
        "of another folder, for a script": "interp runs ls --runs ./runs --json",
    },
    "runs show": {"by the first digits of its key": "interp runs show 3f9a"},
    "runs resume": {"where it stopped": "interp runs resume 3f9a"},
    "runs verify": {"all of them": "interp runs verify", "one": "interp runs verify 3f9a"},
    "runs export": {"the effects, a row each": "interp runs export 3f9a --out effects.csv"},
    "runs rm": {"two of them": "interp runs rm 3f9a 77c0"},
}


def epilog(command: str) -> str:
    """The end of the help of this command: its examples."""
    lines = [f"  # {purpose}\n  {line}" for purpose, line in EXAMPLES[command].items()]
    return "\n".join(["Examples:" if len(lines) > 1 else "Example:", *lines])
