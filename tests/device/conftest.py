import pytest


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)], ids=["cpu", "cuda"])
def device(request):
    """The CPU, and the GPU: the simulated one where there is no other."""
    return request.param
