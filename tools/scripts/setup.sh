#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Installs the Debian packages that the build needs. Does nothing if all are installed.
# Without root it prints the command to run.
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache git python3 python3-venv
  clang-19 lld-19 clang-format-19 clang-tidy-19 libclang-rt-19-dev
  llvm-19-dev llvm-19-tools libmlir-19-dev mlir-19-tools
  libgtest-dev libxxhash-dev nlohmann-json3-dev libopenblas-dev libopenmpi-dev openmpi-bin procps valgrind iproute2
)

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
  [[ $status == "install ok installed" ]] || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

if [[ $(id -u) -ne 0 ]]; then
  echo "packages are missing; run this once, then start again:" >&2
  echo "  sudo apt-get update && sudo apt-get install -y ${missing[*]}" >&2
  exit 1
fi
echo "installing ${missing[*]}"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" >/dev/null
