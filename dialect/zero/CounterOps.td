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
    Small gradients underflow in f16, so the loss is multiplied by a scale. The caller reads
    the scale with `zero_rt_step_loss_scale` and multiplies the loss of each backward pass by it.
    `prescaled(loss_scale : 1)` declares this, and the step names the loss scale. After the
    reduction the step divides gradients by the scale that the caller read. The rule runs at
    the end of a step, so only the next step sees the new scale.

    Counters live across steps, and the first counter is the scale. `update` computes in f64.
    It runs:

    - once for each applied step, with `overflow` false;
    - once for each step that is skipped because a gradient is not finite, with `overflow`
      true.

    A refused step changes nothing. If the new scale is not positive, not finite, or too small
    to have an inverse, the old scale stays.

    `examples/loss_scales/` has the rules of PyTorch's GradScaler and of DeepSpeed, and a
    static scale.

    Constraints:

    - `loss_scale_c1`: there is at least one counter, names of counters are unique and
      not empty, and the initial value of the first is a positive number that has an inverse;
    - `loss_scale_c2`: `update` takes an i1 and one f64 per counter, and yields one f64 per
      counter;
    - `loss_scale_c3`: `update` holds only `arith` ops and `math.sqrt`, `fma`, `absf` and
      `copysign`, in f64.

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
  let arguments = (ins Zero_SymbolNameAttr:$sym_name,
    Zero_NameArrayAttr:$counter_names, DenseF64ArrayAttr:$counter_initial);
  let regions = (region SizedRegion<1>:$update);
  let assemblyFormat = [{
    $sym_name custom<Counters>($counter_names, $counter_initial)
    attr-dict-with-keyword custom<OwnNames>($update)
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
    - `read_scale_c2`: a step reads its loss scale once, so that there is one version of it;
    - `read_scale_c3`: the loss scale is that of the step.

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
    Counters live across steps. `value` computes the value of the schedule in this step from
    the counters. `next` computes the counters of the next step. It runs:

    - once for each applied step, with `skipped` false;
    - once for each step that is skipped because a gradient is not finite, with `skipped`
      true. The rule decides whether the schedule holds or advances.

    A refused step changes nothing. All math is f64 and `arith`, so results have the same bits
    on every machine.

    `examples/schedules/` has linear warm-up followed by a constant, linear decay or cosine
    decay, and warm-up, stable, decay (WSD).

    Constraints:

    - `schedule_c1`: there is at least one counter, and names of counters are unique and
      not empty;
    - `schedule_c2`: `value` takes one f64 per counter and yields one f64; `next` takes an i1
      and one f64 per counter, and yields one f64 per counter;
    - `schedule_c3`: both hold only `arith` ops and `math.sqrt`, `fma`, `absf` and
      `copysign`, in f64. Reason: the `cos` of another library has other bits.

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
  let arguments = (ins Zero_SymbolNameAttr:$sym_name,
    Zero_NameArrayAttr:$counter_names, DenseF64ArrayAttr:$counter_initial);
  let regions = (region SizedRegion<1>:$value, SizedRegion<1>:$next);
  let assemblyFormat = [{
    $sym_name custom<Counters>($counter_names, $counter_initial)
    attr-dict-with-keyword `value` custom<OwnNames>($value)
    `next` custom<OwnNames>($next)
  }];
  let hasRegionVerifier = 1;
}

def Zero_ReadScheduleOp : Zero_InferredOp<"read_schedule",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
     MemoryEffects<[MemRead]>, HasParent<"StepOp">]> {
  let summary = "The value of a schedule in this step";
  let description = [{
    The logical step only reads a schedule. `zero-assign-layout` inserts the `zero.advance`
    that follows the outcome.

    Constraints:

    - `read_schedule_c1`: the schedule exists;
    - `read_schedule_c2`: a step reads a schedule once, so that there is one version of it.

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
  let summary = "Computes the loss scale or the schedule of the next step";
  let description = [{
    Runs the rule of the loss scale or schedule that `value` was read from, if the outcome is
    0 (applied) or 1 (skipped). `value` itself does not change. So a division by the loss
    scale always divides by the scale that multiplied the loss.

    Constraints:

    - `advance_c1`: `value` is the result of `zero.read_scale` or `zero.read_schedule`, and
      is advanced once;
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
    /// The loss scale or schedule that the op advances.
    ::mlir::FlatSymbolRefAttr getRuleSymbol();
  }];
}

#endif // ZERO_COUNTER_OPS_TD
