"""What hypothesis draws here: values as JSON has them, and as many examples as a test asks for, always the same."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

ODD_TEXTS = ("", " ", "\0", "\ud800", "💥", "a" * 5_000, "nan", "1e400", "[1]")
TEXTS = st.one_of(st.text(max_size=30), st.sampled_from(ODD_TEXTS))
WHOLE = st.one_of(
    st.integers(-3, 40), st.integers(), st.sampled_from([2**31, 2**63, 10**30, 10**400, 10**4_000, -(10**4_000)])
)
PLAIN = st.one_of(st.none(), st.booleans(), WHOLE, st.floats(), TEXTS)
VALUES = st.recursive(
    PLAIN, lambda inside: st.lists(inside, max_size=3) | st.dictionaries(TEXTS, inside, max_size=3), max_leaves=6
)


def examples(n):
    return settings(
        max_examples=n,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
