// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s --symbol-dce | FileCheck %s
// RUN: zero-opt %s --zero-lower="stage=1 until=lowered" --symbol-dce > %t.mlir
// RUN: FileCheck %s --check-prefix=PROGRAM < %t.mlir
// RUN: zero-prove %s %t.mlir
//
// Private symbols that a step uses stay, the loss scale that types speak of among
// them; so do an activation and a frozen parameter, which are used by standing there.

// CHECK-LABEL: zero.mesh @m
// CHECK: zero.parameter @w
// CHECK: zero.parameter @embedding
// CHECK: zero.group @all
// CHECK-NOT: @unused
// CHECK: zero.activation @forward
// CHECK: zero.activation @backward
// CHECK: zero.loss_scale @scale
// CHECK: zero.schedule @lr
// CHECK: zero.optimizer @sgd

// PROGRAM-NOT: @unused
// PROGRAM: zero.parameter @w
// PROGRAM: zero.parameter @embedding
// PROGRAM: zero.loss_scale @scale
// PROGRAM: zero.bucket @b0
// PROGRAM: zrt.program @train on @m loss_scale @scale
zero.mesh @m <["dp" = 2, "pp" = 2]> {sym_visibility = "private"}
zero.parameter @w : 8xf16 {sym_visibility = "private"}
zero.parameter @embedding : 8xf16 frozen {sym_visibility = "private"}
zero.group @all [@w] {sym_visibility = "private"}
zero.group @unused [@w] {sym_visibility = "private"}
zero.activation @forward : tensor<4xf16> over pp from 0 to 1 {sym_visibility = "private"}
zero.activation @backward : tensor<4xf16> over pp from 1 to 0 {sym_visibility = "private"}

zero.loss_scale @scale counters [scale = 1024.0] attributes {sym_visibility = "private"} {
^update(%overflow: i1, %scale: f64):
  %half = arith.constant 0.5 : f64
  %less = arith.mulf %scale, %half : f64
  %next = arith.select %overflow, %less, %scale : f64
  zero.yield %next : f64
}
zero.schedule @lr counters [step = 1.0] attributes {sym_visibility = "private"} value {
^value(%step: f64):
  zero.yield %step : f64
} next {
^next(%skipped: i1, %step: f64):
  zero.yield %step : f64
}
zero.optimizer @sgd hyper [lr] attributes {sym_visibility = "private"} {
^prepare(%lr: f64):
  %step = arith.negf %lr : f64
  zero.yield %step : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  %p1 = math.fma %g, %step, %p : f32
  zero.yield %p1 : f32
}

zero.step @train on @m normalize(dp : -1) loss_scale @scale () {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled(loss_scale : 1) replicated [pp] : !zero.value<8xf16, partial = [dp, micro], scaled = [dp : 1, loss_scale : 1]>
    zero.yield %d : !zero.value<8xf16, partial = [dp, micro], scaled = [dp : 1, loss_scale : 1]>
  }
  %r = zero.reduce %g : !zero.value<8xf32, partial = [dp], scaled = [dp : 1, loss_scale : 1]>
  %lr = zero.read_schedule @lr
  zero.update @all with @sgd(%r) hyper(lr = %lr) : (!zero.value<8xf32>), (!zero.value<f64>)
  zero.return []
}
