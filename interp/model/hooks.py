"""Hooks that cannot be silent: TransformerLens' points and root module, with promises added.

1. Nothing is computed for a point that nobody listens to (``listened``), and whatever is listened to is computed.
2. A hook that returns another shape, dtype or device than it was given raises at once: broadcasting a
   ``[batch, 1, head, d_head]`` over all positions is a wrong result that looks like a right one.
3. A name or filter that matches no point raises with the nearest names.
4. A forward pass of one thread does not run the hooks of another: threads that share a model take turns.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from numbers import Integral
from threading import Lock, RLock
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from transformer_lens import HookedRootModule
from transformer_lens.hook_points import HookPoint as LensHookPoint

from interp.errors import HookError, shown, suggest


class HookPoint(LensHookPoint):
    """Identity, where hooks may read the activation or return another of the same kind."""

    def __call__(self, x: Tensor) -> Tensor:
        """Run the hooks on `x` and check what they return."""
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


NamesFilter = str | Sequence[str] | Callable[[str], bool] | None
CachingHook = tuple[str, Callable[..., None]]
EXPENSIVE = ("hook_result", "hook_attn_in", "hook_q_input", "hook_k_input", "hook_v_input", "hook_mlp_in")

_TURNS: WeakKeyDictionary[nn.Module, Any] = WeakKeyDictionary()
_NEW_TURN = Lock()


def turn_of(model: nn.Module) -> Any:
    """The lock that a thread holds while its hooks are on `model`. It is not kept in it: no lock can be copied."""
    with _NEW_TURN:
        return _TURNS.setdefault(model, RLock())


class StrictHooks(HookedRootModule):
    """TransformerLens' root module, with names checked where hooks and caches are asked for."""

    config: Any

    def add_hook(self, name: str | Callable[[str], bool], hook: Any, *args: Any, **kwargs: Any) -> None:
        """Attach a hook until ``reset_hooks``; see TransformerLens."""
        self._matching(name)
        if not callable(hook):
            raise HookError(f"hook: expected a function of an activation and its point, got {shown(hook)}")
        super().add_hook(name, hook, *args, **kwargs)

    @contextmanager
    def hooks(self, fwd_hooks: Any = (), bwd_hooks: Any = (), *args: Any, **kwargs: Any) -> Iterator[Any]:
        """Attach hooks inside a ``with``; they are gone afterwards, also after an exception."""
        fwd_hooks, bwd_hooks = _pairs("fwd_hooks", fwd_hooks), _pairs("bwd_hooks", bwd_hooks)
        for name, _ in [*fwd_hooks, *bwd_hooks]:
            self._matching(name)
        with turn_of(self), super().hooks(fwd_hooks, bwd_hooks, *args, **kwargs) as model:
            yield model

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The forward pass, of one thread at a time."""
        if torch.compiler.is_compiling():
            return super().__call__(*args, **kwargs)
        with turn_of(self):
            return super().__call__(*args, **kwargs)

    def run_with_hooks(self, *args: Any, fwd_hooks: Any = (), bwd_hooks: Any = (), **kwargs: Any) -> Any:
        """Run with hooks that are gone afterwards; see TransformerLens."""
        fwd_hooks, bwd_hooks = _pairs("fwd_hooks", fwd_hooks), _pairs("bwd_hooks", bwd_hooks)
        for name, _ in [*fwd_hooks, *bwd_hooks]:
            self._before(name, kwargs.get("stop_at_layer"))
        return super().run_with_hooks(*args, fwd_hooks=fwd_hooks, bwd_hooks=bwd_hooks, **kwargs)

    def get_caching_hooks(self, names_filter: NamesFilter = None, *args: Any, **kwargs: Any) -> Any:
        """Hooks that keep activations; see TransformerLens."""
        cache, forward, backward = super().get_caching_hooks(self._matching(names_filter), *args, **kwargs)
        forward, backward = (self._under_names_given(names_filter, each) for each in (forward, backward))
        return cache, forward, backward

    def add_caching_hooks(self, names_filter: NamesFilter = None, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        """Attach hooks that keep activations, and return where; the arguments are those of ``get_caching_hooks``."""
        cache, forward, backward = self.get_caching_hooks(names_filter, *args, **kwargs)
        for direction, hooks in (("fwd", forward), ("bwd", backward)):
            for name, hook in hooks:
                self.add_hook(name, hook, direction)
        return cache

    def _under_names_given(self, names: NamesFilter, hooks: list[CachingHook]) -> list[CachingHook]:
        """`hooks` that keep what was asked for by a point's other name under that name."""
        if names is None or callable(names):
            return hooks
        given: dict[str, list[str]] = {}
        for name in [names] if isinstance(names, str) else names:
            given.setdefault(self._matching(name)[0], []).append(name)
        return [(point, partial(_keep_as, keep, name)) for point, keep in hooks for name in given[point]]

    def _before(self, names: NamesFilter, stop: int | None) -> NamesFilter:
        """`names` as far as the points are run when the model stops at layer `stop`."""
        n_layers = self.config.n_layers
        if not isinstance(stop, Integral) or not -n_layers <= stop <= n_layers:  # which the forward pass refuses
            return names
        points, run = self._matching(names), range(n_layers)[:stop]
        block = re.compile(r"blocks\.(\d+)\.")
        behind = [name for name in points if (at := block.match(name)) and int(at[1]) not in run]
        behind += [name for name in points if name.startswith(("ln_final", "unembed"))]
        if not behind:
            return names
        if len(behind) == len(points) or not (names is None or callable(names)):
            raise HookError(f"{behind[0]} is not run with stop_at_layer={stop}; stop later, or leave it out")
        return [name for name in points if name not in behind]

    def _matching(self, names: NamesFilter) -> list[str]:
        """The points that `names` stands for."""
        if names is None:
            return [name for name in self.hook_dict if not name.endswith(EXPENSIVE)]
        if callable(names):
            chosen = [name for name in self.hook_dict if names(name)]
            if not chosen:
                raise HookError(
                    f"the filter matches none of the model's {len(self.hook_dict)} hook points; "
                    f"{suggest('', self.hook_dict)}"
                )
            return chosen
        try:
            wanted = [names] if isinstance(names, str) else list(names)
        except TypeError as error:
            raise HookError(
                f"expected a hook point's name, a list of them or a function, got {shown(names)}"
            ) from error
        for name in wanted:
            if not isinstance(name, str) or not isinstance(self.mod_dict.get(name), LensHookPoint):
                raise HookError(f"no hook point is called {shown(name)}; {suggest(str(name), self.hook_dict)}")
        if not wanted:
            raise HookError("an empty list of hook points was given; name at least one, or give None for the default")
        return [self.mod_dict[name].name for name in wanted]

    def set_use_attn_result(self, use: bool) -> None:
        """Nothing to switch: what an expensive point shows is computed whenever somebody listens there."""

    set_use_split_qkv_input = set_use_attn_in = set_use_hook_mlp_in = set_use_attn_result


def _pairs(which: str, hooks: Any) -> list[tuple[Any, Any]]:
    """Hooks as they are asked for: each with the point, or the filter, that it is for."""
    try:
        pairs = [(name, hook) for name, hook in hooks]
    except (TypeError, ValueError):
        pairs = [(None, None)]
    if not all(callable(hook) and (isinstance(name, str) or callable(name)) for name, hook in pairs):
        raise HookError(f"{which}: expected a list of pairs, (point, function), got {shown(hooks)}")
    return pairs


def _keep_as(keep: Callable[..., None], name: str, tensor: Tensor, *, hook: LensHookPoint) -> None:
    """Call TransformerLens' caching hook `keep` for a point that is to be called `name`."""
    keep(tensor, hook=SimpleNamespace(name=name))


def name_head_inputs_as_transformer_lens_does(model: HookedRootModule) -> None:
    """Let ``blocks.{l}.attn.hook_q_input`` find ``blocks.{l}.hook_q_input``, likewise k and v.

    TransformerLens 4 moved these points into the attention module and its direct path patching asks for them there.
    """
    for name in list(model.hook_dict):
        head, _, point = name.rpartition(".")
        if point in ("hook_q_input", "hook_k_input", "hook_v_input"):
            model.mod_dict[f"{head}.attn.{point}"] = model.hook_dict[name]
