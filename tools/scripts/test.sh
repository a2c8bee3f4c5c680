#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Builds and passes every test on a fresh machine: formatting, clang-tidy, tests under
# the address and undefined behaviour sanitizers, the tests of the runtime under the
# thread sanitizer, and tests of the release build. A unit test runs with sanitizers,
# or with --quick in the release build.
set -euo pipefail
cd "$(dirname "$0")/../.."

usage() {
  cat <<USAGE
usage: test.sh [--quick] [--full]
  --full    test compiled steps in all configurations (hours)
  --quick   leave out clang-tidy and the builds with sanitizers
USAGE
}

quick=0
full=0
for argument in "$@"; do
  case $argument in
  --quick) quick=1 ;;
  --full) full=1 ;;
  --help | -h) usage; exit 0 ;;
  *) echo "test.sh: unknown option '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done

bash tools/scripts/setup.sh
# A download of gigabytes, while the rest compiles. If a check fails, it ends, too.
setsid bash tools/scripts/torch-venv.sh &
torch=$!
trap 'kill -- "-$torch" 2>/dev/null || true' EXIT
echo "== formatting"
bash tools/scripts/format.sh --check
echo "== release build"
units=$([[ $quick -eq 1 ]] && echo ON || echo OFF)
bash tools/scripts/build.sh build "-DZERO_UNIT_TESTS=$units"
if [[ $quick -eq 0 ]]; then
  echo "== clang-tidy"
  python3 tools/scripts/tidy.py build
  echo "== everything under -fsanitize=address,undefined"
  # The build has no debug information, which takes a sixth of the build time. Reports
  # name functions all the same. For lines, build with -g1.
  # LLVM's library is not instrumented: its arenas hand out memory that our inlined
  # copy of the same code has poisoned.
  bash tools/scripts/build.sh build-asan -DZERO_SANITIZE=address,undefined \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1"
  ASAN_OPTIONS=allow_user_poisoning=0 \
    ctest --test-dir build-asan --output-on-failure -j "$(nproc)"
  # The runtime contains no LLVM, so its tests can run under this sanitizer, too.
  echo "== runtime under -fsanitize=thread"
  bash tools/scripts/build.sh build-tsan -DZERO_SANITIZE=thread -- zero_rt_tests
  # The tests wait more than they compute, so three groups run at the same time. Tests
  # with timeouts fail where more of them share two cores.
  run_group() {
    local tests="*"
    [[ $1 == threads ]] || tests="-Tcp.*:Transport.*"
    ZERO_TEST_GROUP=$1 build-tsan/bin/zero_rt_tests --gtest_brief=1 \
      "--gtest_filter=$tests"
  }
  export -f run_group
  printf '%s\n' threads transport tcp messages mixed |
    xargs -P 3 -I {} bash -c 'run_group {}'
fi
if [[ $full -eq 1 ]]; then
  echo "== equality in every configuration"
  python3 test/exec/equality.py --bin build/bin --full
fi
echo "== tests"
installed=0
wait "$torch" || installed=$?
[[ $installed -eq 0 || $installed -eq 77 ]] || exit "$installed"
ctest --test-dir build --output-on-failure -j "$(nproc)"
