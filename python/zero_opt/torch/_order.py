# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which unit a model uses next."""

from __future__ import annotations

from collections.abc import Iterable


class UnitOrder:
    """The order in which forward passes use units, by their numbers."""

    def __init__(self) -> None:
        self.next: dict[int, int] = {}
        self.previous: dict[int, int] = {}
        self._pass: dict[int, None] = {}  # in order

    def note(self, unit: int) -> None:
        if unit in self._pass:
            self.end_pass()
        if self._pass:
            last = next(reversed(self._pass))
            self.next[last] = unit
            self.previous[unit] = last
        self._pass[unit] = None

    def end_pass(self) -> None:
        self._pass.clear()


class DeclaredOrder(UnitOrder):
    """The order that the step declares. The library gathers the next unit itself, but the
    backward pass of a unit that is kept begins without a call of the library."""

    def __init__(self, kept: Iterable[int]) -> None:
        super().__init__()
        self.previous = {number: number - 1 for number in kept if number > 0}

    def note(self, unit: int) -> None:
        pass
