#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# format.sh formats every C and C++ file. format.sh --check lists the files that are not
# formatted, and fails.
set -euo pipefail
cd "$(dirname "$0")/../.."

mode=(-i)
[[ ${1:-} == --check ]] && mode=(--dry-run --Werror)
git ls-files -co --exclude-standard '*.h' '*.cpp' '*.c' |
  xargs -r clang-format-19 "${mode[@]}"
