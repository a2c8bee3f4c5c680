//===- Passes.td - Accumulation over backward passes -------*- tablegen -*-===//
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
    A `reduce_scatter` is linear. So it may run on the sum over backward passes (ZeRO-1: the
    accumulator is a whole bucket), or on the gradient of each backward pass (ZeRO-2: the
    accumulator is a slice). This pass moves every reduction that can move into
    `zero.micro_batches`. The result is equal over the reals. The order of rounding differs.

    An addend is then the gradient of one backward pass. If it arrived in a type narrower than
    that of the accumulator, in one piece, the reduction has this type as its `reduce_dtype`.
    It sends fewer bytes, and rounds nothing.

    If a reduction is in the loop, all ranks must make the same number of backward passes. The
    caller must ensure this, and the runtime checks it.

    At stage 1 only steps of one backward pass (`one_backward`) change. Such a step has no
    accumulator, so stages 1 and 2 are the same. With `apart` another step gets an accumulator
    apart from its gradients (`zero.micro_batches ... apart`). These then stay in the type in
    which they arrive, so that a producer may write them in place, and a step that happens to
    have one backward pass needs no accumulator. A step of several needs memory for both.

    *Requires:* the form that `zero-insert-collectives` leaves.

    *Guarantees:* a result of `zero.micro_batches` that was only reduced and scattered is
    sharded.
  }];
  let dependentDialects = ["::zero::ZeroDialect"];
  let options = [
    Option<"stage", "stage", "int", "2", "ZeRO stage: 1, 2 or 3">,
    Option<"apart", "apart", "bool", "false",
           "At stage 1, keep gradients as they arrive, and sum them apart">,
  ];
}

#endif // ZERO_PASSES_ACCUMULATE_TD
