#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command whose stdin is a terminal, at which nobody types anything but the
end of the text, and prints what it says."""

import os
import pty
import subprocess
import sys

here, there = pty.openpty()
with subprocess.Popen(
    sys.argv[1:], stdin=there, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
) as process:
    os.write(here, b"\x04")
    print(process.communicate(timeout=60)[0].decode())
