#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Damages the .mlir files of this repository and looks for crashes of zero-opt.

An input is a piece of a file (what stands between its '// -----' lines), damaged a few
times: bytes, tokens, names, numbers and types are changed, lines and ops are dropped,
doubled, swapped and moved to another piece. zero-opt parses and verifies each,
lowers each step in several ways, and proves it. An error message is fine. A signal, an
abort, a report of a sanitizer, a fatal error of LLVM and a run without end are crashes.

Many inputs go through one process, since starting it costs more than an input; when a
process dies, its inputs run alone.

What crashes in MLIR itself stands in UPSTREAM below, is counted, and fails nothing.

examples:
  fuzz.py --bin build/bin                                  as the tests run it
  fuzz.py --bin build/bin --seconds 600 --seed 7           longer, another seed
  fuzz.py --bin build/bin --save /tmp/crashes              keeps what crashes, reduced
  fuzz.py --bin build/bin --replay /tmp/crashes/0.mlir     one input again

exit codes: 0 no crash of ours, 1 a crash, 2 wrong usage.
"""

import argparse
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPLIT = "\n// -----\n"
# A piece that is larger is left out: it costs more and has nothing that others lack.
LARGEST = 20000


def names_value_early(text):
    """Whether an op names a value that has not been defined in a region around it."""
    scopes = [set()]
    for line in text.split("\n"):
        defined = re.match(r"\s*((?:%[\w$.-]+(?::\d+)?,?\s*)+)=", line)
        left = defined.end() if defined else 0
        arguments = []
        if re.match(r"\s*(?:\^|zero\.step)", line):
            arguments = re.findall(r"(%[\w$.-]+)\s*:", line)
        for name in re.findall(r"%[\w$.-]+", line[left:]):
            known = name in arguments or any(name in scope for scope in scopes)
            if not known:
                return True
        scopes[-1].update(re.findall(r"%[\w$.-]+", line[:left]))
        scopes += [set() for _ in range(line.count("{"))]
        scopes[-1].update(arguments)
        del scopes[max(len(scopes) - line.count("}"), 1) :]
    return False


# Crashes of MLIR and LLVM: what they are, a regular expression that occurs in the
# report, and what holds of the input.
#
# The heap is broken where an op names a value that comes later, a region defines it,
# and then the region does not parse: the parser frees the value and not the use
# (Operation::dropAllReferences writes to it). Mostly one of the next inputs of the
# process dies of it. So a process that dies while each of its inputs alone does not
# is counted and no failure; a heap that we break the sanitizers' build finds.
UPSTREAM = {
    "the parser makes a list as long as a result's number": (
        r"out of memory",
        re.compile(r"%\w+#\d{9,}").search,
    ),
    "the parser frees a value that an op in front of its region names": (
        r"(?s)\A(?!.*(?:Assertion `|UNREACHABLE|runtime error: |Sanitizer)).*: error: ",
        names_value_early,
    ),
}

# What is done with each input; zero-opt splits its input and goes on behind errors.
# The mesh that examples have, so that each lowering is reached.
MODES = {
    "verify": [],
    "lower-1": ["--zero-lower=stage=1"],
    "lower-2": ["--zero-lower=stage=2 offload=optimizer bucket-bytes=256"],
    "lower-0": ["--zero-lower=stage=0"],
    "prove": ["--zero-prove"],
    "to-zrt": ["--zero-coalesce-scalars", "--zero-lower-to-zrt"],
}

# How what is right is printed before it is damaged.
FORMS = [[], ["--mlir-print-op-generic"]]
FORMS += [
    [f"--zero-lower=stage={stage} until={phase}"]
    for stage, phase in ((1, "sharded"), (2, "placed"), (1, "scheduled"))
]

REPORTS = [
    "LLVM ERROR",
    "PLEASE submit a bug report",
    "AddressSanitizer",
    "UndefinedBehaviorSanitizer",
    "runtime error: ",
    "Assertion `",
    "UNREACHABLE executed",
    "terminate called",
    "Stack dump",
]


# ---------------------------------------------------------------------------
# Damage
# ---------------------------------------------------------------------------

TOKEN = re.compile(
    r"[@%^!#]?[A-Za-z_][\w.$]*|%\d+(?:#\d+)?|\"[^\"\n]*\"|-?\d+(?:\.\d+(?:[eE][-+]?\d+)?)?"
    r"|->|//[^\n]*|\s+|.",
    re.S,
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
]
TYPES += [
    "index",
    "none",
    "tensor<4xf32>",
    "memref<?xf32>",
    "vector<4xf32>",
    "complex<f32>",
]
TYPES += [
    "!zero.value<f64>",
    "!zero.value<8xf32>",
    "!zero.value<0xf32>",
    "tuple<>",
    "() -> ()",
]
TYPES += [
    "!zero.value<8xf32, sharded = [dp]>",
    "!zero.value<8xf32, partial = [dp, micro]>",
]
TYPES += [
    "!zero.value<f64, varying = [dp]>",
    "!zero.value<2x4xf32, on = [pp : 0, pp : 1]>",
]
TYPES += ["!zero.value<8xf32, scaled = [dp : 8]>", "!zero.value<8xf32, space = host>"]
TYPES += ["!zrt.timepoint"]
IS_TYPE = re.compile(r"^(?:bf16|[fi]\d+|index|!z\w+\.\w+)$")
IS_NUMBER = re.compile(r"^-?\d")


def mutate_bytes(text, pick):
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


def mutate_tokens(text, pick):
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


def mutate_alike(text, pick):
    """Replaces a token by another of its kind: a name by a name, a number by a number."""
    tokens = TOKEN.findall(text)

    def kind(token):
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


def mutate_number(text, pick):
    """Makes a number another one, everywhere or once."""
    numbers = sorted(set(re.findall(r"(?<![\w.@%])-?\d+", text)))
    if not numbers:
        return text
    old, new = pick.choice(numbers), pick.choice(NUMBERS)
    count = 0 if pick.random() < 0.5 else 1
    return re.sub(rf"(?<![\w.@%]){re.escape(old)}(?![\w.])", new, text, count=count)


def mutate_type(text, pick):
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


def mutate_name(text, pick):
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
    new = pick.choice(alike + [old[0] * (not old[0].isalpha()) + "x"])
    places = [
        m.start() for m in re.finditer(rf"(?<![\w.@%^]){re.escape(old)}(?![\w.])", text)
    ]
    if not places:
        return text
    if pick.random() < 0.5:
        at = pick.choice(places)
        return text[:at] + new + text[at + len(old) :]
    return re.sub(rf"(?<![\w.@%^]){re.escape(old)}(?![\w.])", new, text)


def split_ops(text):
    """Lines, and ops with all of their regions, as one list of pieces."""
    ops, depth, now = [], 0, []
    for line in text.split("\n"):
        now.append(line)
        depth = max(depth + line.count("{") - line.count("}"), 0)
        if depth == 0:
            ops.append("\n".join(now))
            now = []
    return ops + (["\n".join(now)] if now else [])


def mutate_ops(text, pick, other=""):
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


def mutate_list(text, pick):
    """Empties, shortens or doubles a list in brackets."""
    lists = [m for m in re.finditer(r"[\[(<]([^\[\](){}<>\n]*)[\])>]", text)]
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


# What leaves more of an input right gets deeper into the compiler, and is likelier.
MUTATIONS = [mutate_bytes, mutate_tokens, mutate_alike, mutate_alike, mutate_alike]
MUTATIONS += [mutate_number, mutate_number, mutate_type, mutate_name, mutate_name]
MUTATIONS += [mutate_ops, mutate_ops, mutate_list, mutate_list]


class Pieces:
    """What is damaged: the pieces of all .mlir files, without the comments that tests
    read, and |good|, what verifies of them, as it is printed in several forms and at
    several phases."""

    def __init__(self, tool):
        self.all = []
        paths = [*ROOT.glob("test/**/*.mlir"), *ROOT.glob("examples/**/*.mlir")]
        for path in sorted(paths):
            text = path.read_text(errors="replace")
            for piece in re.split(r"^// -----.*\n", text, flags=re.M):
                piece = re.sub(r"^\s*//.*\n", "", piece, flags=re.M).strip("\n")
                if piece and len(piece) <= LARGEST:
                    self.all.append(piece)
        self.good = []
        for flags in FORMS:
            self.good += [x for x in tool.print(self.all, flags) if len(x) <= LARGEST]

    def pick(self, pick):
        return pick.choice(self.good if self.good and pick.random() < 0.8 else self.all)


def damage(pieces, pick):
    """A piece with one to four mutations. No line of it splits it again."""
    text = pieces.pick(pick)
    for _ in range(pick.choice([1, 1, 1, 1, 2, 2, 3, 4])):
        mutation = pick.choice(MUTATIONS)
        if mutation is mutate_ops:
            text = mutate_ops(text, pick, pieces.pick(pick))
        else:
            text = mutation(text, pick)
    return text.replace("// -----", "//-----").replace("\0", "")


# ---------------------------------------------------------------------------
# Running
# ---------------------------------------------------------------------------


class Tool:
    def __init__(self, binary, limit):
        self.binary = binary
        self.limit = limit
        self.folder = tempfile.TemporaryDirectory(prefix="fuzz")
        self.file = pathlib.Path(self.folder.name, "input.mlir")

    def run(self, text, flags):
        """The exit code and what it printed; the exit code is None without an end."""
        self.file.write_text(text, encoding="latin-1", errors="replace")
        command = [self.binary, self.file, "-o", "/dev/null", *flags]
        begin = time.monotonic()
        with tempfile.TemporaryFile() as errors:
            with subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            ) as process:
                code, wait = None, 2
                while code is None:
                    try:
                        code = process.wait(wait)
                    except subprocess.TimeoutExpired:
                        # LLVM's report of a broken heap may wait for the heap.
                        errors.seek(0)
                        died = b"Stack dump" in errors.read()
                        if died or time.monotonic() - begin > self.limit:
                            process.kill()
                            break
            errors.seek(0)
            return code, errors.read().decode("latin-1")

    def print(self, pieces, flags):
        """What zero-opt makes of those of |pieces| that are right."""
        self.file.write_text(SPLIT.join(pieces), encoding="latin-1", errors="replace")
        done = subprocess.run(
            [self.binary, self.file, "--split-input-file", *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        printed = re.split(r"^// -----\n", done.stdout.decode("latin-1"), flags=re.M)
        # An empty module is nothing to damage.
        return [text.strip("\n") for text in printed if text.count("\n") > 3]

    def describe(self, text, flags):
        """What crashes on |text|, in a line; None if nothing does."""
        code, output = self.run(text, flags)
        return find_crash(code, output)


def find_crash(code, output):
    """A line that says how a run crashed; None if it did not."""
    lines = output.splitlines()
    found = next((line for line in lines if any(r in line for r in REPORTS)), None)
    if code is None:
        kind = "ran without end"
    elif code < 0:
        kind = signal.Signals(-code).name
    elif code > 128:
        kind = f"exit code {code}"
    elif found:
        kind = "report"
    else:
        return None
    # The innermost function of ours, or else of MLIR, tells crashes apart.
    frames = re.findall(r"^\s*#\d+ 0x[0-9a-f]+ (?:in )?(.+?)\(", output, re.M)
    ours = [f for f in frames if re.match(r"(?:zero|zrt)::[\w:]+$", f)]
    theirs = [f for f in frames if re.search(r"mlir::(?!detail)", f)]
    where = (ours or theirs or [""])[0].strip()
    is_stack = found is None or "Stack dump" in found or "PLEASE" in found
    what = "" if is_stack else re.sub(r"^\S*zero-opt: ", "", found.strip())[:160]
    return " ".join(x for x in (kind, where, what) if x)


def find_upstream(output, text):
    for name, (report, cause) in UPSTREAM.items():
        if re.search(report, output) and cause(text):
            return name
    return None


def reduce_crash(tool, text, flags, seconds=20):
    """Drops lines as long as it still crashes alike."""
    wanted = tool.describe(text, flags)
    end = time.monotonic() + seconds
    lines, size = text.split("\n"), max(len(text.split("\n")) // 2, 1)
    while time.monotonic() < end:
        at, shrunk = 0, False
        while at < len(lines) and time.monotonic() < end:
            fewer = lines[:at] + lines[at + size :]
            if tool.describe("\n".join(fewer), flags) == wanted:
                lines, shrunk = fewer, True
            else:
                at += size
        if size == 1 and not shrunk:
            break
        size = max(size // 2, 1)
    return "\n".join(lines)


class Crashes:
    """Crashes by how they look, and what is said of them."""

    def __init__(self, tool, save):
        self.tool = tool
        self.save = save
        self.ours = {}
        self.upstream = {}
        # Processes that died of what none of their inputs shows alone.
        self.unexplained = 0

    def count(self):
        return sum(self.ours.values()) + sum(self.upstream.values())

    def add(self, text, mode):
        """Runs |text| alone; its exit code."""
        code, output = self.tool.run(text, MODES[mode])
        crash = find_crash(code, output)
        if crash is None:
            return code
        known = find_upstream(output, text)
        if known:
            self.upstream[known] = self.upstream.get(known, 0) + 1
            return code
        self.ours[crash] = self.ours.get(crash, 0) + 1
        if self.ours[crash] > 1:
            return code
        begin = "\r\033[K" if sys.stdout.isatty() else ""
        print(f"{begin}crash: {mode}: {crash}", flush=True)
        if self.save:
            self.save.mkdir(parents=True, exist_ok=True)
            path = self.save / f"{len(self.ours) - 1}.mlir"
            small = reduce_crash(self.tool, text, MODES[mode])
            header = (
                f"// zero-opt {' '.join(repr(f) for f in MODES[mode])}\n// {crash}\n"
            )
            path.write_text(header + small + "\n", encoding="latin-1", errors="replace")
            print(f"  saved to {path}", flush=True)
        else:
            print("  its input follows; --save FOLDER keeps it, reduced")
            print(
                "\n".join("  | " + line for line in text.split("\n")[:60]), flush=True
            )
        return code


def run_batch(tool, inputs, mode, crashes):
    """Runs |inputs| in one process, and each alone where it dies. Those that are right."""
    text = SPLIT.join(inputs)
    code, output = tool.run(text, [*MODES[mode], "--split-input-file"])
    if find_crash(code, output):
        before = crashes.count()
        right = [one for one in inputs if crashes.add(one, mode) == 0]
        crashes.unexplained += crashes.count() == before
        return right
    if code == 0:
        return inputs
    # "within split at FILE:LINE offset :2:3: error: ...": the line the piece begins at.
    begins = {}
    line = 1
    for i, one in enumerate(inputs):
        begins[line] = i
        line += one.count("\n") + SPLIT.count("\n")
    failed = set()
    for line in re.findall(r"^within split at .*?:(\d+) offset", output, re.M):
        failed.add(max((b for b in begins if b <= int(line)), default=1))
    return [inputs[i] for begin, i in begins.items() if begin not in failed]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--bin", required=True, type=pathlib.Path, help="folder of zero-opt"
    )
    parser.add_argument("--count", type=int, default=3000, help="inputs (default 3000)")
    parser.add_argument(
        "--seconds", type=float, help="go on for so long, whatever the count"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the damage (default 1)")
    parser.add_argument("--batch", type=int, default=60, help="inputs of one process")
    parser.add_argument(
        "--limit", type=float, default=20, help="seconds of one input's run"
    )
    parser.add_argument(
        "--save", type=pathlib.Path, help="folder for what crashes, reduced"
    )
    parser.add_argument(
        "--replay", type=pathlib.Path, help="run this input only, in all modes"
    )
    options = parser.parse_args()
    binary = options.bin / "zero-opt"
    if not binary.is_file():
        parser.error(
            f"there is no zero-opt in {options.bin}; --bin is the folder of the tools"
        )
    if options.count < 1 or options.batch < 1 or options.limit <= 0:
        parser.error("--count, --batch and --limit must be positive")

    tool = Tool(binary, options.limit)
    crashes = Crashes(tool, options.save)
    if options.replay:
        text = options.replay.read_text(encoding="latin-1")
        for mode in MODES:
            crashes.add(text, mode)
        return finish(crashes, 1)

    pick = random.Random(options.seed)
    pieces = Pieces(tool)
    begin = last = time.monotonic()
    done = right = 0
    while True:
        now = time.monotonic() - begin
        if now >= options.seconds if options.seconds else done >= options.count:
            break
        left = (
            options.batch
            if options.seconds
            else min(options.batch, options.count - done)
        )
        inputs = [damage(pieces, pick) for _ in range(left)]
        # What does not verify gets no further in any mode.
        modes = iter(MODES)
        good = run_batch(tool, inputs, next(modes), crashes)
        for mode in modes:
            if good:
                run_batch(tool, good, mode, crashes)
        done += left
        right += len(good)
        if sys.stdout.isatty() and time.monotonic() - last > 0.5:
            last = time.monotonic()
            goal = (
                f"{options.seconds:.0f} s"
                if options.seconds
                else f"{options.count} inputs"
            )
            print(
                f"\r\033[K{done} inputs in {now:.0f} s, of {goal}; {len(crashes.ours)} crashes",
                end="",
                flush=True,
            )
    if sys.stdout.isatty():
        print("\r\033[K", end="")
    print(
        f"{len(pieces.all)} pieces, {len(pieces.good)} right ones, seed {options.seed}, {time.monotonic() - begin:.0f} s"
    )
    print(f"{right} inputs verified, and were lowered and proved")
    return finish(crashes, done)


def finish(crashes, done):
    for known, times in sorted(crashes.upstream.items()):
        print(f"of MLIR itself: {known}: {times} times")
    if crashes.unexplained:
        print(
            f"{crashes.unexplained} processes died of what no input shows alone; see UPSTREAM"
        )
    for crash, times in crashes.ours.items():
        print(f"{crash}: {times} times")
    print(f"{done} inputs in {len(MODES)} modes: {len(crashes.ours)} crashes")
    return 1 if crashes.ours else 0


if __name__ == "__main__":
    sys.exit(main())
