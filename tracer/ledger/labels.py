"""Label values under a cap, so that no engine can make the number of series grow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

OTHER = "other"


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
