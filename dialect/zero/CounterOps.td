//===- CounterOps.td - Loss scales and schedules -----------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_COUNTER_OPS_TD
#define ZERO_COUNTER_OPS_TD

include "dialect/zero/CounterInterface.td"
include "dialect/zero/ScalarOps.td"

def Zero_LossScaleOp : Zero_Op<"loss_scale",
    [Symbol, IsolatedFromAbove, DeclareOpInterfaceMethods<Zero_CounterRule,
                                                          ["getRule"]>]> {
  let summary = "A loss scale and the rule that changes it, as data";
  let description = [{
    Small gradients vanish in f16; multiplied by a scale they do not. The caller
    asks for the scale (`NAME_loss_scale`) and multiplies the loss of each backward pass
    by it, which `prescaled(loss_scale : 1)` says; the step names it. It is divided out again behind the
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
    - `loss_scale_c3`: it holds `arith` ops and `math.sqrt`, `fma`, `absf` and
      `copysign` only, in f64.

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
    - `read_scale_c3`: it is the loss scale of the step.

    Example:

    ```mlir
    %s = zero.read_scale @scale
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$loss_scale);
  let results = (outs Zero_Scalar:$value);
  let assemblyFormat = "$loss_scale attr-dict";
}

def Zero_ScheduleOp : Zero_Op<"schedule",
    [Symbol, IsolatedFromAbove, DeclareOpInterfaceMethods<Zero_CounterRule,
                                                          ["getRule"]>]> {
  let summary = "A learning rate or weight decay that changes by step, as data";
  let description = [{
    Counters live across steps. `value` computes from them what the schedule is in
    this step, `next` those of the next step: once for each step that is applied,
    and with `skipped` for each that is skipped because a gradient is not finite,
    where it may hold them. A refused step changes nothing. All is f64 and `arith`,
    so that it is the same bits everywhere.

    `examples/schedules/` has linear warm-up with a constant, linear and cosine
    decay, and warm-up, stable, decay (WSD).

    Constraints:

    - `schedule_c1`: there is at least one counter, and their names are unique;
    - `schedule_c2`: `value` takes an f64 per counter and yields one f64; `next`
      takes an i1 and an f64 per counter, and yields an f64 per counter;
    - `schedule_c3`: they hold `arith` ops and `math.sqrt`, `fma`, `absf` and
      `copysign` only, in f64: a library's `cos` has other bits elsewhere.

    Example:

    ```mlir
    zero.schedule @lr counters [step = 1.0] value {
    ^value(%step: f64):
      %peak = arith.constant 0.01 : f64
      %length = arith.constant 100.0 : f64
      %one = arith.constant 1.0 : f64
      %part = arith.divf %step, %length : f64
      %share = arith.minimumf %part, %one : f64
      %value = arith.mulf %peak, %share : f64
      zero.yield %value : f64
    } next {
    ^next(%skipped: i1, %step: f64):
      %one = arith.constant 1.0 : f64
      %more = arith.addf %step, %one : f64
      %next = arith.select %skipped, %step, %more : f64
      zero.yield %next : f64
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
    StrArrayAttr:$counter_names, DenseF64ArrayAttr:$counter_initial);
  let regions = (region SizedRegion<1>:$value, SizedRegion<1>:$next);
  let assemblyFormat = [{
    $sym_name custom<Counters>($counter_names, $counter_initial)
    attr-dict-with-keyword `value` $value `next` $next
  }];
  let hasRegionVerifier = 1;
}

def Zero_ReadScheduleOp : Zero_InferredOp<"read_schedule",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
     MemoryEffects<[MemRead]>, HasParent<"StepOp">]> {
  let summary = "What a schedule is in this step";
  let description = [{
    A step as its author writes it only reads; that the schedule advances behind
    the outcome is made explicit by `zero-assign-layout`.

    Constraints:

    - `read_schedule_c1`: the schedule exists;
    - `read_schedule_c2`: a step reads it once, so that there is one version of it.

    Example:

    ```mlir
    %lr = zero.read_schedule @lr
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$schedule);
  let results = (outs Zero_Scalar:$value);
  let assemblyFormat = "$schedule attr-dict";
}

def Zero_AdvanceOp : Zero_Op<"advance",
    [MemoryEffects<[MemRead, MemWrite]>, HasParent<"StepOp">]> {
  let summary = "Makes the loss scale or the schedule of the next step";
  let description = [{
    Runs the rule of what `value` was read from, where the outcome is 0 or 1.
    `value` stays what it is: whatever divides by a loss scale divides by the one
    that multiplied.

    Constraints:

    - `advance_c1`: `value` is what `zero.read_scale` or `zero.read_schedule` read,
      and it is advanced once;
    - `advance_c2`: the outcome is replicated.

    Example:

    ```mlir
    zero.advance %s when %v : !zero.value<f64>, !zero.value<f64>
    ```
  }];
  let arguments = (ins Zero_Scalar:$value, Zero_Scalar:$outcome);
  let assemblyFormat = "$value `when` $outcome attr-dict `:` type($value) `,` type($outcome)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The loss scale or schedule that it advances.
    ::mlir::FlatSymbolRefAttr getRuleSymbol();
  }];
}

#endif // ZERO_COUNTER_OPS_TD
