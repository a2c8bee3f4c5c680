//===- Passes.td - Where ranks communicate -----------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_COLLECTIVE_TD
#define ZERO_PASSES_COLLECTIVE_TD

include "mlir/Pass/PassBase.td"

def InsertCollectivesPass : Pass<"zero-insert-collectives", "::mlir::ModuleOp"> {
  let summary = "Turns sums over the mesh into collectives, by ZeRO stage";
  let description = [{
    Stage 0 keeps a whole copy of everything on each rank: a bucket's reduction is
    an `all_reduce`. From stage 1 on rank i owns slice i of each row of a bucket:
    its reduction is one `reduce_scatter`, its new parameters come back by one
    `all_gather`. With `shard-over` only the ranks of these axes own slices, and an
    `all_reduce` of the slice sums over the other axes (hybrid sharding): then each
    of their ranks has a replica of master weights and state. The factor weight ÷ arrival and the clip coefficient are
    multiplied in once, after the reduction, and the norm is taken of the reduced
    gradients before either: its scale is known from its type.

    What is replicated over an axis is neither reduced nor gathered there. A wire
    type goes to the first collective of a gradient; sums of sums travel in the type
    they are summed in.

    *Requires:* the form that `zero-assign-layout` leaves.

    *Guarantees:* no `zero.reduce`, `zero.norm` or `zero.clip`; every collective is
    explicit.
  }];
  let options = [
    Option<"stage", "stage", "int", /*default=*/"1",
           "ZeRO stage, 0 to 2. Stage 2 needs zero-place-accumulators as well.">,
    Option<"shardOver", "shard-over", "std::string", /*default=*/"\"\"",
           "Axes that own slices, separated by commas. Default: all that a "
           "gradient is summed over.">
  ];
  let dependentDialects = ["::zero::ZeroDialect"];
}

#endif // ZERO_PASSES_COLLECTIVE_TD
