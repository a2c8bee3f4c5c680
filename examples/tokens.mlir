// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step in which every token counts the same. Sequences have different lengths, so
// ranks and backward passes have different numbers of tokens: a mean of their means
// would give more weight to a token of a short sequence.
//
// The loss is a sum over tokens. Each rank counts its own over all backward passes of
// the step and passes the count to apply; tensor-parallel ranks see the same tokens and
// pass the same. The counts are added up in the all-reduce that the norm needs.
//
//   zero-prove examples/tokens.mlir --stage=2
//   zero-run examples/tokens.mlir --stage=1 --accumulation=1,3

zero.mesh @cluster <["dp" = 2, "tp" = 2]>

zero.parameter @bias : 40xbf16
zero.parameter @column : 6x16xbf16, sharded = [tp : 1]

zero.group @all [@bias, @column]

zero.optimizer @sgd hyper [lr, momentum = 0.875] state [momentum_buffer] {
^prepare(%lr: f64, %momentum: f64):
  %step = arith.negf %lr : f64
  zero.yield %step, %momentum : f64, f64
} update {
^update(%g: f32, %p: f32, %b: f32, %step: f32, %momentum: f32):
  %b1 = math.fma %b, %momentum, %g : f32
  %p1 = math.fma %b1, %step, %p : f32
  zero.yield %p1, %b1 : f32, f32
}

zero.step @train on @cluster normalize(tokens : -1) (%lr: !zero.value<f64>, %n: !zero.value<f64, partial = [dp]> {zero.tokens}) {
  %g:2 = zero.micro_batches in f32 {
    %d:2 = zero.backward(@bias, @column) prescaled() replicated [tp]
        : !zero.value<40xbf16, partial = [dp, micro], scaled = [tokens : 1]>, !zero.value<6x16xbf16, partial = [dp, micro], sharded = [tp : 1], scaled = [tokens : 1]>
    zero.yield %d#0, %d#1 : !zero.value<40xbf16, partial = [dp, micro], scaled = [tokens : 1]>, !zero.value<6x16xbf16, partial = [dp, micro], sharded = [tp : 1], scaled = [tokens : 1]>
  }
  %r:2 = zero.reduce %g#0, %g#1 : !zero.value<40xf32, partial = [dp], scaled = [tokens : 1]>, !zero.value<6x16xf32, partial = [dp], sharded = [tp : 1], scaled = [tokens : 1]>
  %norm = zero.norm %r#0, %r#1 : !zero.value<40xf32>, !zero.value<6x16xf32, sharded = [tp : 1]>
  %c:2 = zero.clip %r#0, %r#1 by %norm max 1.0 : !zero.value<40xf32>, !zero.value<6x16xf32, sharded = [tp : 1]> by !zero.value<f64>
  zero.update @all with @sgd(%c#0, %c#1) hyper(lr = %lr) : (!zero.value<40xf32>, !zero.value<6x16xf32, sharded = [tp : 1]>), (!zero.value<f64>)
  %tokens = zero.reduce %n : !zero.value<f64, partial = [dp]>
  zero.return [norm, tokens] %norm, %tokens : !zero.value<f64>, !zero.value<f64>
}
