#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# fuzz.sh SECONDS [TARGET...]: looks for inputs that the parsers of files do not survive,
# with libFuzzer and sanitizers, for so many seconds each. Inputs with new coverage are kept in build-fuzz/inputs. A crash ends the run, and its input is
# build-fuzz/crash-HASH.
set -euo pipefail
cd "$(dirname "$0")/../.."

known=$(basename -a test/fuzz/*/corpus/*)
if [[ ! ${1:-} =~ ^[1-9][0-9]*$ ]]; then
  echo "usage: fuzz.sh SECONDS [TARGET...], with targets" $known >&2
  exit 2
fi
seconds=$1
shift
[[ $# -gt 0 ]] || set -- $known
for target in "$@"; do
  [[ -d $(echo test/fuzz/*/corpus/"$target") ]] || {
    echo "fuzz.sh: no target '$target'" >&2
    exit 2
  }
done
bash tools/scripts/build.sh build-fuzz -DZERO_FUZZ=ON -DZERO_SANITIZE=address,undefined \
  -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1" \
  -- fuzz-targets
# Debian's LLVM does not poison memory of its allocators, and our code would.
export ASAN_OPTIONS=allow_user_poisoning=0
for target in "$@"; do
  echo "== $target"
  mkdir -p "build-fuzz/inputs/$target"
  "build-fuzz/bin/fuzz-${target,,}" "-max_total_time=$seconds" -print_final_stats=1 \
    -verbosity=0 -artifact_prefix=build-fuzz/ \
    "build-fuzz/inputs/$target" test/fuzz/*/corpus/"$target"
done
