//===- LogicalOps.td - A step as its author writes it ------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LOGICAL_OPS_TD
#define ZERO_LOGICAL_OPS_TD

include "dialect/zero/SymbolOps.td"

//===----------------------------------------------------------------------===//
// The step
//===----------------------------------------------------------------------===//

def Zero_NonfiniteSkip : I32EnumAttrCase<"skip", 0>;
def Zero_NonfiniteApply : I32EnumAttrCase<"apply", 1>;
def Zero_NonfiniteError : I32EnumAttrCase<"error", 2>;
def Zero_NonfiniteAttr : I32EnumAttr<"Nonfinite",
    "the treatment of a step with a gradient that is not finite",
    [Zero_NonfiniteSkip, Zero_NonfiniteApply, Zero_NonfiniteError]> {
  let cppNamespace = "::zero";
}

def Zero_StepOp : Zero_Op<"step",
    [Symbol, IsolatedFromAbove, SingleBlock, RecursiveMemoryEffects,
     DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "One update of all parameters, over the whole mesh";
  let description = [{
    `normalize(accumulation : -1, dp : -1)` declares the factor of each gradient
    contribution: here the mean over backward passes and data-parallel ranks. It is
    one monomial for the whole step. It does not depend on the axes that a parameter
    is reduced over.

    Arguments are scalars that the caller passes to `apply`. An argument of a
    replicated type is the same on all ranks, which is a precondition. Of a partial
    type each rank passes an addend of its own. `zero.reduce` sums the addends, and
    divides the sum by the scale of the type: `scaled = [dp : 1]` makes a mean.

    `{zero.name = "..."}` behind the type of an argument is the name by which callers find
    it, as where two parameter groups have learning rates of their own:

    ```mlir
    zero.step @train on @cluster normalize(dp : -1) (%lr: !zero.value<f64> {zero.name = "lr"}, %lr_head: !zero.value<f64> {zero.name = "lr.head"}) {
    ```

    `normalize(tokens : -1)` divides by a number of tokens: the sum of the argument
    `{zero.tokens}` over the ranks, each of which counts the tokens of all its
    backward passes. So every token counts the same, however unevenly tokens are
    spread. A step whose ranks counted no tokens is refused.

    Ranks make the same number of backward passes, or the step is refused. They may
    make different numbers, at least one each, where all of this holds:

    - the step divides by tokens, and gradients arrive as sums over tokens;
    - each rank has a number of tokens and an addend of each gradient of its own:
      both are partial over all axes of the mesh;
    - no rank waits for others within a backward pass, as ranks do at ZeRO stage 2;
    - the step is not `one_backward`.

    ```mlir
    zero.step @train on @cluster normalize(tokens : -1) (%lr: !zero.value<f64>, %n: !zero.value<f64, partial = [dp]> {zero.tokens}) {
    ```

    `loss_scale @scale` declares that losses are multiplied by this
    `zero.loss_scale`. In monomials and types it is called `loss_scale`.

    `nonfinite` decides what happens to a step in which a gradient is not finite:

    - `skip` (the default) changes nothing;
    - `error` changes nothing, and the step is refused with an error;
    - `apply` applies the step all the same.

    `one_backward` declares that a step has one backward pass. A second one is refused. Then
    a gradient that arrives in one piece stays and travels in the type in which it arrives, and
    ranks reduce buckets during the backward pass. Equivalent to: `gradient_accumulation_steps`
    1 in DeepSpeed.

    `nonfinite`, `loss_scale` and `one_backward` follow `normalize`, in this order:

    ```mlir
    zero.step @train on @cluster normalize(dp : -1) nonfinite error loss_scale @scale one_backward (%lr: !zero.value<f64>) {
    ```

    Constraints:

    - `step_c1`: the mesh exists;
    - `step_c2`: the symbols of `normalize` are `accumulation`, `tokens` and axes of the
      mesh;
    - `step_c3`: arguments are f64 scalars;
    - `step_c4`: the body ends with `zero.return`;
    - `step_c5`: exactly one `zero.update` takes each gradient that arrives, and the
      gradients of all parameters that an update names arrive;
    - `step_c6`: at most one argument is `{zero.tokens}`; it is replicated or partial and
      has no scale; if a gradient is scaled by tokens, there is such an argument;
    - `step_c7`: the loss scale exists. With a loss scale, all gradients arrive with
      `loss_scale` to the power of 1, and the step is not `nonfinite apply`. Without one,
      no gradient arrives with `loss_scale`;
    - `step_c8`: names of arguments are unique and not empty, and have no control characters.

    Example: see `examples/quickstart.mlir`.
  }];
  let arguments = (ins Zero_SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$mesh,
    Zero_ScaleAttr:$normalize,
    DefaultValuedAttr<Zero_NonfiniteAttr, "::zero::Nonfinite::skip">:$nonfinite,
    OptionalAttr<FlatSymbolRefAttr>:$loss_scale, UnitAttr:$one_backward,
    OptionalAttr<I64Attr>:$tokens_argument,
    OptionalAttr<Zero_NameArrayAttr>:$argument_names);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The name of |argument| for callers; empty: none.
    ::llvm::StringRef getArgumentName(::mlir::BlockArgument argument);
    /// The argument whose sum over the ranks is `tokens`; null if there is none.
    ::mlir::BlockArgument getTokens();
    /// Whether a gradient arrives with tokens in its scale.
    bool dividesByTokens();
    /// Whether ranks may make different numbers of backward passes. Then each rank
    /// has tokens and gradients of its own, and all tokens count the same.
    bool takesUnequalBackwards();
    /// The axes over which ranks have batches of their own, without flattened ones: the step
    /// divides by their sizes, or by tokens of which ranks have addends.
    ::llvm::SmallVector<::mlir::StringAttr> getBatchAxes(MeshOp mesh);
    /// Whether these are all axes with batches, and a gradient has the same weight in any
    /// step of as many batches. This is so for a mean over them, and over tokens.
    bool saysBatches(MeshOp mesh);
    /// The axes that gradients are summed over, without that of backward passes. Ranks may
    /// divide parameters over these.
    ::llvm::SmallVector<::mlir::StringAttr> getSummedAxes();
    /// Whether |argument| is the max of a clip. `apply` then refuses a step in which it
    /// is not positive and finite.
    static bool isMaxNorm(::mlir::BlockArgument argument);
  }];
}

def Zero_ReturnOp : Zero_Op<"return",
    [Terminator, Pure, HasParent<"StepOp">]> {
  let summary = "Ends a step with the scalars that the step reports";
  let description = [{
    Constraints:

    - `return_c1`: there is one name per value; names are unique and consist of letters,
      digits and underscores;
    - `return_c2`: values are replicated and unscaled.

    Example:

    ```mlir
    zero.return [norm] %norm : !zero.value<f64>
    ```

    A step that reports nothing ends with `zero.return []`.
  }];
  let arguments = (ins Zero_NameArrayAttr:$names, Variadic<Zero_Scalar>:$values);
  let assemblyFormat = [{
    custom<NameList>($names) ($values^ `:` type($values))? attr-dict
  }];
  let hasVerifier = 1;
}

def Zero_YieldOp : Zero_Op<"yield", [Terminator, Pure,
    ParentOneOf<["MicroBatchesOp", "OptimizerOp", "LossScaleOp",
                 "ScheduleOp"]>]> {
  let summary = "Ends the body of `zero.micro_batches` or of data such as an optimizer";
  let description = [{
    Example: see `zero.micro_batches` and `zero.optimizer`.
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Zero_MicroBatchesOp : Zero_Op<"micro_batches",
    [SingleBlock, RecursiveMemoryEffects]> {
  let summary = "The sum over the backward passes of one step";
  let description = [{
    The body runs once per backward pass. The caller decides the number of backward passes. A
    result is the **sum** of the yielded value over the backward passes, in the element type
    `in`. So the step has no accumulator that could lose a contribution. Inside the body,
    values are partial over `micro`. Results are not. A result also has no `reduced` axis: from
    here on its gradient counts as summed.

    `apart` says where the sum is (`zero-place-accumulators` sets it): each backward pass
    stores its gradients in the type in which they arrive, and the sum has memory of its own,
    which a step of one backward pass does not need. Without `apart` a gradient that is not
    reduced in the body is stored in the element type of the sum, and later ones are added to it.

    Constraints:

    - `micro_batches_c1`: yielded values are partial over `micro`. Reason: any other value
      would be counted once per backward pass;
    - `micro_batches_c2`: the element type of the sum holds every number of the yielded
      type: it is not narrower, and not f16 for bf16 or bf16 for f16;
    - `micro_batches_c3`: the op is not nested.

    Example:

    ```mlir
    %g = zero.micro_batches in f32 {
      %d = zero.backward(@w) prescaled() : !zero.value<8xbf16, partial = [dp, micro], scaled = [dp : 1]>
      zero.yield %d : !zero.value<8xbf16, partial = [dp, micro], scaled = [dp : 1]>
    }
    ```
  }];
  let arguments = (ins TypeAttr:$accumulator_type, UnitAttr:$apart);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<Zero_Value>:$sums);
  let skipDefaultBuilders = 1;
  let builders = [
    /// Sums what the terminator of |body|, which moves in, yields.
    OpBuilder<(ins "::mlir::Type":$accumulatorType, "::mlir::Region &":$body)>];
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
}

def Zero_BackwardOp : Zero_Op<"backward",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
     MemoryEffects<[MemRead, MemWrite]>, HasParent<"MicroBatchesOp">]> {
  let summary = "The gradients of one backward pass, as they arrive";
  let description = [{
    Sources are parameters (logical phase) or buckets (sharded phase). `prescaled` declares the
    factor that the caller has already multiplied in:

    - `prescaled(accumulation : -1)`: the caller divided the loss by the number of backward
      passes;
    - `prescaled(loss_scale : 1)`: the caller multiplied the loss by the loss scale.

    The scale of a result is `prescaled` ÷ `normalize`: the factor that is still to be divided
    out.

    The type of a result says how its gradient arrives over each axis:

    - `partial`: each rank has an addend of its own (a batch, a part of a sequence);
    - `sharded`: each rank has the gradient of the slice that it holds;
    - `reduced`: autograd has already summed over the batches of the ranks, as the all-to-all
      of experts does;
    - replicated (not listed): all ranks deliver the same gradient, as tensor-parallel ranks
      do for a layer norm. This is a precondition, so `replicated` must name the axis.

    A gradient that is `on` one pipeline stage arrives on this stage only. If a parameter is
    tied over several stages, each stage delivers an addend.

    Constraints:

    - `backward_c1`: sources are parameters or buckets, each listed once;
    - `backward_c2`: a result has the shape of its source;
    - `backward_c3`: a result is partial over `micro`; it is sharded exactly over the axes
      that shard its source; over each other axis of the mesh it is partial, or replicated if
      `replicated` names the axis;
    - `backward_c4`: the scale of a result is `prescaled` ÷ the step's `normalize`;
    - `backward_c5`: a bucket and its result have one element type;
    - `backward_c6`: gradients arrive on the device;
    - `backward_c7`: over an axis that `normalize` divides by, or over which ranks have
      addends of the tokens that it divides by, ranks have batches of their own, so a result is
      partial or reduced there;
    - `backward_c8`: the size of an axis divides the extents that it shards, and a bucket has
      one row for each rank of the axes that shard its rows;
    - `backward_c9`: the mesh has the pipeline stages of a source, and the gradient is on the
      same stages; a gradient on several stages is partial over them; where ranks along the
      axis have batches of their own, the gradient is on one coordinate and reduced there, as
      that of an expert which the ranks of one coordinate have;
    - `backward_c10`: exponents of the scale are -4 to 4, and the sizes of axes that divide a
      gradient are at most 2^31 together. So are those that multiply it, with a number of
      backward passes counted as 2^26. Reason: a norm squares gradients.
    - `backward_c11`: an axis that shards a source is no axis of which another source is on
      some coordinates. Reason: a checkpoint names the parts of a parameter by the
      coordinates that are no place of parameters.

    Example: see `zero.micro_batches`.
  }];
  let arguments = (ins FlatSymbolRefArrayAttr:$sources, Zero_ScaleAttr:$prescaled,
                       OptionalAttr<Zero_NameArrayAttr>:$replicated);
  let results = (outs Variadic<Zero_Value>:$gradients);
  let assemblyFormat = [{
    `(` custom<SymbolList>($sources) `)` `prescaled` custom<ScaleList>($prescaled)
    (`replicated` custom<NameList>($replicated)^)? attr-dict (`:` type($gradients)^)?
  }];
}

//===----------------------------------------------------------------------===//
// Logical arithmetic
//===----------------------------------------------------------------------===//

def Zero_ReduceOp : Zero_InferredOp<"reduce", [Pure]> {
  let summary = "Sums gradients over the mesh and applies the normalization";
  let description = [{
    A result is the sum of its operand over every axis over which the operand is partial,
    divided by the operand's scale. So a result is the gradient with the declared
    normalization. The sum has the operand's element type.

    `reduce_dtype bf16` rounds each addend to bf16 before it travels. The sum is still taken in
    the operand's type. For f32 operands this sends half the bytes if each rank gets a slice of
    the sum, and three quarters if every rank gets the whole sum. Each addend is rounded once.
    Sums that travel further, to the replicas of a slice, are not rounded. If a step reduces in
    each backward pass (ZeRO-2), the addends are those of one backward pass.

    Constraints:

    - `reduce_c1`: operands are neither varying nor partial over `micro` (the sum over
      backward passes comes first);
    - `reduce_dtype_c1`: the operands are arrays of a type that holds every number of the
      reduce dtype, which is a float type.

    Example:

    ```mlir
    %r = zero.reduce %g reduce_dtype bf16 : !zero.value<8xf32, partial = [dp], scaled = [dp : 1]>
    ```
  }];
  let arguments = (ins Variadic<Zero_Value>:$inputs, OptionalAttr<TypeAttr>:$reduceDtype);
  let results = (outs Variadic<Zero_Value>:$outputs);
  let assemblyFormat = "$inputs (`reduce_dtype` $reduceDtype^)? attr-dict `:` type($inputs)";
  let hasVerifier = 1;
}

def Zero_NormOp : Zero_InferredOp<"norm", [Pure]> {
  let summary = "The Euclidean norm of gradients, which counts every element once";
  let description = [{
    Constraints:

    - `norm_c1`: operands are not partial, varying or `reduced`, and unscaled.

    Example:

    ```mlir
    %norm = zero.norm %r : !zero.value<8xf32>
    ```
  }];
  let arguments = (ins Variadic<Zero_Value>:$inputs);
  let results = (outs Zero_Scalar:$norm);
  let assemblyFormat = "$inputs attr-dict `:` type($inputs)";
  let hasVerifier = 1;
}

def Zero_ClipOp : Zero_InferredOp<"clip", [Pure, AttrSizedOperandSegments]> {
  let summary = "Scales gradients so that their norm is at most `max`";
  let description = [{
    Multiplies by min(1, max / (norm + epsilon)), as PyTorch's `clip_grad_norm_` does. The
    default of epsilon is 1e-6, as in PyTorch. Clips may follow each other, and a norm may
    be taken of what is clipped.

    Constraints:

    - `clip_c1`: operands are as for `zero.norm`, and the norm is replicated;
    - `clip_c2`: `max` is a positive constant or a replicated argument of the step;
      `epsilon` is positive: a norm of 0 divides by it alone.

    An argument that is a `max` must be positive and finite in each step: `apply` refuses the
    step otherwise.

    Example:

    ```mlir
    %c = zero.clip %r by %norm max 1.0 : !zero.value<8xf32> by !zero.value<f64>
    %d = zero.clip %r by %norm max 1.0 epsilon 1.0e-8 : !zero.value<8xf32> by !zero.value<f64>
    %e = zero.clip %r by %norm max %max_norm : !zero.value<8xf32> by !zero.value<f64>
    ```
  }];
  let arguments = (ins Variadic<Zero_Value>:$inputs, Zero_Scalar:$norm,
    Optional<Zero_FinalScalar>:$max, OptionalAttr<F64Attr>:$constant_max,
    DefaultValuedAttr<F64Attr, "1e-6">:$epsilon);
  let results = (outs Variadic<Zero_Value>:$outputs);
  let assemblyFormat = [{
    $inputs `by` $norm `max` custom<ValueOrReal>($max, $constant_max)
    custom<Epsilon>($epsilon) attr-dict `:` type($inputs) custom<NormType>(type($norm))
  }];
  let hasVerifier = 1;
}

def Zero_UpdateOp : Zero_Op<"update",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>, AttrSizedOperandSegments,
     MemoryEffects<[MemRead, MemWrite]>, HasParent<"StepOp">]> {
  let summary = "Updates the parameters of a parameter group with an optimizer";
  let description = [{
    Operands are the gradients of the members of the parameter group, in the order of the
    group, and the hyperparameters. A hyperparameter is given by name, as a scalar value or as
    a constant. A hyperparameter with a default may be left out.

    Constraints:

    - `update_c1`: parameter group and optimizer exist;
    - `update_c2`: there is one gradient per member, of the member's shape;
    - `update_c3`: gradients are as for `zero.norm`, and placed as their parameters;
    - `update_c4`: hyperparameters are those of the optimizer, each given at most once, and
      each has a value or a default;
    - `update_c5`: hyperparameter values are replicated and unscaled.

    Example:

    ```mlir
    zero.update @decay with @adamw(%c) hyper(lr = %lr, wd = 0.1) : (!zero.value<8xf32>), (!zero.value<f64>)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$group, FlatSymbolRefAttr:$optimizer,
    Variadic<Zero_Value>:$gradients, Variadic<Zero_Scalar>:$hyper,
    Zero_NameArrayAttr:$hyper_names, DictionaryAttr:$hyper_constants);
  let assemblyFormat = [{
    $group `with` $optimizer `(` $gradients `)`
    custom<HyperArguments>($hyper, $hyper_names, $hyper_constants) attr-dict
    `:` custom<TypeList>(type($gradients)) `,` custom<TypeList>(type($hyper))
  }];
  let hasVerifier = 1;
}

#endif // ZERO_LOGICAL_OPS_TD
