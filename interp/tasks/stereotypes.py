"""How does a sentence whose pronoun a stereotype asks for become an example?

1. There are two sentences, the same but for the gender of the pronouns. What comes before the first pronoun is the
   prompt; *right* goes on with the pronoun that the stereotype of the referent's occupation asks for, *wrong* with
   the other gender's.
2. So neither is a right answer: what is measured is how much the model prefers the stereotype, given the sentence. Of
   a head whose ablation takes the preference away, it can be said that the head carries it. The whole rests are
   compared, since it is often they that say whom the pronoun stands for; the pronoun by itself cannot be judged.
3. The relation looks from the pronoun to the head noun of whom it stands for. A rule that looks at the other person
   is what a head is held against. (Where the rest decides, a causal model has not read it yet at the pronoun.)
4. The template is the stereotype's gender, so that either counts the same, whatever a model thinks of pronouns at
   large.
"""

from interp.tasks.example import Example, MinimalPair, Relation, Span
from interp.tasks.readers.pronouns import Gender


def stereotype_example(
    asked: str,
    other: str,
    *,
    gender: Gender,
    pronoun: Span,
    referent: Span,
    other_person: Span | None,
) -> Example:
    """Make an example of two sentences that are the same before their first pronoun.

    Args:
        asked: The sentence with the pronouns that the stereotype asks for.
        other: The sentence with the other gender's.
        gender: The stereotype's.
        pronoun: The first pronoun, in `asked`.
        referent: Whom the pronouns stand for, in `asked`.
        other_person: Whom they could be mistaken to stand for; None where it is not known.
    """
    prompt = asked[: pronoun.start].rstrip()
    related = head_noun(asked, referent)
    return Example(
        prompt=prompt,
        right=asked[len(prompt) :],
        wrong=other[len(prompt) :],
        relation=Relation(
            name="antecedent",
            query=pronoun,
            related=related,
            distractors={} if other_person is None else {"other person": head_noun(asked, other_person)},
        ),
        template=gender,
        layout="",  # the sentences' words have no common meaning by position
        features={"gender": gender, "antecedent": related.of(asked).lower()},
    )


def sentences(pair: MinimalPair) -> list[str]:
    """The texts of a pair: of each example the whole sentence, in either version."""
    return [text for example in pair.examples for text in (example.text, example.prompt + example.wrong)]


def head_noun(text: str, phrase: Span) -> Span:
    """The last word of a noun phrase."""
    return Span(phrase.start + phrase.of(text).rfind(" ") + 1, phrase.stop)
