# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Damages .mlir text for fuzz.py: bytes, tokens, names, numbers, types, lists and ops.

All choices come from one random.Random, so a seed gives the same inputs again.
"""

from __future__ import annotations

import pathlib
import random
import re
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A larger piece is left out: it costs more and adds nothing.
LARGEST = 20000

# The flags with which valid pieces are printed before the damage.
FORMS = [[], ["--mlir-print-op-generic"]]
FORMS += [
    [f"--zero-lower=stage={stage} until={phase}"]
    for stage, phase in ((1, "sharded"), (2, "placed"), (1, "scheduled"))
]

TOKEN = re.compile(
    r"[@%^!#]?[A-Za-z_][\w.$]*|%\d+(?:#\d+)?|\"[^\"\n]*\"|-?\d+(?:\.\d+(?:[eE][-+]?\d+)?)?"
    r"|->|//[^\n]*|\s+|.",
    re.DOTALL,
)
NUMBERS = ["0", "-1", "1", "2", "3", "7", "64", "4096", "65537", "2147483648"]
NUMBERS += ["9223372036854775807", "-9223372036854775808", "18446744073709551616"]
NUMBERS += ["1.0e308", "0x7FF0000000000000", "0x7FF8000000000000"]
TYPES = [
    "f16",
    "bf16",
    "f32",
    "f64",
    "f128",
    "tf32",
    "f80",
    "f8E4M3FN",
    "i1",
    "i8",
    "i64",
    "index",
    "none",
    "tensor<4xf32>",
    "memref<?xf32>",
    "vector<4xf32>",
    "complex<f32>",
    "!zero.value<f64>",
    "!zero.value<8xf32>",
    "!zero.value<0xf32>",
    "tuple<>",
    "() -> ()",
    "!zero.value<8xf32, sharded = [dp]>",
    "!zero.value<8xf32, partial = [dp, micro]>",
    "!zero.value<f64, varying = [dp]>",
    "!zero.value<2x4xf32, on = [pp : 0, pp : 1]>",
    "!zero.value<8xf32, scaled = [dp : 8]>",
    "!zero.value<8xf32, space = host>",
]
IS_TYPE = re.compile(r"^(?:bf16|[fi]\d+|index|!z\w+\.\w+)$")
IS_NUMBER = re.compile(r"^-?\d")


def mutate_bytes(text: str, pick: random.Random) -> str:
    """Flips, drops, doubles or inserts single characters."""
    for _ in range(pick.randint(1, 4)):
        at = pick.randrange(len(text) + 1)
        kind = pick.randrange(4)
        if kind == 0:
            text = text[:at] + chr(pick.randrange(1, 256)) + text[at + 1 :]
        elif kind == 1:
            text = text[:at] + text[at + pick.randint(1, 8) :]
        elif kind == 2:
            text = text[:at] + text[at : at + pick.randint(1, 40)] + text[at:]
        else:
            text = text[:at] + pick.choice('<>(){}[]:,=@%!#"-*\n') + text[at:]
    return text


def mutate_tokens(text: str, pick: random.Random) -> str:
    """Drops, doubles, swaps or replaces tokens by others of this text."""
    tokens = TOKEN.findall(text)
    words = [i for i, token in enumerate(tokens) if not token.isspace()]
    if len(words) < 2:
        return text
    for _ in range(pick.randint(1, 3)):
        i, j = pick.choice(words), pick.choice(words)
        kind = pick.randrange(4)
        if kind == 0:
            tokens[i] = ""
        elif kind == 1:
            tokens[i] += " " + tokens[i]
        elif kind == 2:
            tokens[i], tokens[j] = tokens[j], tokens[i]
        else:
            tokens[i] = tokens[j]
    return "".join(tokens)


def mutate_alike(text: str, pick: random.Random) -> str:
    """Replaces a token by another of its kind: a name by a name, a number by a number."""
    tokens = TOKEN.findall(text)

    def kind(token: str) -> str:
        if IS_NUMBER.match(token):
            return "0"
        if IS_TYPE.match(token):
            return "type"
        return token[0] if token[0] in '@%^!#"' else "a" if token[0].isalpha() else ""

    words = [i for i, token in enumerate(tokens) if kind(token)]
    if not words:
        return text
    for _ in range(pick.randint(1, 3)):
        i = pick.choice(words)
        if kind(tokens[i]) == "0" and pick.random() < 0.7:
            tokens[i] = pick.choice(NUMBERS)
        elif kind(tokens[i]) == "type" and pick.random() < 0.7:
            tokens[i] = pick.choice(TYPES)
        else:
            alike = [j for j in words if kind(tokens[j]) == kind(tokens[i])]
            tokens[i] = tokens[pick.choice(alike)]
    return "".join(tokens)


def mutate_number(text: str, pick: random.Random) -> str:
    """Makes a number another one, everywhere or once."""
    numbers = sorted(set(re.findall(r"(?<![\w.@%])-?\d+", text)))
    if not numbers:
        return text
    old, new = pick.choice(numbers), pick.choice(NUMBERS)
    count = 0 if pick.random() < 0.5 else 1
    return re.sub(rf"(?<![\w.@%]){re.escape(old)}(?![\w.])", new, text, count=count)


def mutate_type(text: str, pick: random.Random) -> str:
    """Makes an element type or a whole type another one, everywhere."""
    types = sorted(
        set(
            re.findall(
                r"(?<![\w.@%])(?:\d+x)*(?:bf16|f\d+|i\d+)\b|!z\w+\.\w+(?:<[^>]*>)?",
                text,
            )
        )
    )
    if not types:
        return text
    old, new = pick.choice(types), pick.choice(TYPES)
    return text.replace(old, new, -1 if pick.random() < 0.5 else 1)


def mutate_name(text: str, pick: random.Random) -> str:
    """Renames a symbol, a value or a word, everywhere or at one place only."""
    names = sorted(set(re.findall(r"[@%^]?[A-Za-z_][\w.]*", text)))
    if not names:
        return text
    old = pick.choice(names)
    alike = [
        name
        for name in names
        if name[0] == old[0] or name[0].isalpha() == old[0].isalpha()
    ]
    sigil = "" if old[0].isalpha() else old[0]
    new: str = pick.choice([*alike, sigil + "x"])
    places = [
        m.start() for m in re.finditer(rf"(?<![\w.@%^]){re.escape(old)}(?![\w.])", text)
    ]
    if not places:
        return text
    if pick.random() < 0.5:
        at = pick.choice(places)
        return text[:at] + new + text[at + len(old) :]
    return re.sub(rf"(?<![\w.@%^]){re.escape(old)}(?![\w.])", new, text)


def split_ops(text: str) -> list[str]:
    """Lines, and ops with all of their regions, as one list of pieces."""
    ops: list[str] = []
    now: list[str] = []
    depth = 0
    for line in text.split("\n"):
        now.append(line)
        depth = max(depth + line.count("{") - line.count("}"), 0)
        if depth == 0:
            ops.append("\n".join(now))
            now = []
    return ops + (["\n".join(now)] if now else [])


def mutate_ops(text: str, pick: random.Random, other: str = "") -> str:
    """Drops, doubles, swaps or moves lines, or ops with their regions."""
    lines = split_ops(text) if pick.random() < 0.5 else text.split("\n")
    for _ in range(pick.randint(1, 3)):
        if not lines:
            break
        i, j = pick.randrange(len(lines)), pick.randrange(len(lines))
        kind = pick.randrange(6)
        if kind == 0:
            del lines[i]
        elif kind == 1:
            lines.insert(j, lines[i])
        elif kind == 2:
            lines[i], lines[j] = lines[j], lines[i]
        elif kind == 3:
            lines.insert(j, lines.pop(i))
        elif kind == 4:
            del lines[i : i + pick.randint(1, 8)]
        elif other:
            lines.insert(i, pick.choice(split_ops(other)))
    return "\n".join(lines)


def mutate_list(text: str, pick: random.Random) -> str:
    """Empties, shortens or doubles a list in brackets."""
    lists = list(re.finditer(r"[\[(<]([^\[\](){}<>\n]*)[\])>]", text))
    if not lists:
        return text
    match = pick.choice(lists)
    items = match.group(1).split(",")
    kind = pick.randrange(4)
    if kind == 0:
        items = []
    elif kind == 1:
        del items[pick.randrange(len(items))]
    elif kind == 2:
        items.insert(0, pick.choice(items))
    else:
        pick.shuffle(items)
    return text[: match.start(1)] + ",".join(items) + text[match.end(1) :]


# A mutation that keeps more of an input valid reaches deeper into the compiler. It is
# listed more often.
MUTATIONS = [mutate_bytes, mutate_tokens, mutate_alike, mutate_alike, mutate_alike]
MUTATIONS += [mutate_number, mutate_number, mutate_type, mutate_name, mutate_name]
MUTATIONS += [mutate_ops, mutate_ops, mutate_list, mutate_list]


class Pieces:
    """The pieces of all .mlir files, without the comments that tests read.

    |good| has the pieces that verify, as |print_valid| prints them with the flags of
    each of FORMS.
    """

    def __init__(self, print_valid: Callable[[list[str], list[str]], list[str]]):
        self.all: list[str] = []
        paths = [*ROOT.glob("test/**/*.mlir"), *ROOT.glob("examples/**/*.mlir")]
        for path in sorted(paths):
            text = path.read_text(errors="replace")
            for piece in re.split(r"^// -----.*\n", text, flags=re.MULTILINE):
                piece = re.sub(r"^\s*//.*\n", "", piece, flags=re.MULTILINE).strip("\n")
                if piece and len(piece) <= LARGEST:
                    self.all.append(piece)
        self.good: list[str] = []
        for flags in FORMS:
            printed = print_valid(self.all, flags)
            self.good += [text for text in printed if len(text) <= LARGEST]

    def pick(self, pick: random.Random) -> str:
        return pick.choice(self.good if self.good and pick.random() < 0.8 else self.all)


def damage(pieces: Pieces, pick: random.Random) -> str:
    """A piece with one to four mutations. No line of the result splits it again."""
    text = pieces.pick(pick)
    for _ in range(pick.choice([1, 1, 1, 1, 2, 2, 3, 4])):
        mutation = pick.choice(MUTATIONS)
        if mutation is mutate_ops:
            text = mutate_ops(text, pick, pieces.pick(pick))
        else:
            text = mutation(text, pick)
    return text.replace("// -----", "//-----").replace("\0", "")
