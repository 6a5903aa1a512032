"""Task: is the acceptable sentence of a BLiMP paradigm more probable than the unacceptable one?

What a file's items become is ``blimp.py``'s concern; here the items are chosen that were asked for.
"""

from interp.tasks.blimp import blimp_coverage, blimp_pair
from interp.tasks.readers.blimp import read_blimp
from interp.tasks.request import FileRequest, TaskInfo
from interp.tasks.task import Task

INFO = TaskInfo(
    "blimp:PATH",
    "The acceptable sentence of a published minimal pair is more probable than the unacceptable one.",
    metric="sentence_log_probability",
)


def load(request: FileRequest) -> Task:
    """Read a paradigm as a task.

    Raises:
        TaskError: The file cannot be read, the metric is none of its items', no item has only known words, or the
            tokenizer can carry none.
    """
    items = request.choose(list(read_blimp(request.source)), lambda item: (item.good, item.bad))
    pairs = [blimp_pair(item, request.metric) for item in items]
    return request.encode(pairs, INFO, blimp_coverage(items, pairs))
