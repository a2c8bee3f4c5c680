// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %S/../Inputs/logical.mlir --zero-check-phase=phase=logical
// RUN: zero-opt %S/../Inputs/coalesced.mlir --zero-check-phase=phase=sharded
// RUN: not zero-opt %S/../Inputs/coalesced.mlir --zero-check-phase=phase=logical 2>&1 | FileCheck %s
// RUN: not zero-opt %S/../Inputs/logical.mlir --zero-check-phase=phase=sharded 2>&1 | FileCheck %s --check-prefix=SHARDED
// RUN: not zero-opt %S/../Inputs/logical.mlir --zero-check-phase=phase=scheduled 2>&1 | FileCheck %s --check-prefix=SCHEDULED
// RUN: not zero-opt %S/../Inputs/logical.mlir --zero-check-phase=phase=final 2>&1 | FileCheck %s --check-prefix=UNKNOWN
//
// Every violation is reported, not the first one only.
//
// CHECK: error: 'zero.bucket' op does not belong to the logical phase
// CHECK: error: 'zero.reduce_scatter' op does not belong to the logical phase
// CHECK: error: 'zero.all_reduce' op does not belong to the logical phase
// SHARDED: error: 'zero.backward' op does not belong to the sharded phase
// SHARDED: error: 'zero.reduce' op does not belong to the sharded phase
// SHARDED: error: 'zero.update' op does not belong to the sharded phase
// SCHEDULED: error: 'zero.step' op does not belong to the scheduled phase
// UNKNOWN: phase must be logical, sharded, placed, lowered or scheduled, got 'final'
