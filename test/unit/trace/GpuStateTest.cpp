//===- GpuStateTest.cpp - Checkpoints on a GPU ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime rounds master weights that are written to the parameter, as the
// compiled update does: on the processor and on a GPU, at every stage. What one
// of them saves the other loads.
//
//===----------------------------------------------------------------------===//

#include "GpuRank.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>

using namespace zero;
using namespace zero::test;

namespace {

/// (ZeRO stage, offload, device).
using Layout = std::tuple<int, std::string, std::string>;

struct Entry {
  std::string role;
  zero_rt_state_entry place;
  std::vector<char> bytes;
};

class GpuState : public GpuTest, public testing::WithParamInterface<Layout> {
protected:
  static constexpr int kRanks = 2;
  int getStage() { return std::get<0>(GetParam()); }
  std::string openLayout();
  void expectLoads(GpuRank &rank, const std::vector<Entry> &saved);
};

} // namespace

static std::vector<Entry> readState(GpuRank &rank) {
  int64_t count = 0;
  rank.check(rank.calls().state_count(rank.step, &count));
  std::vector<Entry> all(static_cast<size_t>(count));
  for (int64_t e = 0; e < count; ++e) {
    Entry &entry = all[e];
    entry.place.struct_size = sizeof(entry.place);
    rank.check(rank.calls().state_describe(rank.step, e, &entry.place));
    entry.role = entry.place.role;
    int64_t size = entry.place.dtype == ZERO_RT_F64   ? 8
                   : entry.place.dtype == ZERO_RT_F32 ? 4
                                                      : 2;
    entry.bytes.resize((entry.place.end - entry.place.begin) * size);
    rank.check(rank.calls().state_read(rank.step, e, entry.bytes.data(),
                                       int64_t(entry.bytes.size())));
  }
  return all;
}

static void writeState(GpuRank &rank, const std::vector<Entry> &all,
                       bool areMasters) {
  for (size_t e = all.size(); e-- > 0;)
    if ((all[e].role == "master") == areMasters)
      rank.check(rank.calls().state_write(rank.step, int64_t(e),
                                          all[e].bytes.data(),
                                          int64_t(all[e].bytes.size())));
}

/// Begins from other values, and delivers gradients that all differ.
static void train(GpuRank &rank) {
  for (const auto &[name, elements] : kGpuElements) {
    std::vector<uint16_t> values(elements);
    for (int64_t i = 0; i < elements; ++i)
      values[i] = toBF16(float(i % 37) / 8);
    zero_rt_tensor tensor = rank.makeTensor(values);
    rank.check(
        rank.calls().bind_parameter(rank.step, rank.find(name), &tensor));
  }
  std::vector<std::string> order{"fc1.weight"}; // used twice
  for (const auto &[name, elements] : kGpuElements)
    order.push_back(name);
  rank.run(order);
  EXPECT_EQ(rank.getResults().verdict, ZERO_RT_APPLIED);
}

/// Loads |saved|, the master weights first: parameters have their numbers at
/// once, as far as the master weights is on this rank.
void GpuState::expectLoads(GpuRank &rank, const std::vector<Entry> &saved) {
  writeState(rank, saved, /*areMasters=*/true);
  std::vector<Entry> loaded = readState(rank);
  int compared = 0;
  for (const Entry &master : saved) {
    if (master.role != "master")
      continue;
    for (size_t e = 0; e < saved.size(); ++e)
      if (saved[e].role == "parameter" &&
          saved[e].place.parameter == master.place.parameter) {
        int64_t first = (master.place.begin - saved[e].place.begin) * 2;
        int64_t bytes = (master.place.end - master.place.begin) * 2;
        EXPECT_EQ(std::memcmp(loaded[e].bytes.data() + first,
                              saved[e].bytes.data() + first, bytes),
                  0)
            << "parameter " << saved[e].place.parameter;
        ++compared;
      }
  }
  EXPECT_GT(compared, 0);

  if (getStage() > 0) {
    EXPECT_EQ(rank.calls().begin_backward(rank.step, 0), ZERO_RT_PROTOCOL);
    EXPECT_NE(std::string(zero_rt_message()).find("has a slice of it only"),
              std::string::npos)
        << zero_rt_message();
  }
  writeState(rank, saved, /*areMasters=*/false);
  loaded = readState(rank);
  for (size_t e = 0; e < saved.size(); ++e)
    EXPECT_EQ(loaded[e].bytes, saved[e].bytes) << saved[e].role;
  rank.check(rank.calls().begin_backward(rank.step, 0));
  rank.check(rank.calls().discard(rank.step));
}

/// Compiles the step of the layout. Returns the device.
std::string GpuState::openLayout() {
  const auto &[stage, offload, device] = GetParam();
  LowerOptions options;
  options.mesh = "dp=" + std::to_string(kRanks);
  options.stage = stage;
  options.offload = offload;
  options.bucketBytes = 4096;
  open(options);
  return device;
}

TEST_P(GpuState, MastersAreRoundedAsTheUpdateDoes) {
  std::string where = openLayout();
  std::vector<Entry> saved[kRanks];
  runThreads(kRanks, [&](int r, zero_rt_group *group) {
    GpuRank rank(library, group, r, where);
    rank.check(rank.create());
    train(rank);
    saved[r] = readState(rank);
  });
  runThreads(kRanks, [&](int r, zero_rt_group *group) {
    GpuRank rank(library, group, r, where);
    rank.check(rank.create());
    expectLoads(rank, saved[r]);
  });
}

// The other kind of device loads it. In the background, the state is that of
// save_begin, whatever the GPU does afterwards.
TEST_P(GpuState, CheckpointsAreThoseOfTheHost) {
  std::string where = openLayout();
  std::string other = where == "host" ? "cuda" : "host";
  std::string parent = testing::TempDir() + "zero-gpu-checkpoint-XXXXXX";
  ASSERT_NE(mkdtemp(parent.data()), nullptr);
  for (bool isInBackground : {false, true}) {
    std::string folder = parent + (isInBackground ? "/background" : "/at_once");
    std::vector<Entry> saved[kRanks];
    runThreads(kRanks, [&](int r, zero_rt_group *group) {
      GpuRank rank(library, group, r, where);
      rank.check(rank.create());
      train(rank);
      if (isInBackground) {
        rank.check(rank.calls().save_begin(rank.step, folder.c_str(), 1));
        saved[r] = readState(rank);
        train(rank);
        rank.check(rank.calls().save_end(rank.step));
      } else {
        rank.check(rank.calls().save(rank.step, folder.c_str(), 1));
        saved[r] = readState(rank);
      }
    });
    runThreads(kRanks, [&](int r, zero_rt_group *group) {
      GpuRank rank(library, group, r, other);
      rank.check(rank.create());
      rank.check(rank.calls().load(rank.step, folder.c_str(), nullptr));
      std::vector<Entry> loaded = readState(rank);
      for (size_t e = 0; e < saved[r].size(); ++e)
        EXPECT_EQ(loaded[e].bytes, saved[r][e].bytes) << saved[r][e].role;
      rank.check(rank.calls().begin_backward(rank.step, 0));
      rank.check(rank.calls().discard(rank.step));
    });
  }
  std::filesystem::remove_all(parent);
}

static std::string nameOfLayout(const testing::TestParamInfo<Layout> &info) {
  const auto &[stage, offload, device] = info.param;
  return "stage" + std::to_string(stage) + "_offload_" + offload + "_" + device;
}

INSTANTIATE_TEST_SUITE_P(Layouts, GpuState,
                         testing::Combine(testing::Values(0, 1, 2),
                                          testing::Values("none", "optimizer"),
                                          testing::Values("host", "cuda")),
                         nameOfLayout);
