//===- GpuChangedTest.cpp - Writes to views of parameters -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled steps at every stage, with and without offload, on the processor and
// on a GPU. There the caller writes on a stream of its own.
//
//===----------------------------------------------------------------------===//

#include "CallerDriver.h"
#include "GpuRank.h"

#include <cstring>

using namespace zero;
using namespace zero::test;

namespace {

/// (ZeRO stage, offload, device).
using Layout = std::tuple<int, std::string, std::string>;

class GpuChanged : public GpuTest, public testing::WithParamInterface<Layout> {
protected:
  static constexpr int kRanks = 2;
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped())
      return;
    LowerOptions options;
    options.mesh = "dp=" + std::to_string(kRanks);
    options.stage = std::get<0>(GetParam());
    options.offload = std::get<1>(GetParam());
    options.bucketBytes = 4096;
    open(options);
  }
  bool isOnGpu() { return std::get<2>(GetParam()) == "cuda"; }
  zero_rt_options makeOptions() {
    zero_rt_options options = {};
    options.struct_size = sizeof(options);
    options.device = isOnGpu() ? "cuda" : "host";
    options.timeout_ms = 20000;
    options.check_promises = 1;
    return options;
  }
};

/// The master weights that a rank has of a parameter, and their place.
struct Masters {
  zero_rt_state_entry place = {};
  std::vector<uint32_t> bits;
};

} // namespace

static std::map<int32_t, Masters> readMasters(GpuRank &rank) {
  int64_t count = 0;
  rank.check(rank.calls().state_count(rank.step, &count));
  std::map<int32_t, Masters> all;
  for (int64_t e = 0; e < count; ++e) {
    Masters masters;
    masters.place.struct_size = sizeof(masters.place);
    rank.check(rank.calls().state_describe(rank.step, e, &masters.place));
    if (std::string(masters.place.role) != "master")
      continue;
    EXPECT_EQ(masters.place.dtype, ZERO_RT_F32);
    masters.bits.resize(masters.place.end - masters.place.begin);
    rank.check(rank.calls().state_read(rank.step, e, masters.bits.data(),
                                       int64_t(masters.bits.size() * 4)));
    all[masters.place.parameter] = masters;
  }
  return all;
}

/// A step whose master weights bf16 cannot hold.
static void train(GpuRank &rank) {
  std::vector<std::string> order{"fc1.weight"}; // used twice
  for (const auto &[name, elements] : kGpuElements)
    order.push_back(name);
  rank.run(order);
  EXPECT_EQ(rank.getResults().verdict, ZERO_RT_APPLIED);
}

static int64_t sayAll(GpuRank &rank, zero_rt_stream *stream) {
  int64_t elements = -1;
  rank.check(rank.calls().parameters_changed(rank.step, nullptr, 0, stream,
                                             &elements));
  return elements;
}

/// Writes |count| times |value| from element |begin| of a view, after much
/// other work on |stream|; without a stream, at once.
static void writeView(GpuRank &rank, const std::string &name, int64_t begin,
                      int64_t count, float value, zero_rt_stream *stream) {
  zero_rt_tensor view = {};
  view.struct_size = sizeof(view);
  rank.check(rank.calls().parameter(rank.step, rank.find(name), &view));
  auto *data = static_cast<uint16_t *>(view.data) + begin;
  if (!stream) {
    std::vector<uint16_t> values(count, toBF16(value));
    rank.check(zero_rt_copy(rank.runtime, data, values.data(), count * 2));
    return;
  }
  zero_rt_tensor scratch = rank.makeTensor(1, 0);
  auto addressOf = [](const void *at) {
    return static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(at));
  };
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(cuMemsetD16Async(addressOf(scratch.data), 0, 1, stream), 0);
  EXPECT_EQ(
      cuMemsetD16Async(addressOf(data), toBF16(value), size_t(count), stream),
      0);
}

/// Writes to a part of fc1.weight, and expects that the master weights follow
/// there and stay as they are elsewhere.
static void expectTaken(GpuRank &rank, zero_rt_stream *stream) {
  constexpr int64_t begin = 1000, count = 1200;
  int32_t written = rank.find("fc1.weight");
  std::map<int32_t, Masters> expected = readMasters(rank);
  int64_t changed = 0, narrow = 0, all = 0;
  for (auto &[parameter, masters] : expected)
    for (size_t i = 0; i < masters.bits.size(); ++i) {
      ++all;
      narrow += (masters.bits[i] & 0xffff) == 0;
      int64_t element = masters.place.begin + int64_t(i);
      if (parameter != written || element < begin || element >= begin + count)
        continue;
      masters.bits[i] = uint32_t(toBF16(96)) << 16;
      ++changed;
    }
  EXPECT_GT(changed, 0);
  EXPECT_LT(narrow, all / 2) << "bf16 holds the master weights";
  rank.check(rank.calls().parameter_wait(rank.step, written, stream));
  writeView(rank, "fc1.weight", begin, count, 96, stream);
  EXPECT_EQ(sayAll(rank, stream), changed);
  EXPECT_EQ(sayAll(rank, nullptr), 0);
  std::map<int32_t, Masters> found = readMasters(rank);
  for (const auto &[parameter, masters] : expected)
    EXPECT_EQ(found[parameter].bits, masters.bits) << parameter;
}

TEST_P(GpuChanged, MasterWeightsFollowWhatChanged) {
  runThreads(kRanks, [&](int r, zero_rt_group *group) {
    GpuRank rank(library, group, r, makeOptions());
    rank.check(rank.create());
    zero_rt_stream *stream = nullptr;
    if (isOnGpu()) {
      cuCtxPushCurrent_v2(fake::contextOf(0));
      EXPECT_EQ(cuStreamCreate(&stream, 1), 0);
    }
    for (const auto &[name, elements] : kGpuElements) {
      zero_rt_tensor tensor = rank.makeTensor(elements, 1);
      rank.check(
          rank.calls().bind_parameter(rank.step, rank.find(name), &tensor));
    }
    train(rank);
    // Each parameter is the rounded master weights of the compiled update.
    EXPECT_EQ(sayAll(rank, stream), 0);
    expectTaken(rank, stream);
    // The next step starts from the written values, and the checks agree.
    train(rank);
    std::vector<uint16_t> after = rank.getParameter("fc1.weight");
    for (int64_t e : {1000, 1600, 2199})
      EXPECT_GT(after[e], toBF16(90)) << e;
    EXPECT_LT(after[999], toBF16(2));
    if (stream) {
      EXPECT_EQ(cuStreamDestroy_v2(stream), 0);
      cuCtxPopCurrent_v2(nullptr);
    }
  });
}

// What the caller does not say is found by the next backward pass, where
// checks were asked for.
TEST_P(GpuChanged, AWriteThatIsNotDeclaredIsFound) {
  runThreads(kRanks, [&](int r, zero_rt_group *group) {
    GpuRank rank(library, group, r, makeOptions());
    rank.check(rank.create());
    train(rank);
    for (const auto &[name, elements] : kGpuElements)
      writeView(rank, name, 0, elements, 96, nullptr);
    EXPECT_EQ(rank.calls().begin_backward(rank.step, 0), ZERO_RT_PROTOCOL);
    EXPECT_NE(std::string(zero_rt_message())
                  .find("call zero_rt_step_parameters_changed"),
              std::string::npos)
        << zero_rt_message();
    EXPECT_GT(sayAll(rank, nullptr), 0);
    train(rank);
  });
}

static std::string layoutName(const testing::TestParamInfo<Layout> &info) {
  const auto &[stage, offload, device] = info.param;
  return "stage" + std::to_string(stage) + "_offload_" + offload + "_" + device;
}

INSTANTIATE_TEST_SUITE_P(Layouts, GpuChanged,
                         testing::Combine(testing::Values(0, 1, 2),
                                          testing::Values("none", "optimizer"),
                                          testing::Values("host", "cuda")),
                         layoutName);
