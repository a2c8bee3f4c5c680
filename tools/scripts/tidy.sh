#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# tidy.sh [FOLDER]: clang-tidy over all sources, with the compile commands of a
# configured build folder (default: build). Fails on any finding.
set -uo pipefail
cd "$(dirname "$0")/../.."

# Without precompiled headers, so that files which do not include what they use
# are found.
commands=$(mktemp -d)
log=$commands/log
trap 'rm -rf "$commands"' EXIT
sed -E 's/-Xclang -include(-pch)? -Xclang [^ ]*cmake_pch[^ ]*//g' \
  "${1:-build}/compile_commands.json" >"$commands/compile_commands.json"
git ls-files 'dialect/*.cpp' 'passes/*.cpp' 'codegen/*.cpp' 'tools/*.cpp' \
  'runtime/*.cpp' 'examples/*.cpp' |
  xargs -P "$(nproc)" -n 2 clang-tidy-19 -p "$commands" --quiet \
    --warnings-as-errors='*' >"$log" 2>&1
status=$?
grep -E 'error:|warning:' "$log" | sort -u
exit $status
