"""What a GPU needs, watched without one: nothing read back, nothing made elsewhere."""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode

READS_BACK = {
    "_local_scalar_dense",
    "nonzero",
    "is_nonzero",
    "equal",
    "masked_select",
    "unique_dim",
}
COPIES = {"_to_copy", "copy_"}


class Watch(TorchDispatchMode):
    """Counts what would make the host wait, and notes tensors made on another device."""

    def __init__(self, device):
        super().__init__()
        self.device = torch.device(device)
        self.waits = []
        self.elsewhere = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        name = function.__name__.split(".")[0]
        if name in READS_BACK:
            self.waits.append(name)
        made = result if isinstance(result, (tuple, list)) else [result]
        if name not in COPIES:
            for tensor in made:
                if isinstance(tensor, torch.Tensor) and tensor.device != self.device:
                    self.elsewhere.append((name, tensor.device))
        return result


def test_the_watch_can_see():
    with Watch("cpu") as watch:
        torch.ones(3).nonzero()
        assert torch.ones(1).item() == 1
        torch.ones(1, device="meta")
    assert watch.waits == ["nonzero", "_local_scalar_dense"]
    assert watch.elsewhere == [("ones", torch.device("meta"))]
