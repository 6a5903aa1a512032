"""What is measured together under one name?"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from interp.interventions.intervention import Intervention


@dataclass(frozen=True)
class Cell:
    """Interventions that are made together.

    Attributes:
        labels: What the cell is called: ``layer``, ``head``, ``pos`` ...
        interventions: What is changed.
    """

    labels: Mapping[str, Hashable]
    interventions: tuple[Intervention, ...]
