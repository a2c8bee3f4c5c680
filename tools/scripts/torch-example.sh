#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Installs what is missing, builds the compiler and the runtime, installs torch and the
# package of python/ into build/venv, and trains a small GPT.
set -euo pipefail

usage() {
  cat <<USAGE
usage: torch-example.sh [--ranks N] [OPTION...]
  --ranks N   processes that train together (2)
The other options are those of python/examples/train_gpt.py, such as --steps 300.
USAGE
}

ranks=2
options=()
while [[ $# -gt 0 ]]; do
  case $1 in
  --help | -h) usage; exit 0 ;;
  --ranks)
    [[ ${2:-} =~ ^[1-9][0-9]*$ ]] ||
      { echo "torch-example.sh: --ranks takes a number, not '${2:-}'" >&2; usage >&2; exit 2; }
    ranks=$2
    shift 2
    ;;
  *) options+=("$1"); shift ;;
  esac
done

cd "$(dirname "$0")/../.."
bash tools/scripts/setup.sh
echo "== build"
bash tools/scripts/build.sh build -- zero_compiler zero_rt
echo "== torch, in build/venv"
bash tools/scripts/torch-venv.sh
echo "== training on $ranks ranks"
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
build/venv/bin/python -m torch.distributed.run --standalone --nproc-per-node "$ranks" \
  python/examples/train_gpt.py "${options[@]}"
