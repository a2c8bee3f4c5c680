#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command with a terminal as stderr, and prints what it wrote there.

on_terminal.py [--interrupt-at PATTERN] COMMAND...; Ctrl-C comes when PATTERN is there.
The last line says how the command ended.
"""

import os
import pty
import re
import signal
import subprocess
import sys

arguments = sys.argv[1:]
text = None
if arguments[0] == "--interrupt-at":
    text = arguments[1].encode()
    arguments = arguments[2:]
ours, theirs = pty.openpty()
process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=theirs)
os.close(theirs)
written = b""
while True:
    try:
        piece = os.read(ours, 4096)
    except OSError:  # the terminal's other end is closed
        break
    if not piece:
        break
    written += piece
    if text and re.search(text, written):
        process.send_signal(signal.SIGINT)
        text = None
for line in re.sub(rb"\x1b\[[0-9;]*[Km]", b"", written.replace(b"\r", b"\n")).split(b"\n"):
    if line.strip():
        print(line.decode())
print("exit code", process.wait())
