//===- WholeNumbersTest.cpp - Activations of whole numbers ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TrainStep.h"

#include "core/step.h"

#include <limits>

using namespace zero_rt::test;

namespace {

enum Activation { Ids, Mask, Places };

/// Two stages; all of it goes from the first to the second.
LibraryBuilder makePipeline() {
  LibraryBuilder library = makeTrainStep(2);
  library.axes = {{library.addText("pp"), 2}};
  library.axisSets = {1};
  library.activations = {
      {library.addText("ids"), ZERO_RT_I64, 0, 0, 1, 1, {3}},
      {library.addText("mask"), ZERO_RT_I8, 0, 0, 1, 1, {-1}},
      {library.addText("places"), ZERO_RT_I32, 0, 0, 1, 1, {2}}};
  return library;
}

/// What the second stage gets of |values|, with the last element of what it
/// had.
template <typename T>
void expectThatComes(zero_rt_step *step, int32_t rank, int32_t activation,
                     int32_t dtype, std::vector<T> values,
                     const int64_t *shape = nullptr) {
  const zero_rt_calls &calls = callsOf(step);
  std::vector<T> got(values.size() + 1, T(77));
  zero_rt_tensor out = tensorOf(dtype, values);
  zero_rt_tensor in = tensorOf(dtype, got);
  in.elements = int64_t(values.size());
  if (rank == 0) {
    expectOk(calls.send(step, activation, 0, &out, shape, nullptr));
    return;
  }
  expectOk(calls.receive(step, activation, 0, &in, nullptr));
  values.push_back(T(77));
  EXPECT_EQ(got, values);
}

TEST(WholeNumbers, ComeAsTheyAre) {
  runSteps(makePipeline().get(), [](int32_t rank, zero_rt_step *step) {
    constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
    int64_t extent = 5;
    expectThatComes<int64_t>(step, rank, Ids, ZERO_RT_I64,
                             {kLeast, -1, 1LL << 53 | 1});
    expectThatComes<int8_t>(step, rank, Mask, ZERO_RT_I8, {1, 0, -128, 127, 1},
                            &extent);
    expectThatComes<int32_t>(step, rank, Places, ZERO_RT_I32,
                             {1 << 24 | 1, -7});
    zero_rt_counters counters = countersOf(runtimeOf(step));
    EXPECT_EQ(counters.activation_bytes_sent, rank ? 0 : 24 + 5 + 8);
  });
}

TEST(WholeNumbers, HaveNoGradient) {
  runSteps(makePipeline().get(), [](int32_t rank, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectThatComes<int64_t>(step, rank, Ids, ZERO_RT_I64, {1, 2, 3});
    std::vector<int64_t> values(3);
    zero_rt_tensor tensor = tensorOf(ZERO_RT_I64, values);
    zero_rt_status status =
        rank ? calls.send(step, Ids, 0, &tensor, nullptr, nullptr)
             : calls.receive(step, Ids, 0, &tensor, nullptr);
    expectStatus(ZERO_RT_INVALID_ARGUMENT, status,
                 "gradient of activation 'ids' of micro-batch 0, which is of "
                 "i64 and has none");
  });
}

TEST(WholeNumbers, AreOfTheDeclaredType) {
  runSteps(makePipeline().get(), [](int32_t rank, zero_rt_step *step) {
    if (rank)
      return;
    std::vector<int32_t> values(3);
    zero_rt_tensor tensor = tensorOf(ZERO_RT_I32, values);
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 callsOf(step).send(step, Ids, 0, &tensor, nullptr, nullptr),
                 "i32");
  });
}

// Nothing is computed with them.
TEST(WholeNumbers, AreNoParameters) {
  LibraryBuilder library = makePipeline();
  library.parameters[0].dtype = ZERO_RT_I32;
  expectRefused(library.get(), ZERO_RT_INTERNAL, "bad dtype");
}

} // namespace
