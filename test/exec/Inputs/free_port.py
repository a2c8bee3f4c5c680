# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a port that nobody listens at, for now."""

import socket

with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    print(s.getsockname()[1])
