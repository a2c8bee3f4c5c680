//===- LintChoices.cpp - Contradictions, and defaults that moved ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Lint.h"
#include "tools/import/Precision.h"

#include "llvm/ADT/STLExtras.h"

using namespace zero;
using llvm::StringRef;
using llvm::Twine;

/// An optimizer that ZeRO has tested, by DeepSpeed's list.
static bool isTested(StringRef optimizer) {
  return llvm::is_contained({"adam", "adamw", "adagrad", "lion", "muon"},
                            optimizer);
}

static void lintOptimizer(LintContext &context) {
  std::string optimizer = context.getOptimizer();
  constexpr StringRef kType = "optimizer.type";
  constexpr StringRef kMode = "optimizer.params.adam_w_mode";
  if (optimizer == "adam" && !context.has(kMode))
    context.add(Severity::warning, kType,
                "is AdamW: weight decay is decoupled unless adam_w_mode is "
                "false",
                "write \"AdamW\", or adam_w_mode false");
  if (optimizer == "adamw" && !context.isOn(kMode, true))
    context.add(Severity::warning, kMode,
                "is overridden: AdamW is AdamW in any case",
                "write \"Adam\", or remove the key");
  if (optimizer.empty() || context.stage == 0 || isTested(optimizer))
    return;
  if (StringRef(optimizer).contains("onebit") ||
      StringRef(optimizer).contains("zeroone") || optimizer == "lamb" ||
      optimizer == "onebitlamb")
    context.add(Severity::error, kType,
                "does not work with ZeRO: the optimizer needs whole tensors or "
                "sums of its own",
                "write zero_optimization.stage 0, or another optimizer");
  else if (!context.isOn("zero_allow_untested_optimizer"))
    context.add(Severity::error, kType,
                "is none that ZeRO has tested, and DeepSpeed refuses it",
                "add zero_allow_untested_optimizer true");
}

/// OneCycle has rates and momenta of its own.
static void lintCycle(LintContext &context) {
  if (context.has("optimizer.params.lr"))
    context.add(Severity::warning, "optimizer.params.lr",
                "is overridden by the rates of OneCycle", "remove the key");
  bool hasBetas =
      llvm::is_contained({"adam", "adamw", "lion"}, context.getOptimizer());
  if (!hasBetas || !context.isOn("scheduler.params.cycle_momentum", true))
    return;
  if (context.has("optimizer.params.betas"))
    context.add(Severity::warning, "optimizer.params.betas",
                "is overridden by OneCycle, which cycles beta1 and sets beta2 "
                "to 0.99",
                "remove the key, or write scheduler.params.cycle_momentum "
                "false");
  constexpr StringRef kDecay = "scheduler.params.decay_mom_rate";
  bool hasIntervals =
      context.reader.getInteger("scheduler.params.decay_step_size").value_or(0);
  if (hasIntervals && context.reader.getNumber(kDecay).value_or(0) > 0)
    context.add(Severity::warning, kDecay,
                "raises beta1 behind the cycle without end: from 1 on the "
                "training diverges",
                "remove the key");
}

static void lintScheduler(LintContext &context) {
  StringRef type = context.reader.getString("scheduler.type").value_or("");
  if (type.empty())
    return;
  if (type == "OneCycle")
    return lintCycle(context);
  constexpr StringRef kFloor = "scheduler.params.cos_min_ratio";
  if (type == "WarmupCosineLR" &&
      context.reader.getNumber(kFloor).value_or(0) > 1)
    context.add(Severity::warning, kFloor,
                "is more than 1: the rate rises behind the warm-up",
                "write a ratio from 0 to 1");
  std::optional<double> lr = context.reader.getNumber("optimizer.params.lr");
  std::optional<double> high =
      context.reader.getNumber("scheduler.params.warmup_max_lr");
  if (type != "WarmupCosineLR" && lr && high && *lr != *high)
    context.add(Severity::warning, "optimizer.params.lr",
                "is overridden by scheduler.params.warmup_max_lr",
                "write one rate, or remove one of the keys");
  std::optional<int64_t> warmup =
      context.reader.getInteger("scheduler.params.warmup_num_steps");
  std::optional<int64_t> total =
      context.reader.getInteger("scheduler.params.total_num_steps");
  if (warmup && total && *total < *warmup)
    context.add(Severity::warning, "scheduler.params.total_num_steps",
                "is less than warmup_num_steps " + Twine(*warmup) +
                    ": the rate drops to its end when the warm-up ends",
                "write more steps, or a shorter warm-up");
}

static void lintFactors(LintContext &context) {
  bool isScattered = (context.stage == 1 || context.stage == 2) &&
                     context.isOn("zero_optimization.reduce_scatter", true);
  if (!isScattered)
    return;
  if (context.isOn("prescale_gradients"))
    context.add(
        Severity::error, "prescale_gradients",
        "fails an assertion with reduce_scatter, the default",
        "add zero_optimization.reduce_scatter false, or remove the key");
  if (context.reader.getNumber("gradient_predivide_factor").value_or(1) != 1)
    context.add(
        Severity::error, "gradient_predivide_factor",
        "fails an assertion with reduce_scatter, the default",
        "add zero_optimization.reduce_scatter false, or remove the key");
}

void zero::lintContradictions(LintContext &context) {
  lintOptimizer(context);
  lintScheduler(context);
  lintFactors(context);
  StringRef sum =
      context.reader.getString("data_types.grad_accum_dtype").value_or("");
  bool isSame = sum.empty() ||
                findConfigType(sum) == (context.isHalf    ? getHalfType()
                                        : context.isBrain ? getBrainType()
                                                          : getSingleType());
  if (context.stage == 0 && !isSame)
    context.add(Severity::error, "data_types.grad_accum_dtype",
                "is another type than that of the parameters, which stage 0 "
                "does not implement",
                "write zero_optimization.stage 1, or remove the key");
  if (context.stage == 3 && context.reader.getString("gradient_allreduce_op")
                                .value_or("")
                                .equals_insensitive("sum"))
    context.add(Severity::error, "gradient_allreduce_op",
                "is sum, which stage 3 rejects", "write stage 0, 1 or 2");
}

void zero::lintDefaults(LintContext &context) {
  if (!context.has("gradient_clipping"))
    context.add(Severity::warning, "gradient_clipping",
                "is left out: gradients are clipped to norm 1 since 2026-06, "
                "and were not clipped before",
                "write gradient_clipping 1.0, or 0 for no clip",
                "DeepSpeed #8068");
  std::string check = getBrainKey("check_grad_overflow");
  StringRef type = context.isBrain ? getBrainType() : "fp16";
  if (context.isBrain && context.stage == 3)
    context.add(Severity::warning, check,
                "is not read at stage 3, where DeepSpeed applies a step with "
                "an infinite gradient; an imported step obeys the key",
                "write zero_optimization.stage 2 to skip such a step",
                "DeepSpeed #6976");
  else if (context.isBrain && context.stage > 0 && !context.has(check))
    context.add(Severity::warning, check,
                "is left out: a step with an infinite gradient is skipped "
                "since 2026-06, and was applied before",
                "write " + check + " true", "DeepSpeed #8035");
  if ((context.isBrain || context.isHalf) &&
      !context.has("data_types.grad_accum_dtype"))
    context.add(Severity::note, "data_types.grad_accum_dtype",
                "is left out: gradients of micro-batches are added in " + type +
                    ", so small ones vanish beside large ones",
                "write \"fp32\", which needs stage 1 or more");
  if ((context.isBrain || context.isHalf) &&
      !context.has("communication_data_type"))
    context.add(Severity::note, "communication_data_type",
                "is left out: gradients of ranks are added in " + type,
                "write \"fp32\" for exact sums and twice the bytes");
}
