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

    *Guarantees:* that axis has the given size. Types name axes and never sizes, so
    nothing else changes.

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
  let summary = "Writes the axes of a mesh for the names of its views";
  let description = [{
    A view is short for several axes together: what is partial over it is partial
    over each of them, and its size is their product. A type that names an axis
    itself and by a view is refused.

    *Requires:* the logical phase; at most one mesh of the module has views.

    *Guarantees:* no mesh has a view, and nothing names one. A module without views
    is left as it is.

    ```mlir
    zero.mesh @m <["edp" = 2, "ep" = 2]> flattened ["dp" = ["edp", "ep"]]
    !zero.value<4xf32, partial = [dp], scaled = [dp : 1]>
      ->   !zero.value<4xf32, partial = [edp, ep], scaled = [edp : 1, ep : 1]>
    ```
  }];
  let dependentDialects = ["::zero::ZeroDialect"];
}

def AssignLayoutPass : Pass<"zero-assign-layout", "::mlir::ModuleOp"> {
  let summary = "Lays parameters out in buckets and works on buckets from there";
  let description = [{
    Parameters that take the same way through the step (types, reduction, norm,
    clip, optimizer) are laid out one behind the other in `zero.bucket`s, in
    reverse order of declaration, the order in which a backward pass delivers
    them. Every parameter starts at a multiple of 32 elements; a bucket is a
    multiple of 32 elements per rank, so that each rank owns an equal slice.
    Optimizer groups do not split buckets: `zero.update` becomes one
    `zero.prepare` per group and one `zero.update_bucket` per bucket, with a row
    of scalars for each member. The outcome of the step is made explicit.

    *Requires:* the logical phase without views; each gradient flows micro_batches
    -> reduce -> [clip] -> update.

    *Guarantees:* no value of the step belongs to a single parameter.

    Cost: the pads, under 32 elements per parameter and rank.
  }];
  let options = [
    Option<"bucketBytes", "bucket-bytes", "int64_t",
           /*default=*/"25 * 1024 * 1024",
           "Size from which on a bucket is closed, in bytes of its gradients.">
  ];
  let dependentDialects = ["::zero::ZeroDialect"];
}

#endif // ZERO_PASSES_LAYOUT_TD
