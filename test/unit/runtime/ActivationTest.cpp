//===- ActivationTest.cpp - What stages send each other -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TrainStep.h"

#include <functional>
#include <thread>

using namespace zero_rt::test;

namespace {

enum Activation { Fixed, Open, Scalar };

/// |stages| stages of |copies| ranks. `fixed` and `open` go from stage 0 to 1,
/// `scalar` from the last to the first.
LibraryBuilder makePipeline(int64_t stages, int64_t copies = 1) {
  LibraryBuilder library = makeTrainStep(stages * copies);
  library.axes = {{library.addText("pp"), stages},
                  {library.addText("dp"), copies}};
  library.axisSets = {3};
  library.activations = {
      {library.addText("fixed"), ZERO_RT_F32, 0, 0, 1, 2, {2, 3}},
      {library.addText("open"), ZERO_RT_F16, 0, 0, 1, 3, {-1, 2, -1}},
      {library.addText("scalar"), ZERO_RT_F64, 0, stages - 1, 0, 0, {}}};
  return library;
}

/// As runSteps, with the counters of the rank at the end.
void runCounted(
    const LibraryBuilder &built,
    const std::function<void(int32_t rank, zero_rt_step *)> &body,
    const std::function<void(int32_t rank, const zero_rt_counters &)> &check) {
  LibraryBuilder library = built;
  const zero_rt_library &compiled = library.get();
  runRanks(int32_t(library.ranks), [&](int32_t rank, zero_rt_runtime *runtime) {
    StepHandle step = createStep(runtime, compiled);
    body(rank, step.get());
    check(rank, countersOf(runtime));
  });
}

zero_rt_status send(zero_rt_step *step, int32_t activation, int64_t microBatch,
                    std::vector<float> values) {
  zero_rt_tensor tensor = tensorOf(ZERO_RT_F32, values);
  zero_rt_status status = callsOf(step).send(step, activation, microBatch,
                                             &tensor, nullptr, nullptr);
  // It has been copied.
  values.assign(values.size(), -1);
  return status;
}

zero_rt_status receive(zero_rt_step *step, int32_t activation,
                       int64_t microBatch, std::vector<float> &values) {
  zero_rt_tensor tensor = tensorOf(ZERO_RT_F32, values);
  return callsOf(step).receive(step, activation, microBatch, &tensor, nullptr);
}

void expectReceived(zero_rt_step *step, int64_t microBatch, float first) {
  std::vector<float> values(6, -1);
  expectOk(receive(step, Fixed, microBatch, values));
  EXPECT_EQ(values, std::vector<float>(6, first)) << microBatch;
}

zero_rt_status sendOpen(zero_rt_step *step, int64_t microBatch,
                        const std::vector<int64_t> &shape, int64_t elements) {
  std::vector<uint16_t> values(static_cast<size_t>(elements),
                               uint16_t(microBatch));
  zero_rt_tensor tensor = tensorOf(ZERO_RT_F16, values);
  return callsOf(step).send(step, Open, microBatch, &tensor,
                            shape.empty() ? nullptr : shape.data(), nullptr);
}

int32_t verdictOf(zero_rt_step *step) {
  auto results = sized<zero_rt_results>();
  expectOk(callsOf(step).results(step, &results));
  return results.verdict;
}

} // namespace

// Ranks send to those at the same place on the other stage, and no order of
// sends blocks; receives find what they ask for.
TEST(Activation, GoesForthAndBackInAnyOrder) {
  constexpr int64_t copies = 3, microBatches = 20;
  auto body = [&](int32_t rank, zero_rt_step *step) {
    bool isFirst = rank < copies;
    float mine = float(rank % copies) * 1000;
    auto valueOf = [&](int64_t m) { return mine + float(m); };
    if (isFirst) {
      for (int64_t m = 0; m < microBatches; ++m)
        expectOk(send(step, Fixed, m, std::vector<float>(6, valueOf(m))));
      for (int64_t m = 0; m < microBatches; ++m)
        expectReceived(step, m, -valueOf(m));
    } else {
      for (int64_t m = microBatches - 1; m >= 0; --m)
        expectReceived(step, m, valueOf(m));
      for (int64_t m : {7, 3, 19}) // and the others after them
        expectOk(send(step, Fixed, m, std::vector<float>(6, -valueOf(m))));
      for (int64_t m = 0; m < microBatches; ++m)
        if (m != 7 && m != 3 && m != 19)
          expectOk(send(step, Fixed, m, std::vector<float>(6, -valueOf(m))));
    }
  };
  runCounted(makePipeline(2, copies), body,
             [&](int32_t, const zero_rt_counters &counters) {
               EXPECT_EQ(counters.activations_sent, microBatches);
               EXPECT_EQ(counters.activation_bytes_sent, microBatches * 24);
               EXPECT_EQ(counters.activation_headers_sent, 0);
             });
}

// The extents go before an activation that has some that are not declared, and
// not before its gradient.
TEST(Activation, ExtentsComeWithWhatIsNotDeclared) {
  const std::vector<std::vector<int64_t>> shapes = {
      {3, 2, 5}, {1, 2, 1}, {0, 2, 7}, {2, 2, 1000}};
  auto body = [&](int32_t rank, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    for (size_t m = 0; m < shapes.size(); ++m) {
      const std::vector<int64_t> &shape = shapes[m];
      int64_t elements = shape[0] * shape[1] * shape[2];
      if (rank == 0)
        expectOk(sendOpen(step, int64_t(m), shape, elements));
      std::vector<int64_t> extents(3, -1);
      expectOk(calls.receive_shape(step, Open, int64_t(m), extents.data()));
      EXPECT_EQ(extents, shape);
      // Once more; nothing is used up.
      expectOk(calls.receive_shape(step, Open, int64_t(m), extents.data()));
      std::vector<uint16_t> values(static_cast<size_t>(elements), 99);
      zero_rt_tensor tensor = tensorOf(ZERO_RT_F16, values);
      zero_rt_tensor large = tensor;
      ++large.elements;
      expectStatus(ZERO_RT_INVALID_ARGUMENT,
                   calls.receive(step, Open, int64_t(m), &large, nullptr),
                   ("'open' has " + std::to_string(elements + 1) +
                    (elements ? " elements" : " element") + ", expected " +
                    std::to_string(elements))
                       .c_str());
      expectOk(calls.receive(step, Open, int64_t(m), &tensor, nullptr));
      EXPECT_EQ(values, std::vector<uint16_t>(size_t(elements), uint16_t(m)));
      if (rank == 1) {
        std::vector<int64_t> other = shape;
        ++other[0];
        expectStatus(
            ZERO_RT_INVALID_ARGUMENT,
            sendOpen(step, int64_t(m), other, other[0] * other[1] * other[2]),
            "and the activation has [");
        // With its extents or without.
        expectOk(sendOpen(step, int64_t(m),
                          m % 2 ? shape : std::vector<int64_t>(), elements));
      }
    }
  };
  runCounted(makePipeline(2), body,
             [](int32_t rank, const zero_rt_counters &counters) {
               EXPECT_EQ(counters.activations_sent, 4);
               EXPECT_EQ(counters.activation_headers_sent, rank == 0 ? 4 : 0);
               EXPECT_EQ(counters.activation_bytes_sent,
                         2 * (30 + 2 + 0 + 4000));
             });
}

TEST(Activation, AScalarGoesFromTheLastStageToTheFirst) {
  LibraryBuilder library = makePipeline(3);
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    double loss = rank == 2 ? 0.5 : 0;
    zero_rt_tensor tensor = tensorOf(ZERO_RT_F64, &loss, 1);
    if (rank == 2)
      expectOk(calls.send(step, Scalar, 0, &tensor, nullptr, nullptr));
    else if (rank == 0)
      expectOk(calls.receive(step, Scalar, 0, &tensor, nullptr));
    else
      expectStatus(ZERO_RT_INVALID_ARGUMENT,
                   calls.receive(step, Scalar, 0, &tensor, nullptr),
                   "activation 'scalar' goes from pp = 2 to 0, and rank 1 is "
                   "at 1");
    EXPECT_EQ(loss, rank == 1 ? 0 : 0.5);
  });
}

TEST(Activation, RefusesWhatItCannotSend) {
  LibraryBuilder library = makePipeline(2);
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    int32_t found = -2;
    expectOk(calls.find_activation(step, "open", &found));
    EXPECT_EQ(found, Open);
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.find_activation(step, "opem", &found),
                 "no activation 'opem': 'train' has 'fixed', 'open', 'scalar'");
    std::vector<float> six(6), seven(7);
    for (int32_t bad : {-1, 3})
      expectStatus(ZERO_RT_INVALID_ARGUMENT, send(step, bad, 0, six),
                   "is out of range, step 'train' has 3");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, receive(step, Fixed, -1, six),
                 "receive: micro_batch is -1, expected at least 0");
    if (rank == 1) {
      expectStatus(ZERO_RT_PROTOCOL, send(step, Fixed, 0, six),
                   "send: gradient of activation 'fixed' of micro-batch 0, "
                   "which rank 1 has not received since the last apply");
      return;
    }
    expectStatus(ZERO_RT_PROTOCOL, receive(step, Fixed, 5, six),
                 "receive: gradient of activation 'fixed' of micro-batch 5, "
                 "which rank 0 has not sent since the last apply");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, send(step, Fixed, 0, seven),
                 "'fixed' has 7 elements, expected 6");
    std::vector<uint16_t> halves(6);
    zero_rt_tensor tensor = tensorOf(ZERO_RT_BF16, halves);
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.send(step, Fixed, 0, &tensor, nullptr, nullptr),
                 "activation 'fixed' has dtype bf16, expected f32");
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.send(step, Fixed, 0, nullptr, nullptr, nullptr),
                 "tensor is null");
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.receive_shape(step, Fixed, 0, nullptr),
                 "out_shape is null");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, sendOpen(step, 0, {}, 6),
                 "extent 0 of activation 'open' of micro-batch 0 is declared "
                 "'?'; pass its shape");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, sendOpen(step, 0, {1, 3, 1}, 3),
                 "is 3, expected 2");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, sendOpen(step, 0, {-1, 2, 1}, 3),
                 "is -1, expected at least 0");
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 sendOpen(step, 0, {int64_t(1) << 40, 2, int64_t(1) << 40}, 3),
                 "is too large: [1099511627776, 2, 1099511627776]");
    // None of these has sent it.
    expectOk(send(step, Fixed, 0, six));
    expectStatus(ZERO_RT_PROTOCOL, send(step, Fixed, 0, six),
                 "send: activation 'fixed' of micro-batch 0 was sent since the "
                 "last apply");
  });
}

TEST(Activation, IsReceivedOnce) {
  LibraryBuilder library = makePipeline(2);
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    std::vector<float> six(6);
    if (rank == 0) {
      expectOk(send(step, Fixed, 0, six));
      return;
    }
    expectOk(receive(step, Fixed, 0, six));
    expectStatus(ZERO_RT_PROTOCOL, receive(step, Fixed, 0, six),
                 "receive: activation 'fixed' of micro-batch 0 was received "
                 "since the last apply");
  });
}

// Who waits is told for what and for whom, and may wait again.
TEST(Activation, WaitsNoLongerThanTheTimeout) {
  LibraryBuilder library = makePipeline(2);
  Options options;
  options.timeoutMs = 300;
  Gate late;
  runSteps(
      library.get(),
      [&](int32_t rank, zero_rt_step *step) {
        if (rank == 0) {
          late.wait();
          expectOk(send(step, Fixed, 4, std::vector<float>(6, 2)));
          return;
        }
        std::vector<float> six(6);
        expectStatus(ZERO_RT_TIMEOUT, receive(step, Fixed, 4, six),
                     "activation 'fixed' of micro-batch 4 did not come from "
                     "rank 0 within 300 ms");
        late.open();
        // Long enough for a machine that is busy with other things.
        for (int i = 0; i < 200 && receive(step, Fixed, 4, six); ++i)
          ;
        EXPECT_EQ(six, std::vector<float>(6, 2));
      },
      options);
}

// Who waits for a rank that leaves is told; what it sent before comes all the
// same, and it waits for that no longer than the other is there.
TEST(Activation, ARankThatLeavesFreesWhoWaits) {
  LibraryBuilder library = makePipeline(2);
  const zero_rt_library &compiled = library.get();
  runRanks(2, [&](int32_t rank, zero_rt_runtime *runtime) {
    StepHandle step = createStep(runtime, compiled);
    if (rank == 0) {
      for (int64_t m : {0, 2})
        expectOk(send(step.get(), Fixed, m, std::vector<float>(6, 3)));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return;
    }
    std::vector<float> six(6);
    expectStatus(ZERO_RT_TIMEOUT, receive(step.get(), Fixed, 1, six),
                 "activation 'fixed' of micro-batch 1 will not come: rank 0 "
                 "destroyed its step");
    expectReceived(step.get(), 0, 3);
  });
}

TEST(Activation, BothMayLeaveWithoutReading) {
  LibraryBuilder library = makePipeline(2);
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    std::vector<float> six(6);
    if (rank == 0)
      for (int64_t m : {0, 1})
        expectOk(send(step, Fixed, m, six));
    else
      expectReceived(step, 0, 0);
    if (rank == 1)
      expectOk(send(step, Fixed, 0, six));
  });
}

// A window ends with apply or discard; numbers begin anew.
TEST(Activation, EachWindowIsItsOwn) {
  LibraryBuilder library = makePipeline(2);
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    auto backward = [&] {
      expectOk(calls.begin_backward(step, ZERO_RT_HINT_LAST));
      passAll(step);
    };
    auto exchange = [&](float value) {
      if (rank == 0)
        expectOk(send(step, Fixed, 0, std::vector<float>(6, value)));
      else
        expectReceived(step, 0, value);
    };
    exchange(1);
    backward();
    expectOk(applyStep(step));
    EXPECT_EQ(verdictOf(step), ZERO_RT_APPLIED);
    // The same number, in the next window; it is dropped.
    backward();
    if (rank == 0)
      expectOk(send(step, Fixed, 0, std::vector<float>(6, 2)));
    expectOk(calls.discard(step));
    exchange(3);
    // A stage that has begun a backward pass, and one that has only sent.
    if (rank == 1)
      backward();
    expectOk(calls.discard(step));
    exchange(4);
    backward();
    expectOk(applyStep(step));
    EXPECT_EQ(verdictOf(step), ZERO_RT_APPLIED);
  });
}

// Whenever it comes: a step is refused on all ranks if one of them has sent
// what another did not receive, and nothing of it is left for the next.
TEST(Activation, WhatNobodyReceivesRefusesTheStep) {
  LibraryBuilder library = makePipeline(2);
  for (bool isLate : {false, true})
    for (bool isGradient : {false, true}) {
      Gate applies;
      runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
        const zero_rt_calls &calls = callsOf(step);
        int32_t sender = isGradient ? 1 : 0;
        if (isGradient && rank == 0)
          expectOk(send(step, Fixed, 7, std::vector<float>(6, 1)));
        if (isGradient && rank == 1)
          expectReceived(step, 7, 1);
        expectOk(calls.begin_backward(step, ZERO_RT_HINT_LAST));
        passAll(step);
        if (rank == sender) {
          if (isLate) {
            applies.wait();
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          }
          expectOk(send(step, Fixed, 7, std::vector<float>(6, 2)));
          applies.open();
        } else {
          if (!isLate)
            applies.wait();
          applies.open();
        }
        expectOk(applyStep(step));
        auto results = sized<zero_rt_results>();
        expectStatus(
            ZERO_RT_MISSING_GRADIENT, calls.results(step, &results),
            isGradient ? "step refused: gradient of activation 'fixed' of "
                         "micro-batch 7 from rank 1 was not received on rank 0"
                       : "step refused: activation 'fixed' of micro-batch 7 "
                         "from rank 0 was not received on rank 1");
        expectOk(calls.begin_backward(step, ZERO_RT_HINT_LAST));
        passAll(step);
        expectOk(applyStep(step));
        EXPECT_EQ(verdictOf(step), ZERO_RT_APPLIED);
      });
    }
}

// Memory of what was received is used again; all of it counts as staging.
TEST(Activation, KeepsCopiesForTheNext) {
  auto body = [](int32_t rank, zero_rt_step *step) {
    for (int64_t m = 0; m < 50; ++m) {
      // Back and forth: one of each is under way.
      if (rank == 0)
        expectOk(send(step, Fixed, m, std::vector<float>(6, float(m))));
      expectReceived(step, m, float(m));
      if (rank == 1)
        expectOk(send(step, Fixed, m, std::vector<float>(6, float(m))));
    }
  };
  runCounted(
      makePipeline(2), body, [](int32_t, const zero_rt_counters &counters) {
        int64_t allocations =
            counters.allocations[ZERO_RT_SPACE_DEVICE][ZERO_RT_ROLE_STAGING];
        EXPECT_LE(allocations, 2);
        EXPECT_GE(allocations, 1);
      });
}

// Of whatever extents: no more than what was under way together, at its
// largest.
TEST(Activation, KeepsNoMoreThanWasUnderWay) {
  constexpr int64_t largest = 200;
  auto body = [](int32_t rank, zero_rt_step *step) {
    for (int64_t m = 0; m < largest; ++m) {
      if (rank == 0)
        expectOk(sendOpen(step, m, {m + 1, 2, 1}, 2 * (m + 1)));
      std::vector<uint16_t> values(static_cast<size_t>(2 * (m + 1)));
      zero_rt_tensor tensor = tensorOf(ZERO_RT_F16, values);
      expectOk(callsOf(step).receive(step, Open, m, &tensor, nullptr));
      if (rank == 1)
        expectOk(sendOpen(step, m, {}, 2 * (m + 1)));
    }
  };
  runCounted(
      makePipeline(2), body, [](int32_t, const zero_rt_counters &counters) {
        EXPECT_LE(
            counters.bytes_peak[ZERO_RT_SPACE_DEVICE][ZERO_RT_ROLE_STAGING],
            2 * (4 * largest + 24));
      });
}

TEST(Activation, RefusesALibraryThatIsDamaged) {
  const std::function<void(zero_rt_activation_row &)> damages[] = {
      [](auto &row) { row.name = -1; },
      [](auto &row) { row.dtype = 9; },
      [](auto &row) { row.axis = 2; },
      [](auto &row) { row.axis = -1; },
      [](auto &row) { row.from = 2; },
      [](auto &row) { row.to = -1; },
      [](auto &row) { row.to = row.from; },
      [](auto &row) { row.num_dims = 9; },
      [](auto &row) { row.dims[0] = -2; },
      [](auto &row) { row.dims[0] = row.dims[1] = int64_t(1) << 40; },
  };
  for (const auto &damage : damages) {
    LibraryBuilder library = makePipeline(2);
    damage(library.activations[Open]);
    expectRefused(library.get(), ZERO_RT_INTERNAL,
                  "is corrupt: activation 1: bad");
  }
}
