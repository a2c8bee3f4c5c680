// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step on a mesh of three axes, with a parameter of each kind:
//
// - @bias, which all ranks have whole. Tensor-parallel ranks deliver the same
//   gradient of it (`replicated [tp]`); the norm counts it once.
// - @norm_weight, a layer norm under sequence parallelism: tensor-parallel ranks have
//   parts of its gradient, which add up (`partial = [..., tp]`).
// - @column, of which each tensor-parallel rank has columns.
// - @experts, split over ep. The all-to-all has summed over the batches of the
//   ranks of ep (`reduced`), so what is left to sum over is edp.
//
//   zero-prove examples/topology.mlir --mesh=edp=2:ep=4:tp=2 --stage=2
//   zero-run examples/topology.mlir --stage=1 --shard-over=edp

// Batches are spread over edp and ep together: the view dp is short for both.
zero.mesh @cluster <["edp" = 2, "ep" = 2, "tp" = 2]> flattened ["dp" = ["edp", "ep"]]

zero.parameter @bias : 40xbf16
zero.parameter @norm_weight : 24xbf16
zero.parameter @column : 6x16xbf16, sharded = [tp : 1]
zero.parameter @experts : 4x16xbf16, sharded = [ep, tp : 1]

zero.group @decay [@column, @experts]
zero.group @no_decay [@bias, @norm_weight]

zero.optimizer @adam hyper [lr, wd] counters [beta1_t = 1.0] state [m, v] {
^prepare(%lr: f64, %wd: f64, %b1t: f64):
  %one = arith.constant 1.0 : f64
  %beta1 = arith.constant 0.75 : f64
  %b1n = arith.mulf %b1t, %beta1 : f64
  %c1 = arith.subf %one, %b1n : f64
  %rate = arith.divf %lr, %c1 : f64
  %step = arith.negf %rate : f64
  %lrwd = arith.mulf %lr, %wd : f64
  %keep = arith.subf %one, %lrwd : f64
  zero.yield %b1n, %step, %keep : f64, f64, f64
} update {
^update(%g: f32, %p: f32, %m: f32, %v: f32, %step: f32, %keep: f32):
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
  %p0 = arith.mulf %p, %keep : f32
  %p1 = math.fma %q, %step, %p0 : f32
  zero.yield %p1, %m1, %v1 : f32, f32, f32
}

zero.step @train on @cluster normalize(accumulation : -1, dp : -1) (%lr: !zero.value<f64>) {
  %g:4 = zero.micro_batches in f32 {
    %d:4 = zero.backward(@bias, @norm_weight, @column, @experts) prescaled(accumulation : -1) replicated [tp]
        : !zero.value<40xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<24xbf16, partial = [dp, micro, tp], scaled = [dp : 1]>,
          !zero.value<6x16xbf16, sharded = [tp : 1], partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<4x16xbf16, sharded = [ep, tp : 1], partial = [edp, micro], reduced = [ep], scaled = [dp : 1]>
    zero.yield %d#0, %d#1, %d#2, %d#3
        : !zero.value<40xbf16, partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<24xbf16, partial = [dp, micro, tp], scaled = [dp : 1]>,
          !zero.value<6x16xbf16, sharded = [tp : 1], partial = [dp, micro], scaled = [dp : 1]>,
          !zero.value<4x16xbf16, sharded = [ep, tp : 1], partial = [edp, micro], reduced = [ep], scaled = [dp : 1]>
  }
  %r:4 = zero.reduce %g#0, %g#1, %g#2, %g#3
        : !zero.value<40xf32, partial = [dp], scaled = [dp : 1]>,
          !zero.value<24xf32, partial = [dp, tp], scaled = [dp : 1]>,
          !zero.value<6x16xf32, sharded = [tp : 1], partial = [dp], scaled = [dp : 1]>,
          !zero.value<4x16xf32, sharded = [ep, tp : 1], partial = [edp], scaled = [dp : 1]>
  %norm = zero.norm %r#0, %r#1, %r#2, %r#3
        : !zero.value<40xf32>,
          !zero.value<24xf32>,
          !zero.value<6x16xf32, sharded = [tp : 1]>,
          !zero.value<4x16xf32, sharded = [ep, tp : 1]>
  %c:4 = zero.clip %r#0, %r#1, %r#2, %r#3 by %norm max 1.0
        : !zero.value<40xf32>,
          !zero.value<24xf32>,
          !zero.value<6x16xf32, sharded = [tp : 1]>,
          !zero.value<4x16xf32, sharded = [ep, tp : 1]>
          by !zero.value<f64>
  zero.update @decay with @adam(%c#2, %c#3) hyper(lr = %lr, wd = 0.125)
      : (!zero.value<6x16xf32, sharded = [tp : 1]>, !zero.value<4x16xf32, sharded = [ep, tp : 1]>), (!zero.value<f64>)
  zero.update @no_decay with @adam(%c#0, %c#1) hyper(lr = %lr, wd = 0.0)
      : (!zero.value<40xf32>, !zero.value<24xf32>), (!zero.value<f64>)
  zero.return [norm] %norm : !zero.value<f64>
}
