"""How does an item of BLiMP become a minimal pair?

1. **Prompt.** What both sentences share at the start: the prefix of a one-prefix item, otherwise
   the longest common run of words. The continuations are the rests of the two sentences, so the
   difference of their log-probabilities is that of the whole sentences, BLiMP's main method. With
   ``logit_difference`` the continuations are the critical words alone; only one-prefix items can.
2. **Relation.** From ``blimp_tags.py``, where the lexicon can tell.
3. **Counterfactual.** From ``blimp_flips.py``, where one can be made by exchanging words.
4. **Cluster.** The lemma of the noun or name that carries the feature; of untagged items, the pair.
"""

from collections.abc import Sequence

from interp.errors import TaskError
from interp.tasks.blimp_flips import flip_item
from interp.tasks.blimp_tags import TaggedItem, tag_item
from interp.tasks.example import Example, MinimalPair
from interp.tasks.readers.blimp import BlimpItem
from interp.tasks.tagging import all_known
from interp.tasks.task import Metric


def blimp_pair(item: BlimpItem, metric: Metric = "sentence_log_probability") -> MinimalPair:
    """Turn an item of BLiMP into a minimal pair.

    Args:
        item: One line of a paradigm.
        metric: What the continuations are for: the rests of the sentences for
            ``sentence_log_probability``, the critical words for ``logit_difference``.

    Raises:
        TaskError: The metric is ``logit_difference`` and the item is not a one-prefix item.
    """
    tagged = tag_item(item)
    flipped = None if tagged is None else flip_item(item, tagged)
    return MinimalPair(
        item=_example(item, tagged, metric),
        counterfactual=None if flipped is None else _example(flipped, tag_item(flipped), metric),
        cluster=item.pair_id if tagged is None else tagged.lemma,
    )


def blimp_coverage(items: Sequence[BlimpItem], pairs: Sequence[MinimalPair]) -> dict[str, float]:
    """Shares of a file's items, in percent, by what is covered.

    ``known words``: every word of both sentences is one that generated texts contain;
    ``related word tagged``: the item has a relation; ``counterfactual``: it has one.
    """
    covered = {
        "known words": sum(all_known(item.good, item.bad) for item in items),
        "related word tagged": sum(pair.item.relation is not None for pair in pairs),
        "counterfactual": sum(pair.counterfactual is not None for pair in pairs),
    }
    return {what: 100 * count / len(items) for what, count in covered.items()}


def _example(item: BlimpItem, tagged: TaggedItem | None, metric: Metric) -> Example:
    prompt, right, wrong = _continuations(item, metric)
    return Example(
        prompt=prompt,
        right=right,
        wrong=wrong,
        relation=None if tagged is None else tagged.relation,
        template=item.uid,
        layout="",  # the items' words have no common meaning by position
        features={} if tagged is None else dict(tagged.features),
    )


def _continuations(item: BlimpItem, metric: Metric) -> tuple[str, str, str]:
    """The prompt, and the right and the wrong continuation."""
    if metric == "logit_difference":
        if item.prefix is None or not item.one_prefix:
            raise TaskError(
                f"{item.uid}, pair {item.pair_id}: logit_difference needs a critical word after a shared prefix "
                "(one_prefix_method), and this item has none",
                "give metric='sentence_log_probability'",
            )
        return item.prefix, f" {item.word_good}", f" {item.word_bad}"
    stop = len(item.prefix) if item.prefix is not None and item.one_prefix else _shared(item.good, item.bad)
    return item.good[:stop], item.good[stop:], item.bad[stop:]


def _shared(good: str, bad: str) -> int:
    """Length of the words that both sentences share at the start; a sentence's last word never is."""
    same = next((i for i, (a, b) in enumerate(zip(good, bad, strict=False)) if a != b), min(len(good), len(bad)))
    return max(0, good.rfind(" ", 0, same))
