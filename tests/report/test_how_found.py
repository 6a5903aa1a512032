from interp.report.declared import CHOSEN, EVERYTHING, how_found

CLAIM = {"head": "2.1", "task": "ioi", "expected": "tracks", "verdict": "tracks", "outcome": "confirmed", "reason": ""}
DECLARED = {"file": "claims.toml", "sha256": "ab" * 32, "read": "2026-01-02T03:04:05+00:00", "claims": [CLAIM]}


def test_what_was_not_declared_was_found_by_looking():
    assert how_found({}) == how_found({"declared": None, "chosen_on": []}) == [EVERYTHING]
    assert how_found({"chosen_on": [{"task": "ioi"}]}) == [CHOSEN]


def test_every_claim_is_told_with_what_became_of_it():
    open_one = {**CLAIM, "head": "0.1", "verdict": "undecided", "outcome": "open", "reason": "attention is undecided"}
    first, confirmed, left_open = how_found({"declared": {**DECLARED, "claims": [CLAIM, open_one]}})
    assert first == (
        "Declared before measuring: 2 claims of claims.toml (SHA-256 abababababab, read 2026-01-02T03:04:05+00:00). "
        "Only these can be shown, and are corrected for among themselves."
    )
    assert confirmed == "Head 2.1 on ioi: “tracks” was declared, “tracks” is found: confirmed."
    assert left_open == ("Head 0.1 on ioi: “tracks” was declared, “undecided” is found, attention is undecided: open.")
