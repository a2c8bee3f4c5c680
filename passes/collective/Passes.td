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
    - Stage 0: each rank keeps a whole copy of everything. The reduction of a bucket is an
      `all_reduce`.
    - From stage 1 on: rank i owns slice i of each row of a bucket. The reduction of a bucket
      is one `reduce_scatter`, and one `all_gather` returns the new parameters.
    - At stage 3 the new parameters of a unit are not gathered: each rank keeps its slice, and
      the unit is gathered when it is unsharded. Frozen buckets of units are sharded, too.
    - With `shard-over` (hybrid sharding): only the ranks of these axes own slices. An
      `all_reduce` of the slice sums over the other axes, and each of their ranks has a
      replica of master weights and state.

    The factor `normalize` ÷ `prescaled` and the clip coefficient are multiplied in once, after
    the reduction. The norm is taken of the reduced gradients, before both. The type of the
    norm has its scale, so the norm can be corrected later.

    A value that is replicated over an axis is neither reduced nor gathered over this axis. The
    reduce dtype goes to the first collective of a gradient. Later collectives sum sums, and
    these travel in the type of the sum.

    *Requires:* the form that `zero-assign-layout` leaves. At stage 3 the module has a
    `zero.unit`.

    *Guarantees:* no `zero.reduce`, `zero.norm` or `zero.clip`; every collective is explicit.
  }];
  let options = [
    Option<"stage", "stage", "int", /*default=*/"1",
           "ZeRO stage, 0 to 3. From stage 2 on zero-place-accumulators is needed "
           "as well.">,
    Option<"shardOver", "shard-over", "std::string", /*default=*/"\"\"",
           "Axes that own slices, separated by commas. Default: all axes that a "
           "gradient is summed over.">
  ];
  let dependentDialects = ["::zero::ZeroDialect"];
}

#endif // ZERO_PASSES_COLLECTIVE_TD
