#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command and prints the first line that it writes to a stderr that is no
terminal. Ctrl-C ends the command then."""

import signal
import subprocess
import sys

with subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                      text=True) as process:
    print(process.stderr.readline(), end="")
    process.send_signal(signal.SIGINT)
