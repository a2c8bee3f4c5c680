#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Builds and passes every test, from a fresh machine on: formatting, layers, the
# release build's tests, and the runtime's under the sanitizers.
set -euo pipefail
cd "$(dirname "$0")/../.."

usage() {
  cat <<USAGE
usage: test.sh [--quick]
  --quick   leave out clang-tidy and the builds with sanitizers
USAGE
}

quick=0
for argument in "$@"; do
  case $argument in
  --quick) quick=1 ;;
  --help | -h) usage; exit 0 ;;
  *) echo "test.sh: unknown option '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done

bash tools/scripts/setup.sh
echo "== formatting"
bash tools/scripts/format.sh --check
echo "== release build"
bash tools/scripts/build.sh build
if [[ $quick -eq 0 ]]; then
  echo "== clang-tidy"
  bash tools/scripts/tidy.sh build
  # The runtime has no LLVM in it, so its tests run under every sanitizer.
  for sanitizer in address,undefined thread; do
    echo "== runtime under -fsanitize=$sanitizer"
    bash tools/scripts/test_runtime.sh "$sanitizer"
  done
fi
echo "== tests"
ctest --test-dir build --output-on-failure -j "$(nproc)"
