//===- ScalarOps.td - Statistics, factors, the outcome -----*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_SCALAR_OPS_TD
#define ZERO_SCALAR_OPS_TD

include "dialect/zero/LogicalOps.td"

def Zero_AddOp : Zero_InferredOp<"add", [Pure]> {
  let summary = "Element-wise sum";
  let description = [{
    Constraints:

    - `add_c1`: operands have the same shape and element type;
    - `add_c2`: operands have the same placement: partial + replicated would
      count the replicated one once per rank;
    - `add_c3`: operands have the same scale;
    - `add_c4`: operands are not varying.

    Example:

    ```mlir
    %s = zero.add %a, %b : !zero.value<f64, partial = [dp]>, !zero.value<f64, partial = [dp]>
    ```
  }];
  let arguments = (ins Zero_Value:$lhs, Zero_Value:$rhs);
  let results = (outs Zero_Value:$sum);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)";
  let hasVerifier = 1;
}

def Zero_SumSquaresOp : Zero_InferredOp<"sum_squares", [Pure]> {
  let summary = "The sum of the squares of all elements, in f64";
  let description = [{
    Of a sharded value it is partial over the axis (each rank sums its slice); of
    a replicated one replicated. The scale doubles. The order of the sum is fixed:
    32 lanes (element i mod 32), blocks of 4096 elements, the sums of blocks
    likewise, then operands in order.

    Constraints:

    - `sum_squares_c1`: operands are not partial or varying: a square of a part
      is no part of a square;
    - `sum_squares_c2`: operands have the same placement and scale;
    - `sum_squares_c3`: exponents of the result's scale are -8 to 8.

    Example:

    ```mlir
    %s = zero.sum_squares %r : !zero.value<64xf32, sharded = [dp], scaled = [dp : 1]>
    ```
  }];
  let arguments = (ins Variadic<Zero_Value>:$inputs);
  let results = (outs Zero_Scalar:$sum);
  let assemblyFormat = "$inputs attr-dict `:` type($inputs)";
  let hasVerifier = 1;
}

def Zero_ArrivalCountOp : Zero_InferredOp<"arrival_count",
    [MemoryEffects<[MemRead]>, HasParent<"StepOp">]> {
  let summary = "What this rank counted: backward passes, their square, missing gradients";
  let description = [{
    Three addends over the axes of the mesh. By their sums every rank knows whether
    all ranks made the same number of backward passes (n·Σa² = (Σa)²) and whether a
    gradient that is not optional never came.

    Example:

    ```mlir
    %a, %a2, %missing = zero.arrival_count over [dp]
    ```
  }];
  let arguments = (ins StrArrayAttr:$axes);
  let results = (outs Zero_Scalar:$backwards, Zero_Scalar:$squared,
                      Zero_Scalar:$missing);
  let assemblyFormat = "`over` custom<NameList>($axes) attr-dict";
}

def Zero_CountReplicatedOnceOp : Zero_InferredOp<"count_replicated_once", [Pure]> {
  let summary = "A scalar that all ranks have, as an addend of one of them";
  let description = [{
    Ranks whose coordinate over each axis is 0 keep it, the others get 0: their
    sum is the scalar again. So a norm counts once what tensor-parallel ranks
    hold alike. Of what is on some pipeline stages only, the first of them keeps it,
    and ranks of other stages get 0. It is a choice and no product: 0 times nan is
    nan.

    Constraints:

    - `count_replicated_once_c1`: the scalar is replicated over each axis.

    Example:

    ```mlir
    %o = zero.count_replicated_once %s over [tp] : !zero.value<f64, partial = [dp]>
    %p = zero.count_replicated_once %t over [pp] : !zero.value<f64, partial = [dp], on = [pp : 1]>
    ```
  }];
  let arguments = (ins Zero_Scalar:$input, StrArrayAttr:$axes);
  let results = (outs Zero_Scalar:$output);
  let assemblyFormat = "$input `over` custom<NameList>($axes) attr-dict `:` type($input)";
}

def Zero_StackOp : Zero_InferredOp<"stack", [Pure]> {
  let summary = "Scalars of one placement as one vector";
  let description = [{
    Scales may differ; they are kept apart by `zero.unstack`, which restores each.

    Constraints:

    - `stack_c1`: there is an operand, and all have the same placement.

    Example:

    ```mlir
    %v = zero.stack %a, %b : !zero.value<f64, partial = [dp]>, !zero.value<f64, partial = [dp]>
    ```
  }];
  let arguments = (ins Variadic<Zero_Scalar>:$scalars);
  let results = (outs Zero_Value:$vector);
  let assemblyFormat = "$scalars attr-dict `:` type($scalars)";
  let hasVerifier = 1;
}

def Zero_UnstackOp : Zero_InferredOp<"unstack", [Pure]> {
  let summary = "The scalars of a vector, each with its scale";
  let description = [{
    Constraints:

    - `unstack_c1`: there is one scale per element of the f64 vector;
    - `unstack_c2`: the vector has one dimension and is not sharded.

    Example:

    ```mlir
    %a, %b = zero.unstack %v [#zero.scale<dp : 2>, #zero.scale<>] : !zero.value<2xf64>
    ```
  }];
  let arguments = (ins Zero_Value:$vector, ArrayAttr:$scales);
  let results = (outs Variadic<Zero_Scalar>:$scalars);
  let assemblyFormat = "$vector $scales attr-dict `:` type($vector)";
  let hasVerifier = 1;
}

def Zero_FactorOp : Zero_InferredOp<"factor",
    [AttrSizedOperandSegments, MemoryEffects<[MemRead]>, HasParent<"StepOp">,
     DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The number that a monomial stands for in this step";
  let description = [{
    Its type is scaled by the monomial, so that multiplying a value by the factor
    of its inverse scale leaves a value without scale. What `tokens` stands for is
    an operand: it is known once ranks have added up their counts. So is the loss
    scale, of which there are versions.

    Constraints:

    - `factor_c1`: it has `tokens` exactly where the monomial does, and so for
      `loss_scale`; both are replicated and unscaled;
    - `factor_c2`: the monomial is of `accumulation`, `tokens`, axes of the mesh
      and a `zero.loss_scale`.

    Example:

    ```mlir
    %f = zero.factor (dp : -1) // 1 / |dp|, scaled = [dp : -1]
    %t = zero.factor (tokens : -1) tokens %n : !zero.value<f64>
    %u = zero.factor (loss_scale : -1) loss_scale %s : !zero.value<f64>
    ```
  }];
  let arguments = (ins Zero_ScaleAttr:$scale, Optional<Zero_Scalar>:$tokens,
    Optional<Zero_Scalar>:$loss_scale);
  let results = (outs Zero_Scalar:$factor);
  let assemblyFormat = [{
    custom<ScaleList>($scale) (`tokens` $tokens^ `:` type($tokens))?
    (`loss_scale` $loss_scale^ `:` type($loss_scale))? attr-dict
  }];
  let hasVerifier = 1;
}

def Zero_ScaleOp : Zero_InferredOp<"scale", [Pure]> {
  let summary = "A value times a scalar";
  let description = [{
    Linear, so the placement stays; scales multiply.

    Constraints:

    - `scale_c1`: the scalar is replicated over every axis;
    - `scale_c2`: the value is not varying;
    - `scale_c3`: exponents of the result's scale are -8 to 8.

    Example:

    ```mlir
    %u = zero.scale %r by %f : !zero.value<64xf32, sharded = [dp], scaled = [dp : 1]> by !zero.value<f64, scaled = [dp : -1]>
    ```
  }];
  let arguments = (ins Zero_Value:$input, Zero_Scalar:$factor);
  let results = (outs Zero_Value:$output);
  let assemblyFormat = [{
    $input `by` $factor attr-dict `:` type($input) `by` type($factor)
  }];
  let hasVerifier = 1;
}

def Zero_SqrtOp : Zero_InferredOp<"sqrt", [Pure]> {
  let summary = "The square root of a scalar; its scale halves";
  let description = [{
    Constraints:

    - `sqrt_c1`: the operand is replicated: a root of a part is no part of a root;
    - `sqrt_c2`: the exponents of its scale are even.

    Example:

    ```mlir
    %n = zero.sqrt %s : !zero.value<f64, scaled = [dp : 2]>
    ```
  }];
  let arguments = (ins Zero_Scalar:$input);
  let results = (outs Zero_Scalar:$output);
  let assemblyFormat = "$input attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Zero_ClipCoefficientOp : Zero_InferredOp<"clip_coefficient", [Pure]> {
  let summary = "min(1, max / (norm + epsilon))";
  let description = [{
    Constraints:

    - `clip_coefficient_c1`: the norm is replicated and unscaled.

    Example:

    ```mlir
    %c = zero.clip_coefficient %norm max 1.0 : !zero.value<f64>
    ```
  }];
  let arguments = (ins Zero_Scalar:$norm, F64Attr:$max,
    DefaultValuedAttr<F64Attr, "1e-6">:$epsilon);
  let results = (outs Zero_Scalar:$coefficient);
  let assemblyFormat = [{
    $norm `max` $max custom<Epsilon>($epsilon) attr-dict `:` type($norm)
  }];
  let hasVerifier = 1;
}

def Zero_OutcomeOp : Zero_InferredOp<"outcome",
    [Pure, AttrSizedOperandSegments]> {
  let summary = "Whether the step is applied, the same on every rank";
  let description = [{
    `sums` are over the squares of all gradients, each finite exactly where its
    gradients are; with `nonfinite apply` nobody asks for them. The outcome is a
    `zero_rt_verdict` of the runtime: 0: applied. 1: skipped, a gradient is not finite
    (with `nonfinite skip`, the default). 2: refused, a gradient that is not optional is
    missing. 3: refused, ranks made different numbers of backwards, if `backwards` is
    their sum over the ranks and `squared` that of their squares. 4: refused, a gradient
    is not finite (with `nonfinite error`). 5: refused, `tokens`, which gradients are
    divided by, are not a positive number.

    Constraints:

    - `outcome_c1`: operands are replicated;
    - `outcome_c2`: `missing` is one number; `backwards` and `squared` are one each
      or none, and `tokens` at most one;
    - `outcome_c3`: there are `sums`, unless it is `nonfinite apply`.

    Example:

    ```mlir
    %v = zero.outcome(%sum) missing %missing backwards %a squared %a2 ranks 4 : !zero.value<f64>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>
    ```
  }];
  let arguments = (ins Variadic<Zero_Scalar>:$sums, Zero_Scalar:$missing,
    Optional<Zero_Scalar>:$backwards, Optional<Zero_Scalar>:$squared,
    Optional<Zero_Scalar>:$tokens, I64Attr:$ranks,
    DefaultValuedAttr<Zero_NonfiniteAttr, "Nonfinite::skip">:$nonfinite);
  let results = (outs Zero_Scalar:$outcome);
  let assemblyFormat = [{
    `(` $sums `)` `missing` $missing (`backwards` $backwards^ `squared` $squared)?
    (`tokens` $tokens^)? `ranks` $ranks (`nonfinite` $nonfinite^)? attr-dict `:`
    type(operands)
  }];
  let hasVerifier = 1;
}

def Zero_ConstantOp : Zero_InferredOp<"constant", [Pure]> {
  let summary = "A scalar constant, replicated";
  let description = [{
    Example:

    ```mlir
    %wd = zero.constant 0.1
    ```
  }];
  let arguments = (ins F64Attr:$value);
  let results = (outs Zero_Scalar:$result);
  let assemblyFormat = "$value attr-dict";
}

#endif // ZERO_SCALAR_OPS_TD
