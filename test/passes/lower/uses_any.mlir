// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: sed 's/^zero.parameter @fc2.weight.*/& uses any/' %zero_src/examples/quickstart.mlir > %t.mlir
// RUN: zero-opt %t.mlir | FileCheck %s --check-prefix=TEXT
// RUN: zero-opt %t.mlir --zero-lower="stage=2 bucket-bytes=1000 until=lowered" | FileCheck %s
//
// TEXT: zero.parameter @fc2.weight : 10x64xbf16 uses any
//
// A gradient in any number of pieces has a bucket of its own, which closes last, in
// memory of its own. So no other gradient waits for it. It is kept in the type of the
// accumulator, since a sum of pieces has more bits than they.
//
// CHECK: zero.bucket @b0 {{.*}} [@fc2.bias, @fc1.bias]
// CHECK: zero.bucket @b1 {{.*}} [@fc1.weight]
// CHECK: zero.bucket @b2 {{.*}} [@fc2.weight]
// CHECK: zrt.buffer @b0.gradient : !zero.value<{{[0-9]+}}xbf16, {{.*}}> role gradient in device{{$}}
// CHECK: zrt.buffer @b1.gradient : !zero.value<{{[0-9]+}}xbf16, {{.*}}> role gradient in device{{$}}
// CHECK: zrt.buffer @b2.gradient : !zero.value<{{[0-9]+}}xf32, {{.*}}> role gradient in device{{$}}
// CHECK: zrt.sequence @first [@b0, @b1, @b2]
