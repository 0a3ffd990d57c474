"""What Numba knows of operators and functions, looked up once and not again and again.

Numba finds out what ``a + b`` means by trying dozens of declarations, for every addition of every
kernel and again when it is translated. It looks for new declarations in all of its modules whenever
one is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack
from numba.core.types.functions import BaseFunction


@contextmanager
def remembered() -> Iterator[None]:
    """Let Numba remember declarations that it has found, while a kernel is compiled."""
    contexts = cpu_target.typing_context, cpu_target.target_context
    with global_compiler_lock:
        if any("refresh" in vars(context) for context in contexts):
            # For a kernel that this one is a part of.
            yield
            return
        functions: Any = BaseFunction
        find, refreshes = functions.get_call_type, [Refresh(context) for context in contexts]

        def get_call_type(function: BaseFunction, *arguments: Any) -> Any:
            return _SIGNATURES.of(find, function, *arguments)

        functions.get_call_type = get_call_type
        for context, refresh in zip(contexts, refreshes, strict=True):
            context.refresh = refresh
        try:
            yield
        finally:
            functions.get_call_type = find
            for context, refresh in zip(contexts, refreshes, strict=True):
                del context.refresh
                refresh.is_compiling = False


class Signatures:
    """Signatures of calls, by function, types of arguments, and flags of the compiler."""

    def __init__(self) -> None:
        self._by_flags: dict[Any, dict[Any, Any]] = {}
        self._flags: Any = None
        self._known: dict[Any, Any] = {}

    def of(
        self,
        find: Callable[..., Any],
        function: BaseFunction,
        context: Any,
        args: tuple[Any, ...],
        kws: dict[str, Any],
    ) -> Any:
        """Return the signature of a call, found by Numba unless it is known."""
        flags = ConfigStack.top_or_none()
        if flags is not self._flags:
            # An overload, as Numba calls it, is compiled for the flags of its caller.
            key = None if flags is None else repr(flags)
            self._flags, self._known = flags, self._by_flags.setdefault(key, {})
        # Functions of the same name are equal; what is known of one is in its own memory.
        call = id(function), context, args, tuple(kws.items())
        if call not in self._known:
            # Kept as well, or another function might get its number.
            self._known[call] = find(function, context, args, kws), function
        return self._known[call][0]


_SIGNATURES = Signatures()


class Refresh:
    """Looks for new declarations: the first time in all of Numba, then only in known registries.

    Numba's own begins by importing all modules that might have some, and does so again for each of
    hundreds of declarations that it finds. Copies of the context keep this one; when the kernel is
    compiled, it does what Numba's own does.
    """

    def __init__(self, context: Any) -> None:
        self.context = context
        self.is_compiling = True
        self.is_known = False

    def __call__(self) -> None:
        """Look for them."""
        context = self.context
        if self.is_known and self.is_compiling:
            for registry in list(context._registries):
                context.install_registry(registry)
            return
        self.is_known = True
        type(context).refresh(context)
