#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# keeps.sh TEXT FILE: fails, which zero-reduce looks for, if the step in FILE is right and has
# TEXT.
zero-opt "$2" > /dev/null 2>&1 || exit 0
! grep -q "$1" "$2"
