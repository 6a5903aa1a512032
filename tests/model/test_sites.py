import pytest
import torch
from tiny_models import random_model

from interp.errors import InputError
from interp.model.sites import SITES, Site


def test_every_site_is_a_point_of_the_model():
    model = random_model()
    layered = {name: "{layer}" in template for name, (template, _) in SITES.items()}
    for name in SITES:
        site = Site(name, 0 if layered[name] else None)
        shapes = []
        model.run_with_hooks(
            torch.zeros(1, 5, dtype=torch.long),
            fwd_hooks=[(site.hook_name, lambda x, *, hook, shapes=shapes: shapes.append(x.ndim))],
        )
        assert shapes == [len(site.axes)]


@pytest.mark.parametrize(
    ("name", "layer", "message"),
    [
        ("zz", 0, "no site is called 'zz'"),
        ("z", None, "expected a layer"),
        ("embed", 1, "expected no layer"),
        ("z", -1, "layers count from 0"),
    ],
)
def test_what_is_no_site_is_refused(name, layer, message):
    with pytest.raises(InputError, match=message):
        Site(name, layer)
