#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# build.sh FOLDER [CMAKE_OPTION...] [-- TARGET...]: configures FOLDER and builds
# the targets, or everything. Files of a library are compiled 16 at a time, which takes
# less time; -DCMAKE_UNITY_BUILD=OFF compiles each file alone.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [[ $# -eq 0 || $1 == -* ]]; then
  echo "usage: build.sh FOLDER [CMAKE_OPTION...] [-- TARGET...]" >&2
  exit 2
fi
folder=$1
shift
options=()
while [[ $# -gt 0 && $1 != -- ]]; do
  options+=("$1")
  shift
done
[[ $# -eq 0 ]] || shift
bash tools/scripts/setup.sh
mkdir -p "$folder"
# ccache needs this setting for precompiled headers.
export CCACHE_SLOPPINESS=pch_defines,time_macros
# Debian's unversioned ld.lld may be another version; clang finds its own.
cmake -G Ninja -S . -B "$folder" \
  -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 \
  -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
  -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld \
  -DCMAKE_SHARED_LINKER_FLAGS=-fuse-ld=lld -DCMAKE_UNITY_BUILD=ON "${options[@]}" >"$folder/configure.log" 2>&1 ||
  { cat "$folder/configure.log" >&2; exit 1; }
ninja -C "$folder" "$@"
