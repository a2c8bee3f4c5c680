//===- StateOrderTest.cpp - Parameters and master weights -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// They stay the same numbers, whichever of them is written, and a checkpoint
// that has both is loaded in any order.
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TrainStep.h"
#include "core/numeric.h"
#include "core/step.h"

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

/// (ranks, whether the master weights is divided over them).
using Layout = std::tuple<int, bool>;

class StateOrder : public testing::TestWithParam<Layout> {
protected:
  StateOrder() : library(makeTrainStep(std::get<0>(GetParam()))) {
    if (!isSharded())
      library.buffers[MasterBuffer].owners = -1;
    library.addBuffer({"staging", ZERO_RT_BF16, trainElements, true,
                       ZERO_RT_ROLE_PARAMETER, ZERO_RT_SPACE_HOST});
    library.buckets[0].staging_buffer = int64_t(library.buffers.size()) - 1;
  }
  bool isSharded() const { return std::get<1>(GetParam()); }
  /// Whether a rank lacks a part of the master weights.
  bool lacksSome() const { return isSharded() && std::get<0>(GetParam()) > 1; }

  LibraryBuilder library;
};

/// Element |i| of master weights: bf16 rounds it up, down, and at ties both
/// ways.
float masterValue(int32_t parameter, int64_t i) {
  return float(parameter + 1) * (1 + float(i) / 512);
}

uint16_t otherValue(int32_t parameter, int64_t i) {
  return bf16FromFloat(float(100 * parameter + 50 + i));
}

/// Writes what this rank has of |role|: masterValue or otherValue.
void write(zero_rt_step *step, const char *role) {
  const std::vector<StateEntry> &entries = step->get()->entries;
  for (size_t e = 0; e < entries.size(); ++e) {
    const StateEntry &entry = entries[e];
    if (std::string(entry.role) != role)
      continue;
    std::vector<float> wide;
    std::vector<uint16_t> narrow;
    for (int64_t i = entry.begin; i < entry.end; ++i) {
      wide.push_back(masterValue(entry.parameter, i));
      narrow.push_back(otherValue(entry.parameter, i));
    }
    bool isMaster = entry.buffer == MasterBuffer;
    expectOk(callsOf(step).state_write(
        step, int64_t(e),
        isMaster ? static_cast<const void *>(wide.data()) : narrow.data(),
        (entry.end - entry.begin) * (isMaster ? 4 : 2)));
  }
}

void bindOther(zero_rt_step *step) {
  for (int32_t p = 0; p < NumTrainParameters; ++p) {
    std::vector<uint16_t> values;
    for (int64_t i = 0; i < trainSizes[p]; ++i)
      values.push_back(otherValue(p, i));
    zero_rt_tensor tensor = tensorOf(ZERO_RT_BF16, values);
    expectOk(callsOf(step).bind_parameter(step, p, &tensor));
  }
}

enum class Value { Initial, Master, Other };

/// Expects parameters to have |parameter|, rounded, and master weights
/// |master|, where this rank has them; and the staging copy to follow. Where
/// |ownOnly|, looks at no more of parameters than this rank has of the master.
void expectValues(zero_rt_step *step, Value parameter, Value master,
                  bool ownOnly = false) {
  const Step &inside = *step->get();
  auto staging = int32_t(inside.library->buckets[0].staging_buffer);
  for (int32_t p = 0; p < NumTrainParameters; ++p)
    for (int64_t i = 0; i < trainSizes[p]; ++i) {
      int64_t e = trainOffsets[p] + i;
      auto isHeld = [&](int32_t buffer) {
        Range held = inside.held(buffer);
        return held.begin <= e && e < held.end;
      };
      float expected[] = {0, masterValue(p, i),
                          floatFromBF16(otherValue(p, i))};
      auto narrow =
          *static_cast<uint16_t *>(inside.address(ParameterBuffer, e));
      if (!ownOnly || isHeld(MasterBuffer))
        EXPECT_EQ(narrow, bf16FromFloat(expected[int(parameter)])) << p << i;
      if (isHeld(MasterBuffer))
        EXPECT_EQ(*static_cast<float *>(inside.address(MasterBuffer, e)),
                  expected[int(master)])
            << p << i;
      if (isHeld(staging))
        EXPECT_EQ(*static_cast<uint16_t *>(inside.address(staging, e)), narrow)
            << p << i;
    }
}

/// A backward pass may begin, and is dropped.
void expectBegins(zero_rt_step *step) {
  expectOk(callsOf(step).begin_backward(step, 0));
  expectOk(callsOf(step).discard(step));
}

TEST_P(StateOrder, AMasterAloneIsRoundedToTheParameter) {
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    write(step, "master");
    expectValues(step, Value::Master, Value::Master, /*ownOnly=*/lacksSome());
    if (lacksSome()) {
      bool hasAny = !step->get()->held(MasterBuffer).empty();
      ASSERT_TRUE(hasAny);
      const char *text = "' was written, and rank";
      expectStatus(ZERO_RT_PROTOCOL, callsOf(step).begin_backward(step, 0),
                   text);
      expectStatus(ZERO_RT_PROTOCOL, callsOf(step).begin_backward(step, 0),
                   "write its 'parameter', too, on every rank");
      write(step, "parameter");
      expectValues(step, Value::Other, Value::Master);
    }
    expectBegins(step);
  });
}

TEST_P(StateOrder, AParameterAloneIsTheMaster) {
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    write(step, "parameter");
    expectValues(step, Value::Other, Value::Other);
    expectBegins(step);
  });
}

// Both stay as they were written, also where they are not the same numbers.
TEST_P(StateOrder, BothAreWrittenInAnyOrder) {
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    write(step, "parameter");
    write(step, "master");
    expectValues(step, Value::Other, Value::Master);
    expectBegins(step);
  });
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    write(step, "master");
    write(step, "parameter");
    expectValues(step, Value::Other, Value::Master);
    expectBegins(step);
  });
}

// Binding writes both.
TEST_P(StateOrder, BindingIsAWriteOfTheParameter) {
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    bindOther(step);
    expectValues(step, Value::Other, Value::Other);
    write(step, "master");
    expectValues(step, Value::Other, Value::Master);
    expectBegins(step);
    write(step, "master");
    bindOther(step);
    expectValues(step, Value::Other, Value::Other);
    expectBegins(step);
  });
}

// What was written before the last backward pass is not of this checkpoint.
TEST_P(StateOrder, ABackwardEndsACheckpoint) {
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    write(step, "parameter");
    expectBegins(step);
    write(step, "master");
    expectValues(step, Value::Master, Value::Master, /*ownOnly=*/lacksSome());
    if (lacksSome())
      expectStatus(ZERO_RT_PROTOCOL, callsOf(step).begin_backward(step, 0),
                   "has a slice of it only");
    bindOther(step);
    expectBegins(step);
  });
}

// What a backward pass that begins by its first gradient is told.
TEST_P(StateOrder, AGradientBeginsNoBackwardOfAStaleParameter) {
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    write(step, "master");
    std::vector<float> gradient = trainGradient(Bias, 1);
    zero_rt_tensor tensor = tensorOf(ZERO_RT_F32, gradient);
    auto pass = [&] {
      return callsOf(step).gradient_of(step, 0, Bias, &tensor, nullptr,
                                       nullptr);
    };
    if (lacksSome()) {
      expectStatus(ZERO_RT_PROTOCOL, pass(), "'master' of");
      write(step, "parameter");
    }
    expectOk(pass());
    expectOk(callsOf(step).discard(step));
  });
}

std::string nameOf(const testing::TestParamInfo<Layout> &info) {
  const auto &[ranks, isSharded] = info.param;
  return std::to_string(ranks) + (isSharded ? "_sharded" : "_full");
}

INSTANTIATE_TEST_SUITE_P(Ranks, StateOrder,
                         testing::Combine(testing::Values(1, 2, 3),
                                          testing::Bool()),
                         nameOf);

} // namespace
