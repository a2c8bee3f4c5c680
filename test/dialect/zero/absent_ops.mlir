// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: zero-opt %s | zero-opt | FileCheck %s

// CHECK: zero.group @head [@w, @b] absent skip
// CHECK: zero.group @rest [@u]{{$}}
// CHECK: %[[N:.*]]:2 = zero.delivered_count [@w, @b] over [dp]
// CHECK: %[[S:.*]] = zero.add %[[N]]#0, %[[N]]#1 : !zero.value<f64, partial = [dp]>
// CHECK: %[[D:.*]] = zero.all_reduce %[[S]]
// CHECK: %[[OWN:.*]] = zero.group_outcome %[[V:.*]] delivered %[[D]]{{$}}
// CHECK: zero.update_bucket {{.*}} when %[[V]], %[[OWN]] rows(%{{.*}}, %{{.*}}) row_of [0, 1, 1] : f32, !zero.value<96xf32>, !zero.value<f64>, (!zero.value<f64>, !zero.value<f64>)
zero.mesh @cluster <["dp" = 2]>
zero.parameter @u : 5xf32
zero.parameter @w : 5x7xf32 optional
zero.parameter @b : 7xf32 optional
zero.group @head [@w, @b] absent skip
zero.group @rest [@u]
zero.optimizer @sgd hyper [lr] {
^bb0(%lr: f64):
  %0 = arith.negf %lr : f64
  zero.yield %0 : f64
} update {
^bb0(%g: f32, %p: f32, %step: f32):
  %0 = math.fma %g, %step, %p : f32
  zero.yield %0 : f32
}
zero.bucket @b0 : 96xf32 arrives f32 [@u, @w, @b] offsets [0, 32, 80] extents [32, 48, 16]
zero.step @train on @cluster normalize(accumulation : -1, dp : -1) (%lr: !zero.value<f64>) {
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@b0) prescaled (accumulation : -1) : !zero.value<96xf32, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d : !zero.value<96xf32, partial = [dp, micro], scaled = [dp : 1]>
  }
  %r = zero.all_reduce %g over [dp] : !zero.value<96xf32, partial = [dp], scaled = [dp : 1]>
  %f = zero.factor (dp : -1)
  %s = zero.scale %r by %f : !zero.value<96xf32, scaled = [dp : 1]> by !zero.value<f64, scaled = [dp : -1]>
  %q = zero.sum_squares %r : !zero.value<96xf32, scaled = [dp : 1]>
  %backwards, %squared, %missing = zero.arrival_count over [dp]
  %m = zero.all_reduce %missing over [dp] : !zero.value<f64, partial = [dp]>
  %n:2 = zero.delivered_count [@w, @b] over [dp]
  %a = zero.add %n#0, %n#1 : !zero.value<f64, partial = [dp]>, !zero.value<f64, partial = [dp]>
  %t = zero.all_reduce %a over [dp] : !zero.value<f64, partial = [dp]>
  %b1 = zero.all_reduce %backwards over [dp] : !zero.value<f64, partial = [dp]>
  %b2 = zero.all_reduce %squared over [dp] : !zero.value<f64, partial = [dp]>
  %v = zero.outcome(%q) missing %m backwards %b1 squared %b2 ranks 2 : !zero.value<f64, scaled = [dp : 2]>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>
  %o = zero.group_outcome %v delivered %t
  %x = zero.prepare @rest with @sgd(%lr) when %v yields 1 : (!zero.value<f64>), !zero.value<f64>
  %y = zero.prepare @head with @sgd(%lr) when %o yields 1 : (!zero.value<f64>), !zero.value<f64>
  %p = zero.update_bucket @b0 with @sgd(%s) when %v, %o rows(%x, %y) row_of [0, 1, 1] : f32, !zero.value<96xf32>, !zero.value<f64>, (!zero.value<f64>, !zero.value<f64>)
  zero.assign @b0, %p : !zero.value<96xf32>
  zero.return []
}
