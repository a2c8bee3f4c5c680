# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Edits of lowered IR by patterns. 'edit.py --help' explains the patterns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

TOKEN = re.compile(r"%[\w.-]+|\$\w+|\.\.\.|\s+")
VALUE = re.compile(r"%[\w.-]+")
GAP = re.compile(r"\$\w+")
# Definitions of values: results, and arguments of blocks.
RESULT = re.compile(r"^(%[\w.-]+)(?::\d+)?((?:, *%[\w.-]+(?::\d+)?)*) *=")
ARGUMENT = re.compile(r"(%[\w.-]+) *:")
SYMBOLS = re.compile(r"\s*(?:module|zrt\.program)\b")

Bindings = dict[str, str]


class EditError(Exception):
    """An edit that does not apply, and why."""


class Line(NamedTuple):
    """A line of an edit: kind is ' ', '-', '+' or '...'."""

    kind: str
    text: str
    number: int


class Edit(NamedTuple):
    scope: str
    copy_as: str
    number: int
    lines: list[Line]


class Region(NamedTuple):
    """Lines begin < i < end of the IR are inside the operation at line begin."""

    begin: int
    end: int


class Match(NamedTuple):
    places: dict[int, int]  # from a line of the edit, by index, to one of the IR
    bindings: Bindings


def parse(text: str) -> list[Edit]:
    """The edits that a test describes."""
    edits: list[Edit] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("@@"):
            scope = line[2:].strip()
            copy = re.fullmatch(r"copy (.*) as (@\S+)", scope)
            name = copy[2] if copy else ""
            edits.append(Edit(copy[1] if copy else scope, name, number, []))
        elif not line.strip() or line.startswith(("#", "//")) or not edits:
            continue
        elif line.rstrip() == "...":
            edits[-1].lines.append(Line("...", "", number))
        elif line[0] in " -+":
            edits[-1].lines.append(Line(line[0], line[1:].rstrip(), number))
        else:
            kinds = "' ', '-', '+', '#' or '...'"
            raise EditError(f"{number}: error: a line of an edit begins with {kinds}")
    if not edits:
        raise EditError("1: error: there are no edits; one begins with '@@ OP'")
    for edit in edits:
        changes = [line for line in edit.lines if line.kind in "-+"]
        if edit.copy_as and changes:
            raise EditError(
                f"{changes[0].number}: error: a copy is edited by an edit of its own"
            )
        if not edit.copy_as and not changes:
            raise EditError(f"{edit.number}: error: this edit changes nothing")
    return edits


def expression(text: str, bindings: Bindings, prefix: bool = False) -> re.Pattern[str]:
    """What matches a line of a pattern, where some names are bound already."""
    tokens = [t for t in re.split(f"({TOKEN.pattern})", text.strip()) if t]
    parts: list[str] = []
    here: set[str] = set()
    for index, token in enumerate(tokens):
        last = index + 1 == len(tokens)
        if token.isspace():
            gap_ends = index + 2 == len(tokens) and (
                tokens[-1] == "..." or GAP.fullmatch(tokens[-1])
            )
            parts.append(r"(?:\s+|$)" if gap_ends else r"\s+")
        elif token in here:
            parts.append(f"(?P={group(token)})")
        elif token in bindings:
            parts.append(re.escape(bindings[token]))
        elif VALUE.fullmatch(token):
            here.add(token)
            parts.append(rf"(?P<{group(token)}>%[\w.-]+)")
        elif GAP.fullmatch(token):
            here.add(token)
            parts.append(f"(?P<{group(token)}>.*{'' if last else '?'})")
        else:
            parts.append(".*?" if token == "..." else re.escape(token))
        if VALUE.fullmatch(token):
            parts.append(r"(?![\w.-])")
    tail = r"(?![\w.-]).*" if prefix else ""
    return re.compile(r"\s*" + "".join(parts) + tail + r"\s*$")


def group(name: str) -> str:
    """A name of a group of a regular expression."""
    kind = "v" if name[0] == "%" else "t"
    return kind + re.sub(r"\W", lambda m: f"_{ord(m[0])}_", name[1:])


def bind(text: str, line: str, bindings: Bindings) -> Bindings | None:
    """The bindings with which a line of the pattern matches one of the IR."""
    found = expression(text, bindings).match(line)
    if not found:
        return None
    new = dict(bindings)
    for token in TOKEN.findall(text):
        if token not in new and (VALUE.fullmatch(token) or GAP.fullmatch(token)):
            value = found[group(token)]
            if token[0] == "%" and value in new.values():
                return None
            new[token] = value
    return new


def matches(edit: Edit, ir: list[str], region: Region) -> Iterator[Match]:
    """Every way in which the pattern of an edit is found in a region."""
    items = [(i, line) for i, line in enumerate(edit.lines) if line.kind != "+"]

    def search(item: int, at: int, skip: bool, match: Match) -> Iterator[Match]:
        if item == len(items):
            yield match
            return
        index, line = items[item]
        if line.kind == "...":
            yield from search(item + 1, at, True, match)
            return
        for place in range(at, region.end if skip else min(at + 1, region.end)):
            bindings = bind(line.text, ir[place], match.bindings)
            if bindings is not None:
                places = {**match.places, index: place}
                yield from search(item + 1, place + 1, False, Match(places, bindings))

    yield from search(0, region.begin + 1, True, Match({}, {}))


def regions(scope: str, ir: list[str]) -> list[Region]:
    """The regions of the operations that begin with a scope."""
    if not scope:
        return [Region(-1, len(ir))]
    begins = expression(scope, {}, prefix=True)
    found = []
    for begin, line in enumerate(ir):
        if not line.rstrip().endswith("{") or not begins.match(line):
            continue
        depth = 0
        for end in range(begin, len(ir)):
            depth += ir[end].count("{") - ir[end].count("}")
            if depth == 0:
                found.append(Region(begin, end))
                break
    return found


def defined(lines: list[Line]) -> set[str]:
    """The values that lines define."""
    names: set[str] = set()
    for line in lines:
        text = line.text.strip()
        if result := RESULT.match(text):
            names.update(VALUE.findall(result[0]))
        elif text.startswith("^"):
            names.update(ARGUMENT.findall(text))
    return names


def fill(edit: Edit, match: Match, ir: list[str], region: Region) -> dict[int, str]:
    """The text of the lines with '+', by index."""
    bindings = dict(match.bindings)
    added = [line for line in edit.lines if line.kind == "+"]
    # Operations in a region of symbols have values of their own.
    taken: set[str] = set()
    if not SYMBOLS.match(ir[max(region.begin, 0)]):
        taken.update(VALUE.findall("\n".join(ir[region.begin + 1 : region.end])))
    for name in sorted(defined(added) - bindings.keys()):
        fresh, tries = name, 0
        while fresh in taken:
            tries += 1
            fresh = f"%new_{name[1:]}_{tries}"
        taken.add(fresh)
        bindings[name] = fresh

    for line in added:
        for name in TOKEN.findall(line.text):
            if name == "...":
                raise EditError(
                    f"{line.number}: error: '...' in an added line; name it $x"
                )
            if name not in bindings and not name.isspace():
                error = f"{name} is neither matched nor defined"
                raise EditError(f"{line.number}: error: {error}")
    return {
        index: TOKEN.sub(lambda found: bindings.get(found[0], found[0]), line.text)
        for index, line in enumerate(edit.lines)
        if line.kind == "+"
    }


def anchor(edit: Edit, index: int, match: Match, region: Region) -> int:
    """The line of the IR before which an added line goes."""
    if not match.places:
        return region.end
    for before in range(index - 1, -1, -1):
        if edit.lines[before].kind == "...":
            break
        if before in match.places:
            return match.places[before] + 1
    for after in range(index + 1, len(edit.lines)):
        if edit.lines[after].kind == "...":
            break
        if after in match.places:
            return match.places[after]
    number = edit.lines[index].number
    raise EditError(f"{number}: error: no line beside it says where this line goes")


def indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def replace(edit: Edit, match: Match, ir: list[str], region: Region) -> list[str]:
    """The IR after an edit that matches."""
    removed = {place for i, place in match.places.items() if edit.lines[i].kind == "-"}
    texts = fill(edit, match, ir, region)
    inserts: dict[int, list[str]] = {}
    own = min((len(indentation(text)) for text in texts.values()), default=0)
    for index, text in texts.items():
        place = anchor(edit, index, match, region)
        beside = place if place - 1 == region.begin or place < region.end else place - 1
        inserts.setdefault(place, []).append(indentation(ir[beside]) + text[own:])
    new: list[str] = []
    for place in range(len(ir) + 1):
        new += inserts.get(place, [])
        if place < len(ir) and place not in removed:
            new.append(ir[place])
    return new


def nearest(edit: Edit, ir: list[str], inside: list[Region]) -> str:
    """Lines of the IR that resemble the first line that is not found."""
    import difflib

    deepest = max(
        (
            count
            for count in range(len(edit.lines) + 1)
            for part in [Edit(edit.scope, "", 0, edit.lines[:count])]
            if any(next(matches(part, ir, region), None) for region in inside)
        ),
        default=0,
    )
    line = edit.lines[min(deepest, len(edit.lines) - 1)]

    def plain(text: str) -> str:
        return VALUE.sub("%", " ".join(text.split()))

    def likeness(place: int) -> float:
        pair = plain(ir[place]), plain(line.text)
        return difflib.SequenceMatcher(None, *pair).ratio()

    places = {p for region in inside for p in range(region.begin + 1, region.end)}
    shown = listed(sorted(sorted(places, key=likeness)[-4:]), ir)
    what = f"no such line{where(edit)}: {line.text.strip()}"
    return f"{line.number}: error: {what}\nnearest:\n{shown}"


def listed(places: list[int], ir: list[str]) -> str:
    return "\n".join(f"{place + 1:7}: {ir[place].strip()}" for place in places)


def where(edit: Edit) -> str:
    return f" in '{edit.scope}'" if edit.scope else ""


def apply(edit: Edit, ir: list[str]) -> list[str]:
    """The IR after one edit."""
    inside = regions(edit.scope, ir)
    if not inside:
        words = edit.scope.split(" ")[0]
        opens = [line.strip() for line in ir if line.rstrip().endswith("{")]
        alike = [line for line in opens if line.startswith(words)] or opens
        known = "".join(f"\n  {line}" for line in alike[:20])
        what = f"no region of '{edit.scope}'; there are:{known}"
        raise EditError(f"{edit.number}: error: {what}")
    if edit.copy_as and edit.lines:
        inside = [region for region in inside if next(matches(edit, ir, region), None)]
        if not inside:
            raise EditError(nearest(edit, ir, regions(edit.scope, ir)))
    if edit.copy_as or all(line.kind == "+" for line in edit.lines):
        if len(inside) > 1:
            lines = ", ".join(str(region.begin + 1) for region in inside)
            raise EditError(
                f"{edit.number}: error: '{edit.scope}' begins lines {lines}"
            )
        (region,) = inside
        if not edit.copy_as:
            return replace(edit, Match({}, {}), ir, region)
        copied = ir[region.begin : region.end + 1]
        copied[0] = re.sub(r"@[\w.$-]+", edit.copy_as, copied[0], count=1)
        return ir[: region.end + 1] + copied + ir[region.end + 1 :]
    results: dict[str, Match] = {}
    for region in inside:
        for match in matches(edit, ir, region):
            new = replace(edit, match, ir, region)
            results.setdefault("\n".join(new), match)
            if len(results) > 4:
                break
    if not results:
        raise EditError(nearest(edit, ir, inside))
    if len(results) > 1:
        found: list[set[int]] = [
            set(match.places.values()) for match in results.values()
        ]
        shown = sorted(set().union(*found) - found[0].intersection(*found[1:]))
        raise EditError(
            f"{edit.number}: error: more than one place matches{where(edit)}; "
            f"add a line that tells them apart:\n{listed(shown, ir)}"
        )
    (new_text,) = results
    if new_text == "\n".join(ir):
        raise EditError(f"{edit.number}: error: this edit changes nothing")
    return new_text.split("\n")


def edited(ir: str, test: str) -> str:
    """The IR with all edits of a test."""
    lines = ir.splitlines()
    for edit in parse(test):
        lines = apply(edit, lines)
    return "\n".join(lines) + "\n"
