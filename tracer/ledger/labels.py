"""Label values under a cap, so that no engine can make the number of series grow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

OTHER = "other"

# A number behind a separator tells threads of a pool apart: worker-3, kworker/u8:1.
_POOL_NUMBER = re.compile(r"(?<=[-_:/.#])u?\d+")


@lru_cache(4096)
def pool_of(comm: str) -> str:
    """The comm of a thread without what tells it from the others of its pool: ``worker-*``."""
    return _POOL_NUMBER.sub("*", comm)


class Labels:
    """
    The values of one label, numbered in order of first sight.

    Number 0 is ``other``: what is first seen when there are ``most`` values already.
    """

    def __init__(self, most: int) -> None:
        self.names = [OTHER]
        self._most = most
        self._numbers = {OTHER: 0}

    def number(self, name: str) -> int:
        if name not in self._numbers and len(self.names) <= self._most:
            self._numbers[name] = len(self.names)
            self.names.append(name)
        return self._numbers.get(name, 0)

    def numbers(self, ids: NDArray[np.integer], names: Sequence[str]) -> NDArray[np.int64]:
        """The number of ``names[id]`` for each of ``ids``, of the same shape."""
        present, place = np.unique(ids, return_inverse=True)
        of_present = np.array([self.number(names[i]) for i in present], np.int64)
        numbers: NDArray[np.int64] = of_present[place.reshape(ids.shape)]
        return numbers
