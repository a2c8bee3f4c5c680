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
#include "core/numeric.h"

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

/// Gives an element of this rank's view another value.
void writeView(zero_rt_step *step, int32_t parameter, int64_t element,
               float value) {
  auto view = sized<zero_rt_tensor>();
  expectOk(callsOf(step).parameter(step, parameter, &view));
  static_cast<uint16_t *>(view.data)[element] = bf16FromFloat(value);
}

// The rank that has the master weights of a written element finds the write.
TEST(Precondition, WritesToViewsAreDeclared) {
  LibraryBuilder library = makeTrainStep(2);
  runSteps(
      library.get(),
      [](int32_t rank, zero_rt_step *step) {
        const zero_rt_calls &calls = callsOf(step);
        bindParameter(step, Tied, 1);
        backward(step);
        expectOk(applyStep(step, 0.0625));
        writeView(step, Tied, 3, 77); // element 17: of rank 1
        const char *text =
            "'tied' was written on rank 1 since the last step, and the next "
            "step would start from its old values; call "
            "zero_rt_step_parameters_changed";
        for (int k = 0; k < 2 && rank == 1; ++k)
          expectStatus(ZERO_RT_PROTOCOL, calls.begin_backward(step, 0), text);
        std::vector<float> gradient = trainGradient(Bias, 1);
        zero_rt_tensor tensor = tensorOf(ZERO_RT_F32, gradient);
        if (rank == 1)
          expectStatus(
              ZERO_RT_PROTOCOL,
              calls.gradient_of(step, 0, Bias, &tensor, nullptr, nullptr),
              text);
        expectOk(calls.parameters_changed(step, nullptr, 0, nullptr, nullptr));
        backward(step);
        expectOk(calls.accumulate(step));
        // A later backward pass of a step is not the first one.
        writeView(step, Tied, 3, 78);
        expectOk(calls.begin_backward(step, 0));
        expectOk(calls.discard(step));
        if (rank == 1)
          expectStatus(ZERO_RT_PROTOCOL, calls.begin_backward(step, 0), text);
        bindParameter(step, Tied, 1);
        backward(step);
        expectOk(applyStep(step));
      },
      checked());
}

// A checkpoint may have any values. They are no write to a view, in this step
// and in later ones that leave them as they are.
TEST(Precondition, WritesOfStateNeedNoDeclaration) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(
      library.get(),
      [](int32_t, zero_rt_step *step) {
        const zero_rt_calls &calls = callsOf(step);
        const uint16_t values[3] = {};
        const float masters[3] = {1, 2, 3};
        writeState(step, "parameter", Bias, values, sizeof(values));
        writeState(step, "master", Bias, masters, sizeof(masters));
        for (int k = 0; k < 2; ++k) {
          backward(step);
          expectOk(calls.discard(step));
        }
        backward(step);
        expectOk(applyStep(step));
        backward(step); // which finds that they agree again
        expectOk(calls.discard(step));
        writeView(step, Bias, 1, 77);
        expectStatus(ZERO_RT_PROTOCOL, calls.begin_backward(step, 0),
                     "'fc1.bias' was written on rank 0");
      },
      checked());
}

} // namespace
