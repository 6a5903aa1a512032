"""Names the argument, or the field of the options, that made a documented function fail: one of another kind.

``named_arguments`` names an argument of another kind than its function's signature says. It is looked for when the call
has failed: so what works stays allowed, such as an array in the place of a list. A seed is looked at before the work,
because it may be needed only at its end.

Numbers, of Python or NumPy, alone or in a list, are returned as Python's own ``int``, which labels and provenance can
hold; floats and booleans are refused.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from errno import ENAMETOOLONG
from functools import wraps
from inspect import Parameter, Signature, formatannotation, signature
from numbers import Integral
from operator import index
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, Self, TypeGuard, TypeVar, Union, get_args, get_origin, get_type_hints

from interp.errors import InputError, InterpError, shown, suggest

P = ParamSpec("P")
R = TypeVar("R")


def named_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Say which argument is of another kind than a function takes, in place of what Python or torch say of it.

    Raises:
        InputError: It says which.
    """
    signed = signature(function)
    optional = "seed" in signed.parameters and signed.parameters["seed"].annotation is not int
    ordered = [each.name for each in signed.parameters.values() if each.kind is Parameter.POSITIONAL_OR_KEYWORD]
    place = ordered.index("seed") if "seed" in ordered else len(signed.parameters)

    @wraps(function)
    def called(*args: P.args, **named: P.kwargs) -> R:
        if "seed" in named and not optional:  # also one that is handed on
            named["seed"] = whole_seed(named["seed"])
        if len(args) > place and not optional:
            args = (*args[:place], whole_seed(args[place]), *args[place + 1 :])  # type: ignore[assignment]  # P is no plain tuple
        try:
            return function(*args, **named)
        except (InterpError, AssertionError, MemoryError):  # these are no fault of an argument's kind
            raise
        except Exception as error:
            try:
                _check_kinds(function, signed, error, args, named)
            except InputError as refusal:
                raise refusal from None  # what Python says of a value may quote all of it
            raise

    return called


def whole_seed(seed: Any) -> int:
    """A seed as Python's own kind of number, whose text is the same wherever a run's key is made of it."""
    try:
        whole = index(seed)
    except TypeError:
        whole = -1
    if isinstance(seed, bool) or not 0 <= whole < 2**63:
        raise InputError(f"seed: expected a whole number from 0 to 2**63 - 1, got {shown(seed)}")
    return whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is asked of a method, in one frozen object: base of the classes of ``interp.options``.

    Raises:
        InputError: A field has a value that it cannot have.
    """

    ends = False  # whether a share may be 0, or 1

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(type(self)).items():
            value = _frozen(getattr(self, name))
            _check_choice(name, value, hint)
            if name == "seed":
                value = whole_seed(value)
            if name == "alpha" or (name.startswith("min_") and hint is float):
                check_share(name, value, ends=self.ends)
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, options: Self | None, given: Mapping[str, Any]) -> Self:
        """The options of a call: an object, with the fields changed that are given by name.

        Raises:
            InputError: `options` are those of another method, or there is no such field, or a value that it cannot
                have.
        """
        if options is not None and not isinstance(options, cls):
            raise InputError(f"options: expected {cls.__name__}, got {shown(options)}")
        inherited = [each.name for base in cls.__bases__ for each in fields(base)]
        known = sorted((each.name for each in fields(cls)), key=inherited.__contains__)  # the method's own come first
        for name in given:
            if name not in known:
                raise InputError(f"{name}: {cls.__name__} has no such option; {suggest(name, known)}")
        return cls(**given) if options is None else replace(options, **given)

    def asked(self) -> dict[str, Any]:
        """The fields as plain values, as a run's key and a result's provenance have them."""
        return {each.name: _plain(getattr(self, each.name)) for each in fields(self) if each.name != "memory_budget"}


def _frozen(value: Any) -> Any:
    """Lists and arrays as tuples, NumPy's numbers as Python's: what is asked can be hashed and does not change."""
    if is_numpy(value):
        value = value.tolist()
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple | range) else value


def _plain(value: Any) -> Any:
    return list(map(_plain, value)) if isinstance(value, tuple) else value


def _check_choice(name: str, value: Any, hint: Any) -> None:
    """Refuse a text, alone or among several, that is none of a field's choices."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    parts += tuple(of for part in parts if get_origin(part) is Sequence for of in get_args(part))
    choices = dict.fromkeys(choice for part in parts if get_origin(part) is Literal for choice in get_args(part))
    if not choices or str in parts or Any in parts:
        return
    for each in value if isinstance(value, tuple) else (value,):
        if isinstance(each, str) and each not in choices:
            raise InputError(f"{name}: {each!r} is unknown; {suggest(each, map(str, choices))}")


def check_share(name: str, value: Any, *, ends: bool = False) -> None:
    """Refuse all but a number between 0 and 1, with an ``InputError``; the two themselves, too, without `ends`."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= 1 or (value in (0, 1) and not ends):
        expected = "a number from 0 to 1" if ends else "a share between 0 and 1"
        raise InputError(f"{name}: expected {expected}, got {shown(value)}")


def _check_kinds(
    function: Callable[..., Any], signed: Signature, error: Exception, args: Any, named: Mapping[str, Any]
) -> None:
    """Refuse the first argument that is of another kind than the function says, or the path that made an `error`."""
    try:
        given = signed.bind(*args, **named)
    except TypeError:
        return  # an argument is missing or unknown, as Python says itself
    for name, value in given.arguments.items():
        parameter = signed.parameters[name]
        several = parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
        if not several and not _is_of_kind(value, parameter.annotation):
            raise _refused(name, parameter.annotation, value, function)
        if name == "model" and not hasattr(value, "cfg"):  # of any class that follows TransformerLens' protocol
            raise InputError(
                f"model: expected a model, got {shown(value)}; interp.load_model makes one of a transformers module"
            )
    _check_fields(function, signed, given.arguments)
    if isinstance(error, OSError) and error.errno == ENAMETOOLONG:
        raise InputError(f"{shown(error.filename)}: expected the path of a file or folder, got a longer text")
    if isinstance(error, UnicodeEncodeError):
        raise InputError(f"{shown(error.object)}: expected Unicode text, got half of a surrogate pair; read it again")
    if isinstance(error, ValueError) and "embedded null" in str(error):  # as Python says of any path
        raise InputError(f"{function.__name__}: expected the path of a file or folder, got one with a null character")


def _check_fields(function: Callable[..., Any], signed: Signature, given: Mapping[str, Any]) -> None:
    """Refuse the first field of the options that is of another kind than their class says."""
    kind = signed.parameters["options"].annotation if "options" in signed.parameters else None
    options = next((each for each in (*get_args(kind), kind) if is_dataclass(each)), None)
    hints = {} if options is None else get_type_hints(options)
    asked = given.get("options")
    for name, value in {**(vars(asked) if is_dataclass(asked) else {}), **given.get("fields", {})}.items():
        if name in hints and not _is_of_kind(value, hints[name]):
            raise _refused(name, hints[name], value, function)


def _refused(name: str, kind: Any, value: Any, function: Callable[..., Any]) -> InputError:
    return InputError(
        f"{name}: expected {_named(kind)}, got {shown(value)}; see help({function.__module__}.{function.__qualname__})"
    )


def _is_of_kind(value: Any, kind: Any) -> bool:
    if isinstance(kind, str):  # the name of a class that is not there while it runs
        return True
    from typeguard import CollectionCheckStrategy, ForwardRefPolicy, TypeCheckError, check_type

    try:
        check_type(
            value.tolist() if is_numpy(value) and not value.shape else value,
            Any if kind is Parameter.empty else kind,
            forward_ref_policy=ForwardRefPolicy.IGNORE,
            collection_check_strategy=CollectionCheckStrategy.ALL_ITEMS,
        )
    except TypeCheckError:
        return False
    return True


def _named(kind: Any) -> str:
    """A kind as it stands in a signature, without the modules."""
    if get_origin(kind) in (Union, UnionType):
        return " | ".join(map(_named, get_args(kind)))
    return "None" if kind is NoneType else re.sub(r"\b(\w+\.)+", "", formatannotation(kind))


def is_numpy(value: object) -> bool:
    """Whether `value` is an array or a number of NumPy, which is not imported for this alone."""
    return type(value).__module__ == "numpy" and hasattr(value, "tolist")


def is_whole(value: object) -> TypeGuard[int]:
    """Whether `value` is a whole number of any library; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def as_list(values: object) -> list[Any] | None:
    """The elements of a list, a tuple, a range, an array, ...; None for text, dictionaries, and what has none."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        return None
    try:
        return list(values)
    except TypeError:  # an array without axes
        return None


def as_names(name: str, values: object) -> list[str]:
    """Several names, in the order given; one alone is a list of one."""
    names = [values] if isinstance(values, str) else as_list(values)
    if names is None or not all(isinstance(each, str) for each in names):
        raise InputError(f"{name}: expected a name or a list of names, got {shown(values)}")
    return [str(each) for each in names]


def require_different(name: str, values: Sequence[object], what: str = "ones") -> None:
    """Refuse none of something, or one of it twice."""
    if not values or len(set(values)) < len(values):
        raise InputError(f"{name}: expected different {what}, at least one, got {values}")


def whole_number(name: str, value: object, *, expected: str, least: int = 1, most: int | None = None) -> int:
    """A whole number that something can be."""
    if not is_whole(value) or value < least or (most is not None and value > most):
        raise InputError(f"{name}: expected {expected}, got {value!r}")
    return int(value)


def whole_numbers(name: str, values: object) -> list[int]:
    """Several whole numbers, in the order given."""
    numbers = as_list(values)
    if numbers is None or not all(map(is_whole, numbers)):
        raise InputError(f"{name}: expected a list of whole numbers such as [0, 1], got {values!r}")
    return [int(each) for each in numbers]


def numbers_below(n: int, name: str, values: object, *, expected: str = "") -> list[int]:
    """Different whole numbers from 0 to ``n - 1``, at least one, in the order given."""
    numbers = whole_numbers(name, values)
    if not numbers or not 0 <= min(numbers) <= max(numbers) < n or len(set(numbers)) < len(numbers):
        raise InputError(
            f"{name}: {expected}the model has {n} (0 to {n - 1}), got {numbers}; choose among these, each at most once"
        )
    return numbers
