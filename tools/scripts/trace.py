#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes one trace of those of all ranks, and says where the time of a step goes.

  trace.py folder                 print the times of rank 0 by call
  trace.py folder -o trace.json   also write one file for Perfetto or Chrome
  trace.py folder --svg step.svg  also draw the last step of all ranks

A rank writes folder/rank-N.json if its zero_rt_options.trace, or --trace of zero-run,
names the folder. Times are those of calls on the processor. A call of a handler lies
within the call of the caller that runs the handler.
"""

import argparse
import collections
import html
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


# By call; others are grey.
COLORS = {
    "pack": "#4c9f70", "launch": "#4c78a8", "reduce_scatter": "#e4572e",
    "reduce_scatter_add": "#e4572e", "all_reduce": "#e4572e", "all_gather": "#f2a65a",
    "all_reduce_scalars": "#8d6a9f", "copy": "#6b8f9c", "wait": "#dddddd",
}  # fmt: skip


def find_last_step(events):
    """When the last step of a rank began and ended, in microseconds."""
    ends = [
        event["ts"] + event["dur"]
        for event in events
        if event.get("cat") == "apply" and event.get("ph") == "X"
    ]
    if not ends:
        sys.exit("error: no step was applied; --svg draws one")
    after = ends[-2] if len(ends) > 1 else 0
    begins = [
        event["ts"]
        for event in events
        if event.get("cat") == "begin_backward" and event["ts"] >= after
    ]
    return min(begins, default=after), ends[-1]


def draw(ranks):
    """The last step of all ranks as SVG: a row for each stream of a rank."""
    spans = [find_last_step(events) for events in ranks.values()]
    begin, end = min(span[0] for span in spans), max(span[1] for span in spans)
    left, width, height = 150, 1000, 20
    scale = width / max(end - begin, 1e-3)
    shapes, y = [], 30
    for rank, events in ranks.items():
        for stream in (CALLER, *range(CALLER)):
            row = [
                event
                for event in events
                if event.get("ph") == "X"
                and event["tid"] == stream
                and event["ts"] + event["dur"] > begin
                and event["ts"] < end
            ]
            if not row:
                continue
            name = next(
                e["args"]["name"]
                for e in events
                if e.get("name") == "thread_name" and e["tid"] == stream
            )
            shapes.append(f'<text x="4" y="{y + 14}">rank {rank}, {name}</text>')
            for event in sorted(row, key=lambda e: e["ts"]):
                x = left + (max(event["ts"], begin) - begin) * scale
                wide = max(event["dur"] * scale, 0.3)
                color = COLORS.get(event["cat"], "#b0b0b0")
                title = html.escape(f"{event['name']}: {event['dur'] / 1e3:.3f} ms")
                shapes.append(
                    f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}"'
                    f' height="{height - 3}" fill="{color}"><title>{title}</title></rect>'
                )
            y += height
        y += 8
    keys = "".join(
        f'<rect x="{left + 125 * i}" y="{y}" width="12" height="12" fill="{color}"/>'
        f'<text x="{left + 125 * i + 16}" y="{y + 10}">{call}</text>'
        for i, (call, color) in enumerate(
            (call, color)
            for call, color in COLORS.items()
            if call not in ("reduce_scatter_add", "wait")
        )
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 20}"'
        f' height="{y + 24}" font-family="sans-serif" font-size="11">'
        f'<rect width="100%" height="100%" fill="white"/>'
        f'<text x="{left}" y="16">{(end - begin) / 1e3:.3f} ms</text>'
        + "\n".join(shapes)
        + keys
        + "</svg>\n"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--svg", type=pathlib.Path)
    options = parser.parse_args()
    ranks = read_all(options.folder)
    if options.rank not in ranks:
        sys.exit(
            f"error: --rank={options.rank}, and there are traces of ranks "
            + ", ".join(map(str, ranks))
        )
    try:
        if options.output:
            options.output.write_text(
                json.dumps([event for events in ranks.values() for event in events])
            )
        if options.svg:
            options.svg.write_text(draw(ranks))
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
