# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a port that nobody listens at, for now.

Not one that the system gives to whoever asks for any: those of other tests would have
it before it is used.
"""

import random
import socket


def free_port():
    while True:
        port = random.randrange(10000, 30000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


if __name__ == "__main__":
    print(free_port())
