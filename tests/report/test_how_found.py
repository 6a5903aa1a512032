from interp.report.declared import CHOSEN, EVERYTHING, how_found

CLAIM = {"head": "2.1", "task": "ioi", "expected": "tracks", "verdict": "tracks", "outcome": "confirmed", "reason": ""}
WRITTEN = "2026-01-02T03:04:05+00:00"
DECLARED = {"file": "claims.toml", "sha256": "ab" * 32, "written": WRITTEN, "measured_before": "", "claims": [CLAIM]}


def test_what_was_not_declared_was_found_by_looking():
    assert how_found({}) == how_found({"declared": None, "chosen_on": []}) == [EVERYTHING]
    assert how_found({"chosen_on": [{"task": "ioi"}]}) == [CHOSEN]


def test_every_claim_is_told_with_what_became_of_it():
    open_one = {**CLAIM, "head": "0.1", "verdict": "undecided", "outcome": "open", "reason": "attention is undecided"}
    first, confirmed, left_open = how_found({"declared": {**DECLARED, "claims": [CLAIM, open_one]}})
    assert first == (
        f"Declared before measuring: 2 claims of claims.toml (SHA-256 abababababab, last written {WRITTEN}). "
        "Only these can be shown, and are corrected for among themselves."
    )
    assert confirmed == "Confirmed: head 2.1 on ioi was declared “tracks”, and is “tracks”."
    assert left_open == ("Open: head 0.1 on ioi was declared “tracks”, and is “undecided” (attention is undecided).")


def test_what_was_measured_before_the_file_was_written_was_not_declared_before():
    first, _ = how_found({"declared": {**DECLARED, "measured_before": "2026-01-01T00:00:00+00:00"}})
    assert first == (
        f"Not declared before measuring: 1 claim of claims.toml (SHA-256 abababababab, last written {WRITTEN}; "
        "measuring began 2026-01-01T00:00:00+00:00), so they may rest on what was seen. Only these can be shown, and "
        "are corrected for among themselves."
    )
