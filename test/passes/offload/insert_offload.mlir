// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: zero-opt %S/../Inputs/coalesced.mlir --zero-insert-offload | FileCheck %s
// RUN: zero-opt %S/../Inputs/coalesced.mlir --zero-insert-offload=what=none | FileCheck %s --check-prefix=NONE
// RUN: zero-opt %S/../Inputs/coalesced.mlir --zero-insert-offload --zero-lower-to-zrt | FileCheck %s --check-prefix=ZRT
// RUN: not zero-opt %S/../Inputs/coalesced.mlir --zero-insert-offload=what=everything 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not zero-opt %S/../Inputs/coalesced.mlir --zero-insert-offload --zero-insert-offload 2>&1 | FileCheck %s --check-prefix=TWICE
//
// The slice moves as it was reduced; the factor is multiplied in on the host,
// where the update is. The norm stays on the device.
//
// CHECK: %[[R:.*]] = zero.reduce_scatter
// CHECK: zero.sum_squares %[[R]] : !zero.value<128xf32, sharded = [dp], scaled = [dp : 1]>
// CHECK: %[[H:.*]] = zero.transfer %[[R]] to host : !zero.value<128xf32, sharded = [dp], scaled = [dp : 1]>
// CHECK: %[[U:.*]] = zero.scale %[[H]] by %{{.*}} : !zero.value<128xf32, sharded = [dp], scaled = [dp : 1], space = host>
// CHECK-NOT: zero.scale
// CHECK: %[[P:.*]] = zero.update_bucket @b0 with @sgd(%[[U]])
// CHECK-SAME: f32, !zero.value<128xf32, sharded = [dp], space = host>
// CHECK: %[[D:.*]] = zero.transfer %[[P]] to device : !zero.value<128xf32, sharded = [dp], space = host>
// CHECK: zero.all_gather %[[D]] over [dp] : !zero.value<128xf32, sharded = [dp]>
//
// NONE-NOT: zero.transfer
//
// Master and state are where the update is. A master of the parameters' own type
// is a copy of them, and needs no other to be staged in.
// ZRT-DAG: zrt.buffer @b0.parameters : {{.*}} in device
// ZRT-DAG: zrt.buffer @b0.master : !zero.value<128xf32, sharded = [dp]> role state in host
// ZRT-NOT: zrt.state master
// ZRT: zrt.bucket_table @b0 {{.*}} parameters @b0.parameters master @b0.master{{$}}
// ZRT: zrt.buffer @b0.moved : !zero.value<128xf32, sharded = [dp], scaled = [dp : 1]> role gradient in host
// ZRT: zrt.copy @b0.reduced to @b0.moved
// ZRT: zrt.launch @update.sgd.f32.f32 [@b0.moved, @b0.master]
// ZRT: zrt.copy @b0.master to @b0.parameters
// ZRT: zrt.all_gather @b0.parameters
//
// Slices of units stay on the host. The update writes them there, the gather of a unit copies
// them to the device. Parameters of no unit go to the device.
//
// RUN: zero-opt %S/../Inputs/units.mlir --zero-lower="stage=3 offload=parameters until=placed" | FileCheck %s --check-prefix=SLICES
// SLICES: %[[B0:.*]] = zero.update_bucket @b0
// SLICES-NEXT: zero.assign @b0, %[[B0]] : !zero.value<64xbf16, sharded = [dp], space = host>
// SLICES: %[[B2:.*]] = zero.update_bucket @b2
// SLICES-NEXT: %[[BACK:.*]] = zero.transfer %[[B2]] to device
// SLICES-NEXT: %[[ALL:.*]] = zero.all_gather %[[BACK]]
// SLICES-NEXT: zero.assign @b2, %[[ALL]] : !zero.value<64xbf16>
//
// RUN: zero-opt %S/../Inputs/units.mlir --zero-lower="stage=3 offload=parameters" | FileCheck %s --check-prefix=UNSHARD
// UNSHARD: zrt.buffer @b0.parameters : !zero.value<64xbf16, sharded = [dp]> role parameter in host
// UNSHARD: zrt.bucket_table @b0 {{.*}} parameters @b0.parameters master @b0.master unsharded @layer1.unsharded
// UNSHARD: zrt.buffer @b2.parameters : !zero.value<64xbf16> role parameter in device
// UNSHARD: zrt.bucket_table @b2 {{.*}} staging @b2.staging
// UNSHARD: zrt.handler @layer1.unshard {
// UNSHARD-NEXT: zrt.allocate @layer1.unsharded on to_device
// UNSHARD-NEXT: zrt.copy @b0.parameters to @layer1.unsharded on to_device
// UNSHARD-NEXT: zrt.record @layer1.unsharded.copy
// UNSHARD-NEXT: zrt.wait @layer1.unsharded.copy on collective
// UNSHARD-NEXT: zrt.all_gather @layer1.unsharded over [dp] on collective
// UNSHARD: zrt.launch {{.*}} [@b0.moved, @b0.master, @b0.parameters] {{.*}} on host
//
// RUN: not zero-opt %S/../Inputs/units.mlir --zero-lower="stage=2 offload=parameters" 2>&1 | FileCheck %s --check-prefix=WHOLE
// WHOLE: error: step @train has no slices of parameters to keep on the host, which are those of units at stage 3; lower it at stage 3, or offload 'optimizer'
//
// UNKNOWN: offload must be none, optimizer or parameters, got 'everything'
// TWICE: is on the host already; run zero-insert-offload once
