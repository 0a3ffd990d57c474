"""Groups of arrays that kernels pass on as one pointer.

A bundle is a named tuple that lies in memory, and kernels pass its address. Numba would pass a
hundred numbers instead, field by field. A call through Numba writes it there, once for each call.
An entry of a kernel finds it written (:func:`written_at`).
"""

from __future__ import annotations

import hashlib
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numba import types
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

from evomeans.compiled.numba_private import AttributeTemplate, cgutils, ir

Class = TypeVar("Class", bound=type)


class BundleType(types.Type):  # type: ignore[misc]
    """The Numba type of a bundle: its class, and the types of its fields."""

    def __init__(self, cls: Any, types: tuple[Any, ...]) -> None:
        self.cls = cls
        self.types = types
        # Numba puts the name into that of every function which takes a bundle, so it is short. It
        # is also what makes two types equal.
        content = f"{cls.__module__}.{cls.__qualname__}{types}"
        super().__init__(f"{cls.__name__}_{hashlib.sha256(content.encode()).hexdigest()[:16]}")


def bundle(cls: Class) -> Class:
    """Make a named tuple a bundle: a decorator. Kernels can only read its fields."""
    # A subclass has attributes, for what written_at has written. A copy must not get them.
    names = {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__doc__")}
    bundled: Class = type(cls)(cls.__name__, (cls,), {**names, "__getstate__": lambda self: None})

    @typeof_impl.register(bundled)  # type: ignore[untyped-decorator]
    def type_of(value: Any, context: Any) -> BundleType:
        return BundleType(bundled, tuple(typeof_impl(field, context) for field in value))

    return bundled


def written_at(value: Any) -> int:
    """Return where a bundle lies in memory. It stays there for as long as the bundle exists."""
    attributes = vars(value)
    if "_lies_at" not in attributes:
        words = np.array(list(chain.from_iterable(map(words_of, value))), np.int64)
        # If another thread has just done the same, what it has written stays.
        attributes.setdefault("_lies_at", (words.ctypes.data, words))
    address: int = attributes["_lies_at"][0]
    return address


def words_of(field: Any) -> list[int]:
    """Return a field of a bundle as kernels see it, in words of eight bytes.

    An array is a structure of Numba: two pointers that kernels without reference counting do not
    use, the numbers of elements and of bytes of each, the address, the shape and the strides. A
    number of four bytes is followed by as many to fill the word.
    """
    if isinstance(field, np.ndarray):
        return [0, 0, field.size, field.itemsize, field.ctypes.data, *field.shape, *field.strides]
    if isinstance(field, tuple):
        return [written_at(field)]
    if isinstance(field, np.float32):
        return [int(field.view(np.uint32))]
    if isinstance(field, float):
        return [int(np.float64(field).view(np.int64))]
    raise TypeError(f"Bundles hold arrays, bundles and floats, not {type(field)}.")


@register_model(BundleType)
class BundleModel(models.PrimitiveModel):  # type: ignore[misc]
    """Represented by the address of a structure."""

    def __init__(self, manager: Any, kind: BundleType) -> None:
        fields = [manager.lookup(field).get_value_type() for field in kind.types]
        super().__init__(manager, kind, ir.LiteralStructType(fields).as_pointer())


@unbox(BundleType)  # type: ignore[untyped-decorator]
def read_bundle(kind: BundleType, value: Any, c: Any) -> NativeValue:
    """Write the fields into the stack of the function that Python calls."""
    structure = cgutils.alloca_once(c.builder, c.context.get_value_type(kind).pointee)
    failed = cgutils.false_bit
    for place, field in enumerate(kind.types):
        native = c.unbox(field, c.pyapi.tuple_getitem(value, place))
        c.builder.store(native.value, cgutils.gep_inbounds(c.builder, structure, 0, place))
        failed = c.builder.or_(failed, native.is_error)
    return NativeValue(structure, is_error=failed)


@infer_getattr
class BundleFields(AttributeTemplate):  # type: ignore[misc]
    """Types of the fields."""

    key = BundleType

    def generic_resolve(self, kind: BundleType, name: str) -> Any:
        """Return the type of a field."""
        return kind.types[kind.cls._fields.index(name)] if name in kind.cls._fields else None


@lower_getattr_generic(BundleType)  # type: ignore[untyped-decorator]
def read_field(context: Any, builder: Any, kind: BundleType, value: Any, name: str) -> Any:
    """Read a field."""
    place = kind.cls._fields.index(name)
    field = builder.load(cgutils.gep_inbounds(builder, value, 0, place))
    # Nobody writes to it, so LLVM need not read it again after writes to anything else.
    field.set_metadata("invariant.load", builder.module.add_metadata([]))
    if context.enable_nrt:
        # Kernels that are compiled the plain way count references.
        context.nrt.incref(builder, kind.types[place], field)
    return field
