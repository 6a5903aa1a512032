from interp.report.heads import how_found
from interp.report.page_texts import texts

CLAIM = {"head": "2.1", "task": "ioi", "expected": "tracks", "verdict": "tracks", "outcome": "confirmed", "reason": ""}
WRITTEN, BEFORE, AFTER = (f"2026-01-02T03:04:0{second}+00:00" for second in (5, 4, 6))
DECLARED = {"file": "claims.toml", "sha256": "ab" * 32, "written": WRITTEN, "measured": AFTER, "claims": [CLAIM]}


def test_what_was_not_declared_was_found_by_looking():
    assert how_found({}) == how_found({"declared": None, "chosen_on": []}) == [texts()["found"]["everything"]]
    assert how_found({"chosen_on": [{"task": "ioi"}]}) == [texts()["found"]["chosen"]]


def test_every_claim_is_told_with_what_became_of_it():
    open_one = {**CLAIM, "head": "0.1", "verdict": "undecided", "outcome": "open", "reason": "attention is undecided"}
    first, confirmed, left_open = how_found({"declared": {**DECLARED, "claims": [CLAIM, open_one]}})
    assert first == (
        "Declared before measuring these items, as far as is known here: 2 claims of claims.toml (SHA-256 "
        f"abababababab, last written {WRITTEN}; measuring began {AFTER}). Only "
        "these can be shown, and are corrected for among themselves."
    )
    assert confirmed == "Confirmed: head 2.1 on ioi was declared “tracks”, and is “tracks”."
    assert left_open == ("Open: head 0.1 on ioi was declared “tracks”, and is “undecided” (attention is undecided).")
    (_, without) = how_found({"declared": {**DECLARED, "claims": [{**open_one, "verdict": "none", "reason": ""}]}})
    assert without.endswith("and is “none” (a part of it is undecided or was not tested).")


def test_what_was_measured_before_the_file_was_written_was_not_declared_before():
    first, _ = how_found({"declared": {**DECLARED, "measured": BEFORE}})
    assert first.startswith(
        "Declared, but measuring began before the file was last written, so the claims may rest on what was seen: "
        f"1 claim of claims.toml (SHA-256 abababababab, last written {WRITTEN}; measuring began {BEFORE})."
    )
