//===- GradientTest.cpp - Gradients that arrive, twice, or never ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TrainStep.h"
#include "core/step.h"

#include <cstdlib>

using namespace zero_rt::test;

namespace {

/// The gradient buffer, which the ABI does not show.
std::vector<float> gradientBuffer(zero_rt_step *step) {
  auto *data = static_cast<float *>(step->get()->buffers[GradientBuffer].data);
  return std::vector<float>(data, data + trainElements);
}

void expectSegment(zero_rt_step *step, int32_t parameter, float value) {
  std::vector<float> buffer = gradientBuffer(step);
  for (int64_t i = 0; i < trainExtents[parameter]; ++i)
    EXPECT_EQ(buffer[size_t(trainOffsets[parameter] + i)],
              i < trainSizes[parameter] ? value * float(i + 1) : 0)
        << "parameter " << parameter << " element " << i;
}

TEST(Gradient, ChecksTheTensor) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(calls.begin_backward(step, 0));
    std::vector<float> data(3);
    auto refuses = [&](zero_rt_tensor tensor, const char *text) {
      expectStatus(ZERO_RT_INVALID_ARGUMENT,
                   calls.gradient(step, Bias, &tensor, nullptr, nullptr), text);
    };
    zero_rt_tensor good = tensorOf(ZERO_RT_F32, data);
    zero_rt_tensor tensor = good;
    tensor.dtype = ZERO_RT_BF16;
    refuses(tensor, "gradient of 'fc1.bias' has dtype bf16, expected f32");
    tensor = good;
    tensor.elements = 4;
    refuses(tensor, "gradient of 'fc1.bias' has 4 elements, expected 3");
    tensor = good;
    tensor.space = 5;
    refuses(tensor, "is in unknown space 5");
    tensor.space = ZERO_RT_SPACE_HOST;
    refuses(tensor, "is in space 'host', expected 'device'");
    tensor = good;
    tensor.data = nullptr;
    refuses(tensor, "gradient of 'fc1.bias' has null data");
    tensor = good;
    tensor.struct_size = 4;
    refuses(tensor, "tensor->struct_size is 4");
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.gradient(step, -1, &good, nullptr, nullptr),
                 "parameter -1 is out of range");
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.gradient(step, Bias, nullptr, nullptr, nullptr),
                 "tensor is null");
    zero_rt_timepoint release = 9;
    expectOk(calls.gradient(step, Bias, &good, nullptr, &release));
    EXPECT_EQ(release, 0u);
    expectOk(calls.discard(step));
  });
}

TEST(Gradient, ASecondArrivalIsNamed) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    expectOk(callsOf(step).begin_backward(step, 0));
    expectOk(passGradient(step, Weight));
    expectStatus(
        ZERO_RT_PROTOCOL, passGradient(step, Weight),
        "gradient of 'fc1.weight' arrived 2 times in this backward pass, "
        "declared 1");
    // The next backward pass counts anew.
    expectOk(callsOf(step).accumulate(step));
    expectOk(callsOf(step).begin_backward(step, 0));
    expectOk(passGradient(step, Weight));
    expectSegment(step, Weight, 2);
    expectOk(callsOf(step).discard(step));
  });
}

TEST(Gradient, DeclaredUsesAddUp) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(calls.begin_backward(step, 0));
    expectOk(passGradient(step, Tied, 1));
    expectOk(passGradient(step, Tied, 2));
    expectSegment(step, Tied, 3);
    expectStatus(ZERO_RT_PROTOCOL, passGradient(step, Tied, 2),
                 "gradient of 'tied' arrived 3 times in this backward pass, "
                 "declared 2");
    expectOk(calls.accumulate(step));
    expectOk(calls.begin_backward(step, 0));
    expectOk(passGradient(step, Tied, 4));
    expectOk(passGradient(step, Tied, 8));
    expectSegment(step, Tied, 15);
    expectOk(calls.discard(step));
  });
}

// Poisoned memory shows whatever nobody wrote: pads and what did not arrive.
TEST(Gradient, PadsAndMissingOnesAreZero) {
  LibraryBuilder library = makeTrainStep(1);
  Options options;
  options.poison = true;
  runSteps(
      library.get(),
      [](int32_t, zero_rt_step *step) {
        const zero_rt_calls &calls = callsOf(step);
        expectOk(calls.begin_backward(step, 0));
        EXPECT_NE(gradientBuffer(step)[0], gradientBuffer(step)[0]);
        expectOk(passGradient(step, Weight));
        expectOk(passGradient(step, Tied));
        expectOk(calls.accumulate(step));
        expectSegment(step, Weight, 1);
        expectSegment(step, Bias, 0);
        expectSegment(step, Tied, 1);
        expectSegment(step, Extra, 0);
        // First seen in the second backward pass: added to zeros.
        expectOk(calls.begin_backward(step, 0));
        expectOk(passGradient(step, Extra, 5));
        expectSegment(step, Extra, 5);
        expectOk(calls.discard(step));
      },
      options);
}

TEST(Gradient, SlotsOverwriteThenAdd) {
  LibraryBuilder library = makeTrainStep(1);
  Options options;
  options.poison = true;
  runSteps(
      library.get(),
      [](int32_t, zero_rt_step *step) {
        const zero_rt_calls &calls = callsOf(step);
        auto slot = sized<zero_rt_tensor>();
        double beta = -1;
        auto produce = [&](int32_t parameter, float value, double expected) {
          expectOk(calls.gradient_slot(step, parameter, nullptr, &slot, &beta));
          EXPECT_EQ(beta, expected);
          EXPECT_EQ(slot.elements, trainSizes[parameter]);
          EXPECT_EQ(slot.dtype, ZERO_RT_F32);
          auto *data = static_cast<float *>(slot.data);
          for (int64_t i = 0; i < slot.elements; ++i)
            data[i] = value * float(i + 1) + (beta == 0 ? 0 : data[i]);
          expectOk(calls.gradient_ready(step, parameter, nullptr));
        };
        expectOk(calls.begin_backward(step, 0));
        produce(Weight, 1, 0);
        produce(Tied, 1, 0);
        produce(Tied, 2, 1); // the second use
        expectSegment(step, Weight, 1);
        expectSegment(step, Tied, 3);
        expectStatus(ZERO_RT_PROTOCOL,
                     calls.gradient_slot(step, Weight, nullptr, &slot, &beta),
                     "arrived 2 times");
        expectOk(calls.accumulate(step));
        expectOk(calls.begin_backward(step, 0));
        produce(Weight, 4, 1);
        expectSegment(step, Weight, 5);
        expectOk(calls.discard(step));
        // A new window overwrites again.
        expectOk(calls.begin_backward(step, 0));
        produce(Weight, 7, 0);
        expectSegment(step, Weight, 7);
        expectOk(calls.discard(step));
      },
      options);
}

// A plan that reduces every backward pass stores each one anew.
TEST(Gradient, SlotsOverwriteWhereNothingAccumulates) {
  LibraryBuilder library = makeTrainStep(1);
  auto row = [&](int64_t state, int64_t event) -> zero_rt_transition_row & {
    for (zero_rt_transition_row &row : library.transitions)
      if (row.state == state && row.event == event)
        return row;
    std::abort();
  };
  row(InFirst, ZERO_RT_EVENT_ACCUMULATE).count = 1; // fills, does not keep
  row(InLater, ZERO_RT_EVENT_ARRIVE).first =
      row(InFirst, ZERO_RT_EVENT_ARRIVE).first;
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(calls.begin_backward(step, 0));
    passAll(step);
    expectOk(calls.accumulate(step));
    expectOk(calls.begin_backward(step, 0));
    auto slot = sized<zero_rt_tensor>();
    double beta = -1;
    expectOk(calls.gradient_slot(step, Weight, nullptr, &slot, &beta));
    EXPECT_EQ(beta, 0);
    std::vector<float> value = trainGradient(Weight, 3);
    std::copy(value.begin(), value.end(), static_cast<float *>(slot.data));
    expectOk(calls.gradient_ready(step, Weight, nullptr));
    expectSegment(step, Weight, 3);
    expectOk(calls.discard(step));
  });
}

// Where the role says less than the handlers do, the data would be lost.
TEST(Gradient, AWrongBetaIsABug) {
  LibraryBuilder library = makeTrainStep(1);
  for (zero_rt_transition_row &row : library.transitions)
    if (row.state == InFirst && row.event == ZERO_RT_EVENT_ACCUMULATE)
      row.count = 1;
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(calls.begin_backward(step, 0));
    expectOk(calls.accumulate(step));
    expectOk(calls.begin_backward(step, 0));
    auto slot = sized<zero_rt_tensor>();
    double beta;
    expectOk(calls.gradient_slot(step, Weight, nullptr, &slot, &beta));
    expectStatus(
        ZERO_RT_INTERNAL, calls.gradient_ready(step, Weight, nullptr),
        "the gradient view of 'fc1.weight' was handed out to overwrite, and "
        "the handler adds");
  });
}

TEST(Gradient, SlotsAreUsedInPairs) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    auto slot = sized<zero_rt_tensor>();
    double beta;
    expectStatus(ZERO_RT_PROTOCOL,
                 calls.gradient_slot(step, Bias, nullptr, &slot, &beta),
                 "gradient_slot in state 'idle'");
    expectOk(calls.begin_backward(step, 0));
    expectStatus(ZERO_RT_PROTOCOL, calls.gradient_ready(step, Bias, nullptr),
                 "gradient_ready of 'fc1.bias' without a gradient view");
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.gradient_slot(step, Bias, nullptr, &slot, nullptr),
                 "out_beta");
    expectOk(calls.gradient_slot(step, Bias, nullptr, &slot, &beta));
    expectStatus(
        ZERO_RT_PROTOCOL, passGradient(step, Bias),
        "while its gradient view is handed out; call gradient_ready first");
    expectOk(calls.discard(step));
  });
}

TEST(Gradient, NoSlotOfAnotherDtype) {
  LibraryBuilder library = makeTrainStep(1);
  library.parameters[Bias].gradient_dtype = ZERO_RT_BF16;
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    auto slot = sized<zero_rt_tensor>();
    double beta;
    expectOk(callsOf(step).begin_backward(step, 0));
    expectStatus(
        ZERO_RT_UNSUPPORTED,
        callsOf(step).gradient_slot(step, Bias, nullptr, &slot, &beta),
        "gradient of 'fc1.bias' has no gradient view: it arrives as bf16 and "
        "is kept as f32; call gradient instead");
    expectOk(callsOf(step).discard(step));
  });
}

} // namespace
