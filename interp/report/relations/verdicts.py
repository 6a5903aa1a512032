"""How is each verdict on a head and a relation shown? One symbol and one meaning."""

from interp.report.verdicts import FEWEST_CLUSTERS, Verdict

ATTENDS, UNDECIDED, NONE, UNTESTABLE = "attends", "undecided", "none", "not testable"
VERDICTS = {
    verdict.name: verdict
    for verdict in (
        Verdict(
            ATTENDS, "●", "o", True, "finds the related word more often than the best rule without attention, clearly"
        ),
        Verdict(
            UNDECIDED,
            "?",
            r"$\mathbf{?}$",
            True,
            "the data do not decide, or the rule leaves too little to be better by",
        ),
        Verdict(NONE, "·", ".", False, "what it finds beyond the best rule is shown to be less than the minimum"),
        Verdict(UNTESTABLE, "—", "", False, "no pair can be scored"),
    )
}
FEWEST_DOCUMENTS = FEWEST_CLUSTERS
"""Documents that a verdict needs."""
