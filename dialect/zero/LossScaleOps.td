//===- LossScaleOps.td - What losses are multiplied by -----*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LOSS_SCALE_OPS_TD
#define ZERO_LOSS_SCALE_OPS_TD

include "dialect/zero/ScalarOps.td"

def Zero_LossScaleOp : Zero_Op<"loss_scale", [Symbol, IsolatedFromAbove]> {
  let summary = "A loss scale and the rule that changes it, as data";
  let description = [{
    Small gradients vanish in f16; multiplied by a scale they do not. The caller
    asks for the scale (`NAME_loss_scale`) and multiplies the loss of each backward
    by it, which `arrives(@scale : 1)` says. It is divided out again behind the
    reduction, by the scale that was asked for: the rule runs at the end of a step,
    and the next step is the first to see what it makes.

    Counters live across steps; the first is the scale. `update` runs in f64, once
    for each step that is applied, and with `overflow` for each that is skipped
    because a gradient is not finite. A refused step changes nothing. A scale that
    is not positive, not finite or too small to have an inverse is not taken: the
    one before stays.

    `examples/loss_scales/` has the rules of PyTorch's GradScaler and of DeepSpeed,
    and a static scale.

    Constraints:

    - `loss_scale_c1`: there is at least one counter, their names are unique, and
      the first begins as a positive number that has an inverse;
    - `loss_scale_c2`: `update` takes an i1 and an f64 per counter, and yields an
      f64 per counter;
    - `loss_scale_c3`: it holds `arith` and `math` ops only, in f64.

    Example:

    ```mlir
    zero.loss_scale @scale counters [scale = 1024.0] {
    ^update(%overflow: i1, %scale: f64):
      %half = arith.constant 0.5 : f64
      %less = arith.mulf %scale, %half : f64
      %next = arith.select %overflow, %less, %scale : f64
      zero.yield %next : f64
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
    StrArrayAttr:$counter_names, DenseF64ArrayAttr:$counter_initial);
  let regions = (region SizedRegion<1>:$update);
  let assemblyFormat = [{
    $sym_name custom<Counters>($counter_names, $counter_initial)
    attr-dict-with-keyword $update
  }];
  let hasRegionVerifier = 1;
}

def Zero_ReadScaleOp : Zero_InferredOp<"read_scale",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
     MemoryEffects<[MemRead]>, HasParent<"StepOp">]> {
  let summary = "The loss scale that this step's gradients were multiplied by";
  let description = [{
    Constraints:

    - `read_scale_c1`: the loss scale exists;
    - `read_scale_c2`: a step reads it once, so that there is one version of it;
    - `read_scale_c3`: it is the one that gradients arrive with.

    Example:

    ```mlir
    %s = zero.read_scale @scale
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$loss_scale);
  let results = (outs Zero_Scalar:$value);
  let assemblyFormat = "$loss_scale attr-dict";
}

def Zero_UpdateScaleOp : Zero_Op<"update_scale",
    [MemoryEffects<[MemRead, MemWrite]>, HasParent<"StepOp">]> {
  let summary = "Makes the loss scale of the next step";
  let description = [{
    Runs the rule of the loss scale that `value` was read from, where the verdict
    is 0 or 1. `value` stays what it is: whatever divides by it divides by the
    scale that multiplied.

    Constraints:

    - `update_scale_c1`: `value` is what `zero.read_scale` read;
    - `update_scale_c2`: the verdict is replicated.

    Example:

    ```mlir
    zero.update_scale %s when %v : !zero.value<f64>, !zero.value<f64>
    ```
  }];
  let arguments = (ins Zero_Scalar:$value, Zero_Scalar:$verdict);
  let assemblyFormat = "$value `when` $verdict attr-dict `:` type($value) `,` type($verdict)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The loss scale that it updates.
    ::mlir::FlatSymbolRefAttr getLossScale();
  }];
}

#endif // ZERO_LOSS_SCALE_OPS_TD
