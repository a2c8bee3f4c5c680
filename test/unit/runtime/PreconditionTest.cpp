//===- PreconditionTest.cpp - Callers that break a promise ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each broken promise is an error that names it, the same on all ranks, and
// leaves the step as it was: kept, it can be applied. (A gradient that is
// written while it waits is in SequenceTest.)
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TrainStep.h"

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

Options checked() {
  Options options;
  options.checkPreconditions = true;
  return options;
}

void backward(zero_rt_step *step) {
  expectOk(callsOf(step).begin_backward(step, 0));
  passAll(step);
}

void writeState(zero_rt_step *step, const char *role, int32_t parameter,
                const void *data, int64_t bytes) {
  int64_t count = 0;
  expectOk(callsOf(step).state_count(step, &count));
  auto entry = sized<zero_rt_state_entry>();
  for (int64_t i = 0; i < count; ++i) {
    expectOk(callsOf(step).state_describe(step, i, &entry));
    if (std::string(entry.role) == role && entry.parameter == parameter)
      expectOk(callsOf(step).state_write(step, i, data, bytes));
  }
}

/// The bits that two steps leave of a parameter, and what was counted.
std::pair<std::vector<uint16_t>, int64_t> train(bool checkPreconditions) {
  LibraryBuilder library = makeTrainStep(2);
  const zero_rt_library &tables = library.get();
  std::pair<std::vector<uint16_t>, int64_t> left;
  Options options;
  options.checkPreconditions = checkPreconditions;
  runRanks(
      2,
      [&](int32_t rank, zero_rt_runtime *runtime) {
        StepHandle step = createStep(runtime, tables);
        bindParameter(step.get(), Weight, 0.5f);
        for (int i = 0; i < 2; ++i) {
          backward(step.get());
          expectOk(applyStep(step.get(), 0.25));
        }
        backward(step.get());
        expectOk(callsOf(step.get()).discard(step.get()));
        auto view = sized<zero_rt_tensor>();
        expectOk(callsOf(step.get()).parameter(step.get(), Weight, &view));
        if (rank != 0)
          return;
        const auto *data = static_cast<const uint16_t *>(view.data);
        left.first.assign(data, data + view.elements);
        left.second = countersOf(runtime).bytes_sent;
      },
      options);
  return left;
}

TEST(Precondition, KeptOnesChangeNothing) {
  EXPECT_EQ(train(true), train(false));
}

TEST(Precondition, InputsAreTheSame) {
  LibraryBuilder library = makeTrainStep(3);
  runSteps(
      library.get(),
      [](int32_t rank, zero_rt_step *step) {
        backward(step);
        expectStatus(ZERO_RT_MISMATCH, applyStep(step, rank == 2 ? 0.5 : 0.25),
                     "input 0 of apply is 0.5 on rank 2, and 0.25 on rank 0: "
                     "they must pass the same");
        expectOk(applyStep(step, 0.25));
      },
      checked());
}

TEST(Precondition, SharesOfAnInputMayDiffer) {
  LibraryBuilder library = makeTrainStep(3);
  library.inputs[0].over = 0; // the axis set of dp
  runSteps(
      library.get(),
      [](int32_t rank, zero_rt_step *step) {
        backward(step);
        expectOk(applyStep(step, 0.25 * rank));
      },
      checked());
}

TEST(Precondition, InitialValuesAreTheSame) {
  LibraryBuilder library = makeTrainStep(3);
  runSteps(
      library.get(),
      [](int32_t rank, zero_rt_step *step) {
        bindParameter(step, Bias, rank == 1 ? 1.0f : 2.0f);
        backward(step);
        expectStatus(ZERO_RT_MISMATCH, applyStep(step),
                     "'parameter' of fc1.bias differs between rank 1 and rank "
                     "0: all ranks must bind the same values");
        expectOk(callsOf(step).discard(step));
        bindParameter(step, Bias, 2.0f);
        backward(step);
        expectOk(applyStep(step));
      },
      checked());
}

// Between steps, too; scalars are state of all ranks.
TEST(Precondition, WrittenStateIsTheSame) {
  LibraryBuilder library = makeTrainStep(2);
  runSteps(
      library.get(),
      [](int32_t rank, zero_rt_step *step) {
        backward(step);
        expectOk(applyStep(step));
        double steps = 7 + rank;
        writeState(step, "steps", -1, &steps, sizeof(steps));
        backward(step);
        expectStatus(ZERO_RT_MISMATCH, applyStep(step),
                     "'steps' differs between rank 1 and rank 0");
      },
      checked());
}

TEST(Precondition, CallsComeInOneOrder) {
  LibraryBuilder library = makeTrainStep(2);
  runSteps(
      library.get(),
      [](int32_t rank, zero_rt_step *step) {
        backward(step);
        expectStatus(ZERO_RT_MISMATCH,
                     rank == 0 ? applyStep(step) : callsOf(step).discard(step),
                     "rank 1 calls discard, rank 0 calls apply: all ranks must "
                     "call them in one order");
        expectOk(applyStep(step));
      },
      checked());
}

// One rank has nobody to differ from.
TEST(Precondition, OneRankKeepsThemAll) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(
      library.get(),
      [](int32_t, zero_rt_step *step) {
        backward(step);
        expectOk(applyStep(step));
      },
      checked());
}

} // namespace
