//===- Passes.td - Offload to the host's memory ------------*- tablegen -*-===//
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
    An update runs in the memory space of its gradient, and master weights and state live in
    this space. So the pass transfers each bucket's reduced gradient to the host before its
    update, and the new parameters to the device after it. The transfer follows the partition:
    a rank transfers its own slice, 1/D of the whole.

    The transfer comes before the factor and the clip coefficient are multiplied in, and the
    update multiplies them in. The norm is still taken on the device. No bit of a result changes.

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

    With `parameters` the new slices of units, which a rank keeps between steps at stage 3, stay
    on the host, too:

    ```mlir
    %p = zero.update_bucket @b0 with @adamw (%u) ...
    zero.assign @b0, %p : !zero.value<64xbf16, sharded = [dp], host>
    ```

    *Requires:* the form that `zero-insert-collectives` leaves; the pass runs once.

    *Guarantees:* every `zero.update_bucket` is on the host; collectives are on the device.
  }];
  let options = [
    Option<"what", "what", "std::string", /*default=*/"\"optimizer\"",
           "The part that lives in the host's memory: none, optimizer or parameters.">
  ];
  let dependentDialects = ["::zero::ZeroDialect"];
}

#endif // ZERO_PASSES_OFFLOAD_TD
