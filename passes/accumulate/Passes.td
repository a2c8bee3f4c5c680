//===- Passes.td - What is accumulated over backward passes *- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_ACCUMULATE_TD
#define ZERO_PASSES_ACCUMULATE_TD

include "mlir/Pass/PassBase.td"

def PlaceAccumulatorsPass : Pass<"zero-place-accumulators", "::mlir::ModuleOp"> {
  let summary = "Moves reductions into the loop over backward passes (ZeRO-2)";
  let description = [{
    A `reduce_scatter` is linear, so it may run on the sum over backward passes (ZeRO-1:
    the accumulator is a whole bucket) or on each backward's gradient (ZeRO-2: it
    is a slice). This pass moves every reduction that can move into
    `zero.micro_batches`. Legal over the reals; the order of rounding differs.

    In the loop, ranks must make the same number of backward passes: an obligation on
    the caller that the runtime checks.

    *Requires:* the form that `zero-insert-collectives` leaves.

    *Guarantees:* a result of `zero.micro_batches` that was only reduced and
    scattered is sharded.
  }];
  let dependentDialects = ["::zero::ZeroDialect"];
}

#endif // ZERO_PASSES_ACCUMULATE_TD
