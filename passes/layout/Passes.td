//===- Passes.td - From parameters to buckets --------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_LAYOUT_TD
#define ZERO_PASSES_LAYOUT_TD

include "mlir/Pass/PassBase.td"

def SetMeshPass : Pass<"zero-set-mesh", "::mlir::ModuleOp"> {
  let summary = "Overrides the sizes of mesh axes";
  let description = [{
    *Requires:* each axis named in `mesh` exists in exactly one `zero.mesh`.

    *Guarantees:* the axis has the given size. Types have the names of axes and not their
    sizes, so nothing else changes.

    ```mlir
    // zero-set-mesh{mesh=dp=4}
    zero.mesh @cluster <["dp" = 1]>   ->   zero.mesh @cluster <["dp" = 4]>
    ```
  }];
  let options = [
    Option<"mesh", "mesh", "std::string", /*default=*/"\"\"",
           "Sizes as 'dp=4', several separated by ':'.">
  ];
}

def ExpandFlattenedPass : Pass<"zero-expand-flattened", "::mlir::ModuleOp"> {
  let summary = "Replaces the names of flattened axes by the axes of the mesh";
  let description = [{
    A flattened axis is a name for several axes together. A value that is partial over a
    flattened axis is partial over each of its axes. The size of a flattened axis is the product
    of the sizes of its axes. The pass refuses a type that names an axis both by itself and by
    a flattened axis.

    *Requires:* the logical phase; at most one mesh of the module has flattened axes.

    *Guarantees:* no mesh has a flattened axis, and nothing names one. A module without
    flattened axes does not change.

    ```mlir
    zero.mesh @m <["edp" = 2, "ep" = 2]> flattened ["dp" = ["edp", "ep"]]
    !zero.value<4xf32, partial = [dp], scaled = [dp : 1]>
      ->   !zero.value<4xf32, partial = [edp, ep], scaled = [edp : 1, ep : 1]>
    ```
  }];
  let dependentDialects = ["::zero::ZeroDialect"];
}

def KeepUnitsPass : Pass<"zero-keep-units", "::mlir::ModuleOp"> {
  let summary = "Marks units that callers keep from the forward to the backward pass";
  let description = [{
    *Requires:* `units` is `last` or `all`.

    *Guarantees:* the last unit, or every unit, is `kept`. The others are as they were.
    Equivalent to: `reshard_after_forward=False` of FSDP2.

    ```mlir
    // zero-keep-units{units=last}
    zero.unit @layer1 [@w1]   ->   zero.unit @layer1 [@w1] kept
    ```
  }];
  let options = [
    Option<"units", "units", "std::string", /*default=*/"\"last\"", "last or all.">
  ];
}

def DeclareUnitOrderPass : Pass<"zero-declare-unit-order", "::mlir::ModuleOp"> {
  let summary = "Declares that units are used forward, and then backward in reverse";
  let description = [{
    *Requires:* the module has units.

    *Guarantees:* a module without a `zero.unit_order` has one in the order of its units, and
    one in the reverse order. A single unit has one order. A module that has orders keeps them.
    With `prefetch` all orders gather so many units ahead.

    ```mlir
    zero.unit @a [@w0]
    zero.unit @b [@w1]
      ->   zero.unit_order [@a, @b]
           zero.unit_order [@b, @a]
    ```
  }];
  let options = [
    Option<"prefetch", "prefetch", "int64_t", /*default=*/"-1",
           "Units that are gathered ahead. -1: as the orders say, or 1.">
  ];
  let dependentDialects = ["::zero::ZeroDialect"];
}

def AssignLayoutPass : Pass<"zero-assign-layout", "::mlir::ModuleOp"> {
  let summary = "Lays parameters out in buckets; values are of buckets from there on";
  let description = [{
    Parameters share a bucket if their gradients take the same path through the step: types,
    reduction, norm, clip and optimizer are equal. A `zero.bucket` has its parameters one after
    the other, in reverse order of declaration, the order in which a backward pass delivers
    gradients. Every parameter starts at a multiple of 32 elements. A bucket has a multiple of 32
    elements per rank, so that each rank owns an equal slice. Parameters of a unit share
    buckets with each other only, of any size. Frozen parameters of a unit are laid out in a
    `zero.frozen_bucket`. Parameter groups do not split
    buckets: `zero.update` becomes one `zero.prepare` per parameter group and one
    `zero.update_bucket` per bucket, with a row of scalars for each member. The outcome of the
    step becomes explicit.

    *Requires:* the logical phase without flattened axes; each gradient flows micro_batches ->
    reduce -> [clip] -> update.

    *Guarantees:* no value of the step belongs to a single parameter.

    Cost: the pads, under 32 elements per parameter and rank.
  }];
  let options = [
    Option<"bucketBytes", "bucket-bytes", "int64_t",
           /*default=*/"25 * 1024 * 1024",
           "Size at which a bucket is closed, in bytes of its gradients. At least 1.">
  ];
  let dependentDialects = ["::zero::ZeroDialect"];
}

#endif // ZERO_PASSES_LAYOUT_TD
