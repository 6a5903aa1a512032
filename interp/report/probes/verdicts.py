"""How is each verdict on a cell and a feature shown? One symbol and one meaning."""

from interp.report.verdicts import Verdict

ENCODES, UNDECIDED, NONE = "encodes", "undecided", "none"
VERDICTS = {
    verdict.name: verdict
    for verdict in (
        Verdict(
            ENCODES,
            "●",
            "o",
            True,
            "the feature can be read there beyond every control, by the minimum at least, and selectively",
        ),
        Verdict(UNDECIDED, "?", r"$\mathbf{?}$", True, "the data do not decide"),
        Verdict(NONE, "·", ".", False, "what can be read beyond the toughest control is shown to be below the minimum"),
    )
}
