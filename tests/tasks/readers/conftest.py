import datasets
import pytest

from interp.errors import TaskError


@pytest.fixture
def save(tmp_path):
    """Write a data set with one split a list of rows; give its name."""

    def save(*, features=None, **splits):
        for split, rows in splits.items():
            datasets.Dataset.from_list(rows, features=features).to_parquet(tmp_path / f"{split}.parquet")
        return f"hub:{tmp_path}"

    return save


@pytest.fixture
def write(tmp_path, request):
    """Write a file, called as the module's ``FILE``; give its path."""

    def write(content, name=request.module.FILE):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def refusal():
    """What a reader says of a source that it cannot read, in one line that begins with the source."""

    def refusal(read, source):
        with pytest.raises(TaskError) as raised:
            list(read(source))
        message = str(raised.value)
        assert message.startswith(str(source))
        assert "\n" not in message
        return message.removeprefix(str(source))

    return refusal
