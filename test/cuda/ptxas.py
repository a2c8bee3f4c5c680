#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assembles the CUDA kernels of every optimizer and type, and checks the result.

ptxas.py --bin build/bin

For sm_80, sm_90 and sm_100 the machine code must have no spills, at most the registers
with which a multiprocessor holds 1024 threads, and 128-bit loads and stores of the
widest arrays of every kernel that does not sum. One that sums must issue the loads of 16
rows before it adds the first. The PTX must have no approximation, no flushing of
subnormals, no call, no external symbol, and a contraction only if the body has one. The
exit code is 77 if only the PTX was checked because ptxas is missing.
"""

import argparse
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

PACKAGE = "nvidia-cuda-nvcc-cu12==12.9.86"
ARCHS = ["sm_80", "sm_90", "sm_100"]
OPTIMIZERS = ["sgd", "adam", "adamw", "lion"]
# Of parameters, arriving gradients, accumulators, and what addends travel as.
TYPES = [
    ("bf16", "bf16", "f32", None),
    ("f16", "f16", "f32", None),
    ("f32", "f32", "f32", "bf16"),
    ("f64", "f64", "f64", None),
    ("f32", "bf16", "f32", None),
    ("bf16", "bf16", "bf16", None),
]
BYTES = {"bf16": 2, "f16": 2, "f32": 4, "f64": 8, "i16": 2, "i32": 4, "i64": 8}
# Of a group whose sums are one kernel, and of one whose are several.
ONE_KERNEL, SEVERAL_KERNELS = 16, 37
# 65536 registers of a multiprocessor, in 4 blocks of 256 threads; or in 3 where each
# thread has many loads under way.
MOST_REGISTERS = 64
MOST_REGISTERS_OF_MANY = 80
MANY_LOADS = 16
# That a kernel that sums issues together; kRows in codegen/cuda/EmitKernel.cpp.
LOADS_TOGETHER = 16


class Kernel:
    """What a kernel of the entry |name| in PTX reads and writes."""

    def __init__(self, name, read, written, sums=False):
        self.name, self.read, self.written, self.sums = name, read, written, sums
        widest = max(BYTES[t] for t in self.read + self.written)
        # 16 bytes of the widest arrays, or 8 elements; but one of a sum.
        self.width = 1 if sums else min(8, 16 // widest)

    @classmethod
    def of_op(cls, match):
        """A zrt.kernel."""
        read, written = [], []
        for operand in filter(None, match[2].split(", ")):
            access, type = operand.split(" ")
            if access != "write":
                read.append(type)
            if access != "read":
                written.append(type)
        return cls(spell(match[1]), read, written, bool(match[3]))

    @classmethod
    def of_sum(cls, match):
        """A sum over ranks."""
        name, addend, result, ranks, add = match.groups()
        return cls(name, [addend] * int(ranks) + ([result] if add else []), [result])

    def count_wide(self, types):
        return sum(BYTES[t] * self.width == 16 for t in types)


def find_ptxas(folder):
    """The toolkit's; else that of a PyPI package, which goes to |folder|."""
    found = shutil.which("ptxas")
    home = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    found = found or shutil.which(os.path.join(home, "bin", "ptxas"))
    if found:
        return found
    path = os.path.join(folder, "nvidia", "cuda_nvcc", "bin", "ptxas")
    if not os.path.exists(path):
        print(f"no CUDA toolkit: installing {PACKAGE} to {folder}", flush=True)
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target",
                        folder, PACKAGE], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    return shutil.which(path)


def read_sections(cubin):
    """The code of each kernel in a cubin, an ELF file."""
    offset, = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, offset + i * size)
               for i in range(count)]
    strings = headers[names][4]
    for name, _, _, _, begin, length in headers:
        end = cubin.index(b"\0", strings + name)
        text = cubin[strings + name:end].decode()
        if text.startswith(".text."):
            yield text[len(".text."):], cubin[begin:begin + length]


def count_wide_accesses(code):
    """128-bit loads from global memory, and stores, in SASS since Volta.

    An instruction has 16 bytes; its low 12 bits are the operation and bits 73 to 75
    the size of a memory access, of which 6 is 128 bits.
    """
    loads = stores = 0
    for low, high in struct.iter_unpack("<QQ", code):
        if (high >> 9 & 7) == 6:
            loads += (low & 0xFFF) in (0x981, 0x381)
            stores += (low & 0xFFF) in (0x986, 0x386)
    return loads, stores


def count_loads_together(code, size):
    """The most loads of |size| bytes with no arithmetic of f64 and no branch between.

    The low 9 bits of an instruction are its operation without the kinds of its operands.
    """
    most = run = 0
    for low, high in struct.iter_unpack("<QQ", code):
        operation = low & 0x1FF
        if operation == 0x181:
            run += (high >> 9 & 7) == {2: 2, 4: 4, 8: 5}[size]
            most = max(most, run)
        elif operation in (0x028, 0x029, 0x02B, 0x110, 0x147):
            run = 0
    return most


def spell(symbol):
    """As getCudaName does, for the names that passes give."""
    return "zero_" + symbol.replace(".", "$_")


class Checker:
    def __init__(self, ptxas):
        self.ptxas = ptxas
        self.failures = []
        self.seen = {}  # (kernel, arch): registers, loads, stores

    def fail(self, text):
        self.failures.append(text)

    def check_ptx(self, where, ptx, contracted):
        """|contracted|: the names of entries whose bodies have a math.fma."""
        for bad in ["approx", ".ftz", ".extern", "call", "ex2", "lg2", "div.full",
                    ".local"]:
            for line in ptx.splitlines():
                if bad in line and not line.strip().startswith("//"):
                    self.fail(f"{where}: '{line.strip()}'")
                    break
        for line in ptx.splitlines():
            words = line.split()
            if not words:
                continue
            # Without .rn ptxas may contract a product and a sum.
            if re.match(r"(mul|add|sub|div|sqrt)\.(f32|f64)", words[0]):
                self.fail(f"{where}: '{line.strip()}' does not say how it rounds")
        for name, code in re.findall(r"\.entry (\S+)\((.*?)^}", ptx, re.M | re.S):
            if "fma." in code and name not in contracted:
                self.fail(f"{where}: {name} has a contraction that its body has not")

    def assemble(self, where, ptx, kernels, arch, folder):
        cubin = os.path.join(folder, "code.cubin")
        source = os.path.join(folder, "code.ptx")
        with open(source, "w") as file:
            file.write(ptx)
        run = subprocess.run([self.ptxas, "-v", f"-arch={arch}", source, "-o", cubin],
                             capture_output=True, text=True)
        if run.returncode:
            self.fail(f"{where}, {arch}: {run.stderr.strip()}")
            return
        registers, spills = {}, {}
        name = None
        for line in run.stderr.splitlines():
            if match := re.search(r"Compiling entry function '(.*)' for", line):
                name = match[1]
            if match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, "
                                  r"(\d+) bytes spill loads", line):
                spills[name] = sum(int(n) for n in match.groups())
            if match := re.search(r"Used (\d+) registers", line):
                registers[name] = int(match[1])
        with open(cubin, "rb") as file:
            codes = dict(read_sections(file.read()))
        for name, used in registers.items():
            if spills[name]:
                self.fail(f"{where}, {arch}: {name} spills {spills[name]} bytes")
            many = any(k.name == name and len(k.read) >= MANY_LOADS for k in kernels)
            most = MOST_REGISTERS_OF_MANY if many else MOST_REGISTERS
            if used > most:
                self.fail(f"{where}, {arch}: {name} has {used} registers, at most "
                          f"{most}")
        for kernel in kernels:
            name = kernel.name
            if name not in codes:
                self.fail(f"{where}, {arch}: no code for {kernel.name}")
                continue
            loads, stores = count_wide_accesses(codes[name])
            if kernel.sums:
                together = count_loads_together(codes[name], BYTES[kernel.read[0]])
                if together < LOADS_TOGETHER:
                    self.fail(f"{where}, {arch}: {kernel.name} issues {together} loads "
                              f"together, expected {LOADS_TOGETHER} at least")
            for what, got, types in [("loads", loads, kernel.read),
                                     ("stores", stores, kernel.written)]:
                wanted = kernel.count_wide(types)
                if got < wanted:
                    self.fail(f"{where}, {arch}: {kernel.name} has {got} 128-bit "
                              f"{what}, expected {wanted} at least")
            self.seen[kernel.name, arch] = registers[name], loads, stores


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, help="folder of zero-compile")
    parser.add_argument("--table", action="store_true", help="print what was found")
    options = parser.parse_args()
    ptxas = find_ptxas(os.path.join(options.bin, "..", "ptxas"))
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    checker = Checker(ptxas)
    with tempfile.TemporaryDirectory() as folder:
        step = os.path.join(folder, "step.mlir")
        for optimizer in OPTIMIZERS:
            text = os.path.join(root, "examples", "optimizers", optimizer + ".mlir")
            # Sums over ranks do not depend on the optimizer.
            many = [(*TYPES[2], ONE_KERNEL), (*TYPES[5], ONE_KERNEL),
                    (*TYPES[5], SEVERAL_KERNELS)]
            for dtype, gradient, accumulator, wire, ranks in (
                    [(*types, 2) for types in TYPES] +
                    (many if optimizer == OPTIMIZERS[0] else [])):
                where = f"{optimizer} {dtype} {gradient} {accumulator} {ranks}"
                with open(step, "w") as file:
                    subprocess.run(
                        [sys.executable,
                         os.path.join(root, "tools", "scripts", "make_step.py"),
                         "--parameters=4", f"--ranks={ranks}", f"--dtype={dtype}",
                         f"--gradient={gradient}", f"--accumulator={accumulator}",
                         *([f"--reduce-dtype={wire}"] if wire else []),
                         "--optimizer", text],
                        stdout=file, check=True)
                compile = [os.path.join(options.bin, "zero-compile"), step,
                           "--stage=2" if wire is None else "--stage=1", "--no-prove"]
                ir = subprocess.run([*compile, "--emit=mlir"], check=True,
                                    capture_output=True, text=True).stdout
                ptx = subprocess.run([*compile, "--target=cuda", "--emit=ptx"],
                                     check=True, capture_output=True, text=True).stdout
                kernels = [Kernel.of_op(m) for m in
                           re.finditer(r"zrt\.kernel @(\S+) \[(.*?)\] scalars \d+"
                                       r"(?: predicated)?( sums)?", ir)]
                kernels += [Kernel.of_sum(m) for m in re.finditer(
                    r"\.entry (zero\$sum_([a-z0-9]+)_([a-z0-9]+)_(\d+)(_add|_more)?)\(",
                    ptx)]
                contracted = [
                    spell(name)
                    for name, body in re.findall(
                        r"zrt\.(?:kernel|scalars) @(\S+)(.*?)zrt\.yield", ir, re.S)
                    if "math.fma" in body]
                checker.check_ptx(where, ptx, contracted)
                for arch in ARCHS if ptxas else []:
                    checker.assemble(where, ptx, kernels, arch, folder)
    if options.table:
        print(f"{'kernel':40} {'arch':7} registers  128-bit loads  stores")
        for (kernel, arch), (used, loads, stores) in sorted(checker.seen.items()):
            print(f"{kernel:40} {arch:7} {used:9}  {loads:13}  {stores:6}")
    for failure in checker.failures[:20]:
        print("FAILED:", failure)
    print(f"{len(checker.seen)} kernels, {len(checker.failures)} failures")
    if not ptxas and not checker.failures:
        print("skipped: nothing is assembled without ptxas, which is not on the PATH, "
              "in the CUDA toolkit or on PyPI")
        return 77
    return 1 if checker.failures or not checker.seen else 0


if __name__ == "__main__":
    sys.exit(main())
