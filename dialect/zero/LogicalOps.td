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
    "what happens to a step with a gradient that is not finite",
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
    type each rank passes an addend of its own.

    `normalize(tokens : -1)` divides by a number of tokens: the sum of the argument
    `{zero.tokens}` over the ranks, each of which counts the tokens of all its
    backward passes. So every token counts the same, however unevenly tokens are
    spread. A step whose ranks counted no tokens is refused.

    Ranks make the same number of backward passes, or the step is refused. They may
    make different numbers, at least one each, where all of this holds:

    - the step divides by tokens, and gradients arrive as sums over tokens;
    - each rank has a number of tokens and an addend of each gradient of its own:
      both are partial over all axes of the mesh;
    - no rank waits for others within a backward pass, as ranks do at ZeRO stage 2.

    ```mlir
    zero.step @train on @cluster normalize(tokens : -1) (%lr: !zero.value<f64>, %n: !zero.value<f64, partial = [dp]> {zero.tokens}) {
    ```

    `loss_scale @scale` declares that losses are multiplied by this
    `zero.loss_scale`. In monomials and types it is called `loss_scale`.

    `nonfinite` decides what happens to a step in which a gradient is not finite:

    - `skip` (the default) changes nothing;
    - `error` changes nothing, and the step is refused with an error;
    - `apply` applies the step all the same.

    Constraints:

    - `step_c1`: the mesh exists;
    - `step_c2`: the symbols of `normalize` are `accumulation`, `tokens` and axes of the
      mesh;
    - `step_c3`: arguments are f64 scalars;
    - `step_c4`: the body ends with `zero.return`;
    - `step_c5`: every gradient that arrives is updated by exactly one
      `zero.update`, and each update names parameters that arrive;
    - `step_c6`: at most one argument is `{zero.tokens}`, replicated or partial and
      without a scale, and one is where a gradient is scaled by tokens;
    - `step_c7`: the loss scale exists; then all gradients arrive with it, to the
      power of 1, and the step is not `nonfinite apply`; without one none does.

    Example: see `examples/quickstart.mlir`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$mesh,
    Zero_ScaleAttr:$normalize,
    DefaultValuedAttr<Zero_NonfiniteAttr, "::zero::Nonfinite::skip">:$nonfinite,
    OptionalAttr<FlatSymbolRefAttr>:$loss_scale,
    OptionalAttr<I64Attr>:$tokens_argument);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The argument whose sum over the ranks `tokens` stands for; null if there
    /// is none.
    ::mlir::BlockArgument getTokens();
    /// Whether a gradient arrives with tokens in its scale.
    bool dividesByTokens();
    /// Whether ranks may make different numbers of backward passes: each has tokens and
    /// gradients of its own, and a token counts the same in whichever backward pass.
    bool takesUnequalBackwards();
  }];
}

def Zero_ReturnOp : Zero_Op<"return",
    [Terminator, Pure, HasParent<"StepOp">]> {
  let summary = "Ends a step with the scalars that it reports";
  let description = [{
    Constraints:

    - `return_c1`: there is one name per value, all different, of letters, digits
      and underscores;
    - `return_c2`: values are replicated and unscaled.

    Example:

    ```mlir
    zero.return [norm] %norm : !zero.value<f64>
    ```

    A step that reports nothing ends with `zero.return []`.
  }];
  let arguments = (ins StrArrayAttr:$names, Variadic<Zero_Scalar>:$values);
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
    The body runs once per backward pass: once, four times, or as often as the caller
    makes one. A result is the **sum** over the backward passes of what the body
    yields, in the element type `in`, so there is no accumulator that could lose
    a contribution. Inside, values are partial over `micro`; results are not, and
    what was reduced counts as summed from here on.

    Constraints:

    - `micro_batches_c1`: what is yielded is partial over `micro`: anything else
      would be counted once per backward pass;
    - `micro_batches_c2`: the type of the sum holds every number of what is
      yielded: not narrower, and not f16 for bf16 or the reverse;
    - `micro_batches_c3`: it is not nested.

    Example:

    ```mlir
    %g = zero.micro_batches in f32 {
      %d = zero.backward(@w) prescaled() : !zero.value<8xbf16, partial = [dp, micro], scaled = [dp : 1]>
      zero.yield %d : !zero.value<8xbf16, partial = [dp, micro], scaled = [dp : 1]>
    }
    ```
  }];
  let arguments = (ins TypeAttr:$accumulator_type);
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
  let summary = "Where the gradients of one backward pass arrive";
  let description = [{
    Sources are parameters (logical) or buckets (sharded). `prescaled` is the
    arrival contract: what the caller has already multiplied in, e.g.
    `prescaled(accumulation : -1)` when the loss was divided by the number of
    backward passes, or `prescaled(loss_scale : 1)` when it was multiplied by one. The
    result's scale is arrival ÷ weight: what is still to be
    divided out.

    The types say how gradients arrive over each axis: `partial`, each rank has an
    addend of its own (a batch, a part of a sequence); `sharded`, each rank has
    the slice of the parameter that it holds; `reduced`, autograd has already
    summed over the ranks' batches, as the all-to-all of experts does. What a type
    does not list is replicated, and only over axes that `replicated` names: there
    the caller promises that all ranks deliver the same gradient, as
    tensor-parallel ranks do for a layer norm. What is `on` one pipeline stage
    arrives there, and on no other; of what is tied over several, each delivers its
    own addend.

    Constraints:

    - `backward_c1`: sources are parameters or buckets, each once;
    - `backward_c2`: a result has the shape of its source;
    - `backward_c3`: a result is partial over `micro`, sharded exactly where its
      source is, and over the other axes of the mesh partial, or replicated where
      `replicated` says so;
    - `backward_c4`: a result's scale is `prescaled` ÷ the step's `normalize`;
    - `backward_c5`: a bucket's element type is its result's;
    - `backward_c6`: gradients arrive on the device;
    - `backward_c7`: over an axis that the weight divides by, the ranks have
      batches of their own: a result is partial or reduced there;
    - `backward_c8`: axes divide what they shard, and a bucket has one row for
      each of their ranks;
    - `backward_c9`: a source is on pipeline stages that the mesh has, and its
      gradient on the same; one that is on several is partial over them, and the
      weight does not divide by their axis.

    Example: see `zero.micro_batches`.
  }];
  let arguments = (ins FlatSymbolRefArrayAttr:$sources, Zero_ScaleAttr:$prescaled,
                       OptionalAttr<StrArrayAttr>:$replicated);
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
  let summary = "Sums gradients over the mesh and applies the weight";
  let description = [{
    A result is the sum over every axis that its operand is partial over, divided
    by the operand's scale: the declared weighted gradient. It is summed in the
    operand's element type.

    With `reduce_dtype bf16` what each rank adds to a sum is rounded to bf16 before it
    travels, and still summed in the operand's type. Of f32 that sends half the bytes
    where each rank gets a slice of the sum, and three quarters where all get all of
    it. Each addend is rounded once: sums that travel further (to the replicas of a
    slice) are not. Where a step reduces in each backward pass (ZeRO-2), the addends are
    those of one backward pass.

    Constraints:

    - `reduce_c1`: operands are not partial over `micro` (the sum over backward passes
      comes first), nor varying;
    - `reduce_dtype_c1`: a reduce dtype is a float type of which the operands, arrays,
      hold every number.

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
  let summary = "The Euclidean norm of gradients, every element once";
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

def Zero_ClipOp : Zero_InferredOp<"clip", [Pure]> {
  let summary = "Scales gradients down to a largest norm";
  let description = [{
    Multiplies by min(1, max / (norm + epsilon)), as `clip_grad_norm_` of
    PyTorch does (epsilon 1e-6 there and here).

    Constraints:

    - `clip_c1`: operands are as for `zero.norm`, and the norm is replicated;
    - `clip_c2`: `max` is positive and `epsilon` is not negative.

    Example:

    ```mlir
    %c = zero.clip %r by %norm max 1.0 : !zero.value<8xf32>
    ```
  }];
  let arguments = (ins Variadic<Zero_Value>:$inputs, Zero_Scalar:$norm,
    F64Attr:$max, DefaultValuedAttr<F64Attr, "1e-6">:$epsilon);
  let results = (outs Variadic<Zero_Value>:$outputs);
  let assemblyFormat = [{
    $inputs `by` $norm `max` $max custom<Epsilon>($epsilon)
    attr-dict `:` type($inputs) `by` type($norm)
  }];
  let hasVerifier = 1;
}

def Zero_UpdateOp : Zero_Op<"update",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>, AttrSizedOperandSegments,
     MemoryEffects<[MemRead, MemWrite]>, HasParent<"StepOp">]> {
  let summary = "Updates a group's parameters with an optimizer";
  let description = [{
    Operands are the gradients of the group's members, in the group's order, and
    hyperparameters, each by name as a scalar value or a constant. A
    hyperparameter with a default may be left out.

    Constraints:

    - `update_c1`: group and optimizer exist;
    - `update_c2`: there is one gradient per member, of its shape;
    - `update_c3`: gradients are as for `zero.norm`, and placed as their
      parameters;
    - `update_c4`: hyperparameters are those of the optimizer, each at most once,
      none without a value;
    - `update_c5`: hyperparameter values are replicated and unscaled.

    Example:

    ```mlir
    zero.update @decay with @adamw(%c) hyper(lr = %lr, wd = 0.1) : (!zero.value<8xf32>), (!zero.value<f64>)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$group, FlatSymbolRefAttr:$optimizer,
    Variadic<Zero_Value>:$gradients, Variadic<Zero_Scalar>:$hyper,
    StrArrayAttr:$hyper_names, DictionaryAttr:$hyper_constants);
  let assemblyFormat = [{
    $group `with` $optimizer `(` $gradients `)`
    custom<HyperArguments>($hyper, $hyper_names, $hyper_constants) attr-dict
    `:` custom<TypeList>(type($gradients)) `,` custom<TypeList>(type($hyper))
  }];
  let hasVerifier = 1;
}

#endif // ZERO_LOGICAL_OPS_TD
