# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Every .mlir and .test file below this folder is a test. With ZERO_CHECK_EACH=1 each
# zero-opt verifies round trips as well, and proves after each pass that the step is the
# one before the first.

import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import lit.formats

config.name = "zero"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "unit"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.zero_obj_root, "test")

path = [
    os.path.join(config.zero_obj_root, "bin"),
    config.llvm_tools_dir,
    config.environment["PATH"],
]
config.environment["PATH"] = os.pathsep.join(path)
for name in ["ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "HOME"]:
    if name in os.environ:
        config.environment[name] = os.environ[name]

if os.environ.get("ZERO_CHECK_EACH"):
    config.substitutions.append(("zero-opt ", "zero-opt --verify-roundtrip --prove-each "))
    # What does not run zero-opt would be run as before.
    files = [
        p for p in pathlib.Path(config.test_source_root).rglob("*.*") if p.is_file()
    ]
    files = [p for p in files if p.suffix in config.suffixes]
    affected = {p.name for p in files if "zero-opt " in p.read_text()}
    config.excludes += sorted({p.name for p in files} - affected)
config.substitutions.append(("%zero_src", config.zero_src_root))
config.substitutions.append(("%zero_obj", config.zero_obj_root))
config.substitutions.append(("%cc", config.cc))
if config.cmake:
    config.available_features.add("install")
    config.substitutions.append(("%cmake", config.cmake))
    config.substitutions.append(("%cxx", config.cxx))
# %edit BASE TEST edits lowered IR; its --help says how.
config.substitutions.append(
    ("%edit", f"{sys.executable} -S {config.zero_src_root}/test/edit.py")
)
config.substitutions.append(("%python", config.python))
if config.sanitizers:
    config.available_features.add("sanitizers")
    # These read files of the tree only.
    config.excludes += ["docs", "layering", "edit.test"]
if shutil.which("chromium"):
    config.available_features.add("chromium")
if config.mpiexec:
    config.available_features.add("mpi")
    config.substitutions.append(("%mpi_cflags", config.mpi_cflags))
    config.substitutions.append(("%mpiexec", config.mpiexec))
    # More processes than cores, in a container.
    config.environment.update(
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        OMPI_MCA_rmaps_base_oversubscribe="1",
        OMPI_MCA_btl_vader_single_copy_mechanism="none",
    )


cuda_home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
if shutil.which("ptxas") or shutil.which(os.path.join(cuda_home, "bin", "ptxas")):
    config.available_features.add("ptxas")
if "CUDA_HOME" in os.environ:
    config.environment["CUDA_HOME"] = cuda_home

try:
    ctypes.CDLL("libcuda.so.1")
except OSError:
    config.available_features.add("no-cuda-driver")

# Hosts of test/faults/hosts.py need namespaces, /dev/net/tun, ip and nsenter.
sys.path.insert(0, os.path.join(config.zero_src_root, "test", "faults"))
import hosts  # noqa: E402

if shutil.which("nsenter") and hosts.can_make_hosts():
    config.available_features.add("hosts")

# The target zero-docs makes it.
if os.path.exists(os.path.join(config.zero_obj_root, "docs", "zero.md")):
    config.available_features.add("generated-docs")

# %small_disk SIZE FOLDER 'COMMAND' runs COMMAND where FOLDER is a file system of
# SIZE, which needs a mount namespace.
small_disk = "unshare -rm sh -c 'mount -t tmpfs -o size=$0 none $1 && eval \"$2\"'"
with tempfile.TemporaryDirectory() as folder:
    try:
        done = subprocess.run(
            f"{small_disk} 1m {folder} true", shell=True, capture_output=True
        )
        if done.returncode == 0:
            config.available_features.add("small-disk")
    except OSError:
        pass
config.substitutions.append(("%small_disk", small_disk))
