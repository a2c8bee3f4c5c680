// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s | zero-opt | FileCheck %s
// RUN: zero-opt %zero_src/examples/pipeline.mlir --zero-lower="stage=1 until=lowered" | FileCheck %s --check-prefix=LOWER
//
// What stages send, as it is written and after a round trip; passes leave it.

// CHECK: zero.activation @hidden : tensor<4x?x96xbf16> over pp from 0 to 1
zero.activation @hidden : tensor<4x?x96xbf16> over pp from 0 to 1
// CHECK: zero.activation @loss : tensor<f64> over pp from 1 to 0
zero.activation @loss : tensor<f64> over pp from 1 to 0
// CHECK: zero.activation @none : tensor<0x4xf16> over pp from 0 to 1 {note = "empty"}
zero.activation @none : tensor<0x4xf16> over pp from 0 to 1 {note = "empty"}
// Whole numbers, which have no gradient.
// CHECK: zero.activation @ids : tensor<4x?xi64> over pp from 0 to 1
zero.activation @ids : tensor<4x?xi64> over pp from 0 to 1

// CHECK: zero.activation @quoted : tensor<4xf16> over "p p" from 0 to 1
zero.activation @quoted : tensor<4xf16> over "p p" from 0 to 1

// LOWER: zero.activation @embedded : tensor<?x6xf32> over pp from 0 to 1
// LOWER: zero.activation @hidden : tensor<?x6xf32> over pp from 1 to 2
// LOWER: zrt.program
