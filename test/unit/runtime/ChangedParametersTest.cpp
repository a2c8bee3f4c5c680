//===- ChangedParametersTest.cpp - Writes to views of parameters ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A caller writes to the view of a parameter between steps and says so. The
// elements that it changed become the master weights. All others keep theirs,
// which bf16 cannot hold.
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TrainStep.h"
#include "core/numeric.h"
#include "core/step.h"

#include <cmath>
#include <map>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

/// (ranks, whether the master weights are divided over them).
using Layout = std::tuple<int, bool>;

class Changed : public testing::TestWithParam<Layout> {
protected:
  Changed() : library(makeTrainStep(std::get<0>(GetParam()))) {
    if (!std::get<1>(GetParam()))
      library.buffers[MasterBuffer].owners = -1;
    library.addBuffer({"staging", ZERO_RT_BF16, trainElements, true,
                       ZERO_RT_ROLE_PARAMETER, ZERO_RT_SPACE_HOST});
    library.buckets[0].staging_buffer = int64_t(library.buffers.size()) - 1;
  }
  LibraryBuilder library;
};

uint16_t *viewOf(zero_rt_step *step, int32_t parameter) {
  auto view = sized<zero_rt_tensor>();
  expectOk(callsOf(step).parameter(step, parameter, &view));
  return static_cast<uint16_t *>(view.data);
}

/// The number of elements that all parameters are said to have changed in.
int64_t sayAll(zero_rt_step *step) {
  int64_t elements = -1;
  expectOk(
      callsOf(step).parameters_changed(step, nullptr, 0, nullptr, &elements));
  return elements;
}

bool isHeld(zero_rt_step *step, int64_t buffer, int64_t element) {
  Range held = step->get()->held(buffer);
  return held.begin <= element && element < held.end;
}

/// The bits of what this rank has of |buffer|, by element, pads included.
std::map<int64_t, uint64_t> bitsOfBuffer(zero_rt_step *step, int64_t buffer) {
  std::map<int64_t, uint64_t> bits;
  Range held = step->get()->held(buffer);
  int64_t size = elementSize(step->get()->library->buffers[buffer].dtype);
  for (int64_t e = held.begin; e < held.end; ++e)
    std::memcpy(&bits[e], step->get()->address(buffer, e), size_t(size));
  return bits;
}

std::map<int64_t, uint64_t> mastersOf(zero_rt_step *step) {
  return bitsOfBuffer(step, MasterBuffer);
}

/// One step. It leaves master weights that bf16 cannot hold.
void train(zero_rt_step *step) {
  expectOk(callsOf(step).begin_backward(step, 0));
  passAll(step, 1.0f / 1024);
  expectOk(applyStep(step, 0.125));
}

void bindTensors(zero_rt_step *step) {
  for (int32_t p = 0; p < NumTrainParameters; ++p)
    bindParameter(step, p, 1 + float(p));
}

uint16_t otherValue(int32_t parameter, int64_t i) {
  return bf16FromFloat(float(100 * parameter + 50 + i));
}

TEST_P(Changed, ElementsTakeOverAndOthersKeepTheirBits) {
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    bindTensors(step);
    train(step);
    std::map<int64_t, uint64_t> expected = mastersOf(step);
    // Both |Bias|, which is not listed, and |Weight| are written.
    int64_t changed = 0;
    int narrow = 0, kept = 0;
    for (int32_t p : {Weight, Bias, Tied})
      for (int64_t i = 0; i < trainSizes[p]; ++i) {
        int64_t e = trainOffsets[p] + i;
        bool isWritten = p != Tied && i % 3 == 1;
        if (isWritten)
          viewOf(step, p)[i] = otherValue(p, i);
        if (!isHeld(step, MasterBuffer, e))
          continue;
        if (p == Weight && isWritten) {
          expected[e] = bitCast<uint32_t>(floatFromBF16(otherValue(p, i)));
          ++changed;
          continue;
        }
        ++kept;
        narrow += (expected[e] & 0xFFFF) == 0;
      }
    EXPECT_LT(narrow, kept) << "bf16 holds all master weights";
    const int32_t listed[] = {Tied, Weight};
    int64_t elements = -1;
    expectOk(
        callsOf(step).parameters_changed(step, listed, 2, nullptr, &elements));
    EXPECT_EQ(elements, changed);
    EXPECT_EQ(mastersOf(step), expected);
    for (int64_t i = 0; i < trainSizes[Weight]; ++i)
      if (i % 3 == 1)
        EXPECT_EQ(viewOf(step, Weight)[i], otherValue(Weight, i));
  });
}

// To say it again, or to say it for nothing, changes nothing.
TEST_P(Changed, SayingItTwiceChangesNothing) {
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    bindTensors(step);
    train(step);
    std::map<int64_t, uint64_t> before = mastersOf(step);
    EXPECT_EQ(sayAll(step), 0);
    EXPECT_EQ(mastersOf(step), before);
    viewOf(step, Extra)[2] = otherValue(Extra, 2);
    int64_t e = trainOffsets[Extra] + 2;
    EXPECT_EQ(sayAll(step), isHeld(step, MasterBuffer, e) ? 1 : 0);
    before = mastersOf(step);
    EXPECT_EQ(sayAll(step), 0);
    EXPECT_EQ(mastersOf(step), before);
    // A caller that does not ask for the number.
    expectOk(
        callsOf(step).parameters_changed(step, nullptr, 0, nullptr, nullptr));
    expectOk(callsOf(step).begin_backward(step, 0));
    expectOk(callsOf(step).discard(step));
  });
}

// So the copy on the host follows, too.
TEST_P(Changed, TheStepRunsAsIfTheValuesWereBound) {
  std::vector<std::map<int64_t, uint64_t>> left[2];
  for (bool binds : {false, true}) {
    auto ranks = size_t(std::get<0>(GetParam()));
    left[binds].resize(3 * ranks);
    runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
      bindTensors(step);
      train(step);
      for (int32_t p = 0; p < NumTrainParameters; ++p) {
        if (binds) {
          bindParameter(step, p, 7);
          continue;
        }
        std::vector<uint16_t> values = trainParameter(p, 7);
        std::copy(values.begin(), values.end(), viewOf(step, p));
      }
      if (!binds)
        sayAll(step);
      int64_t staging = step->get()->library->buckets[0].staging_buffer;
      left[binds][3 * size_t(rank)] = bitsOfBuffer(step, staging);
      train(step);
      train(step);
      left[binds][3 * size_t(rank) + 1] = bitsOfBuffer(step, ParameterBuffer);
      left[binds][3 * size_t(rank) + 2] = mastersOf(step);
    });
  }
  EXPECT_EQ(left[0], left[1]);
}

// Until apply the update has not begun, so the moment of a write makes no
// difference.
TEST_P(Changed, AWriteWithinAStepIsOneBeforeIt) {
  std::vector<std::map<int64_t, uint64_t>> left[4];
  for (int moment = 0; moment < 4; ++moment) {
    auto ranks = size_t(std::get<0>(GetParam()));
    left[moment].resize(2 * ranks);
    runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
      bindTensors(step);
      train(step);
      auto writeAt = [&](int now) {
        if (now != moment)
          return;
        for (int32_t p = 0; p < NumTrainParameters; ++p)
          if (trainParameter(p, 7).size() > 1)
            viewOf(step, p)[1] = otherValue(p, 1);
        EXPECT_EQ(sayAll(step) > 0, !mastersOf(step).empty());
        EXPECT_EQ(sayAll(step), 0);
      };
      writeAt(0);
      for (int pass : {1, 2}) {
        expectOk(callsOf(step).begin_backward(step, 0));
        writeAt(pass);
        passAll(step, 1.0f / 1024);
        if (pass == 1)
          expectOk(callsOf(step).accumulate(step));
      }
      writeAt(3);
      expectOk(applyStep(step, 0.125));
      left[moment][2 * size_t(rank)] = bitsOfBuffer(step, ParameterBuffer);
      left[moment][2 * size_t(rank) + 1] = mastersOf(step);
    });
    EXPECT_EQ(left[moment], left[0]) << moment;
  }
}

// A pad may have any bits.
TEST_P(Changed, PadsAreNotCompared) {
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    bindTensors(step);
    train(step);
    for (int64_t pad : {10, 23})
      *static_cast<uint16_t *>(step->get()->address(ParameterBuffer, pad)) =
          bf16FromFloat(3);
    std::map<int64_t, uint64_t> before = mastersOf(step);
    EXPECT_EQ(sayAll(step), 0);
    EXPECT_EQ(mastersOf(step), before);
  });
}

// A parameter of one element, one without any, and a list of none.
TEST_P(Changed, SmallOnes) {
  library.parameters[Bias].elements = 1;
  library.parameters[Extra].elements = 0;
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    viewOf(step, Bias)[0] = bf16FromFloat(5);
    const int32_t listed[] = {Extra, Bias};
    int64_t elements = -1;
    for (int32_t count : {0, 1}) {
      expectOk(callsOf(step).parameters_changed(step, listed, count, nullptr,
                                                &elements));
      EXPECT_EQ(elements, 0);
    }
    expectOk(
        callsOf(step).parameters_changed(step, listed, 2, nullptr, &elements));
    int64_t e = trainOffsets[Bias];
    EXPECT_EQ(elements, isHeld(step, MasterBuffer, e) ? 1 : 0);
    if (elements == 1)
      EXPECT_EQ(mastersOf(step)[e], bitCast<uint32_t>(5.0f));
  });
}

std::string nameOf(const testing::TestParamInfo<Layout> &info) {
  const auto &[ranks, isSharded] = info.param;
  return std::to_string(ranks) + (isSharded ? "_sharded" : "_full");
}

INSTANTIATE_TEST_SUITE_P(Ranks, Changed,
                         testing::Combine(testing::Values(1, 2, 3),
                                          testing::Bool()),
                         nameOf);

// The sign of zero counts. A nan stays a nan, whatever its payload.
TEST(ChangedParameters, ComparesBits) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    auto *masters = static_cast<float *>(step->get()->address(MasterBuffer, 0));
    auto *values = viewOf(step, Weight);
    masters[0] = 0;
    values[0] = 0x8000;
    masters[1] = bitCast<float>(0x7FC12345u);
    values[1] = 0xFFC1;
    masters[2] = 1 + 0x1p-8f; // a tie, which is rounded to even
    values[2] = bf16FromFloat(1);
    masters[3] = 1 + 3 * 0x1p-8f;
    values[3] = bf16FromFloat(1 + 0x1p-6f);
    masters[4] = 3e38f; // a number, and infinity
    values[4] = 0x7F80;
    masters[5] = HUGE_VALF;
    values[5] = 0x7FC0;
    EXPECT_EQ(sayAll(step), 3);
    EXPECT_TRUE(std::signbit(masters[0]));
    EXPECT_EQ(masters[0], 0);
    EXPECT_EQ(bitCast<uint32_t>(masters[1]), 0x7FC12345u);
    EXPECT_EQ(masters[2], 1 + 0x1p-8f);
    EXPECT_EQ(masters[3], 1 + 3 * 0x1p-8f);
    EXPECT_EQ(masters[4], HUGE_VALF);
    EXPECT_TRUE(std::isnan(masters[5]));
  });
}

// f16 is rounded as f16. A parameter in f32 may have master weights elsewhere,
// with the same bits.
TEST(ChangedParameters, OfOtherTypes) {
  for (int32_t dtype : {ZERO_RT_F16, ZERO_RT_F32}) {
    LibraryBuilder library = makeTrainStep(1);
    library.buffers[ParameterBuffer].dtype = dtype;
    for (zero_rt_parameter_row &row : library.parameters)
      row.dtype = dtype;
    runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
      auto *masters =
          static_cast<float *>(step->get()->address(MasterBuffer, 0));
      void *values = step->get()->address(ParameterBuffer, 0);
      for (int32_t i = 0; i < 10; ++i)
        masters[i] = 1 + float(i) / 3000;
      convert(dtype, values, ZERO_RT_F32, masters, 10);
      std::map<int64_t, uint64_t> expected = mastersOf(step);
      EXPECT_EQ(sayAll(step), 0);
      EXPECT_EQ(mastersOf(step), expected);
      float written = 1.5f;
      for (int64_t i : {0, 7}) {
        convert(dtype, elementAt(values, dtype, i), ZERO_RT_F32, &written, 1);
        expected[i] = bitCast<uint32_t>(written);
      }
      EXPECT_EQ(sayAll(step), 2);
      EXPECT_EQ(mastersOf(step), expected);
    });
  }
}

// A parameter of more elements than are compared at a time.
TEST(ChangedParameters, OfManyElements) {
  constexpr int64_t elements = 600 * 1000;
  LibraryBuilder library = makeTrainStep(2);
  for (zero_rt_buffer_row &row : library.buffers)
    row.elements = elements;
  library.buckets[0].elements = elements;
  for (zero_rt_segment_row &row : library.segments)
    if (row.end == trainElements)
      row.end = elements;
  zero_rt_parameter_row &last = library.parameters[Extra];
  last.extent = elements - last.offset;
  last.elements = last.extent - 1;
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    Range held = step->get()->held(MasterBuffer);
    std::map<int64_t, uint64_t> expected = mastersOf(step);
    int64_t changed = 0;
    for (int64_t e = trainOffsets[Extra]; e < elements - 1; e += 7919) {
      viewOf(step, Extra)[e - trainOffsets[Extra]] = bf16FromFloat(float(e));
      if (e < held.begin || e >= held.end)
        continue;
      expected[e] = bitCast<uint32_t>(floatFromBF16(bf16FromFloat(float(e))));
      ++changed;
    }
    EXPECT_EQ(sayAll(step), changed);
    EXPECT_EQ(mastersOf(step), expected);
  });
}

TEST(ChangedParameters, WithoutMasterWeightsNeedNothing) {
  LibraryBuilder library = makeTrainStep(1);
  library.buckets[0].master_buffer = -1;
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    viewOf(step, Weight)[0] = bf16FromFloat(5);
    EXPECT_EQ(sayAll(step), 0);
    EXPECT_EQ(viewOf(step, Weight)[0], bf16FromFloat(5));
  });
}

TEST(ChangedParameters, WrongArgumentsChangeNothing) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    bindTensors(step);
    viewOf(step, Weight)[0] = otherValue(Weight, 0);
    std::map<int64_t, uint64_t> before = mastersOf(step);
    auto expectRefused = [&](zero_rt_status status, const char *text,
                             std::vector<int32_t> listed, int64_t count) {
      int64_t elements = -1;
      expectStatus(status,
                   callsOf(step).parameters_changed(
                       step, listed.empty() ? nullptr : listed.data(), count,
                       nullptr, &elements),
                   text);
      EXPECT_EQ(elements, 0);
      EXPECT_EQ(mastersOf(step), before);
    };
    expectRefused(ZERO_RT_INVALID_ARGUMENT,
                  "parameters_changed: a list of 1 is null", {}, 1);
    expectRefused(ZERO_RT_INVALID_ARGUMENT, "parameters_changed: count is -1",
                  {Weight}, -1);
    expectRefused(ZERO_RT_INVALID_ARGUMENT, "parameter 4 is out of range",
                  {Weight, NumTrainParameters}, 2);
    expectRefused(ZERO_RT_INVALID_ARGUMENT, "parameter -1 is out of range",
                  {Weight, -1}, 2);
    expectRefused(ZERO_RT_INVALID_ARGUMENT,
                  "parameter 0 ('fc1.weight') is listed twice",
                  {Weight, Bias, Weight}, 3);
    // What was measured is applied as it is. The value is not lost.
    expectOk(callsOf(step).begin_backward(step, 0));
    passAll(step);
    expectOk(callsOf(step).accumulate(step));
    expectOk(measureStep(step));
    expectRefused(ZERO_RT_PROTOCOL,
                  "parameters_changed: the step was measured; call apply or "
                  "discard first",
                  {Weight}, 1);
    expectOk(callsOf(step).discard(step));
    EXPECT_EQ(sayAll(step), 1);
  });
}

// As with every write of state, a rank cannot know the slices of others.
TEST(ChangedParameters, MastersThatWereWrittenAloneStayRefused) {
  LibraryBuilder library = makeTrainStep(2);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const std::vector<StateEntry> &entries = step->get()->entries;
    for (size_t e = 0; e < entries.size(); ++e) {
      if (std::string(entries[e].role) != "master")
        continue;
      std::vector<float> values(size_t(entries[e].end - entries[e].begin), 3);
      expectOk(callsOf(step).state_write(step, int64_t(e), values.data(),
                                         int64_t(values.size() * 4)));
    }
    EXPECT_EQ(sayAll(step), 0);
    expectStatus(ZERO_RT_PROTOCOL, callsOf(step).begin_backward(step, 0),
                 "has a slice of it only");
    bindTensors(step);
    expectOk(callsOf(step).begin_backward(step, 0));
    expectOk(callsOf(step).discard(step));
  });
}

} // namespace
