#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs an import that must be refused, and the lint of the same configuration with the
same flags. The lint must have each error of the import, and its exit code. The output is
that of the import.

usage: refused.py [--lint-only=FLAG] FLAG...

--lint-only adds FLAG to the lint, to see that a difference is found."""

import json
import subprocess
import sys


def run(*flags):
    return subprocess.run(["zero-translate", *flags], capture_output=True, text=True)


def get_sentences(output, prefix):
    """The errors that the lint prints as JSON, as an import words them behind |prefix|."""
    result = json.loads(output)
    sentences = {error["message"].removeprefix(prefix) for error in result["errors"]}
    for finding in result.get("findings", []):
        if finding["severity"] != "error":
            continue
        key = f"'{finding['key']}' " if finding["key"] else ""
        remedy = f"; {finding['remedy']}" if finding["remedy"] else ""
        sentences.add(key + finding["what"] + remedy)
    return sentences


def main(*flags):
    more = [f.split("=", 1)[1] for f in flags if f.startswith("--lint-only=")]
    flags = [f for f in flags if not f.startswith("--lint-only=")]
    config = [f for f in flags if f.startswith("--import-deepspeed=")]
    prefix = config[0].split("=")[1] + ": "
    done = run(*flags)
    sys.stdout.write(done.stderr)
    if done.returncode == 0:
        print("the import is not refused")
        return 1
    flags = [f.replace("--import-", "--lint-") for f in flags]
    lint = run(*flags, *more, "--json")
    if lint.returncode != done.returncode:
        print(f"lint has exit code {lint.returncode}, not {done.returncode}")
        return 1
    found = get_sentences(lint.stdout, prefix)
    for line in done.stderr.splitlines():
        _, _, sentence = line.partition("error: ")
        sentence = sentence.removeprefix(prefix)
        if sentence and sentence not in found:
            print(f"lint does not say: {sentence}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
