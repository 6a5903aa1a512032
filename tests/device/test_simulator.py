"""What the simulated device refuses, copies and counts, as a machine with a GPU would: each by hand."""

import copy
import pickle

import numpy as np
import pytest
import torch
from device.counting import LOG, MEMORY
from device.simulator import SimulatedCuda

pytestmark = [pytest.mark.gpu, pytest.mark.unchecked, pytest.mark.usefixtures("two")]


@pytest.fixture
def two():
    with SimulatedCuda(devices=2) as cuda:
        yield cuda


def here():
    return torch.arange(1.0, 4.0, device="cuda")


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (lambda x: x.numpy(), TypeError, "can't convert cuda:0"),
        (np.asarray, TypeError, "can't convert cuda:0"),
        (lambda x: x + torch.ones(3), RuntimeError, "found at least two devices, cuda:0 and cpu"),
        (lambda x: torch.cat([x, torch.ones(3)]), RuntimeError, "two devices"),
        (lambda x: torch.nn.functional.embedding(torch.tensor([0]), x[:, None]), RuntimeError, "two devices"),
        (lambda x: torch.ones(3)[torch.tensor([0], device="cuda")], RuntimeError, "indices should be either on cpu"),
        (lambda x: torch.rand(3, device="cuda", generator=torch.Generator()), RuntimeError, "'cuda' device type"),
        (lambda x: x.long()[None] @ x.long()[:, None], RuntimeError, "not implemented"),
        (lambda x: torch.equal(x, torch.ones(3)), RuntimeError, "two devices"),
        (lambda x: x + torch.ones(3, device="cuda:1"), RuntimeError, "two devices, cuda:0 and cuda:1"),
        (lambda x: x[torch.tensor([0], device="cuda:1")], RuntimeError, "two devices"),
    ],
)
def test_refused(call, kind, says):
    with pytest.raises(kind, match=says):
        call(here())


def test_what_a_gpu_takes_of_the_host():
    x = here()
    assert (x + torch.tensor(2.0)).tolist() == [3, 4, 5]
    assert x[torch.tensor([0, 2])].tolist() == [1, 3]
    x[1] = 7.0
    x[x > 6] = 0.0
    assert x.cpu().tolist() == [1, 0, 3]


def test_where_tensors_are():
    x = here()
    assert x.device == torch.device("cuda:0")
    assert x.is_cuda
    assert x.to("cuda") is x.to("cuda:0") is x.cuda() is x
    assert not x.cpu().is_cuda
    assert torch.zeros(2).to(x).is_cuda
    assert all(each.is_cuda for each in (x.new_tensor([1]), x.new_zeros(2), torch.zeros_like(x), x[[0, 1]], x.double()))


def test_a_copy_is_a_copy_and_a_view_a_view():
    host = np.zeros(3)
    there = torch.from_numpy(host).to("cuda")
    host[0] = 1
    assert there.tolist() == [0, 0, 0]
    there[1:].fill_(5)
    assert there.tolist() == [0, 5, 5]


def test_a_module_moves_in_place_and_learns():
    layer = torch.nn.Linear(3, 3)
    on_cpu, weight = copy.deepcopy(layer), layer.weight
    layer.to("cuda")
    assert layer.weight is weight
    assert isinstance(weight, torch.nn.Parameter)
    for each, x in ((layer, here()), (on_cpu, torch.arange(1.0, 4.0))):
        each(x).square().sum().backward()
    assert layer.weight.grad.is_cuda
    assert torch.equal(layer.weight.grad.cpu(), on_cpu.weight.grad)


@pytest.mark.parametrize("inference", [True, False])
def test_attention_is_pytorchs(inference):
    q, k, v = torch.randn(3, 2, 4, 5, 8, dtype=torch.float64)
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    attend = torch.nn.functional.scaled_dot_product_attention
    with torch.inference_mode(inference):
        for options in ({}, {"attn_mask": mask}, {"is_causal": True}):
            moved = {name: each.cuda() if each is mask else each for name, each in options.items()}
            found = attend(q.cuda(), k.cuda(), v.cuda(), **moved).cpu()
            assert torch.allclose(found, attend(q, k, v, **options), atol=1e-12)


def test_launches_and_waits():
    x = here()
    LOG.clear()
    y = (x * 2 + 1).view(3, 1)  # two kernels, and a view
    assert (LOG.n_launches, LOG.n_waits) == (2, 0)
    float(y.sum())  # one, and one copy that is waited for
    assert (LOG.n_launches, LOG.n_waits) == (4, 1)
    torch.tensor([1, 2], device="cuda")
    assert LOG.n_waits == 2
    y[y > 2]  # the comparison, the mask's places, the rows
    assert LOG.n_waits == 3


def test_what_is_pinned_is_copied_without_waiting():
    x = here()
    LOG.clear()
    pinned = torch.arange(3.0).pin_memory()
    pinned.to("cuda", non_blocking=True)
    assert LOG.n_waits == 0
    torch.arange(3.0).to("cuda", non_blocking=True)  # from memory that may be moved meanwhile
    pinned.to("cuda")
    assert LOG.n_waits == 2
    fetched, done = x.to("cpu", non_blocking=True), torch.cuda.current_stream().record_event()
    assert LOG.n_waits == 2
    done.synchronize()
    assert (LOG.n_waits, fetched.tolist()) == (3, [1, 2, 3])


def test_memory_is_that_of_living_tensors():
    before = MEMORY[0].now
    x = torch.zeros(1000, device="cuda")
    view = x[:10]
    assert torch.cuda.memory_allocated() - before == 4000
    del x
    assert MEMORY[0].now - before == 4000
    del view
    assert MEMORY[0].now == before


def test_there_are_several_devices():
    x, before = here(), torch.cuda.memory_allocated()
    y = x.to("cuda:1").requires_grad_()
    assert (torch.cuda.device_count(), y.device) == (2, torch.device("cuda:1"))
    assert (torch.cuda.memory_allocated(1), torch.cuda.memory_allocated()) == (12, before)
    (y.to("cuda:0") * x).sum().backward()
    assert y.grad.device == y.device
    assert y.grad.tolist() == [1, 2, 3]
    torch.cuda.set_device(1)
    assert here().device == y.device


def test_what_is_sent_to_another_process():
    sent = pickle.dumps(here())
    assert pickle.loads(sent).is_cuda
