"""Read and write points: TransformerLens' HookPoint, with two promises added.

1. Nothing is computed for a point that nobody listens to (``listened``), and whatever is listened
   to is computed: a hook cannot be accepted and never fire.
2. A hook that returns another shape, dtype or device than it was given raises at once: broadcasting
   a ``[batch, 1, head, d_head]`` over all positions is a wrong result that looks like a right one.
"""

from torch import Tensor
from transformer_lens.hook_points import HookPoint as LensHookPoint

from interp.errors import HookError


class HookPoint(LensHookPoint):
    """Identity, where hooks may read the activation or return another of the same kind."""

    def __call__(self, x: Tensor) -> Tensor:
        """Run the hooks on `x` and check what they return.

        Raises:
            HookError: A hook returned another shape, dtype or device.
        """
        out = super().__call__(x)
        if out is x:
            return x
        if not isinstance(out, Tensor):
            raise HookError(f"{self.name}: a hook must return a tensor or None, got {type(out).__name__}")
        for what in ("shape", "dtype", "device"):
            expected, got = getattr(x, what), getattr(out, what)
            if expected != got:
                expected, got = (tuple(expected), tuple(got)) if what == "shape" else (expected, got)
                raise HookError(
                    f"{self.name}: a hook returned {what} {got}, expected {expected}; "
                    "return a tensor of the same shape, dtype and device, or None"
                )
        return out

    @property
    def listened(self) -> bool:
        """Whether any hook is attached here, forward or backward."""
        forward = self._forward_hooks or self._forward_pre_hooks
        return bool(forward or self._backward_hooks or self._backward_pre_hooks)
