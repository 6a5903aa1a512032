import pytest
from hand_model import HandModel, varied_task

from interp.methods.evidence import gather


def test_an_interrupted_sweep_is_no_evidence():
    """What is complete of it would be judged like the task."""

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.warns(RuntimeWarning, match="interrupted"), pytest.raises(KeyboardInterrupt):
        gather(HandModel(), varied_task(), kind="mean", draws=1, seed=0, progress=stop)
