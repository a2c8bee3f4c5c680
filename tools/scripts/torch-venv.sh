#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# torch-venv.sh: makes build/venv, a virtual environment with torch, the package of
# python/ and what its tests need. Does nothing if all is there. Exits with 77, and says
# why, where there is no network or too little disk.
set -euo pipefail
cd "$(dirname "$0")/../.."

venv=build/venv
python=$venv/bin/python
log=build/venv.log
# The wheels are 3.0 GB, and unpacked 5.4 GB. torch on Linux comes with the libraries of
# CUDA, and without them it cannot be imported.
needed_gb=10

mkdir -p build
"$python" -c 'import accelerate, mypy, numpy, peft, pytest, ruff, torch, transformers, zero_opt' \
  2>/dev/null && exit 0
free_gb=$(df --output=avail -BG build | tail -n 1 | tr -dc 0-9)
if [[ $free_gb -lt $needed_gb ]]; then
  echo "torch is not installed: $free_gb GB of disk are free, and it takes $needed_gb GB"
  exit 77
fi
python3 -m venv "$venv"
install() {
  # Most of the modules are imported by no test, so none is compiled before.
  "$python" -m pip install --disable-pip-version-check --no-compile "$@" >>"$log" 2>&1
}
: >"$log"
if ! install -r python/requirements.txt; then
  if grep -qE 'NewConnectionError|NameResolutionError|ConnectTimeoutError|ProxyError' "$log"; then
    echo "torch is not installed: there is no network"
    exit 77
  fi
  tail -n 20 "$log" >&2
  exit 1
fi
# The compiler and the runtime are found in build/, beside the package.
install --no-build-isolation --no-deps -e python || { tail -n 20 "$log" >&2; exit 1; }
