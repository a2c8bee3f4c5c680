// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The step of GPT-2: 148 of 148 parameters, 124439808 elements. Data-parallel
// ranks, AdamW with weight decay on matrices only, all gradients clipped to a norm of 1,
// the mean over backward passes and ranks. Written by examples/gpt2.py; docs/tutorial.md
// explains each part.
//
// The output projection is tied to @wte.weight: autograd delivers one gradient.

zero.mesh @cluster <["dp" = 4]>

zero.parameter @wte.weight : 50257x768xbf16
zero.parameter @wpe.weight : 1024x768xbf16
zero.parameter @h.0.ln_1.weight : 768xbf16
zero.parameter @h.0.ln_1.bias : 768xbf16
zero.parameter @h.0.attn.c_attn.weight : 768x2304xbf16
zero.parameter @h.0.attn.c_attn.bias : 2304xbf16
zero.parameter @h.0.attn.c_proj.weight : 768x768xbf16
zero.parameter @h.0.attn.c_proj.bias : 768xbf16
zero.parameter @h.0.ln_2.weight : 768xbf16
zero.parameter @h.0.ln_2.bias : 768xbf16
zero.parameter @h.0.mlp.c_fc.weight : 768x3072xbf16
zero.parameter @h.0.mlp.c_fc.bias : 3072xbf16
zero.parameter @h.0.mlp.c_proj.weight : 3072x768xbf16
zero.parameter @h.0.mlp.c_proj.bias : 768xbf16
zero.parameter @h.1.ln_1.weight : 768xbf16
zero.parameter @h.1.ln_1.bias : 768xbf16
zero.parameter @h.1.attn.c_attn.weight : 768x2304xbf16
zero.parameter @h.1.attn.c_attn.bias : 2304xbf16
zero.parameter @h.1.attn.c_proj.weight : 768x768xbf16
zero.parameter @h.1.attn.c_proj.bias : 768xbf16
zero.parameter @h.1.ln_2.weight : 768xbf16
zero.parameter @h.1.ln_2.bias : 768xbf16
zero.parameter @h.1.mlp.c_fc.weight : 768x3072xbf16
zero.parameter @h.1.mlp.c_fc.bias : 3072xbf16
zero.parameter @h.1.mlp.c_proj.weight : 3072x768xbf16
zero.parameter @h.1.mlp.c_proj.bias : 768xbf16
zero.parameter @h.2.ln_1.weight : 768xbf16
zero.parameter @h.2.ln_1.bias : 768xbf16
zero.parameter @h.2.attn.c_attn.weight : 768x2304xbf16
zero.parameter @h.2.attn.c_attn.bias : 2304xbf16
zero.parameter @h.2.attn.c_proj.weight : 768x768xbf16
zero.parameter @h.2.attn.c_proj.bias : 768xbf16
zero.parameter @h.2.ln_2.weight : 768xbf16
zero.parameter @h.2.ln_2.bias : 768xbf16
zero.parameter @h.2.mlp.c_fc.weight : 768x3072xbf16
zero.parameter @h.2.mlp.c_fc.bias : 3072xbf16
zero.parameter @h.2.mlp.c_proj.weight : 3072x768xbf16
zero.parameter @h.2.mlp.c_proj.bias : 768xbf16
zero.parameter @h.3.ln_1.weight : 768xbf16
zero.parameter @h.3.ln_1.bias : 768xbf16
zero.parameter @h.3.attn.c_attn.weight : 768x2304xbf16
zero.parameter @h.3.attn.c_attn.bias : 2304xbf16
zero.parameter @h.3.attn.c_proj.weight : 768x768xbf16
zero.parameter @h.3.attn.c_proj.bias : 768xbf16
zero.parameter @h.3.ln_2.weight : 768xbf16
zero.parameter @h.3.ln_2.bias : 768xbf16
zero.parameter @h.3.mlp.c_fc.weight : 768x3072xbf16
zero.parameter @h.3.mlp.c_fc.bias : 3072xbf16
zero.parameter @h.3.mlp.c_proj.weight : 3072x768xbf16
zero.parameter @h.3.mlp.c_proj.bias : 768xbf16
zero.parameter @h.4.ln_1.weight : 768xbf16
zero.parameter @h.4.ln_1.bias : 768xbf16
zero.parameter @h.4.attn.c_attn.weight : 768x2304xbf16
zero.parameter @h.4.attn.c_attn.bias : 2304xbf16
zero.parameter @h.4.attn.c_proj.weight : 768x768xbf16
zero.parameter @h.4.attn.c_proj.bias : 768xbf16
zero.parameter @h.4.ln_2.weight : 768xbf16
zero.parameter @h.4.ln_2.bias : 768xbf16
zero.parameter @h.4.mlp.c_fc.weight : 768x3072xbf16
zero.parameter @h.4.mlp.c_fc.bias : 3072xbf16
zero.parameter @h.4.mlp.c_proj.weight : 3072x768xbf16
zero.parameter @h.4.mlp.c_proj.bias : 768xbf16
zero.parameter @h.5.ln_1.weight : 768xbf16
zero.parameter @h.5.ln_1.bias : 768xbf16
zero.parameter @h.5.attn.c_attn.weight : 768x2304xbf16
zero.parameter @h.5.attn.c_attn.bias : 2304xbf16
zero.parameter @h.5.attn.c_proj.weight : 768x768xbf16
zero.parameter @h.5.attn.c_proj.bias : 768xbf16
zero.parameter @h.5.ln_2.weight : 768xbf16
zero.parameter @h.5.ln_2.bias : 768xbf16
zero.parameter @h.5.mlp.c_fc.weight : 768x3072xbf16
zero.parameter @h.5.mlp.c_fc.bias : 3072xbf16
zero.parameter @h.5.mlp.c_proj.weight : 3072x768xbf16
zero.parameter @h.5.mlp.c_proj.bias : 768xbf16
zero.parameter @h.6.ln_1.weight : 768xbf16
zero.parameter @h.6.ln_1.bias : 768xbf16
zero.parameter @h.6.attn.c_attn.weight : 768x2304xbf16
zero.parameter @h.6.attn.c_attn.bias : 2304xbf16
zero.parameter @h.6.attn.c_proj.weight : 768x768xbf16
zero.parameter @h.6.attn.c_proj.bias : 768xbf16
zero.parameter @h.6.ln_2.weight : 768xbf16
zero.parameter @h.6.ln_2.bias : 768xbf16
zero.parameter @h.6.mlp.c_fc.weight : 768x3072xbf16
zero.parameter @h.6.mlp.c_fc.bias : 3072xbf16
zero.parameter @h.6.mlp.c_proj.weight : 3072x768xbf16
zero.parameter @h.6.mlp.c_proj.bias : 768xbf16
zero.parameter @h.7.ln_1.weight : 768xbf16
zero.parameter @h.7.ln_1.bias : 768xbf16
zero.parameter @h.7.attn.c_attn.weight : 768x2304xbf16
zero.parameter @h.7.attn.c_attn.bias : 2304xbf16
zero.parameter @h.7.attn.c_proj.weight : 768x768xbf16
zero.parameter @h.7.attn.c_proj.bias : 768xbf16
zero.parameter @h.7.ln_2.weight : 768xbf16
zero.parameter @h.7.ln_2.bias : 768xbf16
zero.parameter @h.7.mlp.c_fc.weight : 768x3072xbf16
zero.parameter @h.7.mlp.c_fc.bias : 3072xbf16
zero.parameter @h.7.mlp.c_proj.weight : 3072x768xbf16
zero.parameter @h.7.mlp.c_proj.bias : 768xbf16
zero.parameter @h.8.ln_1.weight : 768xbf16
zero.parameter @h.8.ln_1.bias : 768xbf16
zero.parameter @h.8.attn.c_attn.weight : 768x2304xbf16
zero.parameter @h.8.attn.c_attn.bias : 2304xbf16
zero.parameter @h.8.attn.c_proj.weight : 768x768xbf16
zero.parameter @h.8.attn.c_proj.bias : 768xbf16
zero.parameter @h.8.ln_2.weight : 768xbf16
zero.parameter @h.8.ln_2.bias : 768xbf16
zero.parameter @h.8.mlp.c_fc.weight : 768x3072xbf16
zero.parameter @h.8.mlp.c_fc.bias : 3072xbf16
zero.parameter @h.8.mlp.c_proj.weight : 3072x768xbf16
zero.parameter @h.8.mlp.c_proj.bias : 768xbf16
zero.parameter @h.9.ln_1.weight : 768xbf16
zero.parameter @h.9.ln_1.bias : 768xbf16
zero.parameter @h.9.attn.c_attn.weight : 768x2304xbf16
zero.parameter @h.9.attn.c_attn.bias : 2304xbf16
zero.parameter @h.9.attn.c_proj.weight : 768x768xbf16
zero.parameter @h.9.attn.c_proj.bias : 768xbf16
zero.parameter @h.9.ln_2.weight : 768xbf16
zero.parameter @h.9.ln_2.bias : 768xbf16
zero.parameter @h.9.mlp.c_fc.weight : 768x3072xbf16
zero.parameter @h.9.mlp.c_fc.bias : 3072xbf16
zero.parameter @h.9.mlp.c_proj.weight : 3072x768xbf16
zero.parameter @h.9.mlp.c_proj.bias : 768xbf16
zero.parameter @h.10.ln_1.weight : 768xbf16
zero.parameter @h.10.ln_1.bias : 768xbf16
zero.parameter @h.10.attn.c_attn.weight : 768x2304xbf16
zero.parameter @h.10.attn.c_attn.bias : 2304xbf16
zero.parameter @h.10.attn.c_proj.weight : 768x768xbf16
zero.parameter @h.10.attn.c_proj.bias : 768xbf16
zero.parameter @h.10.ln_2.weight : 768xbf16
zero.parameter @h.10.ln_2.bias : 768xbf16
zero.parameter @h.10.mlp.c_fc.weight : 768x3072xbf16
zero.parameter @h.10.mlp.c_fc.bias : 3072xbf16
zero.parameter @h.10.mlp.c_proj.weight : 3072x768xbf16
zero.parameter @h.10.mlp.c_proj.bias : 768xbf16
zero.parameter @h.11.ln_1.weight : 768xbf16
zero.parameter @h.11.ln_1.bias : 768xbf16
zero.parameter @h.11.attn.c_attn.weight : 768x2304xbf16
zero.parameter @h.11.attn.c_attn.bias : 2304xbf16
zero.parameter @h.11.attn.c_proj.weight : 768x768xbf16
zero.parameter @h.11.attn.c_proj.bias : 768xbf16
zero.parameter @h.11.ln_2.weight : 768xbf16
zero.parameter @h.11.ln_2.bias : 768xbf16
zero.parameter @h.11.mlp.c_fc.weight : 768x3072xbf16
zero.parameter @h.11.mlp.c_fc.bias : 3072xbf16
zero.parameter @h.11.mlp.c_proj.weight : 3072x768xbf16
zero.parameter @h.11.mlp.c_proj.bias : 768xbf16
zero.parameter @ln_f.weight : 768xbf16
zero.parameter @ln_f.bias : 768xbf16

zero.group @decay [
  @wte.weight, @wpe.weight, @h.0.attn.c_attn.weight, @h.0.attn.c_proj.weight, @h.0.mlp.c_fc.weight, @h.0.mlp.c_proj.weight,
  @h.1.attn.c_attn.weight, @h.1.attn.c_proj.weight, @h.1.mlp.c_fc.weight, @h.1.mlp.c_proj.weight, @h.2.attn.c_attn.weight, @h.2.attn.c_proj.weight,
  @h.2.mlp.c_fc.weight, @h.2.mlp.c_proj.weight, @h.3.attn.c_attn.weight, @h.3.attn.c_proj.weight, @h.3.mlp.c_fc.weight, @h.3.mlp.c_proj.weight,
  @h.4.attn.c_attn.weight, @h.4.attn.c_proj.weight, @h.4.mlp.c_fc.weight, @h.4.mlp.c_proj.weight, @h.5.attn.c_attn.weight, @h.5.attn.c_proj.weight,
  @h.5.mlp.c_fc.weight, @h.5.mlp.c_proj.weight, @h.6.attn.c_attn.weight, @h.6.attn.c_proj.weight, @h.6.mlp.c_fc.weight, @h.6.mlp.c_proj.weight,
  @h.7.attn.c_attn.weight, @h.7.attn.c_proj.weight, @h.7.mlp.c_fc.weight, @h.7.mlp.c_proj.weight, @h.8.attn.c_attn.weight, @h.8.attn.c_proj.weight,
  @h.8.mlp.c_fc.weight, @h.8.mlp.c_proj.weight, @h.9.attn.c_attn.weight, @h.9.attn.c_proj.weight, @h.9.mlp.c_fc.weight, @h.9.mlp.c_proj.weight,
  @h.10.attn.c_attn.weight, @h.10.attn.c_proj.weight, @h.10.mlp.c_fc.weight, @h.10.mlp.c_proj.weight, @h.11.attn.c_attn.weight, @h.11.attn.c_proj.weight,
  @h.11.mlp.c_fc.weight, @h.11.mlp.c_proj.weight]
zero.group @no_decay [
  @h.0.ln_1.weight, @h.0.ln_1.bias, @h.0.attn.c_attn.bias, @h.0.attn.c_proj.bias, @h.0.ln_2.weight, @h.0.ln_2.bias,
  @h.0.mlp.c_fc.bias, @h.0.mlp.c_proj.bias, @h.1.ln_1.weight, @h.1.ln_1.bias, @h.1.attn.c_attn.bias, @h.1.attn.c_proj.bias,
  @h.1.ln_2.weight, @h.1.ln_2.bias, @h.1.mlp.c_fc.bias, @h.1.mlp.c_proj.bias, @h.2.ln_1.weight, @h.2.ln_1.bias,
  @h.2.attn.c_attn.bias, @h.2.attn.c_proj.bias, @h.2.ln_2.weight, @h.2.ln_2.bias, @h.2.mlp.c_fc.bias, @h.2.mlp.c_proj.bias,
  @h.3.ln_1.weight, @h.3.ln_1.bias, @h.3.attn.c_attn.bias, @h.3.attn.c_proj.bias, @h.3.ln_2.weight, @h.3.ln_2.bias,
  @h.3.mlp.c_fc.bias, @h.3.mlp.c_proj.bias, @h.4.ln_1.weight, @h.4.ln_1.bias, @h.4.attn.c_attn.bias, @h.4.attn.c_proj.bias,
  @h.4.ln_2.weight, @h.4.ln_2.bias, @h.4.mlp.c_fc.bias, @h.4.mlp.c_proj.bias, @h.5.ln_1.weight, @h.5.ln_1.bias,
  @h.5.attn.c_attn.bias, @h.5.attn.c_proj.bias, @h.5.ln_2.weight, @h.5.ln_2.bias, @h.5.mlp.c_fc.bias, @h.5.mlp.c_proj.bias,
  @h.6.ln_1.weight, @h.6.ln_1.bias, @h.6.attn.c_attn.bias, @h.6.attn.c_proj.bias, @h.6.ln_2.weight, @h.6.ln_2.bias,
  @h.6.mlp.c_fc.bias, @h.6.mlp.c_proj.bias, @h.7.ln_1.weight, @h.7.ln_1.bias, @h.7.attn.c_attn.bias, @h.7.attn.c_proj.bias,
  @h.7.ln_2.weight, @h.7.ln_2.bias, @h.7.mlp.c_fc.bias, @h.7.mlp.c_proj.bias, @h.8.ln_1.weight, @h.8.ln_1.bias,
  @h.8.attn.c_attn.bias, @h.8.attn.c_proj.bias, @h.8.ln_2.weight, @h.8.ln_2.bias, @h.8.mlp.c_fc.bias, @h.8.mlp.c_proj.bias,
  @h.9.ln_1.weight, @h.9.ln_1.bias, @h.9.attn.c_attn.bias, @h.9.attn.c_proj.bias, @h.9.ln_2.weight, @h.9.ln_2.bias,
  @h.9.mlp.c_fc.bias, @h.9.mlp.c_proj.bias, @h.10.ln_1.weight, @h.10.ln_1.bias, @h.10.attn.c_attn.bias, @h.10.attn.c_proj.bias,
  @h.10.ln_2.weight, @h.10.ln_2.bias, @h.10.mlp.c_fc.bias, @h.10.mlp.c_proj.bias, @h.11.ln_1.weight, @h.11.ln_1.bias,
  @h.11.attn.c_attn.bias, @h.11.attn.c_proj.bias, @h.11.ln_2.weight, @h.11.ln_2.bias, @h.11.mlp.c_fc.bias, @h.11.mlp.c_proj.bias,
  @ln_f.weight, @ln_f.bias]

// AdamW as PyTorch defines it. `counters` are the running products of the betas
// and advance on applied steps only.
zero.optimizer @adamw hyper [lr, wd, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8] counters [beta1_t = 1.0, beta2_t = 1.0] state [m, v] {
^prepare(%lr: f64, %wd: f64, %beta1: f64, %beta2: f64, %eps: f64, %b1t: f64, %b2t: f64):
  %one = arith.constant 1.0 : f64
  %b1n = arith.mulf %b1t, %beta1 : f64
  %b2n = arith.mulf %b2t, %beta2 : f64
  %c1 = arith.subf %one, %b1n : f64
  %c2 = arith.subf %one, %b2n : f64
  %root = math.sqrt %c2 : f64
  %inv_root = arith.divf %one, %root : f64
  %rate = arith.divf %lr, %c1 : f64
  %step = arith.negf %rate : f64
  %lrwd = arith.mulf %lr, %wd : f64
  %keep = arith.subf %one, %lrwd : f64
  %ob1 = arith.subf %one, %beta1 : f64
  %ob2 = arith.subf %one, %beta2 : f64
  zero.yield %b1n, %b2n, %keep, %step, %beta1, %ob1, %beta2, %ob2, %inv_root, %eps : f64, f64, f64, f64, f64, f64, f64, f64, f64, f64
} update {
^update(%g: f32, %p: f32, %m: f32, %v: f32, %keep: f32, %step: f32, %beta1: f32, %ob1: f32, %beta2: f32, %ob2: f32, %inv_root: f32, %eps: f32):
  %m0 = arith.mulf %m, %beta1 : f32
  %m1 = math.fma %g, %ob1, %m0 : f32
  %g2 = arith.mulf %g, %g : f32
  %v0 = arith.mulf %v, %beta2 : f32
  %v1 = math.fma %g2, %ob2, %v0 : f32
  %r = math.sqrt %v1 : f32
  %d = math.fma %r, %inv_root, %eps : f32
  %q = arith.divf %m1, %d : f32
  %p0 = arith.mulf %p, %keep : f32
  %p1 = math.fma %q, %step, %p0 : f32
  zero.yield %p1, %m1, %v1 : f32, f32, f32
}

// !d: a gradient as a backward pass delivers it, an addend over ranks and
// micro-batches, still to be divided by the number of ranks. !s: the sum over
// the backward passes, in f32. !g: the sum over the ranks, divided.
!d50257x768 = !zero.value<50257x768xbf16, partial = [dp, micro], scaled = [dp : 1]>
!d1024x768 = !zero.value<1024x768xbf16, partial = [dp, micro], scaled = [dp : 1]>
!d768 = !zero.value<768xbf16, partial = [dp, micro], scaled = [dp : 1]>
!d768x2304 = !zero.value<768x2304xbf16, partial = [dp, micro], scaled = [dp : 1]>
!d2304 = !zero.value<2304xbf16, partial = [dp, micro], scaled = [dp : 1]>
!d768x768 = !zero.value<768x768xbf16, partial = [dp, micro], scaled = [dp : 1]>
!d768x3072 = !zero.value<768x3072xbf16, partial = [dp, micro], scaled = [dp : 1]>
!d3072 = !zero.value<3072xbf16, partial = [dp, micro], scaled = [dp : 1]>
!d3072x768 = !zero.value<3072x768xbf16, partial = [dp, micro], scaled = [dp : 1]>
!s50257x768 = !zero.value<50257x768xf32, partial = [dp], scaled = [dp : 1]>
!s1024x768 = !zero.value<1024x768xf32, partial = [dp], scaled = [dp : 1]>
!s768 = !zero.value<768xf32, partial = [dp], scaled = [dp : 1]>
!s768x2304 = !zero.value<768x2304xf32, partial = [dp], scaled = [dp : 1]>
!s2304 = !zero.value<2304xf32, partial = [dp], scaled = [dp : 1]>
!s768x768 = !zero.value<768x768xf32, partial = [dp], scaled = [dp : 1]>
!s768x3072 = !zero.value<768x3072xf32, partial = [dp], scaled = [dp : 1]>
!s3072 = !zero.value<3072xf32, partial = [dp], scaled = [dp : 1]>
!s3072x768 = !zero.value<3072x768xf32, partial = [dp], scaled = [dp : 1]>
!g50257x768 = !zero.value<50257x768xf32>
!g1024x768 = !zero.value<1024x768xf32>
!g768 = !zero.value<768xf32>
!g768x2304 = !zero.value<768x2304xf32>
!g2304 = !zero.value<2304xf32>
!g768x768 = !zero.value<768x768xf32>
!g768x3072 = !zero.value<768x3072xf32>
!g3072 = !zero.value<3072xf32>
!g3072x768 = !zero.value<3072x768xf32>

zero.step @train on @cluster normalize(accumulation : -1, dp : -1) (%lr: !zero.value<f64>) {
  // Once per backward pass. The caller has divided its loss by the number of backward
  // passes.
  %s:148 = zero.micro_batches in f32 {
    %d:148 = zero.backward(
        @wte.weight, @wpe.weight, @h.0.ln_1.weight, @h.0.ln_1.bias, @h.0.attn.c_attn.weight, @h.0.attn.c_attn.bias,
        @h.0.attn.c_proj.weight, @h.0.attn.c_proj.bias, @h.0.ln_2.weight, @h.0.ln_2.bias, @h.0.mlp.c_fc.weight, @h.0.mlp.c_fc.bias,
        @h.0.mlp.c_proj.weight, @h.0.mlp.c_proj.bias, @h.1.ln_1.weight, @h.1.ln_1.bias, @h.1.attn.c_attn.weight, @h.1.attn.c_attn.bias,
        @h.1.attn.c_proj.weight, @h.1.attn.c_proj.bias, @h.1.ln_2.weight, @h.1.ln_2.bias, @h.1.mlp.c_fc.weight, @h.1.mlp.c_fc.bias,
        @h.1.mlp.c_proj.weight, @h.1.mlp.c_proj.bias, @h.2.ln_1.weight, @h.2.ln_1.bias, @h.2.attn.c_attn.weight, @h.2.attn.c_attn.bias,
        @h.2.attn.c_proj.weight, @h.2.attn.c_proj.bias, @h.2.ln_2.weight, @h.2.ln_2.bias, @h.2.mlp.c_fc.weight, @h.2.mlp.c_fc.bias,
        @h.2.mlp.c_proj.weight, @h.2.mlp.c_proj.bias, @h.3.ln_1.weight, @h.3.ln_1.bias, @h.3.attn.c_attn.weight, @h.3.attn.c_attn.bias,
        @h.3.attn.c_proj.weight, @h.3.attn.c_proj.bias, @h.3.ln_2.weight, @h.3.ln_2.bias, @h.3.mlp.c_fc.weight, @h.3.mlp.c_fc.bias,
        @h.3.mlp.c_proj.weight, @h.3.mlp.c_proj.bias, @h.4.ln_1.weight, @h.4.ln_1.bias, @h.4.attn.c_attn.weight, @h.4.attn.c_attn.bias,
        @h.4.attn.c_proj.weight, @h.4.attn.c_proj.bias, @h.4.ln_2.weight, @h.4.ln_2.bias, @h.4.mlp.c_fc.weight, @h.4.mlp.c_fc.bias,
        @h.4.mlp.c_proj.weight, @h.4.mlp.c_proj.bias, @h.5.ln_1.weight, @h.5.ln_1.bias, @h.5.attn.c_attn.weight, @h.5.attn.c_attn.bias,
        @h.5.attn.c_proj.weight, @h.5.attn.c_proj.bias, @h.5.ln_2.weight, @h.5.ln_2.bias, @h.5.mlp.c_fc.weight, @h.5.mlp.c_fc.bias,
        @h.5.mlp.c_proj.weight, @h.5.mlp.c_proj.bias, @h.6.ln_1.weight, @h.6.ln_1.bias, @h.6.attn.c_attn.weight, @h.6.attn.c_attn.bias,
        @h.6.attn.c_proj.weight, @h.6.attn.c_proj.bias, @h.6.ln_2.weight, @h.6.ln_2.bias, @h.6.mlp.c_fc.weight, @h.6.mlp.c_fc.bias,
        @h.6.mlp.c_proj.weight, @h.6.mlp.c_proj.bias, @h.7.ln_1.weight, @h.7.ln_1.bias, @h.7.attn.c_attn.weight, @h.7.attn.c_attn.bias,
        @h.7.attn.c_proj.weight, @h.7.attn.c_proj.bias, @h.7.ln_2.weight, @h.7.ln_2.bias, @h.7.mlp.c_fc.weight, @h.7.mlp.c_fc.bias,
        @h.7.mlp.c_proj.weight, @h.7.mlp.c_proj.bias, @h.8.ln_1.weight, @h.8.ln_1.bias, @h.8.attn.c_attn.weight, @h.8.attn.c_attn.bias,
        @h.8.attn.c_proj.weight, @h.8.attn.c_proj.bias, @h.8.ln_2.weight, @h.8.ln_2.bias, @h.8.mlp.c_fc.weight, @h.8.mlp.c_fc.bias,
        @h.8.mlp.c_proj.weight, @h.8.mlp.c_proj.bias, @h.9.ln_1.weight, @h.9.ln_1.bias, @h.9.attn.c_attn.weight, @h.9.attn.c_attn.bias,
        @h.9.attn.c_proj.weight, @h.9.attn.c_proj.bias, @h.9.ln_2.weight, @h.9.ln_2.bias, @h.9.mlp.c_fc.weight, @h.9.mlp.c_fc.bias,
        @h.9.mlp.c_proj.weight, @h.9.mlp.c_proj.bias, @h.10.ln_1.weight, @h.10.ln_1.bias, @h.10.attn.c_attn.weight, @h.10.attn.c_attn.bias,
        @h.10.attn.c_proj.weight, @h.10.attn.c_proj.bias, @h.10.ln_2.weight, @h.10.ln_2.bias, @h.10.mlp.c_fc.weight, @h.10.mlp.c_fc.bias,
        @h.10.mlp.c_proj.weight, @h.10.mlp.c_proj.bias, @h.11.ln_1.weight, @h.11.ln_1.bias, @h.11.attn.c_attn.weight, @h.11.attn.c_attn.bias,
        @h.11.attn.c_proj.weight, @h.11.attn.c_proj.bias, @h.11.ln_2.weight, @h.11.ln_2.bias, @h.11.mlp.c_fc.weight, @h.11.mlp.c_fc.bias,
        @h.11.mlp.c_proj.weight, @h.11.mlp.c_proj.bias, @ln_f.weight, @ln_f.bias)
        prescaled(accumulation : -1)
      : !d50257x768, !d1024x768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768
    zero.yield
        %d#0, %d#1, %d#2, %d#3, %d#4, %d#5,
        %d#6, %d#7, %d#8, %d#9, %d#10, %d#11,
        %d#12, %d#13, %d#14, %d#15, %d#16, %d#17,
        %d#18, %d#19, %d#20, %d#21, %d#22, %d#23,
        %d#24, %d#25, %d#26, %d#27, %d#28, %d#29,
        %d#30, %d#31, %d#32, %d#33, %d#34, %d#35,
        %d#36, %d#37, %d#38, %d#39, %d#40, %d#41,
        %d#42, %d#43, %d#44, %d#45, %d#46, %d#47,
        %d#48, %d#49, %d#50, %d#51, %d#52, %d#53,
        %d#54, %d#55, %d#56, %d#57, %d#58, %d#59,
        %d#60, %d#61, %d#62, %d#63, %d#64, %d#65,
        %d#66, %d#67, %d#68, %d#69, %d#70, %d#71,
        %d#72, %d#73, %d#74, %d#75, %d#76, %d#77,
        %d#78, %d#79, %d#80, %d#81, %d#82, %d#83,
        %d#84, %d#85, %d#86, %d#87, %d#88, %d#89,
        %d#90, %d#91, %d#92, %d#93, %d#94, %d#95,
        %d#96, %d#97, %d#98, %d#99, %d#100, %d#101,
        %d#102, %d#103, %d#104, %d#105, %d#106, %d#107,
        %d#108, %d#109, %d#110, %d#111, %d#112, %d#113,
        %d#114, %d#115, %d#116, %d#117, %d#118, %d#119,
        %d#120, %d#121, %d#122, %d#123, %d#124, %d#125,
        %d#126, %d#127, %d#128, %d#129, %d#130, %d#131,
        %d#132, %d#133, %d#134, %d#135, %d#136, %d#137,
        %d#138, %d#139, %d#140, %d#141, %d#142, %d#143,
        %d#144, %d#145, %d#146, %d#147
      : !d50257x768, !d1024x768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768, !d768x2304, !d2304,
        !d768x768, !d768, !d768, !d768, !d768x3072, !d3072,
        !d3072x768, !d768, !d768, !d768
  }
  %g:148 = zero.reduce
      %s#0, %s#1, %s#2, %s#3, %s#4, %s#5,
      %s#6, %s#7, %s#8, %s#9, %s#10, %s#11,
      %s#12, %s#13, %s#14, %s#15, %s#16, %s#17,
      %s#18, %s#19, %s#20, %s#21, %s#22, %s#23,
      %s#24, %s#25, %s#26, %s#27, %s#28, %s#29,
      %s#30, %s#31, %s#32, %s#33, %s#34, %s#35,
      %s#36, %s#37, %s#38, %s#39, %s#40, %s#41,
      %s#42, %s#43, %s#44, %s#45, %s#46, %s#47,
      %s#48, %s#49, %s#50, %s#51, %s#52, %s#53,
      %s#54, %s#55, %s#56, %s#57, %s#58, %s#59,
      %s#60, %s#61, %s#62, %s#63, %s#64, %s#65,
      %s#66, %s#67, %s#68, %s#69, %s#70, %s#71,
      %s#72, %s#73, %s#74, %s#75, %s#76, %s#77,
      %s#78, %s#79, %s#80, %s#81, %s#82, %s#83,
      %s#84, %s#85, %s#86, %s#87, %s#88, %s#89,
      %s#90, %s#91, %s#92, %s#93, %s#94, %s#95,
      %s#96, %s#97, %s#98, %s#99, %s#100, %s#101,
      %s#102, %s#103, %s#104, %s#105, %s#106, %s#107,
      %s#108, %s#109, %s#110, %s#111, %s#112, %s#113,
      %s#114, %s#115, %s#116, %s#117, %s#118, %s#119,
      %s#120, %s#121, %s#122, %s#123, %s#124, %s#125,
      %s#126, %s#127, %s#128, %s#129, %s#130, %s#131,
      %s#132, %s#133, %s#134, %s#135, %s#136, %s#137,
      %s#138, %s#139, %s#140, %s#141, %s#142, %s#143,
      %s#144, %s#145, %s#146, %s#147
    : !s50257x768, !s1024x768, !s768, !s768, !s768x2304, !s2304,
      !s768x768, !s768, !s768, !s768, !s768x3072, !s3072,
      !s3072x768, !s768, !s768, !s768, !s768x2304, !s2304,
      !s768x768, !s768, !s768, !s768, !s768x3072, !s3072,
      !s3072x768, !s768, !s768, !s768, !s768x2304, !s2304,
      !s768x768, !s768, !s768, !s768, !s768x3072, !s3072,
      !s3072x768, !s768, !s768, !s768, !s768x2304, !s2304,
      !s768x768, !s768, !s768, !s768, !s768x3072, !s3072,
      !s3072x768, !s768, !s768, !s768, !s768x2304, !s2304,
      !s768x768, !s768, !s768, !s768, !s768x3072, !s3072,
      !s3072x768, !s768, !s768, !s768, !s768x2304, !s2304,
      !s768x768, !s768, !s768, !s768, !s768x3072, !s3072,
      !s3072x768, !s768, !s768, !s768, !s768x2304, !s2304,
      !s768x768, !s768, !s768, !s768, !s768x3072, !s3072,
      !s3072x768, !s768, !s768, !s768, !s768x2304, !s2304,
      !s768x768, !s768, !s768, !s768, !s768x3072, !s3072,
      !s3072x768, !s768, !s768, !s768, !s768x2304, !s2304,
      !s768x768, !s768, !s768, !s768, !s768x3072, !s3072,
      !s3072x768, !s768, !s768, !s768, !s768x2304, !s2304,
      !s768x768, !s768, !s768, !s768, !s768x3072, !s3072,
      !s3072x768, !s768, !s768, !s768, !s768x2304, !s2304,
      !s768x768, !s768, !s768, !s768, !s768x3072, !s3072,
      !s3072x768, !s768, !s768, !s768, !s768x2304, !s2304,
      !s768x768, !s768, !s768, !s768, !s768x3072, !s3072,
      !s3072x768, !s768, !s768, !s768
  %norm = zero.norm
      %g#0, %g#1, %g#2, %g#3, %g#4, %g#5,
      %g#6, %g#7, %g#8, %g#9, %g#10, %g#11,
      %g#12, %g#13, %g#14, %g#15, %g#16, %g#17,
      %g#18, %g#19, %g#20, %g#21, %g#22, %g#23,
      %g#24, %g#25, %g#26, %g#27, %g#28, %g#29,
      %g#30, %g#31, %g#32, %g#33, %g#34, %g#35,
      %g#36, %g#37, %g#38, %g#39, %g#40, %g#41,
      %g#42, %g#43, %g#44, %g#45, %g#46, %g#47,
      %g#48, %g#49, %g#50, %g#51, %g#52, %g#53,
      %g#54, %g#55, %g#56, %g#57, %g#58, %g#59,
      %g#60, %g#61, %g#62, %g#63, %g#64, %g#65,
      %g#66, %g#67, %g#68, %g#69, %g#70, %g#71,
      %g#72, %g#73, %g#74, %g#75, %g#76, %g#77,
      %g#78, %g#79, %g#80, %g#81, %g#82, %g#83,
      %g#84, %g#85, %g#86, %g#87, %g#88, %g#89,
      %g#90, %g#91, %g#92, %g#93, %g#94, %g#95,
      %g#96, %g#97, %g#98, %g#99, %g#100, %g#101,
      %g#102, %g#103, %g#104, %g#105, %g#106, %g#107,
      %g#108, %g#109, %g#110, %g#111, %g#112, %g#113,
      %g#114, %g#115, %g#116, %g#117, %g#118, %g#119,
      %g#120, %g#121, %g#122, %g#123, %g#124, %g#125,
      %g#126, %g#127, %g#128, %g#129, %g#130, %g#131,
      %g#132, %g#133, %g#134, %g#135, %g#136, %g#137,
      %g#138, %g#139, %g#140, %g#141, %g#142, %g#143,
      %g#144, %g#145, %g#146, %g#147
    : !g50257x768, !g1024x768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768
  %c:148 = zero.clip
      %g#0, %g#1, %g#2, %g#3, %g#4, %g#5,
      %g#6, %g#7, %g#8, %g#9, %g#10, %g#11,
      %g#12, %g#13, %g#14, %g#15, %g#16, %g#17,
      %g#18, %g#19, %g#20, %g#21, %g#22, %g#23,
      %g#24, %g#25, %g#26, %g#27, %g#28, %g#29,
      %g#30, %g#31, %g#32, %g#33, %g#34, %g#35,
      %g#36, %g#37, %g#38, %g#39, %g#40, %g#41,
      %g#42, %g#43, %g#44, %g#45, %g#46, %g#47,
      %g#48, %g#49, %g#50, %g#51, %g#52, %g#53,
      %g#54, %g#55, %g#56, %g#57, %g#58, %g#59,
      %g#60, %g#61, %g#62, %g#63, %g#64, %g#65,
      %g#66, %g#67, %g#68, %g#69, %g#70, %g#71,
      %g#72, %g#73, %g#74, %g#75, %g#76, %g#77,
      %g#78, %g#79, %g#80, %g#81, %g#82, %g#83,
      %g#84, %g#85, %g#86, %g#87, %g#88, %g#89,
      %g#90, %g#91, %g#92, %g#93, %g#94, %g#95,
      %g#96, %g#97, %g#98, %g#99, %g#100, %g#101,
      %g#102, %g#103, %g#104, %g#105, %g#106, %g#107,
      %g#108, %g#109, %g#110, %g#111, %g#112, %g#113,
      %g#114, %g#115, %g#116, %g#117, %g#118, %g#119,
      %g#120, %g#121, %g#122, %g#123, %g#124, %g#125,
      %g#126, %g#127, %g#128, %g#129, %g#130, %g#131,
      %g#132, %g#133, %g#134, %g#135, %g#136, %g#137,
      %g#138, %g#139, %g#140, %g#141, %g#142, %g#143,
      %g#144, %g#145, %g#146, %g#147
    by %norm max 1.0
    : !g50257x768, !g1024x768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768, !g768x2304, !g2304,
      !g768x768, !g768, !g768, !g768, !g768x3072, !g3072,
      !g3072x768, !g768, !g768, !g768
    by !zero.value<f64>
  zero.update @decay with @adamw(
      %c#0, %c#1, %c#4, %c#6, %c#10, %c#12,
      %c#16, %c#18, %c#22, %c#24, %c#28, %c#30,
      %c#34, %c#36, %c#40, %c#42, %c#46, %c#48,
      %c#52, %c#54, %c#58, %c#60, %c#64, %c#66,
      %c#70, %c#72, %c#76, %c#78, %c#82, %c#84,
      %c#88, %c#90, %c#94, %c#96, %c#100, %c#102,
      %c#106, %c#108, %c#112, %c#114, %c#118, %c#120,
      %c#124, %c#126, %c#130, %c#132, %c#136, %c#138,
      %c#142, %c#144)
    hyper(lr = %lr, wd = 0.1)
    : (!g50257x768, !g1024x768, !g768x2304, !g768x768, !g768x3072, !g3072x768,
      !g768x2304, !g768x768, !g768x3072, !g3072x768, !g768x2304, !g768x768,
      !g768x3072, !g3072x768, !g768x2304, !g768x768, !g768x3072, !g3072x768,
      !g768x2304, !g768x768, !g768x3072, !g3072x768, !g768x2304, !g768x768,
      !g768x3072, !g3072x768, !g768x2304, !g768x768, !g768x3072, !g3072x768,
      !g768x2304, !g768x768, !g768x3072, !g3072x768, !g768x2304, !g768x768,
      !g768x3072, !g3072x768, !g768x2304, !g768x768, !g768x3072, !g3072x768,
      !g768x2304, !g768x768, !g768x3072, !g3072x768, !g768x2304, !g768x768,
      !g768x3072, !g3072x768),
      (!zero.value<f64>)
  zero.update @no_decay with @adamw(
      %c#2, %c#3, %c#5, %c#7, %c#8, %c#9,
      %c#11, %c#13, %c#14, %c#15, %c#17, %c#19,
      %c#20, %c#21, %c#23, %c#25, %c#26, %c#27,
      %c#29, %c#31, %c#32, %c#33, %c#35, %c#37,
      %c#38, %c#39, %c#41, %c#43, %c#44, %c#45,
      %c#47, %c#49, %c#50, %c#51, %c#53, %c#55,
      %c#56, %c#57, %c#59, %c#61, %c#62, %c#63,
      %c#65, %c#67, %c#68, %c#69, %c#71, %c#73,
      %c#74, %c#75, %c#77, %c#79, %c#80, %c#81,
      %c#83, %c#85, %c#86, %c#87, %c#89, %c#91,
      %c#92, %c#93, %c#95, %c#97, %c#98, %c#99,
      %c#101, %c#103, %c#104, %c#105, %c#107, %c#109,
      %c#110, %c#111, %c#113, %c#115, %c#116, %c#117,
      %c#119, %c#121, %c#122, %c#123, %c#125, %c#127,
      %c#128, %c#129, %c#131, %c#133, %c#134, %c#135,
      %c#137, %c#139, %c#140, %c#141, %c#143, %c#145,
      %c#146, %c#147)
    hyper(lr = %lr, wd = 0.0)
    : (!g768, !g768, !g2304, !g768, !g768, !g768,
      !g3072, !g768, !g768, !g768, !g2304, !g768,
      !g768, !g768, !g3072, !g768, !g768, !g768,
      !g2304, !g768, !g768, !g768, !g3072, !g768,
      !g768, !g768, !g2304, !g768, !g768, !g768,
      !g3072, !g768, !g768, !g768, !g2304, !g768,
      !g768, !g768, !g3072, !g768, !g768, !g768,
      !g2304, !g768, !g768, !g768, !g3072, !g768,
      !g768, !g768, !g2304, !g768, !g768, !g768,
      !g3072, !g768, !g768, !g768, !g2304, !g768,
      !g768, !g768, !g3072, !g768, !g768, !g768,
      !g2304, !g768, !g768, !g768, !g3072, !g768,
      !g768, !g768, !g2304, !g768, !g768, !g768,
      !g3072, !g768, !g768, !g768, !g2304, !g768,
      !g768, !g768, !g3072, !g768, !g768, !g768,
      !g2304, !g768, !g768, !g768, !g3072, !g768,
      !g768, !g768),
      (!zero.value<f64>)
  zero.return [norm] %norm : !zero.value<f64>
}
