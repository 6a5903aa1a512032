"""What the README of the forerunners shows runs."""

from pathlib import Path

from markdown_pages import blocks, run_python

README = Path(__file__).resolve().parent.parent.parent / "forerunners" / "README.md"


def test_its_example_runs():
    (block,) = blocks(README, "python")
    namespace = {"__name__": "__main__"}
    run_python(block, README, namespace)
    assert namespace["loss"][-1] < namespace["loss"][0]
    assert namespace["cache"]["layers.0.hook_state"].shape == (1, 9, 16)
