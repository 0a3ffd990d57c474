"""Matrix products of one thread each."""

from __future__ import annotations

from functools import cached_property
from threading import Lock

from threadpoolctl import ThreadpoolController


class OneBlasThread:
    """While anybody is inside, matrix products use one thread each.

    Otherwise theirs and ours would wait for each other: OpenBLAS's threads stay busy for a tenth of
    a second once a product is done.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = self._libraries.limit(limits=1)
                self._limit.__enter__()
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.__exit__(*error)

    @cached_property
    def _libraries(self) -> ThreadpoolController:
        return ThreadpoolController().select(user_api="blas")


one_blas_thread = OneBlasThread()
