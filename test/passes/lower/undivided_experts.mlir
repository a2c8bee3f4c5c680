// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No axis divides the experts of a unit again, so each rank keeps its own on the device, and
// slices of the rest on the host.
//
// RUN: zero-prove %s --stage=3 --offload=parameters | FileCheck %s --check-prefix=PROVED
// RUN: zero-run %s --stage=3 --offload=parameters --accumulation=2 | FileCheck %s --check-prefix=EQUAL
// PROVED: proved
// EQUAL: equal

zero.mesh @cluster <["ep" = 2]>
zero.parameter @layer0.weight : 6xbf16
zero.parameter @layer1.weight : 14xbf16, sharded = [ep]
zero.parameter @layer2.weight : 6xbf16
zero.parameter @layer3.weight : 14xbf16, sharded = [ep]
zero.group @group0 [@layer0.weight, @layer2.weight]
zero.group @group1 [@layer1.weight, @layer3.weight]
zero.unit @unit0 [@layer0.weight, @layer1.weight]
zero.unit @unit1 [@layer2.weight, @layer3.weight]
// SGD with momentum and L2 decay (torch.optim.SGD, dampening 0). PyTorch starts
// the momentum buffer with the first gradient; zero state does the same.
zero.optimizer @sgd hyper [lr, momentum = 0.9, wd = 0.0] state [momentum_buffer] {
^prepare(%lr: f64, %momentum: f64, %wd: f64):
  %step = arith.negf %lr : f64
  zero.yield %step, %momentum, %wd : f64, f64, f64
} update {
^update(%g: f32, %p: f32, %b: f32, %step: f32, %momentum: f32, %wd: f32):
  %gd = math.fma %p, %wd, %g : f32
  %b1 = math.fma %b, %momentum, %gd : f32
  %p1 = math.fma %b1, %step, %p : f32
  zero.yield %p1, %b1 : f32, f32
}
zero.step @train on @cluster normalize(accumulation : -1, ep : -1) (%lr: !zero.value<f64>) {
  %g:4 = zero.micro_batches in f32 {
    %d:4 = zero.backward(@layer0.weight, @layer1.weight, @layer2.weight, @layer3.weight) prescaled(accumulation : -1) : !zero.value<6xbf16, partial = [ep, micro], scaled = [ep : 1]>, !zero.value<14xbf16, sharded = [ep], partial = [micro], reduced = [ep], scaled = [ep : 1]>, !zero.value<6xbf16, partial = [ep, micro], scaled = [ep : 1]>, !zero.value<14xbf16, sharded = [ep], partial = [micro], reduced = [ep], scaled = [ep : 1]>
    zero.yield %d#0, %d#1, %d#2, %d#3 : !zero.value<6xbf16, partial = [ep, micro], scaled = [ep : 1]>, !zero.value<14xbf16, sharded = [ep], partial = [micro], reduced = [ep], scaled = [ep : 1]>, !zero.value<6xbf16, partial = [ep, micro], scaled = [ep : 1]>, !zero.value<14xbf16, sharded = [ep], partial = [micro], reduced = [ep], scaled = [ep : 1]>
  }
  %r:4 = zero.reduce %g#0, %g#1, %g#2, %g#3 : !zero.value<6xf32, partial = [ep], scaled = [ep : 1]>, !zero.value<14xf32, sharded = [ep], scaled = [ep : 1]>, !zero.value<6xf32, partial = [ep], scaled = [ep : 1]>, !zero.value<14xf32, sharded = [ep], scaled = [ep : 1]>
  %norm0 = zero.norm %r#0, %r#1, %r#2, %r#3 : !zero.value<6xf32>, !zero.value<14xf32, sharded = [ep]>, !zero.value<6xf32>, !zero.value<14xf32, sharded = [ep]>
  %c0:4 = zero.clip %r#0, %r#1, %r#2, %r#3 by %norm0 max 1.0 : !zero.value<6xf32>, !zero.value<14xf32, sharded = [ep]>, !zero.value<6xf32>, !zero.value<14xf32, sharded = [ep]> by !zero.value<f64>
  zero.update @group0 with @sgd(%c0#0, %c0#2) hyper(lr = %lr, wd = 0.1) : (!zero.value<6xf32>, !zero.value<6xf32>), (!zero.value<f64>)
  zero.update @group1 with @sgd(%c0#1, %c0#3) hyper(lr = %lr, wd = 0.0) : (!zero.value<14xf32, sharded = [ep]>, !zero.value<14xf32, sharded = [ep]>), (!zero.value<f64>)
  zero.return [norm0] %norm0 : !zero.value<f64>
}
