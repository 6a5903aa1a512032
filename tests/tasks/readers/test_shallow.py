"""What would end the process by a signal is refused; what is merely long is read."""

import io

import pytest

from interp.tasks.readers.shallow import DEEPEST, ShallowJson


@pytest.mark.parametrize(("left", "right"), [(b"[", b"]"), (b'{"a":', b"}")], ids=["lists", "objects"])
@pytest.mark.parametrize("n", [DEEPEST + 1, 100_000])
def test_deep_json_is_refused(left, right, n):
    line = b'{"x":' + left * (n - 1) + b"1" + right * (n - 1) + b"}\n"
    with pytest.raises(ValueError, match=f"line 2: expected at most 1,000 levels of brackets, got {n:,}"):
        ShallowJson().read_json(io.BytesIO(b'{"x": null}\n' + line))


def test_many_brackets_side_by_side_are_read():
    line = b'{"x":[' + b",".join([b"[1]"] * 5_000) + b"]}\n"
    assert len(ShallowJson().read_json(io.BytesIO(line))["x"][0]) == 5_000


def test_all_else_is_pyarrows():
    assert ShallowJson().ReadOptions(block_size=5).block_size == 5
