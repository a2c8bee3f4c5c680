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
import re
import sys

CALLER = 5  # the stream of the caller's own calls


def read(path):
    """The events of one rank; of a rank that was killed, those that it wrote."""
    text = path.read_text()
    try:
        events = json.loads(text)
    except json.JSONDecodeError:
        whole = text[: text.rfind("},\n") + 1]
        events = json.loads(whole + "]") if whole else []
        print(f"note: {path} is incomplete", file=sys.stderr)
    if not isinstance(events, list) or not all(isinstance(e, dict) for e in events):
        raise ValueError(f"{path} is no trace")
    return events


def get_name(events, what):
    """The text that the trace has for |what|; empty if it has none."""
    return next((e["args"]["name"] for e in events if e.get("name") == what), "")


def read_all(folder):
    """By rank, the events of one run. Times are since the first event of any rank."""
    files = {
        int(match[1]): file
        for file in folder.glob("rank-*.json")
        if (match := re.fullmatch(r"rank-(\d+)\.json", file.name))
    }
    if not files:
        sys.exit(f"error: {folder} has no rank-N.json; run with --trace={folder}")
    try:
        ranks = {rank: read(file) for rank, file in sorted(files.items())}
        # A run with fewer ranks leaves files of the one before it.
        newest = max(ranks, key=lambda rank: int(get_name(ranks[rank], "start_ns") or 0))
        count = get_name(ranks[newest], "process_name").rpartition(" ")[2]
        of_run = {
            rank: events
            for rank, events in ranks.items()
            if get_name(events, "process_name").endswith(f" of {count}")
        }
        starts = {r: int(get_name(of_run[r], "start_ns")) for r in of_run}
        for rank, events in of_run.items():
            for event in events:
                if "ts" in event:
                    late = (starts[rank] - min(starts.values())) / 1e3
                    event["ts"] = round(event["ts"] + late, 3)
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"error: {folder}: {error}")
    for rank in ranks.keys() - of_run.keys():
        print(f"note: rank-{rank}.json is of another run", file=sys.stderr)
    return of_run


def summarize(events):
    """By call: its number, milliseconds, and bytes sent; and the caller's total."""
    calls = collections.defaultdict(lambda: [0, 0.0, 0, 0])
    total = 0.0
    for event in events:
        if event.get("ph") != "X":
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
    if options.rank not in ranks:
        sys.exit(
            f"error: --rank={options.rank}, and there are traces of ranks "
            + ", ".join(map(str, ranks))
        )
    if options.output:
        try:
            options.output.write_text(
                json.dumps([event for events in ranks.values() for event in events])
            )
        except OSError as error:
            sys.exit(f"error: {error}")
    calls, total = summarize(ranks[options.rank])
    title = get_name(ranks[options.rank], "process_name")
    print(f"{title}: {total:.3f} ms in calls of the caller")
    print(f"{'call':24}{'number':>8}{'ms':>12}{'share':>9}{'sent':>14}{'GB/s':>8}")
    for call, (number, ms, sent, _) in sorted(calls.items(), key=lambda c: -c[1][1]):
        share = 100 * ms / total if total else 0
        speed = f"{sent / ms / 1e6:8.2f}" if sent and ms else ""
        print(f"{call:24}{number:8}{ms:12.3f}{share:8.1f}%{sent or '':>14}{speed}")


if __name__ == "__main__":
    main()
