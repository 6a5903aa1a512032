"""Do the heads of a CoNLL-U sentence make a tree?"""

from collections.abc import Sequence, Set

from interp.tasks.readers.conllu_block import placed
from interp.tasks.readers.conllu_node import Node


def check_tree(words: Sequence[Node]) -> None:
    """Refuse heads that make no tree.

    Args:
        words: All of them, in order.

    Raises:
        TaskError: A head outside the sentence, a second root, or heads in a circle; it names the place.
    """
    heads: list[int] = []
    for node in words:
        with placed(node.place):
            head = node.head
            if head is None or not 0 <= head <= len(words):
                shown = "none" if head is None else head
                raise ValueError(f"expected a head from 0 to {len(words)}, the words of the sentence, got {shown}")
            if head == 0 and 0 in heads:
                raise ValueError(f"expected one root, got a second one; the first is word {heads.index(0) + 1}")
            heads.append(head)
    rooted = {0}
    for word, node in enumerate(words, start=1):
        with placed(node.place):
            rooted |= _path(word, heads, rooted)


def _path(word: int, heads: Sequence[int], rooted: Set[int]) -> set[int]:
    """The words from `word` up to one of those that are known to come to the root; refuses one that never does."""
    seen: set[int] = set()
    above = word
    while above not in rooted:
        if above in seen:
            raise ValueError(f"expected a tree, got a circle: from word {word} its heads lead back to word {above}")
        seen.add(above)
        above = heads[above - 1]
    return seen
