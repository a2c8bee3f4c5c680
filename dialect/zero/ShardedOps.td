//===- ShardedOps.td - A step with owners and collectives --*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_SHARDED_OPS_TD
#define ZERO_SHARDED_OPS_TD

include "dialect/zero/LogicalOps.td"

/// Orders communication: collectives are not pure (a pure one may be hoisted
/// out of a loop that runs zero times, which hangs the other ranks).
def Zero_CommResource : Resource<"::zero::CommResource">;

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

def Zero_BucketOp : Zero_Op<"bucket",
    [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Parameters laid out one behind the other";
  let description = [{
    One row of the layout table. `64xf32` is the whole bucket and the type in
    which its gradients are kept; `arrives` is the type in which the caller
    delivers them. Parameter i occupies [offsets[i], offsets[i] + extents[i]):
    its elements and the pad behind them, so whoever writes a parameter zeroes
    its pad. Over the data-parallel ranks, rank i owns slice i.

    Constraints:

    - `bucket_c1`: members are parameters, and no two buckets share one;
    - `bucket_c2`: intervals follow each other without a gap and fill the bucket;
    - `bucket_c3`: an interval is at least as long as its parameter;
    - `bucket_c4`: members have one storage type.

    Example:

    ```mlir
    zero.bucket @b0 : 96xf32 arrives bf16 [@w, @b] offsets [0, 64] extents [64, 32]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$shape,
    TypeAttr:$dtype, TypeAttr:$arrival_type, FlatSymbolRefArrayAttr:$members,
    DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$extents);
  let assemblyFormat = [{
    $sym_name `:` custom<ShapedType>($shape, $dtype) `arrives` $arrival_type
    $members `offsets` $offsets `extents` $extents attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    int64_t getNumElements() { return getShape()[0]; }
  }];
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

class Zero_CollectiveOp<string mnemonic, Type type> : Zero_InferredOp<mnemonic,
    [MemoryEffects<[MemWrite<Zero_CommResource>]>]> {
  let arguments = (ins type:$input, StrArrayAttr:$axes);
  let results = (outs type:$output);
  let assemblyFormat = "$input `over` custom<NameList>($axes) attr-dict `:` type($input)";
}

def Zero_AllReduceOp : Zero_CollectiveOp<"all_reduce", Zero_Value> {
  let summary = "Sums a partial value; every rank gets the whole sum";
  let description = [{
    Equivalent to: `ncclAllReduce`, `MPI_Allreduce`.

    Constraints:

    - `all_reduce_c1`: the operand is partial over each axis;
    - `collective_c1`: it is on the device.

    Example:

    ```mlir
    %r = zero.all_reduce %g over [dp] : !zero.value<8xf32, partial = [dp]>
    ```
  }];
}

def Zero_ReduceScatterOp : Zero_CollectiveOp<"reduce_scatter", Zero_Value> {
  let summary = "Sums a partial value; rank i gets slice i of the sum";
  let description = [{
    Equivalent to: `ncclReduceScatter`, `MPI_Reduce_scatter_block`.

    Constraints:

    - `reduce_scatter_c1`: the operand is partial over each axis;
    - `reduce_scatter_c2`: it has one dimension, not sharded over another axis;
    - `collective_c1`: it is on the device.

    Example:

    ```mlir
    %r = zero.reduce_scatter %g over [dp] : !zero.value<64xf32, partial = [dp]>
    ```
  }];
}

def Zero_AllGatherOp : Zero_CollectiveOp<"all_gather", Zero_Value> {
  let summary = "Joins the slices of a sharded value on every rank";
  let description = [{
    Equivalent to: `ncclAllGather`, `MPI_Allgather`.

    Constraints:

    - `all_gather_c1`: the operand is sharded over each axis;
    - `collective_c1`: it is on the device.

    Example:

    ```mlir
    %p = zero.all_gather %s over [dp] : !zero.value<64xbf16, sharded = [dp]>
    ```
  }];
}

//===----------------------------------------------------------------------===//
// Statistics and scalars
//===----------------------------------------------------------------------===//

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
    32 lanes (element i mod 32), blocks of 4096 elements, then blocks and
    operands in order.

    Constraints:

    - `sum_squares_c1`: operands are not partial or varying: a square of a part
      is no part of a square;
    - `sum_squares_c2`: operands have the same placement and scale.

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

def Zero_ArrivalsOp : Zero_InferredOp<"arrivals",
    [MemoryEffects<[MemRead]>, HasParent<"StepOp">]> {
  let summary = "What this rank counted: backwards, their square, missing gradients";
  let description = [{
    Three addends over the axes of the mesh. Together with their sums every rank
    knows whether all ranks made the same number of backwards (n·Σa² = (Σa)²) and
    whether a gradient that is not optional never came.

    Example:

    ```mlir
    %a, %a2, %missing = zero.arrivals over [dp]
    ```
  }];
  let arguments = (ins StrArrayAttr:$axes);
  let results = (outs Zero_Scalar:$backwards, Zero_Scalar:$squared,
                      Zero_Scalar:$missing);
  let assemblyFormat = "`over` custom<NameList>($axes) attr-dict";
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

    - `unstack_c1`: there is one scale per element of the f64 vector.

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
    [MemoryEffects<[MemRead]>, HasParent<"StepOp">]> {
  let summary = "The number that a monomial stands for in this step";
  let description = [{
    Its type is scaled by the monomial, so that multiplying a value by the factor
    of its inverse scale leaves a value without scale.

    Example:

    ```mlir
    %f = zero.factor (dp : -1) // 1 / |dp|, scaled = [dp : -1]
    ```
  }];
  let arguments = (ins Zero_ScaleAttr:$scale);
  let results = (outs Zero_Scalar:$factor);
  let assemblyFormat = "custom<ScaleList>($scale) attr-dict";
}

def Zero_ScaleOp : Zero_InferredOp<"scale", [Pure]> {
  let summary = "A value times a scalar";
  let description = [{
    Linear, so the placement stays; scales multiply.

    Constraints:

    - `scale_c1`: the scalar is replicated over every axis;
    - `scale_c2`: the value is not varying.

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

def Zero_VerdictOp : Zero_InferredOp<"verdict", [Pure]> {
  let summary = "Whether the step is applied, the same on every rank";
  let description = [{
    0: applied. 1: skipped, a gradient is not finite (with `nonfinite skip`, the
    default). 2: refused, a gradient that is not optional is missing. 3: refused,
    ranks made different numbers of backwards. 4: refused, a gradient is not finite
    (with `nonfinite error`). The numbers are `zero_rt_verdict` of the runtime.

    Constraints:

    - `verdict_c1`: operands are replicated.

    Example:

    ```mlir
    %v = zero.verdict %sum, %a, %a2, %missing : !zero.value<f64>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>
    ```
  }];
  let arguments = (ins Zero_Scalar:$sum_squares, Zero_Scalar:$backwards,
    Zero_Scalar:$squared, Zero_Scalar:$missing, I64Attr:$ranks,
    DefaultValuedAttr<Zero_NonfiniteAttr, "Nonfinite::skip">:$nonfinite);
  let results = (outs Zero_Scalar:$verdict);
  let assemblyFormat = [{
    $sum_squares `,` $backwards `,` $squared `,` $missing `ranks` $ranks
    (`nonfinite` $nonfinite^)? attr-dict `:` type($sum_squares) `,` type($backwards)
    `,` type($squared) `,` type($missing)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Update
//===----------------------------------------------------------------------===//

def Zero_PrepareOp : Zero_InferredOp<"prepare",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
     MemoryEffects<[MemRead, MemWrite]>, HasParent<"StepOp">]> {
  let summary = "Runs an optimizer's scalar math for one group";
  let description = [{
    Advances the group's counters where the verdict is 0 and yields the scalars
    that the element-wise update needs.

    Constraints:

    - `prepare_c1`: group and optimizer exist;
    - `prepare_c2`: there is one scalar per hyperparameter, in order;
    - `prepare_c3`: operands are replicated and unscaled.

    Example:

    ```mlir
    %s:3 = zero.prepare @decay with @adamw(%lr, %wd) when %v : (!zero.value<f64>, !zero.value<f64>), !zero.value<f64>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$group, FlatSymbolRefAttr:$optimizer,
    I64Attr:$num_scalars, Variadic<Zero_Scalar>:$hyper, Zero_Scalar:$verdict);
  let results = (outs Variadic<Zero_Scalar>:$scalars);
  let assemblyFormat = [{
    $group `with` $optimizer `(` $hyper `)` `when` $verdict `yields` $num_scalars
    attr-dict `:` custom<TypeList>(type($hyper)) `,` type($verdict)
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

def Zero_UpdateBucketOp : Zero_InferredOp<"update_bucket",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
     MemoryEffects<[MemRead, MemWrite]>, HasParent<"StepOp">]> {
  let summary = "Updates the optimizer state of a bucket, element by element";
  let description = [{
    Reads and writes the master copy and the state of the bucket's slice, where
    the verdict is 0, and yields the new parameter values in storage type. Rows
    hold the scalars of `zero.prepare`, `num_scalars` each; member i of the bucket
    uses row `row_of[i]`. The update runs, and its state lives, where the gradient
    is.

    Constraints:

    - `update_bucket_c1`: bucket and optimizer exist;
    - `update_bucket_c2`: the gradient has the bucket's shape and is neither
      partial, varying nor scaled;
    - `update_bucket_c3`: there is a row for each member;
    - `update_bucket_c4`: the verdict and the scalars are replicated and
      unscaled.

    Example:

    ```mlir
    %p = zero.update_bucket @b0 with @sgd (%u) when %v rows(%s) row_of [0] : bf16, !zero.value<64xf32, sharded = [dp]>, !zero.value<f64>, (!zero.value<f64>)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket, FlatSymbolRefAttr:$optimizer,
    TypeAttr:$parameter_type, Zero_Value:$gradient, Zero_Scalar:$verdict,
    Variadic<Zero_Scalar>:$rows, DenseI64ArrayAttr:$row_of);
  let results = (outs Zero_Value:$parameters);
  let assemblyFormat = [{
    $bucket `with` $optimizer `(` $gradient `)` `when` $verdict
    `rows` `(` $rows `)` `row_of` $row_of attr-dict
    `:` $parameter_type `,` type($gradient) `,` type($verdict) `,`
    custom<TypeList>(type($rows))
  }];
  let hasVerifier = 1;
}

def Zero_AssignOp : Zero_Op<"assign",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
     MemoryEffects<[MemRead, MemWrite]>, HasParent<"StepOp">]> {
  let summary = "Makes a value the parameters of a bucket, on every rank";
  let description = [{
    Constraints:

    - `assign_c1`: the value is replicated and unscaled, so that every replica of
      the parameters receives it;
    - `assign_c2`: it has the bucket's shape and its members' storage type;
    - `assign_c3`: it is on the device.

    Example:

    ```mlir
    zero.assign @b0, %p : !zero.value<64xbf16>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket, Zero_Value:$value);
  let assemblyFormat = "$bucket `,` $value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

#endif // ZERO_SHARDED_OPS_TD
