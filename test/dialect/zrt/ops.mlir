// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %s | zero-opt | FileCheck %s
//
// Every op of a scheduled program survives a round trip.
//
// CHECK: zrt.program @train on @cluster batches [dp] inputs [@lr] results [norm] [@norm]
// CHECK: zrt.slots @lr [0.000000e+00] hyper "lr"
// CHECK: zrt.slots @row [0.000000e+00, 1.000000e+00]
// CHECK: zrt.buffer @b0.gradient : !zero.value<64xf32, partial = [dp]> role gradient in device
// CHECK: zrt.buffer @b0.reduced : {{.*}} role gradient in device on_demand
// CHECK: zrt.buffer @b0.parameters : {{.*}} role parameter in device fill 1.500000e+00
// CHECK: zrt.kernel @store [read bf16, write f32] scalars 0
// CHECK: zrt.kernel @squares [read f32] scalars 0 sums
// CHECK: zrt.segments @b0.all ends [64] rows [0] scalars [@row]
// CHECK: zrt.bucket_table @b0 into @b0.gradient store @store add @add parameters @b0.parameters staging @b0.staging writable [@scattered] readable [@copied]
// CHECK: zrt.state parameter of @b0 in @b0.parameters
// CHECK: zrt.accumulator of @b0 in @b0.gradient prescaled (accumulation : -1, dp : 1)
// CHECK: zrt.scalar_state "decay.beta1_t" in @row[0]
// CHECK: zrt.scalars @half
// CHECK: zrt.load_slot @lr[0]
// CHECK: zrt.event @scattered on collective
// CHECK: zrt.event @copied on to_device
// CHECK: zrt.event @arrive.caller on caller
// CHECK: zrt.handler @arrive
// CHECK-NEXT: zrt.record @arrive.caller
// CHECK-NEXT: zrt.wait @arrive.caller on compute
// CHECK-NEXT: zrt.wait_writable
// CHECK-NEXT: zrt.pack
// CHECK-NEXT: zrt.record @arrive.pack
// CHECK-NEXT: zrt.wait @arrive.pack on caller
// CHECK: zrt.handler @finish
// CHECK-NEXT: zrt.allocate @b0.reduced
// CHECK-NEXT: zrt.reduce_scatter @b0.gradient to @b0.reduced over [dp] on collective
// CHECK-NEXT: zrt.record @scattered
// CHECK-NEXT: zrt.wait @scattered on compute
// CHECK-NEXT: zrt.launch @squares [@b0.reduced] over @b0.all own [dp] sum @norm
// CHECK-NEXT: zrt.run_scalars @half
// CHECK-NEXT: zrt.copy_scalars
// CHECK-NEXT: zrt.copy @b0.staging to @b0.parameters on to_device
// CHECK-NEXT: zrt.record @copied
// CHECK-NEXT: zrt.set_role @b0.gradient as accumulator
// CHECK-NEXT: zrt.count_delivered @w to @row[1]
// CHECK-NEXT: zrt.commit @norm
// CHECK: zrt.transition idle on begin to first run [@finish]

zero.mesh @cluster <["dp" = 2]>
zero.parameter @w : 64xbf16
zero.bucket @b0 : 64xf32 arrives bf16 [@w] offsets [0] extents [64]
zrt.program @train on @cluster batches [dp] inputs [@lr] results [norm] [@norm] {
  zrt.slots @lr [0.0] hyper "lr"
  zrt.slots @norm [0.0]
  zrt.slots @row [0.0, 1.0]
  zrt.buffer @b0.gradient : !zero.value<64xf32, partial = [dp]> role gradient in device
  zrt.buffer @b0.reduced : !zero.value<64xf32, sharded = [dp]> role gradient in device on_demand
  zrt.buffer @b0.parameters : !zero.value<64xbf16> role parameter in device fill 1.5
  zrt.buffer @b0.staging : !zero.value<64xbf16, sharded = [dp]> role parameter in host
  zrt.kernel @store [read bf16, write f32] scalars 0 {
  ^body(%g: bf16):
    %x = arith.extf %g : bf16 to f32
    zrt.yield %x : f32
  }
  zrt.kernel @add [read bf16, update f32] scalars 0 {
  ^body(%g: bf16, %a: f32):
    %x = arith.extf %g : bf16 to f32
    %s = arith.addf %a, %x : f32
    zrt.yield %s : f32
  }
  zrt.kernel @squares [read f32] scalars 0 sums {
  ^body(%g: f32):
    %x = arith.extf %g : f32 to f64
    %s = arith.mulf %x, %x : f64
    zrt.yield %s : f64
  }
  zrt.segments @b0.all ends [64] rows [0] scalars [@row]
  zrt.bucket_table @b0 into @b0.gradient store @store add @add parameters @b0.parameters staging @b0.staging writable [@scattered] readable [@copied]
  zrt.state parameter of @b0 in @b0.parameters
  zrt.accumulator of @b0 in @b0.gradient prescaled(accumulation : -1, dp : 1)
  zrt.scalar_state "decay.beta1_t" in @row[0]
  zrt.scalars @half {
    %x = zrt.load_slot @lr[0]
    %c = arith.constant 0.5 : f64
    %y = arith.mulf %x, %c : f64
    zrt.store_slot %y, @norm[0]
    zrt.yield
  }
  zrt.event @scattered on collective
  zrt.event @copied on to_device
  zrt.event @arrive.caller on caller
  zrt.event @arrive.pack on compute
  zrt.handler @arrive {
    zrt.record @arrive.caller
    zrt.wait @arrive.caller on compute
    zrt.wait_writable
    zrt.pack
    zrt.record @arrive.pack
    zrt.wait @arrive.pack on caller
  }
  zrt.handler @finish {
    zrt.allocate @b0.reduced
    zrt.reduce_scatter @b0.gradient to @b0.reduced over [dp] on collective
    zrt.record @scattered
    zrt.wait @scattered on compute
    zrt.launch @squares [@b0.reduced] over @b0.all own [dp] sum @norm
    zrt.run_scalars @half
    zrt.copy_scalars
    zrt.copy @b0.staging to @b0.parameters on to_device
    zrt.record @copied
    zrt.set_role @b0.gradient as accumulator
    zrt.count_delivered @w to @row[1]
    zrt.commit @norm
  }
  zrt.transition idle on begin to first run [@finish]
}
