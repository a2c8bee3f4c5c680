// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s | zero-opt | FileCheck %s
//
// A round trip of a schedule and of what reads it.

zero.mesh @cluster <["dp" = 2]>

// CHECK: zero.schedule @lr counters [step = 1.000000e+00] value {
// CHECK-NEXT: ^bb0(%{{.*}}: f64):
// CHECK: zero.yield %{{.*}} : f64
// CHECK-NEXT: } next {
// CHECK-NEXT: ^bb0(%{{.*}}: i1, %{{.*}}: f64):
zero.schedule @lr counters [step = 1.0] value {
^value(%step: f64):
  %peak = arith.constant 0.01 : f64
  %length = arith.constant 100.0 : f64
  %one = arith.constant 1.0 : f64
  %part = arith.divf %step, %length : f64
  %share = arith.minimumf %part, %one : f64
  %value = arith.mulf %peak, %share : f64
  zero.yield %value : f64
} next {
^next(%skipped: i1, %step: f64):
  %one = arith.constant 1.0 : f64
  %more = arith.addf %step, %one : f64
  %next = arith.select %skipped, %step, %more : f64
  zero.yield %next : f64
}

zero.parameter @w : 8xf32
zero.group @all [@w]
zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  zero.yield %lr : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  %p1 = math.fma %g, %step, %p : f32
  zero.yield %p1 : f32
}

zero.step @train on @cluster normalize() (%v: !zero.value<f64>) {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@w) prescaled() : !zero.value<8xf32, partial = [dp, micro]>
    zero.yield %d : !zero.value<8xf32, partial = [dp, micro]>
  }
  %a = zero.all_reduce %g over [dp] : !zero.value<8xf32, partial = [dp]>
  // CHECK: %[[LR:.*]] = zero.read_schedule @lr
  %lr = zero.read_schedule @lr
  zero.update @all with @sgd(%a) hyper(lr = %lr) : (!zero.value<8xf32>), (!zero.value<f64>)
  // CHECK: zero.advance %[[LR]] when %{{.*}} : !zero.value<f64>, !zero.value<f64>
  zero.advance %lr when %v : !zero.value<f64>, !zero.value<f64>
  zero.return [lr] %lr : !zero.value<f64>
}
