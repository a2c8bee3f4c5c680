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
    - `add_c2`: operands have the same placement. Reason: partial + replicated would count
      the replicated operand once per rank;
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
    The sum of a sharded value is partial over the axis: each rank sums its slice. The sum of a
    replicated value is replicated. The scale doubles.

    The order of the sum is fixed:

    - element i is added in lane i mod 32;
    - a block has 4096 elements;
    - the sums of blocks are added in the same way;
    - operands follow in their order.

    Constraints:

    - `sum_squares_c1`: operands are not partial or varying. Reason: the square of an addend
      is not an addend of the square;
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
    The results are three addends over the axes of the mesh:

    - a, the number of backward passes of this rank;
    - a²;
    - the number of gradients that are not optional and did not arrive.

    From the sums every rank learns two things. All ranks made the same number of backward
    passes exactly if n·Σa² = (Σa)². A gradient is missing exactly if the third sum is not 0.

    Example:

    ```mlir
    %a, %a2, %missing = zero.arrival_count over [dp]
    ```
  }];
  let arguments = (ins Zero_NameArrayAttr:$axes);
  let results = (outs Zero_Scalar:$backwards, Zero_Scalar:$squared,
                      Zero_Scalar:$missing);
  let assemblyFormat = "`over` custom<NameList>($axes) attr-dict";
}

def Zero_DeliveredCountOp : Zero_InferredOp<"delivered_count",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>, MemoryEffects<[MemRead]>,
     HasParent<"StepOp">]> {
  let summary = "How many backward passes of this rank delivered each gradient";
  let description = [{
    For each parameter the result is an addend over the axes of the mesh: the number of
    backward passes in which a piece of its gradient arrived on this rank. A rank that does not
    hold the parameter has 0. The sum over the ranks is 0 exactly if the gradient arrived
    nowhere.

    Constraints:

    - `delivered_count_c1`: there is a parameter; parameters are members of buckets, each
      listed once.

    Example:

    ```mlir
    %n:2 = zero.delivered_count [@w, @b] over [dp]
    ```
  }];
  let arguments = (ins FlatSymbolRefArrayAttr:$parameters, Zero_NameArrayAttr:$axes);
  let results = (outs Variadic<Zero_Scalar>:$counts);
  let assemblyFormat = "$parameters `over` custom<NameList>($axes) attr-dict";
}

def Zero_CountReplicatedOnceOp : Zero_InferredOp<"count_replicated_once", [Pure]> {
  let summary = "Turns a replicated scalar into an addend of one rank";
  let description = [{
    Ranks whose coordinate over each axis is 0 keep the scalar, and the other ranks get 0. The
    sum over the axes is the scalar again. So a norm counts replicated elements of
    tensor-parallel ranks once. If the scalar is on some pipeline stages only, the first of
    these stages keeps it, and ranks of other stages get 0. The op selects and does not
    multiply, since 0 times nan is nan.

    Constraints:

    - `count_replicated_once_c1`: the scalar is replicated over each axis.

    Example:

    ```mlir
    %o = zero.count_replicated_once %s over [tp] : !zero.value<f64, partial = [dp]>
    %p = zero.count_replicated_once %t over [pp] : !zero.value<f64, partial = [dp], on = [pp : 1]>
    ```
  }];
  let arguments = (ins Zero_Scalar:$input, Zero_NameArrayAttr:$axes);
  let results = (outs Zero_Scalar:$output);
  let assemblyFormat = "$input `over` custom<NameList>($axes) attr-dict `:` type($input)";
}

def Zero_StackOp : Zero_InferredOp<"stack", [Pure]> {
  let summary = "Scalars of one placement as one vector";
  let description = [{
    Scales may differ. `zero.unstack` lists the scale of each scalar and restores it.

    Constraints:

    - `stack_c1`: there is an operand, and all operands have the same placement.

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
    The type of the result is scaled by the monomial. So a value times the factor of its
    inverse scale has no scale. `tokens` and `loss_scale` are operands: the number of tokens is
    known only after ranks have summed their counts, and a loss scale has versions.

    Constraints:

    - `factor_c1`: the op has the operand `tokens` exactly if the monomial has the symbol
      `tokens`, and the same holds for `loss_scale`; both operands are replicated and
      unscaled;
    - `factor_c2`: symbols of the monomial are `accumulation`, `tokens`, axes of the mesh, and
      the `zero.loss_scale` of the step.

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
    The op is linear, so the placement does not change. Scales multiply.

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

    - `sqrt_c1`: the operand is replicated. Reason: the root of an addend is not an addend of
      the root;
    - `sqrt_c2`: the exponents of the operand's scale are even.

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

    - `clip_coefficient_c1`: the norm is replicated and unscaled;
    - `clip_coefficient_c2`: `max` and `epsilon` are as for `zero.clip`.

    Example:

    ```mlir
    %c = zero.clip_coefficient %norm max 1.0 : !zero.value<f64>
    %d = zero.clip_coefficient %norm max %max_norm : !zero.value<f64>
    ```
  }];
  let arguments = (ins Zero_Scalar:$norm, Optional<Zero_FinalScalar>:$max,
    OptionalAttr<F64Attr>:$constant_max, DefaultValuedAttr<F64Attr, "1e-6">:$epsilon);
  let results = (outs Zero_Scalar:$coefficient);
  let assemblyFormat = [{
    $norm `max` custom<ValueOrReal>($max, $constant_max) custom<Epsilon>($epsilon)
    attr-dict `:` type($norm)
  }];
  let hasVerifier = 1;
}

// Its numbers are those of zero_rt_verdict: see codegen/host/AbiNumbers.cpp.
def Zero_Outcome : I32EnumAttr<"Outcome", "an outcome of a step", [
    I32EnumAttrCase<"applied", 0>, I32EnumAttrCase<"skipped_nonfinite", 1>,
    I32EnumAttrCase<"refused_missing_gradient", 2>,
    I32EnumAttrCase<"refused_unequal_backwards", 3>,
    I32EnumAttrCase<"refused_nonfinite", 4>, I32EnumAttrCase<"refused_no_tokens", 5>,
    I32EnumAttrCase<"refused_input", 6>]> {
  let cppNamespace = "::zero";
}

def Zero_OutcomeOp : Zero_InferredOp<"outcome",
    [Pure, AttrSizedOperandSegments]> {
  let summary = "Whether the step is applied, the same on every rank";
  let description = [{
    `sums` are sums of squares that cover all gradients. A sum is finite exactly if its
    gradients are finite. With `nonfinite apply` the sums are not needed.

    The outcome is a `zero_rt_verdict` of the runtime:

    - 0: applied;
    - 1: skipped, since a gradient is not finite (`nonfinite skip`, the default);
    - 2: refused, since a gradient that is not optional is missing;
    - 3: refused, since ranks made different numbers of backward passes. `backwards` is the
      sum of these numbers over the ranks, and `squared` the sum of their squares; without
      both the numbers are not compared;
    - 4: refused, since a gradient is not finite (`nonfinite error`);
    - 5: refused, since `tokens`, by which gradients are divided, is not a positive number.

    Constraints:

    - `outcome_c1`: operands are replicated;
    - `outcome_c2`: there is one `missing`; `backwards` and `squared` are both given or both
      left out; there is at most one `tokens`;
    - `outcome_c3`: there are `sums`, except with `nonfinite apply`.

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

def Zero_GroupOutcomeOp : Zero_InferredOp<"group_outcome", [Pure]> {
  let summary = "Whether a parameter group with `absent skip` is updated";
  let description = [{
    0 if the outcome of the step is 0 and a gradient of the group was delivered. Otherwise the
    outcome of the step, or 1. `delivered` is the sum of the group's `zero.delivered_count`
    over all ranks. Operands are replicated and unscaled.

    Example:

    ```mlir
    %g = zero.group_outcome %v delivered %n
    ```
  }];
  let arguments = (ins Zero_FinalScalar:$outcome, Zero_FinalScalar:$delivered);
  let results = (outs Zero_Scalar:$own);
  let assemblyFormat = "$outcome `delivered` $delivered attr-dict";
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
  let assemblyFormat = "custom<Real>($value) attr-dict";
}

#endif // ZERO_SCALAR_OPS_TD
