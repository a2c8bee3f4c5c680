// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fine-tuning with LoRA: of W + B·A only the adapters A and B are trained. W and the
// embedding are frozen: their bytes stand in the plan, and nothing else knows them. A
// frozen parameter may as well be left out.

zero.mesh @cluster <["dp" = 2, "tp" = 2]>
zero.parameter @embedding : 512x64xbf16 frozen
zero.parameter @proj.weight : 64x64xbf16, sharded = [tp] frozen
zero.parameter @proj.lora_a : 8x64xf32
zero.parameter @proj.lora_b : 64x8xf32, sharded = [tp]
zero.group @adapters [@proj.lora_a, @proj.lora_b]

zero.optimizer @sgd hyper [lr] {
^prepare(%lr: f64):
  %step = arith.negf %lr : f64
  zero.yield %step : f64
} update {
^update(%g: f32, %p: f32, %step: f32):
  %p1 = math.fma %g, %step, %p : f32
  zero.yield %p1 : f32
}

zero.step @train on @cluster normalize(dp : -1) (%lr: !zero.value<f64>) {
  %g:2 = zero.micro_batches in f32 {
    %d:2 = zero.backward(@proj.lora_a, @proj.lora_b) prescaled()
        : !zero.value<8x64xf32, partial = [dp, micro, tp], scaled = [dp : 1]>,
          !zero.value<64x8xf32, partial = [dp, micro], sharded = [tp], scaled = [dp : 1]>
    zero.yield %d#0, %d#1
        : !zero.value<8x64xf32, partial = [dp, micro, tp], scaled = [dp : 1]>,
          !zero.value<64x8xf32, partial = [dp, micro], sharded = [tp], scaled = [dp : 1]>
  }
  %r:2 = zero.reduce %g#0, %g#1
      : !zero.value<8x64xf32, partial = [dp, tp], scaled = [dp : 1]>,
        !zero.value<64x8xf32, partial = [dp], sharded = [tp], scaled = [dp : 1]>
  %norm = zero.norm %r#0, %r#1 : !zero.value<8x64xf32>, !zero.value<64x8xf32, sharded = [tp]>
  zero.update @adapters with @sgd(%r#0, %r#1) hyper(lr = %lr)
      : (!zero.value<8x64xf32>, !zero.value<64x8xf32, sharded = [tp]>), (!zero.value<f64>)
  zero.return [norm] %norm : !zero.value<f64>
}
