//===- LintBugs.cpp - Combinations with known bugs ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A bug stands here if a report or a commit of DeepSpeed describes it, and the
// configuration alone shows that a training may have it. test/known-bugs has
// many of them as steps.
//
//===----------------------------------------------------------------------===//

#include "tools/import/Lint.h"
#include "tools/import/Precision.h"

using namespace zero;

namespace {
struct KnownBug {
  bool (*applies)(const LintContext &);
  llvm::StringLiteral key; // empty: the switch of bfloat16
  llvm::StringLiteral what, remedy, reference;
};
} // namespace

/// Whether several backward passes may make a step.
static bool isAccumulated(const LintContext &context) {
  return context.step.config.accumulation.value_or(2) > 1;
}

/// Whether DeepSpeed takes its optimizer for bfloat16 with sums in f32.
static bool takesBrainOptimizer(const LintContext &context) {
  return context.isBrain && context.stage == 1 && !context.isOffloaded &&
         findConfigType(context.reader.getString("data_types.grad_accum_dtype")
                            .value_or("")) == getSingleType();
}

static bool isZero12(const LintContext &context) {
  return context.stage == 1 || context.stage == 2;
}

static bool overlaps(const LintContext &context) {
  return context.isOn("zero_optimization.overlap_comm", context.stage == 3);
}

static const KnownBug kBugs[] = {
    {[](const LintContext &c) { return isZero12(c) && c.isOffloaded; },
     "zero_optimization.offload_optimizer",
     "loses gradients of all backward passes of a step but the last, where "
     "gradient_accumulation_steps is 1 and the script makes several: before "
     "2026-04-22",
     "update DeepSpeed", "DeepSpeed #7981"},
    {[](const LintContext &c) {
       return isZero12(c) && c.isOffloaded && isAccumulated(c);
     },
     "zero_optimization.offload_optimizer",
     "loses gradients of all micro-batches of a step but the first and last: "
     "from 2024-09-26 to 2026-04-11",
     "update DeepSpeed", "DeepSpeed #6550, #7967"},
    {[](const LintContext &c) {
       return takesBrainOptimizer(c) && isAccumulated(c);
     },
     "data_types.grad_accum_dtype",
     "chooses an optimizer of its own, which adds the last micro-batch after "
     "the "
     "gradients are reduced: from 2025-11-19 until the fix",
     "update DeepSpeed, or write zero_optimization.stage 2", "DeepSpeed #7985"},
    {takesBrainOptimizer, "data_types.grad_accum_dtype",
     "chooses an optimizer of its own, which aborts where all gradients are "
     "zero",
     "write zero_optimization.stage 2", "DeepSpeed #5223"},
    {[](const LintContext &c) { return c.stage == 2; },
     "zero_optimization.stage",
     "gives another gradient norm than earlier versions for the same loss: "
     "from "
     "0.17.6, fixed in 0.18.3 by one report",
     "update DeepSpeed", "DeepSpeed #7718"},
    {[](const LintContext &c) { return c.stage == 2 && c.isBrain; },
     "zero_optimization.stage",
     "has wrong gradients where a module is used twice in a step, on two ranks "
     "and more: to 0.19.3",
     "update DeepSpeed", "DeepSpeed #8224"},
    {[](const LintContext &c) { return c.isBrain && c.stage == 0; }, "",
     "at stage 0 reduced another buffer than the one with the gradients: "
     "before the fix of 2024",
     "update DeepSpeed", "DeepSpeed #5154, #5170"},
    {[](const LintContext &c) { return c.isBrain && c.stage == 0; }, "",
     "at stage 0 divided gradients by 65536, and never zeroed them: before the "
     "fix of 2026",
     "update DeepSpeed", "DeepSpeed #7837, #7839"},
    {[](const LintContext &c) { return c.isBrain && c.stage == 0; }, "",
     "at stage 0 saved no state of the optimizer: before the "
     "fix of 2026",
     "update DeepSpeed", "DeepSpeed #7786"},
    {[](const LintContext &c) {
       return c.isHalf &&
              c.reader.getNumber("fp16.loss_scale").value_or(0) == 0;
     },
     "fp16.loss_scale",
     "grows before the gradients are divided by it, so the gradients of such a "
     "step are halved: measured in 2026-09, and not fixed then",
     "nothing helps in DeepSpeed but a static loss scale",
     "DeepSpeed #2686, #8588"},
    {[](const LintContext &c) { return c.isHalf && c.stage == 0; },
     "fp16.enabled",
     "at stage 0 leaves every step before the update: a misplaced return in "
     "2025",
     "update DeepSpeed", "DeepSpeed #7645"},
    {[](const LintContext &c) { return c.isHalf; }, "fp16.enabled",
     "turns an overflow into a norm of nan, and all parameters with it: before "
     "the fix of 2025",
     "update DeepSpeed", "DeepSpeed #7171, #5242"},
    {[](const LintContext &c) { return isZero12(c) && overlaps(c); },
     "zero_optimization.overlap_comm",
     "reuses a buffer that is being reduced: in 2024, and again from 2025 "
     "to 2026-01",
     "update DeepSpeed, or write overlap_comm false",
     "DeepSpeed #5545, #5606, #6993, #7805"},
    {[](const LintContext &c) { return c.stage == 2 && overlaps(c); },
     "zero_optimization.overlap_comm",
     "gives nan: a buffer was recycled while a stream used it, before 2026-04",
     "update DeepSpeed, or write overlap_comm false", "DeepSpeed #7965"},
    {[](const LintContext &c) {
       return c.stage == 3 && !c.isOn("zero_optimization.reduce_scatter", true);
     },
     "zero_optimization.reduce_scatter",
     "at stage 3 never reduces a parameter as large as a bucket: before the "
     "fix "
     "of 2023",
     "update DeepSpeed, or remove the key", "DeepSpeed #4321"},
    {[](const LintContext &c) {
       return c.stage == 3 && c.reader.getInteger("zero_optimization.zero_hpz_"
                                                  "partition_size")
                                      .value_or(1) > 1;
     },
     "zero_optimization.zero_hpz_partition_size",
     "uses parameters of before the update, or of before a checkpoint was "
     "loaded: fixed in 2024 and 2025",
     "update DeepSpeed", "DeepSpeed #5059, #7707"},
    {[](const LintContext &c) {
       return c.stage == 2 && c.isOffloaded &&
              c.isOn("zero_optimization.contiguous_gradients", true);
     },
     "zero_optimization.offload_optimizer",
     "fails with an empty bucket where no gradient of a type arrives: reported "
     "for 0.17.6",
     "write zero_optimization.stage 1, or update DeepSpeed and PyTorch",
     "DeepSpeed, empty bucket"}};

void zero::lintBugs(LintContext &context) {
  for (const KnownBug &bug : kBugs)
    if (bug.applies(context))
      context.add(Severity::warning,
                  bug.key.empty() ? getBrainKey("enabled") : bug.key.str(),
                  bug.what, bug.remedy, bug.reference);
}
