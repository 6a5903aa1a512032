"""What is packed and unpacked is the same to the bit, strides and all, and shares the memory it came in."""

import pytest
import torch
from tiny_models import random_model, random_tokens
from torch import nn

from interp.errors import InputError
from interp.runs import pickling as packing
from interp.runs import workers
from interp.runs.pickling import Packed, pack

pytestmark = pytest.mark.unchecked

BLOCK = torch.arange(24.0).reshape(2, 3, 4)


def sent(value):
    packed = pack(value)
    return Packed(packed.data, [memoryview(bytearray(each)) for each in packed.buffers]).unpacked()


@pytest.mark.parametrize(
    "tensor",
    [
        BLOCK,
        BLOCK.permute(2, 0, 1),
        BLOCK.transpose(0, 1),
        BLOCK[:, :, ::2],
        BLOCK[:1].expand(5, 3, 4),
        BLOCK.bfloat16(),
        BLOCK.long(),
        BLOCK > 3,
        torch.tensor(3.5),
        torch.zeros(0, 4),
        BLOCK[:, :1],
        BLOCK[1:, 1:, ::3].permute(2, 0, 1),
    ],
    ids=lambda tensor: f"{tuple(tensor.shape)} {tensor.stride()} {tensor.dtype}",
)
def test_tensors_are_the_same_in_every_respect(tensor):
    found = sent(tensor)
    assert torch.equal(found, tensor)
    assert (found.dtype, found.stride(), found.requires_grad) == (tensor.dtype, tensor.stride(), tensor.requires_grad)


def test_what_is_one_tensor_stays_one():
    tensor = torch.ones(3)
    one, other = sent([tensor, tensor])
    assert one is other


@pytest.mark.parametrize("requires_grad", [True, False])
def test_parameters_are_parameters(requires_grad):
    found = sent(nn.Parameter(torch.ones(3), requires_grad))
    assert type(found) is nn.Parameter
    assert found.requires_grad == requires_grad


def test_the_memory_is_not_copied():
    packed = pack({"weight": torch.zeros(1000)})
    assert len(packed.data) < 1000
    (buffer,) = packed.buffers
    shared = bytearray(buffer)
    found = Packed(packed.data, [memoryview(shared)]).unpacked()["weight"]
    shared[:4] = torch.tensor([7.0]).numpy().tobytes()
    assert found[0] == 7


def test_a_model_computes_the_same_bits():
    model = random_model(dtype=torch.float32)
    tokens = random_tokens(model)
    packed = pack(model)
    assert sum(each.nbytes for each in packed.buffers) >= sum(4 * each.numel() for each in model.parameters())
    assert torch.equal(sent(model)(tokens), model(tokens))


def test_what_cannot_be_sent_is_refused():
    with pytest.raises(
        InputError, match=r"workers: expected what can be sent to another process, got .*; leave them out"
    ):
        pack(lambda: 2)


def test_a_gpu_is_the_receivers_own():
    """A worker sees one, and it is the first to it, whatever its number here."""
    assert sent(torch.device("cuda:1")) == torch.device("cuda")
    assert sent({"device": torch.device("cpu")}) == {"device": torch.device("cpu")}


@pytest.mark.parametrize(("device", "seen"), [("cuda:1", ["1", "2", "0"]), ("cuda", ["0", "1", "2"]), ("cpu", ["0"])])
def test_processes_take_gpus_in_turn_from_the_works_own_on(monkeypatch, device, seen):
    """Whoever asks for ``cuda:1`` may have left ``cuda:0`` to somebody else."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    begins = pack({"device": torch.device(device)}).gpu
    assert [workers._gpu(begins + slot) for slot in range(len(seen))] == seen


def test_the_works_own_gpu_is_that_of_its_first_tensor():
    assert pack([torch.device(each) for each in ("cpu", "cuda", "cuda:2", "cuda:1")]).gpu == 2
    assert pack([torch.device(each) for each in ("cuda:0", "cuda:3")]).gpu == 0


@pytest.mark.parametrize("kind", [torch.Tensor, nn.Parameter])
@pytest.mark.parametrize("block", [BLOCK, BLOCK[:, :, ::2], torch.zeros(0, 4)], ids=["whole", "with gaps", "empty"])
def test_a_tensor_of_any_layout_goes_to_the_receivers_own_gpu(monkeypatch, kind, block):
    monkeypatch.setattr(packing._Pickler, "_device", lambda self, device: "meta")
    assert sent(nn.Parameter(block) if kind is nn.Parameter else block).device == torch.device("meta")
