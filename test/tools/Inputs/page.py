# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a browser makes of a page: page.py page.html explained.json, the DOM on stdin."""

import json
import re
import sys

page = open(sys.argv[1]).read()
explained = json.load(open(sys.argv[2]))
dom = sys.stdin.read()
# The page loads nothing; the name of a namespace is not an address.
assert re.findall(r"https?://[^\"' ]*", page) == ["http://www.w3.org/2000/svg"], page[:200]
assert not re.search(r"\b(src|href|@import|fetch)\b", page.split("application/json")[0])
title = re.search(r"<title>(.*?)</title>", dom)[1]
assert title == f"step {explained['plan']['step']}, {explained['plan']['ranks']} ranks", (
    title
)
# Each stream has boxes for the calls that can be seen, and each role has an area.
data = json.loads(
    re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1]
)
stage = data["schedule"]["stages"][0]
for stream in stage["streams"]:
    boxes = dom.count(f'class="call {stream["stream"]}"')
    calls = sum(call["stream"] == stream["stream"] for call in stage["calls"])
    assert 0 < boxes <= calls <= stream["calls"], (stream, boxes, calls)
assert dom.count('class="alive"') == len(
    {(b["space"], b["role"]) for b in stage["buffers"] if b["alive"] and b["bytes"]}
)
rows = re.search(r'<table id="choices">(.*?)</table>', dom, re.S)[1].count("<tr")
assert rows == 1 + len(explained["choices"]), rows
