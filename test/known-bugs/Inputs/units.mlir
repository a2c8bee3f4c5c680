// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step for stage 3: two layers of one shape, a layer of experts, and an embedding of no
// unit, which a second use ties to the head. Experts are split over ep, and their
// all-to-all has summed over its ranks (`reduced`). With shard-over=ep, ranks of edp are
// replicas.

zero.mesh @cluster <["edp" = 2, "ep" = 2]> flattened ["dp" = ["edp", "ep"]]

zero.parameter @embedding : 15x7xbf16 uses 2
zero.parameter @w0 : 8x8xbf16
zero.parameter @norm0 : 8xbf16
zero.parameter @w1 : 8x8xbf16
zero.parameter @norm1 : 8xbf16
zero.parameter @experts : 4x32xbf16, sharded = [ep]
zero.parameter @router : 4x8xbf16

zero.unit @layer0 [@w0, @norm0]
zero.unit @layer1 [@w1, @norm1]
zero.unit @moe [@experts, @router]

zero.group @all [@embedding, @w0, @norm0, @w1, @norm1, @experts, @router]

zero.optimizer @adam hyper [lr] counters [beta1_t = 1.0] state [m, v] {
^prepare(%lr: f64, %b1t: f64):
  %one = arith.constant 1.0 : f64
  %beta1 = arith.constant 0.75 : f64
  %b1n = arith.mulf %b1t, %beta1 : f64
  %c1 = arith.subf %one, %b1n : f64
  %rate = arith.divf %lr, %c1 : f64
  %step = arith.negf %rate : f64
  zero.yield %b1n, %step : f64, f64
} update {
^update(%g: f32, %p: f32, %m: f32, %v: f32, %step: f32):
  %beta = arith.constant 0.75 : f32
  %rest = arith.constant 0.25 : f32
  %eps = arith.constant 1.0e-8 : f32
  %m0 = arith.mulf %m, %beta : f32
  %m1 = math.fma %g, %rest, %m0 : f32
  %g2 = arith.mulf %g, %g : f32
  %v0 = arith.mulf %v, %beta : f32
  %v1 = math.fma %g2, %rest, %v0 : f32
  %r = math.sqrt %v1 : f32
  %d = arith.addf %r, %eps : f32
  %q = arith.divf %m1, %d : f32
  %p1 = math.fma %q, %step, %p : f32
  zero.yield %p1, %m1, %v1 : f32, f32, f32
}

zero.step @train on @cluster normalize(accumulation : -1, dp : -1) (%lr: !zero.value<f64>) {
  %g:7 = zero.micro_batches in f32 {
    %d:7 = zero.backward(@embedding, @w0, @norm0, @w1, @norm1, @experts, @router) prescaled(accumulation : -1)
        : !zero.value<15x7xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<8x8xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<8xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<8x8xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<8xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<4x32xbf16, sharded = [ep], partial = [edp, micro], reduced = [ep], scaled = [dp : 1]>,
          !zero.value<4x8xbf16, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d#0, %d#1, %d#2, %d#3, %d#4, %d#5, %d#6
        : !zero.value<15x7xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<8x8xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<8xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<8x8xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<8xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<4x32xbf16, sharded = [ep], partial = [edp, micro], reduced = [ep], scaled = [dp : 1]>,
          !zero.value<4x8xbf16, partial = [dp, micro], scaled = [dp : 1]>
  }
  %r:7 = zero.reduce %g#0, %g#1, %g#2, %g#3, %g#4, %g#5, %g#6
      : !zero.value<15x7xf32, partial = [dp], scaled = [dp : 1]>,
        !zero.value<8x8xf32, partial = [dp], scaled = [dp : 1]>,
        !zero.value<8xf32, partial = [dp], scaled = [dp : 1]>,
        !zero.value<8x8xf32, partial = [dp], scaled = [dp : 1]>,
        !zero.value<8xf32, partial = [dp], scaled = [dp : 1]>,
        !zero.value<4x32xf32, sharded = [ep], partial = [edp], scaled = [dp : 1]>,
        !zero.value<4x8xf32, partial = [dp], scaled = [dp : 1]>
  %norm = zero.norm %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6
      : !zero.value<15x7xf32>, !zero.value<8x8xf32>, !zero.value<8xf32>,
        !zero.value<8x8xf32>, !zero.value<8xf32>,
        !zero.value<4x32xf32, sharded = [ep]>, !zero.value<4x8xf32>
  %c:7 = zero.clip %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6 by %norm max 1.0
      : !zero.value<15x7xf32>, !zero.value<8x8xf32>, !zero.value<8xf32>,
        !zero.value<8x8xf32>, !zero.value<8xf32>,
        !zero.value<4x32xf32, sharded = [ep]>, !zero.value<4x8xf32>
        by !zero.value<f64>
  zero.update @all with @adam(%c#0, %c#1, %c#2, %c#3, %c#4, %c#5, %c#6) hyper(lr = %lr)
      : (!zero.value<15x7xf32>, !zero.value<8x8xf32>, !zero.value<8xf32>,
         !zero.value<8x8xf32>, !zero.value<8xf32>,
         !zero.value<4x32xf32, sharded = [ep]>, !zero.value<4x8xf32>), (!zero.value<f64>)
  zero.return [norm] %norm : !zero.value<f64>
}
