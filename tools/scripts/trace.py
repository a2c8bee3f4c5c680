#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes one trace of those of all ranks, and says where the time of a step goes.

  trace.py folder                 print the times of rank 0 by call
  trace.py folder -o trace.json   also write one file for Perfetto or Chrome

A rank writes folder/rank-N.json if its zero_rt_options.trace, or --trace of zero-run,
names the folder. Times are those of calls on the processor. A call of a handler lies
within the call of the caller that runs the handler.
"""

import argparse
import collections
import json
import pathlib
import sys

CALLER = 5  # the stream of the caller's own calls


def read(path):
    """The events of one rank; of a rank that was killed, those that it wrote."""
    text = path.read_text()
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        whole = text[: text.rfind("},\n") + 1]
        return json.loads(whole + "]") if whole else []


def read_all(folder):
    files = sorted(folder.glob("rank-*.json"), key=lambda f: int(f.stem[5:]))
    if not files:
        sys.exit(f"error: {folder} has no rank-N.json; run with --trace={folder}")
    try:
        ranks = [read(file) for file in files]
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        sys.exit(f"error: {folder}: {error}")
    first = min((e["ts"] for rank in ranks for e in rank if "ts" in e), default=0)
    for event in (event for rank in ranks for event in rank):
        if "ts" in event:
            event["ts"] = round(event["ts"] - first, 3)
    return ranks


def summarize(events):
    """By call: its number, milliseconds, and bytes sent; and the caller's total."""
    calls = collections.defaultdict(lambda: [0, 0.0, 0, 0])
    total = 0.0
    for event in events:
        if event["ph"] != "X":
            continue
        if event["tid"] == CALLER:
            total += event["dur"] / 1e3
            if event["cat"] not in ("record", "wait"):
                continue
        row = calls[event["cat"]]
        row[0] += 1
        row[1] += event["dur"] / 1e3
        row[2] += event["args"].get("bytes_sent", 0)
        row[3] += event["args"].get("bytes_copied", 0)
    return calls, total


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--rank", type=int, default=0)
    options = parser.parse_args()
    ranks = read_all(options.folder)
    if not 0 <= options.rank < len(ranks):
        sys.exit(f"error: --rank={options.rank}, and there are {len(ranks)} ranks")
    if options.output:
        options.output.write_text(json.dumps([e for rank in ranks for e in rank]))
    calls, total = summarize(ranks[options.rank])
    print(f"rank {options.rank} of {len(ranks)}: {total:.3f} ms in calls of the caller")
    print(f"{'call':24}{'number':>8}{'ms':>12}{'share':>9}{'sent':>14}{'GB/s':>8}")
    for call, (number, ms, sent, _) in sorted(calls.items(), key=lambda c: -c[1][1]):
        share = 100 * ms / total if total else 0
        speed = f"{sent / ms / 1e6:8.2f}" if sent and ms else ""
        print(f"{call:24}{number:8}{ms:12.3f}{share:8.1f}%{sent or '':>14}{speed}")


if __name__ == "__main__":
    main()
