//===- StateTest.cpp - Parameters and state, independent of buckets -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TrainStep.h"
#include "core/numeric.h"
#include "core/step.h"

#include <map>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

std::vector<uint16_t> parameterValue(int32_t parameter) {
  return trainParameter(parameter, float(10 * parameter));
}

void bindAll(zero_rt_step *step) {
  for (int32_t p = 0; p < NumTrainParameters; ++p)
    bindParameter(step, p, float(10 * p));
}

std::vector<zero_rt_state_entry> entriesOf(zero_rt_step *step) {
  int64_t count = 0;
  expectOk(callsOf(step).state_count(step, &count));
  std::vector<zero_rt_state_entry> entries(size_t(count),
                                           sized<zero_rt_state_entry>());
  for (int64_t i = 0; i < count; ++i)
    expectOk(callsOf(step).state_describe(step, i, &entries[size_t(i)]));
  return entries;
}

int64_t bytesOf(const zero_rt_state_entry &entry) {
  return (entry.end - entry.begin) * elementSize(entry.dtype);
}

TEST(State, BindFillsParameterAndMaster) {
  for (int32_t ranks : {1, 2, 3, 4}) {
    LibraryBuilder library = makeTrainStep(ranks);
    runSteps(library.get(), [](int32_t, zero_rt_step *step) {
      const zero_rt_calls &calls = callsOf(step);
      bindAll(step);
      for (int32_t p = 0; p < NumTrainParameters; ++p) {
        auto view = sized<zero_rt_tensor>();
        expectOk(calls.parameter(step, p, &view));
        ASSERT_EQ(view.elements, trainSizes[p]);
        EXPECT_EQ(view.dtype, ZERO_RT_BF16);
        std::vector<uint16_t> expected = parameterValue(p);
        EXPECT_EQ(std::memcmp(view.data, expected.data(), expected.size() * 2),
                  0);
      }
      std::vector<zero_rt_state_entry> entries = entriesOf(step);
      for (size_t e = 0; e < entries.size(); ++e) {
        const zero_rt_state_entry &entry = entries[e];
        if (std::string(entry.role) != "master")
          continue;
        EXPECT_EQ(entry.dtype, ZERO_RT_F32);
        std::vector<float> master(size_t(entry.end - entry.begin));
        expectOk(
            calls.state_read(step, int64_t(e), master.data(), bytesOf(entry)));
        for (int64_t i = entry.begin; i < entry.end; ++i)
          EXPECT_EQ(master[size_t(i - entry.begin)],
                    float(10 * entry.parameter + i));
      }
    });
  }
}

TEST(State, BindChecksTheTensor) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    std::vector<uint16_t> value(4);
    zero_rt_tensor tensor = tensorOf(ZERO_RT_BF16, value);
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.bind_parameter(step, Bias, &tensor),
                 "parameter 'fc1.bias' has 4 elements, expected 3");
    tensor.elements = 3;
    tensor.dtype = ZERO_RT_F16;
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.bind_parameter(step, Bias, &tensor),
                 "parameter 'fc1.bias' has dtype f16, expected bf16");
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.bind_parameter(step, 4, &tensor), "parameter 4");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, calls.parameter(step, 0, nullptr),
                 "out_view is null");
    // From host to device space: the bytes are counted where they are written.
    tensor.dtype = ZERO_RT_BF16;
    tensor.space = ZERO_RT_SPACE_HOST;
    expectOk(calls.bind_parameter(step, Bias, &tensor));
    EXPECT_EQ(countersOf(runtimeOf(step)).bytes_copied_between_spaces, 2 * 6);
  });
}

// Whoever writes a parameter writes the copy that its update stages it in: a
// step that is skipped leaves both as they are, and copies the one to the
// other.
TEST(State, StagingCopiesFollowTheParameter) {
  LibraryBuilder library = makeTrainStep(2);
  library.addBuffer({"staging", ZERO_RT_BF16, trainElements, true,
                     ZERO_RT_ROLE_PARAMETER, ZERO_RT_SPACE_HOST});
  const auto staging = int32_t(library.buffers.size() - 1);
  library.buckets[0].staging_buffer = staging;
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    auto expectCopies = [&] {
      Range held = step->get()->held(staging);
      for (int32_t p = 0; p < NumTrainParameters; ++p)
        for (int64_t i = 0; i < trainSizes[p]; ++i) {
          int64_t e = trainOffsets[p] + i;
          if (e >= held.begin && e < held.end)
            EXPECT_EQ(
                *static_cast<uint16_t *>(step->get()->address(staging, e)),
                *static_cast<uint16_t *>(
                    step->get()->address(ParameterBuffer, e)));
        }
    };
    bindAll(step);
    expectCopies();
    std::vector<zero_rt_state_entry> entries = entriesOf(step);
    for (size_t e = 0; e < entries.size(); ++e) {
      if (std::string(entries[e].role) != "parameter")
        continue;
      std::vector<uint16_t> value(
          size_t(entries[e].end - entries[e].begin),
          bf16FromFloat(float(entries[e].parameter) + 0.5f));
      expectOk(calls.state_write(step, int64_t(e), value.data(),
                                 bytesOf(entries[e])));
    }
    expectCopies();
    EXPECT_EQ(
        *static_cast<uint16_t *>(step->get()->address(ParameterBuffer, 0)),
        bf16FromFloat(0.5f));
  });
}

// Over all ranks each master element appears once, each parameter element on
// every rank, the scalar on every rank.
TEST(State, EntriesCoverEveryElement) {
  for (int32_t ranks : {1, 2, 3, 4}) {
    LibraryBuilder library = makeTrainStep(ranks);
    std::mutex mutex;
    std::map<std::pair<int32_t, int64_t>, int> masters, parameters;
    int scalars = 0;
    runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
      std::lock_guard<std::mutex> lock(mutex);
      for (const zero_rt_state_entry &entry : entriesOf(step)) {
        EXPECT_LT(entry.begin, entry.end);
        if (entry.parameter == -1) {
          ++scalars;
          EXPECT_STREQ(entry.role, "steps");
          EXPECT_EQ(entry.dtype, ZERO_RT_F64);
          EXPECT_EQ(entry.end, 1);
          continue;
        }
        bool isMaster = std::string(entry.role) == "master";
        for (int64_t i = entry.begin; i < entry.end; ++i)
          ++(isMaster ? masters : parameters)[{entry.parameter, i}];
      }
    });
    EXPECT_EQ(scalars, ranks);
    EXPECT_EQ(masters.size(), 22u); // pads are no state
    EXPECT_EQ(parameters.size(), 22u);
    for (const auto &[element, count] : masters)
      EXPECT_EQ(count, 1);
    for (const auto &[element, count] : parameters)
      EXPECT_EQ(count, ranks);
  }
}

// A step with other values takes over all state, and then runs the same.
TEST(State, ReadAndWriteRoundTrip) {
  LibraryBuilder library = makeTrainStep(2);
  const zero_rt_library &tables = library.get();
  runRanks(2, [&](int32_t, zero_rt_runtime *runtime) {
    StepHandle first = createStep(runtime, tables);
    StepHandle second = createStep(runtime, tables);
    bindAll(first.get());
    auto train = [](zero_rt_step *step) {
      expectOk(callsOf(step).begin_backward(step, 0));
      passAll(step, 0.25f);
      expectOk(applyStep(step));
    };
    auto readAll = [](zero_rt_step *step) {
      std::vector<std::vector<char>> all;
      for (const zero_rt_state_entry &entry : entriesOf(step)) {
        all.emplace_back(size_t(bytesOf(entry)));
        expectOk(callsOf(step).state_read(step, int64_t(all.size() - 1),
                                          all.back().data(), bytesOf(entry)));
      }
      return all;
    };
    train(first.get());
    std::vector<std::vector<char>> state = readAll(first.get());
    EXPECT_NE(state, readAll(second.get()));
    for (size_t e = 0; e < state.size(); ++e)
      expectOk(callsOf(second.get())
                   .state_write(second.get(), int64_t(e), state[e].data(),
                                int64_t(state[e].size())));
    EXPECT_EQ(state, readAll(second.get()));
    train(first.get());
    train(second.get());
    EXPECT_EQ(readAll(first.get()), readAll(second.get()));
  });
}

TEST(State, ChecksItsArguments) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    char data[64];
    // 2 roles of 4 parameters, and a scalar.
    expectStatus(ZERO_RT_INVALID_ARGUMENT, calls.state_read(step, 9, data, 8),
                 "state entry 9 is out of range, this rank has 9");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, calls.state_write(step, -1, data, 8),
                 "state entry -1");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, calls.state_read(step, 1, data, 5),
                 "state entry 1 ('parameter') has 6 bytes, got 5");
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.state_read(step, 1, nullptr, 6),
                 "data of state entry 1 is null");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, calls.state_count(step, nullptr),
                 "out_count is null");
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.state_describe(step, 0, nullptr), "out_entry is null");
  });
}

} // namespace
