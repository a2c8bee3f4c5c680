// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The step is what it declares at every phase, and what is wrong with it is found at
// the phase where it is.
//
// RUN: zero-opt %S/../Inputs/logical.mlir --zero-prove -o /dev/null
// RUN: zero-opt %S/../Inputs/logical.mlir --zero-lower="stage=0 until=sharded" --zero-prove -o /dev/null
// RUN: zero-opt %S/../Inputs/logical.mlir --zero-lower="stage=1 until=sharded" --zero-prove -o /dev/null
// RUN: zero-opt %S/../Inputs/logical.mlir --zero-lower="stage=2 until=sharded" --zero-prove -o /dev/null
// RUN: zero-opt %S/../Inputs/logical.mlir --zero-lower="stage=1 offload=optimizer until=placed" --zero-prove -o /dev/null
// RUN: zero-opt %S/../Inputs/logical.mlir --zero-lower="stage=0 until=lowered" --zero-prove -o /dev/null
// RUN: zero-opt %S/../Inputs/logical.mlir --zero-lower="stage=1 offload=optimizer until=lowered" --zero-prove -o /dev/null
// RUN: zero-opt %S/../Inputs/logical.mlir --zero-lower="stage=2 offload=optimizer until=lowered" --zero-prove -o /dev/null
// RUN: zero-opt %S/../Inputs/logical.mlir --zero-lower="stage=0" --zero-prove -o /dev/null
// RUN: zero-opt %S/../Inputs/logical.mlir --zero-lower="stage=1 offload=optimizer" --zero-prove -o /dev/null
// RUN: zero-opt %S/../Inputs/logical.mlir --zero-lower="stage=2 offload=optimizer" --zero-prove -o /dev/null
//
// After each pass, and from --zero-set-mesh on that of another mesh. (What names a
// pass that changes the step is in test/unit/prove.)
//
// RUN: zero-opt %S/../Inputs/logical.mlir --prove-each --zero-lower="mesh=dp=3 stage=2" -o %t.each
// RUN: zero-opt %S/../Inputs/logical.mlir --zero-lower="mesh=dp=3 stage=2" -o %t.alone
// RUN: cmp %t.each %t.alone
//
// The pass changes nothing.
//
// RUN: zero-opt %S/../Inputs/collectives.mlir -o %t.before
// RUN: zero-opt %S/../Inputs/collectives.mlir --zero-prove -o %t.after
// RUN: cmp %t.before %t.after
//
// New values that are assigned to nobody, at the sharded phase.
//
// RUN: sed '/zero.assign @b0/d' %zero_src/test/known-bugs/Inputs/sharded1.mlir > %t.assign
// RUN: not zero-opt %t.assign --zero-prove 2>&1 | FileCheck %s --check-prefix=ASSIGN
// ASSIGN: error: 'u' and its master weights become different numbers: old parameter and
//
// A gradient that is scaled once more, placed.
//
// RUN: zero-opt %zero_src/test/known-bugs/Inputs/step.mlir --zero-lower="offload=optimizer until=placed bucket-bytes=16" -o %t.placed
// RUN: sed 's/zero.clip_coefficient \(.*\) max 1.0*e+00/zero.clip_coefficient \1 max 2.0/' %t.placed > %t.max
// RUN: not zero-prove %t.placed %t.max 2>&1 | FileCheck %s --check-prefix=MAX
// MAX: error: what multiplies the gradient of 'u' is minimumf(1, 2 * inverse({{.*}}, expected minimumf(1, inverse(
// MAX: note: counterexample:
//
// A factor that is put elsewhere and stays 0, scheduled.
//
// RUN: sed 's/@row\[1\]/@row[2]/' %zero_src/test/known-bugs/Inputs/stage1.mlir > %t.row
// RUN: not zero-opt %t.row --zero-prove 2>&1 | FileCheck %s --check-prefix=ROW
// ROW: error: gradient of 'u' never reaches its update
//
// Not one step.
//
// RUN: echo 'module {}' | not zero-opt --zero-prove 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: one step can be proved at a time, found 0
