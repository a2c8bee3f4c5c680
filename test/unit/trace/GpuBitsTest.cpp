//===- GpuBitsTest.cpp - A GPU gives the bits of the processor ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The same library, gradients and ranks on either device: all state is the
// same, bit by bit. Gradients are not such as sum exactly.
//
//===----------------------------------------------------------------------===//

#include "GpuRank.h"

#include <cfenv>
#include <cmath>
#include <cstring>
#include <random>

using namespace zero;
using namespace zero::test;

namespace {

/// What the ranks are: threads on one GPU, or on two that use each other's
/// memory; or processes with one each, whose gradients are summed by NCCL, or
/// travel as bf16 and are summed by kernels.
enum class Ranks { Threads, ThreadsOnTwo, Processes, ProcessesInBF16 };

/// (ZeRO stage, offload, ranks, what these are).
using BitsPlan = std::tuple<int, std::string, int, Ranks>;

class GpuBits : public GpuTest, public testing::WithParamInterface<BitsPlan> {
protected:
  /// What each rank has of each piece of state after some steps, and the
  /// results.
  using State = std::vector<std::vector<char>>;
  State runRank(int rank, zero_rt_group *group, const std::string &device,
                bool graphs, int rounding);
  /// Rank 0 calls with |rounding|.
  std::vector<State> run(const std::string &device, bool graphs = false,
                         int rounding = FE_TONEAREST);
  void expectEqual(const std::vector<State> &a, const std::vector<State> &b);
  int getNumRanks() { return std::get<2>(GetParam()); }
  Ranks getRanks() { return std::get<3>(GetParam()); }
};

} // namespace

GpuBits::State GpuBits::runRank(int r, zero_rt_group *group,
                                const std::string &device, bool graphs,
                                int rounding) {
  std::mt19937 random(unsigned(r) + 1);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> whole(-20, 20);
  // NCCL adds in an order of its own: gradients, or the norm of many ranks.
  bool isExact = getRanks() == Ranks::Processes ||
                 (getRanks() == Ranks::ProcessesInBF16 && getNumRanks() > 3);
  auto draw = [&](int64_t count) {
    std::vector<uint16_t> values(static_cast<size_t>(count));
    std::fesetround(FE_TONEAREST);
    for (uint16_t &value : values) {
      float drawn = isExact ? float(whole(random)) / 16 : normal(random);
      uint32_t bits = 0;
      std::memcpy(&bits, &drawn, sizeof(bits));
      value = uint16_t(bits >> 16);
    }
    if (r == 0)
      std::fesetround(rounding);
    return values;
  };
  int gpu = getRanks() == Ranks::Threads        ? 0
            : getRanks() == Ranks::ThreadsOnTwo ? r % 2
                                                : r;
  GpuRank rank(library, group, r, device, /*timeoutMs=*/20000, gpu, graphs);
  rank.check(rank.create());
  std::mt19937 same(99);
  for (const auto &[name, elements] : kGpuElements) {
    std::swap(random, same); // all ranks begin alike
    zero_rt_tensor tensor = rank.makeTensor(draw(elements));
    std::swap(random, same);
    rank.check(
        rank.calls().bind_parameter(rank.step, rank.find(name), &tensor));
  }
  State state;
  // At stage 3 each layer is gathered, the next one meanwhile.
  auto runForward = [&] {
    if (!library.hasUnits)
      return;
    for (const char *name : {"fc1", "fc2"}) {
      int32_t unit = -1;
      rank.check(rank.calls().find_unit(rank.step, name, &unit));
      rank.check(rank.calls().unshard(rank.step, unit, nullptr));
      if (name[2] == '1')
        rank.check(rank.calls().prefetch(rank.step, unit + 1));
      std::vector<uint16_t> read =
          rank.getParameter(std::string(name) + ".weight");
      const char *bytes = reinterpret_cast<const char *>(read.data());
      state.emplace_back(bytes, bytes + read.size() * sizeof(uint16_t));
      rank.check(rank.calls().reshard(rank.step, unit, nullptr));
    }
  };
  for (int step = 0; step < 3; ++step) {
    for (int backward = 0; backward < 2; ++backward) {
      runForward();
      // Nothing is said; what is right; in the last step that both are the
      // last.
      zero_rt_hint hint = step == 0                    ? ZERO_RT_HINT_UNKNOWN
                          : backward == 1 || step == 2 ? ZERO_RT_HINT_LAST
                                                       : ZERO_RT_HINT_MORE;
      rank.check(rank.calls().begin_backward(rank.step, hint));
      std::vector<int32_t> parameters;
      std::vector<zero_rt_tensor> tensors;
      for (const auto &[name, elements] : kGpuElements)
        for (int use = 0; use < (name == "fc1.weight" ? 2 : 1); ++use) {
          parameters.push_back(rank.find(name));
          tensors.push_back(rank.makeTensor(draw(elements)));
        }
      std::vector<zero_rt_timepoint> releases(tensors.size());
      // Graphs are for an apply, so batches can be tested together with them.
      if (graphs)
        rank.check(rank.calls().gradients(
            rank.step, parameters.data(), tensors.data(),
            int64_t(tensors.size()), nullptr, releases.data()));
      for (size_t i = 0; !graphs && i < tensors.size(); ++i)
        rank.check(rank.calls().gradient(rank.step, parameters[i], &tensors[i],
                                         nullptr, &releases[i]));
      if (backward == 0)
        rank.check(rank.calls().accumulate(rank.step));
    }
    double rate = std::ldexp(1e-3, step);
    rank.check(rank.calls().apply(rank.step, &rate, 1, nullptr));
    double norm = rank.getResults().values[0];
    state.emplace_back(sizeof(norm));
    std::memcpy(state.back().data(), &norm, sizeof(norm));
  }
  runForward();
  int64_t count = 0;
  rank.check(rank.calls().state_count(rank.step, &count));
  for (int64_t i = 0; i < count; ++i) {
    zero_rt_state_entry entry = {};
    entry.struct_size = sizeof(entry);
    rank.check(rank.calls().state_describe(rank.step, i, &entry));
    int64_t size = entry.dtype == ZERO_RT_F64   ? 8
                   : entry.dtype == ZERO_RT_F32 ? 4
                                                : 2;
    std::vector<char> &bytes = state.emplace_back(
        static_cast<size_t>((entry.end - entry.begin) * size));
    rank.check(rank.calls().state_read(rank.step, i, bytes.data(),
                                       int64_t(bytes.size())));
  }
  return state;
}

std::vector<GpuBits::State> GpuBits::run(const std::string &device, bool graphs,
                                         int rounding) {
  std::vector<State> states(getNumRanks());
  auto body = [&](int r, zero_rt_group *group) {
    states[r] = runRank(r, group, device, graphs, rounding);
  };
  fake::setGpus(getNumRanks(), 9, 0);
  if (device == "host" || getRanks() < Ranks::Processes)
    runThreads(getNumRanks(), body);
  else
    runProcesses(getNumRanks(), body);
  return states;
}

void GpuBits::expectEqual(const std::vector<State> &a,
                          const std::vector<State> &b) {
  for (size_t r = 0; r < a.size(); ++r) {
    ASSERT_EQ(a[r].size(), b[r].size());
    for (size_t i = 0; i < a[r].size(); ++i)
      EXPECT_EQ(a[r][i], b[r][i]) << "rank " << r << " piece " << i;
  }
}

TEST_P(GpuBits, AreThoseOfTheProcessor) {
  LowerOptions options;
  options.mesh = "dp=" + std::to_string(getNumRanks());
  options.stage = std::get<0>(GetParam());
  options.offload = std::get<1>(GetParam());
  options.bucketBytes = 4096;
  library.hasUnits = options.stage == 3;
  library.wire = getRanks() == Ranks::ProcessesInBF16 ? "bf16" : "";
  open(options);
  std::vector<State> processor = run("host");
  expectEqual(run("cuda"), processor);
  if (getNumRanks() <= 2)
    expectEqual(run("cuda", /*graphs=*/true), processor);
  // How a caller rounds is no matter.
  if (getNumRanks() == 2)
    for (const char *device : {"host", "cuda"})
      expectEqual(run(device, /*graphs=*/false, FE_TOWARDZERO), processor);
}

static std::string nameOf(const testing::TestParamInfo<BitsPlan> &info) {
  static const char *const names[] = {"threads", "threads_on_two", "processes",
                                      "processes_in_bf16"};
  const auto &[stage, offload, ranks, kind] = info.param;
  return "stage" + std::to_string(stage) + "_offload_" + offload + "_" +
         std::to_string(ranks) + "_" + names[int(kind)];
}

INSTANTIATE_TEST_SUITE_P(Threads, GpuBits,
                         testing::Combine(testing::Values(0, 1, 2),
                                          testing::Values("none", "optimizer"),
                                          testing::Values(1, 2, 3),
                                          testing::Values(Ranks::Threads)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(
    Units, GpuBits,
    testing::Combine(testing::Values(3),
                     testing::Values("none", "optimizer", "parameters"),
                     testing::Values(1, 2, 3), testing::Values(Ranks::Threads)),
    nameOf);
INSTANTIATE_TEST_SUITE_P(UnitsOfProcesses, GpuBits,
                         testing::Combine(testing::Values(3),
                                          testing::Values("none", "parameters"),
                                          testing::Values(2),
                                          testing::Values(Ranks::Processes)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(ThreadsOnTwo, GpuBits,
                         testing::Combine(testing::Values(0, 1, 2),
                                          testing::Values("none", "optimizer"),
                                          testing::Values(3),
                                          testing::Values(Ranks::ThreadsOnTwo)),
                         nameOf);
// More than one kernel has in sight, with a rest and without.
INSTANTIATE_TEST_SUITE_P(ManyThreads, GpuBits,
                         testing::Combine(testing::Values(0, 2),
                                          testing::Values("none"),
                                          testing::Values(17, 32),
                                          testing::Values(Ranks::Threads)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(
    ManyProcesses, GpuBits,
    testing::Combine(testing::Values(2), testing::Values("none"),
                     testing::Values(35),
                     testing::Values(Ranks::ProcessesInBF16)),
    nameOf);
INSTANTIATE_TEST_SUITE_P(
    Processes, GpuBits,
    testing::Combine(testing::Values(0, 1, 2),
                     testing::Values("none", "optimizer"),
                     testing::Values(2, 3),
                     testing::Values(Ranks::Processes, Ranks::ProcessesInBF16)),
    nameOf);
