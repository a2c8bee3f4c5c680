#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# proof_says.sh TEXT FILE exits with 1 where the proof of FILE fails with TEXT: what
# zero-reduce calls interesting.
zero-prove "$2" 2>&1 | grep -q -e "$1" && exit 1
exit 0
