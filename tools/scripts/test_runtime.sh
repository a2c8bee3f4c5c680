#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# test_runtime.sh SANITIZER: builds the runtime and its tests with a sanitizer
# ("thread", "address,undefined") and runs them.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=build-${1//,/-}
bash tools/scripts/build.sh "$folder" -DZERO_SANITIZE="$1" -- zero_rt_tests
"$folder/bin/zero_rt_tests" --gtest_brief=1
