//===- Passes.td - What lives in the host's memory ---------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_OFFLOAD_TD
#define ZERO_PASSES_OFFLOAD_TD

include "mlir/Pass/PassBase.td"

def InsertOffloadPass : Pass<"zero-insert-offload", "::mlir::ModuleOp"> {
  let summary = "Moves updates, and with them optimizer state, to the host";
  let description = [{
    An update runs where its gradient is, and master weights and state live there.
    So each bucket's reduced gradient is transferred to the host before its
    update, and the new parameters back to the device after it. Partition first,
    then move: a rank transfers its own slice, D times less than the whole.

    The gradient moves before factor and clip coefficient are multiplied in, which
    the update does in passing; the norm is still taken on the device. No bit of a
    result changes.

    ```mlir
    %u = zero.scale %r by %f : ...
    %p = zero.update_bucket @b0 with @adamw (%u) ...
    %w = zero.all_gather %p over [dp] : ...
    ```

    becomes

    ```mlir
    %h = zero.transfer %r to host : ...
    %u = zero.scale %h by %f : ...
    %p = zero.update_bucket @b0 with @adamw (%u) ...
    %d = zero.transfer %p to device : ...
    %w = zero.all_gather %d over [dp] : ...
    ```

    *Requires:* the form that `zero-insert-collectives` leaves; run once.

    *Guarantees:* every `zero.update_bucket` is on the host; collectives are on the
    device.
  }];
  let options = [
    Option<"what", "what", "std::string", /*default=*/"\"optimizer\"",
           "none or optimizer: what lives in the host's memory.">
  ];
  let dependentDialects = ["::zero::ZeroDialect"];
}

#endif // ZERO_PASSES_OFFLOAD_TD
