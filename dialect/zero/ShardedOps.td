//===- ShardedOps.td - A step with owners and collectives --*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_SHARDED_OPS_TD
#define ZERO_SHARDED_OPS_TD

include "dialect/zero/CounterOps.td"
include "dialect/zero/LaidOutInterface.td"

/// Orders communication. Collectives are not pure: a pure op may be hoisted out
/// of a loop that runs zero times, and then the other ranks hang.
def Zero_CommResource : Resource<"::zero::CommResource">;

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

def Zero_BucketOp : Zero_Op<"bucket",
    [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>, Zero_LaidOut]> {
  let summary = "Trained parameters laid out one behind the other";
  let description = [{
    One row of the layout table. The type (`64xf32`) is that of the whole bucket, with the
    element type in which gradients are kept. `arrives` is the type in which the caller
    delivers gradients. Parameter i occupies [offsets[i], offsets[i] + extents[i]): its elements
    in row-major order, and the pad after them. A write of a parameter zeroes its pad. Over the
    axes whose ranks divide the work of the update, rank i owns slice i.

    Parameters that are sharded share buckets with parameters that are sharded over the same
    axes. Such a bucket has one dimension for each of these axes before the last dimension. For
    example, `2x64xf32, sharded = [tp]` has two rows of 64 elements. A rank holds the row of
    its coordinate. The row has the slice of each parameter that the rank holds. Offsets and
    extents are those of a row.

    Constraints:

    - `bucket_c1`: a bucket has members, which are parameters that are not frozen, and no two
      buckets share a member;
    - `bucket_c2`: intervals follow each other without a gap and fill the bucket;
    - `bucket_c3`: an interval is at least as long as the part of its parameter that a rank
      holds;
    - `bucket_c4`: members have one storage type;
    - `bucket_c5`: each dimension before the last is sharded over one axis; members are sharded
      over the same axes and are on the same pipeline stages;
    - `bucket_c6`: the unit exists, and has all members.

    Example:

    ```mlir
    zero.bucket @b0 : 96xf32 arrives bf16 [@w, @b] offsets [0, 64] extents [64, 32] unit @layer0
    ```
  }];
  let arguments = (ins Zero_SymbolNameAttr:$sym_name,
    TypeAttrOf<Zero_ValueType>:$type, TypeAttr:$arrival_type,
    FlatSymbolRefArrayAttr:$members, DenseI64ArrayAttr:$offsets,
    DenseI64ArrayAttr:$extents, OptionalAttr<FlatSymbolRefAttr>:$unit);
  let assemblyFormat = [{
    $sym_name `:` custom<PlacedType>($type) `arrives` $arrival_type
    $members `offsets` $offsets `extents` $extents (`unit` $unit^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::zero::ValueType getValueType() {
      return ::llvm::cast<::zero::ValueType>(getType());
    }
    ::llvm::ArrayRef<int64_t> getShape() { return getValueType().getShape(); }
    ::mlir::Type getDtype() { return getValueType().getElementType(); }
    /// A `zrt.program` names the bucket from a symbol table of its own. Passes that
    /// erase symbols do not look into this table.
    bool canDiscardOnUseEmpty() { return false; }
    /// Whether a backward pass delivers each gradient in one piece.
    bool arrivesInOnePiece(::mlir::SymbolTableCollection &symbols);
    /// Whether each gradient arrives in one piece, of a type that has fewer numbers than
    /// that of sums.
    bool arrivesNarrower(::mlir::SymbolTableCollection &symbols);
    /// Whether no gradient is complete before the backward pass ends.
    bool isOpenToTheEnd(::mlir::SymbolTableCollection &symbols);
  }];
}

def Zero_FrozenBucketOp : Zero_Op<"frozen_bucket",
    [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>, Zero_LaidOut]> {
  let summary = "Frozen parameters of a unit laid out one behind the other";
  let description = [{
    No gradient of a frozen parameter arrives, so a frozen bucket has no state and is never
    updated. The type says what a rank keeps between uses. If the last dimension is sharded, a
    rank keeps a slice, and the parameters are gathered with their unit. So it is at stage 3.
    Otherwise the caller keeps the parameters, and the compiled step does not know them. The
    element type is that of the parameters. The layout is that of `zero.bucket`.

    Constraints:

    - `frozen_bucket_c1`: a frozen bucket has members, which are frozen parameters of its unit,
      and no two frozen buckets share a member;
    - `frozen_bucket_c2`: intervals follow each other without a gap and fill the bucket, and are
      at least as long as the part of their parameter that a rank holds;
    - `frozen_bucket_c3`: the type is replicated or sharded over each axis; each dimension before
      the last is sharded over one axis; members are sharded over the same axes, are on the same pipeline stages, and have the element type of
      the bucket.

    Example:

    ```mlir
    zero.frozen_bucket @f0 : 64xbf16, sharded = [dp] [@base] offsets [0] extents [64] unit @layer0
    ```
  }];
  let arguments = (ins Zero_SymbolNameAttr:$sym_name,
    TypeAttrOf<Zero_ValueType>:$type, FlatSymbolRefArrayAttr:$members,
    DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$extents,
    FlatSymbolRefAttr:$unit);
  let assemblyFormat = [{
    $sym_name `:` custom<PlacedType>($type)
    $members `offsets` $offsets `extents` $extents `unit` $unit attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::zero::ValueType getValueType() {
      return ::llvm::cast<::zero::ValueType>(getType());
    }
    /// Whether each rank keeps a slice. Otherwise the caller keeps the parameters.
    bool isSharded();
    /// As with `zero.bucket`.
    bool canDiscardOnUseEmpty() { return false; }
  }];
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// A sum over ranks, whose addends may travel as another type.
class Zero_SumOp<string mnemonic> : Zero_InferredOp<mnemonic,
    [MemoryEffects<[MemWrite<Zero_CommResource>]>]> {
  let arguments = (ins Zero_Value:$input, Zero_NameArrayAttr:$axes,
                       OptionalAttr<TypeAttr>:$reduceDtype);
  let results = (outs Zero_Value:$output);
  let assemblyFormat = [{
    $input `over` custom<NameList>($axes) (`reduce_dtype` $reduceDtype^)? attr-dict `:` type($input)
  }];
  let hasVerifier = 1;
}

def Zero_AllReduceOp : Zero_SumOp<"all_reduce"> {
  let summary = "Sums a partial value; every rank gets the whole sum";
  let description = [{
    `reduce_dtype bf16` rounds addends to bf16 before they travel. The sum is taken in the
    operand's type, and sums travel in this type.

    Equivalent to: `ncclAllReduce`, `MPI_Allreduce`.

    Constraints:

    - `all_reduce_c1`: the operand is partial over each axis;
    - `collective_c1`: the operand is on the device;
    - `reduce_dtype_c1`: the operand is an array of a type that holds every number of the
      reduce dtype, which is a float type.

    Example:

    ```mlir
    %r = zero.all_reduce %g over [dp] : !zero.value<8xf32, partial = [dp]>
    ```
  }];
}

def Zero_ReduceScatterOp : Zero_SumOp<"reduce_scatter"> {
  let summary = "Sums a partial value; rank i gets slice i of the sum";
  let description = [{
    Slices are those of the last dimension. Ranks are numbered in the order of the mesh.
    `reduce_dtype bf16` rounds addends to bf16 before they travel. The sum is taken in the
    operand's type.

    Equivalent to: `ncclReduceScatter`, `MPI_Reduce_scatter_block`.

    Constraints:

    - `reduce_scatter_c1`: the operand is partial over each axis;
    - `reduce_scatter_c2`: the operand has a last dimension, and this dimension is not
      sharded yet;
    - `collective_c1`: the operand is on the device;
    - `reduce_dtype_c1`: as for `zero.all_reduce`.

    Example:

    ```mlir
    %r = zero.reduce_scatter %g over [dp] reduce_dtype bf16 : !zero.value<64xf32, partial = [dp]>
    ```
  }];
}

def Zero_AllGatherOp : Zero_InferredOp<"all_gather",
    [MemoryEffects<[MemWrite<Zero_CommResource>]>]> {
  let summary = "Joins the slices of a sharded value on every rank";
  let description = [{
    Equivalent to: `ncclAllGather`, `MPI_Allgather`.

    Constraints:

    - `all_gather_c1`: the axes are those that shard the operand's last dimension;
    - `collective_c1`: the operand is on the device.

    Example:

    ```mlir
    %p = zero.all_gather %s over [dp] : !zero.value<64xbf16, sharded = [dp]>
    ```
  }];
  let arguments = (ins Zero_Value:$input, Zero_NameArrayAttr:$axes);
  let results = (outs Zero_Value:$output);
  let assemblyFormat = "$input `over` custom<NameList>($axes) attr-dict `:` type($input)";
}

//===----------------------------------------------------------------------===//
// Update
//===----------------------------------------------------------------------===//

def Zero_PrepareOp : Zero_InferredOp<"prepare",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
     MemoryEffects<[MemRead, MemWrite]>, HasParent<"StepOp">]> {
  let summary = "Runs an optimizer's scalar math for one parameter group";
  let description = [{
    Advances the counters of the parameter group if the outcome is 0. The results are the
    scalars that the element-wise update needs.

    Constraints:

    - `prepare_c1`: parameter group and optimizer exist;
    - `prepare_c2`: there is one scalar per hyperparameter, in order;
    - `prepare_c3`: operands are replicated and unscaled;
    - `prepare_c4`: there are at most 4096 results.

    Example:

    ```mlir
    %s:3 = zero.prepare @decay with @adamw(%lr, %wd) when %v : (!zero.value<f64>, !zero.value<f64>), !zero.value<f64>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$group, FlatSymbolRefAttr:$optimizer,
    I64Attr:$num_scalars, Variadic<Zero_Scalar>:$hyper, Zero_Scalar:$outcome);
  let results = (outs Variadic<Zero_Scalar>:$scalars);
  let assemblyFormat = [{
    $group `with` $optimizer `(` $hyper `)` `when` $outcome `yields` $num_scalars
    attr-dict `:` custom<TypeList>(type($hyper)) `,` type($outcome)
  }];
  let hasVerifier = 1;
}

def Zero_UpdateBucketOp : Zero_InferredOp<"update_bucket",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
     AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>, HasParent<"StepOp">]> {
  let summary = "Updates the optimizer state of a bucket, element by element";
  let description = [{
    If the outcome is 0, the op reads and writes the master weights and the state of the
    bucket's slice. The result is the new parameter values in storage type. A row has the
    `num_scalars` scalars of one `zero.prepare`. Member i of the bucket uses row `row_of[i]`.
    There is one outcome for all rows, or one for each row: a group with `absent skip` has
    another outcome than the step. The update runs in the memory space of the gradient, and
    its state lives there.

    Constraints:

    - `update_bucket_c1`: bucket and optimizer exist;
    - `update_bucket_c2`: the gradient has the bucket's shape, is sharded over the axes that
      shard the bucket's rows, and is not partial, varying, reduced or scaled;
    - `update_bucket_c3`: there is a row for each member;
    - `update_bucket_c4`: outcomes and scalars are replicated and unscaled; there is one
      outcome, or one for each row;
    - `update_bucket_c5`: parameters are f16, bf16, f32 or f64.

    Example:

    ```mlir
    %p = zero.update_bucket @b0 with @sgd (%u) when %v rows(%s) row_of [0] : bf16, !zero.value<64xf32, sharded = [dp]>, !zero.value<f64>, (!zero.value<f64>)
    %q = zero.update_bucket @b1 with @sgd (%w) when %v, %g rows(%s, %t) row_of [0, 1] : bf16, !zero.value<64xf32, sharded = [dp]>, !zero.value<f64>, (!zero.value<f64>, !zero.value<f64>)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket, FlatSymbolRefAttr:$optimizer,
    TypeAttr:$parameter_type, Zero_Value:$gradient, Variadic<Zero_Scalar>:$outcomes,
    Variadic<Zero_Scalar>:$rows, DenseI64ArrayAttr:$row_of);
  let results = (outs Zero_Value:$parameters);
  let assemblyFormat = [{
    $bucket `with` $optimizer `(` $gradient `)` `when` $outcomes
    `rows` `(` $rows `)` `row_of` $row_of attr-dict
    `:` $parameter_type `,` type($gradient) `,`
    custom<TypeOfAll>(type($outcomes), ref($outcomes)) `,`
    custom<TypeList>(type($rows))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getOutcome(int64_t row) {
      return getOutcomes()[getOutcomes().size() == 1 ? 0 : row];
    }
  }];
}

def Zero_AssignOp : Zero_Op<"assign",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
     MemoryEffects<[MemRead, MemWrite]>, HasParent<"StepOp">]> {
  let summary = "Writes a value to the parameters of a bucket, on every rank";
  let description = [{
    If the bucket is of a unit, the rows of the value may be sharded. Then each rank keeps its
    slice of the parameters, and the unit is gathered when it is unsharded.

    Constraints:

    - `assign_c1`: the value is placed as the bucket and unscaled, so that every replica of
      the parameters receives it; exception: rows of a bucket of a unit may be sharded;
    - `assign_c2`: the value has the bucket's shape and the storage type of its members;
    - `assign_c3`: the value is on the device, except for slices of a bucket of a unit.

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
