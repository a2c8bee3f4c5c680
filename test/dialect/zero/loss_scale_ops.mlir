// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s | zero-opt | FileCheck %s
//
// A round trip of a loss scale and of what reads it.

zero.mesh @cluster <["dp" = 2]>

// CHECK: zero.loss_scale @scale counters [scale = 1.024000e+03] {
// CHECK-NEXT: ^bb0(%{{.*}}: i1, %[[OLD:.*]]: f64):
zero.loss_scale @scale counters [scale = 1024.0] {
^update(%overflow: i1, %scale: f64):
  %half = arith.constant 0.5 : f64
  %less = arith.mulf %scale, %half : f64
  %next = arith.select %overflow, %less, %scale : f64
  zero.yield %next : f64
}

zero.parameter @w : 8xf16
zero.group @all [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  %p1 = math.fma %g, %step, %p : f32
  zero.yield %p1 : f32
}

zero.step @train on @cluster normalize() loss_scale @scale (%v: !zero.value<f64>) {
  // CHECK: %[[S:.*]] = zero.read_scale @scale
  %s = zero.read_scale @scale
  // CHECK: zero.backward(@w) prescaled (loss_scale : 1)
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled(loss_scale : 1) : !zero.value<8xf16, partial = [dp, micro], scaled = [loss_scale : 1]>
    zero.yield %d : !zero.value<8xf16, partial = [dp, micro], scaled = [loss_scale : 1]>
  }
  %a = zero.all_reduce %g over [dp] : !zero.value<8xf32, partial = [dp], scaled = [loss_scale : 1]>
  // CHECK: %[[U:.*]] = zero.factor (loss_scale : -1) loss_scale %[[S]] : !zero.value<f64>
  %u = zero.factor (loss_scale : -1) loss_scale %s : !zero.value<f64>
  %r = zero.scale %a by %u : !zero.value<8xf32, scaled = [loss_scale : 1]> by !zero.value<f64, scaled = [loss_scale : -1]>
  zero.update @all with @sgd(%r) hyper(lr = 0.1) : (!zero.value<8xf32>), ()
  // CHECK: zero.advance %[[S]] when %{{.*}} : !zero.value<f64>, !zero.value<f64>
  zero.advance %s when %v : !zero.value<f64>, !zero.value<f64>
  zero.return []
}
