# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts the claims of a test and prints the claims that do not hold."""


class Claims:
    def __init__(self):
        self.passed = self.failed = 0

    def claim(self, name, what, holds, why):
        """Counts claim |name| of |what|. |why| is the actual result."""
        if holds:
            self.passed += 1
            return
        self.failed += 1
        print(f"FAIL {name} {what}: {why}", flush=True)

    def finish(self):
        """Prints the counts and returns the exit code of the test."""
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed else 0
