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

# tidy [OPTION...] checks the files that stdin lists. Bodies of templates are parsed
# where they are instantiated: most of those in MLIR's headers never are.
tidy() {
  xargs -r -P "$(nproc)" -n 2 clang-tidy-19 -p "$commands" --quiet \
    --extra-arg=-fdelayed-template-parsing --warnings-as-errors='*' "$@" \
    >>"$log" 2>&1 || status=1
}

status=0
git ls-files 'dialect/*.cpp' 'passes/*.cpp' 'codegen/*.cpp' 'tools/*.cpp' \
  'runtime/*.cpp' 'examples/*.cpp' >"$commands/all"
# The dearest check, a fifth of the time, is of declarations that few files have.
xargs grep -lP '\busing\s+(?!namespace\b)[^=]*$' <"$commands/all" >"$commands/using"
grep -vxFf "$commands/using" "$commands/all" >"$commands/others"
tidy <"$commands/using"
tidy --checks=-misc-unused-using-decls <"$commands/others"
grep -E 'error:|warning:' "$log" | sort -u
exit $status
