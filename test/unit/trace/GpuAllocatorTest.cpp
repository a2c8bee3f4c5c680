//===- GpuAllocatorTest.cpp - Buffers in the caller's memory of a GPU -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The caller's memory comes and goes in the order of the stream that the
// runtime names. The driver finds uses before that and afterwards.
//
//===----------------------------------------------------------------------===//

#include "CallerDriver.h"
#include "GpuRank.h"

#include <atomic>

using namespace zero;
using namespace zero::test;

namespace {

/// A pool of the caller on the first GPU.
class CallersPool {
public:
  CallersPool() {
    cuCtxPushCurrent_v2(fake::contextOf(0));
    // Pinned memory, no handle, on a device, of number 0.
    int properties[64] = {1, 0, 1, 0};
    EXPECT_EQ(cuMemPoolCreate(&pool, properties), 0);
  }
  ~CallersPool() {
    EXPECT_EQ(cuMemPoolDestroy(pool), 0);
    cuCtxPopCurrent_v2(nullptr);
  }

  zero_rt_allocator getAllocator() {
    zero_rt_allocator allocator = {};
    allocator.struct_size = sizeof(allocator);
    allocator.context = this;
    allocator.allocate = [](void *context, int32_t space, int32_t,
                            int64_t bytes, const char *,
                            zero_rt_stream *stream) -> void * {
      auto &self = *static_cast<CallersPool *>(context);
      EXPECT_EQ(space, ZERO_RT_SPACE_DEVICE);
      EXPECT_NE(stream, nullptr);
      unsigned long long data = 0;
      EXPECT_EQ(
          cuMemAllocFromPoolAsync(&data, size_t(bytes), self.pool, stream), 0);
      self.given += bytes;
      ++self.live;
      return reinterpret_cast<void *>(uintptr_t(data));
    };
    allocator.release = [](void *context, void *data, zero_rt_stream *stream) {
      EXPECT_EQ(cuMemFreeAsync(reinterpret_cast<uintptr_t>(data), stream), 0);
      --static_cast<CallersPool *>(context)->live;
    };
    return allocator;
  }

  std::atomic<int64_t> given = 0; // bytes
  std::atomic<int> live = 0;

private:
  void *pool = nullptr;
};

/// What a case has: stage, offload, graphs.
using AllocatorCase = std::tuple<int, std::string, bool>;

class GpuAllocator : public GpuTest,
                     public testing::WithParamInterface<AllocatorCase> {
protected:
  /// The parameters of both ranks after three steps.
  using Parameters = std::map<std::string, std::vector<uint16_t>>;
  std::array<Parameters, 2> train(const zero_rt_allocator *allocator);
};

std::array<GpuAllocator::Parameters, 2>
GpuAllocator::train(const zero_rt_allocator *allocator) {
  std::array<Parameters, 2> result;
  runThreads(2, [&](int r, zero_rt_group *threads) {
    zero_rt_options options = {};
    options.struct_size = sizeof(options);
    options.device = "cuda";
    options.graphs = std::get<bool>(GetParam());
    options.poison = 1;
    options.allocator = allocator;
    GpuRank rank(library, threads, r, options);
    rank.check(rank.create());
    for (int i = 0; i < 3; ++i)
      rank.run({"fc2.bias", "fc2.weight", "fc1.bias", "fc1.weight"});
    for (const auto &one : kGpuElements) {
      const std::string &name = one.first;
      auto read = [&] { result[size_t(r)][name] = rank.getParameter(name); };
      if (library.hasUnits)
        rank.useUnit(name.substr(0, 3), read); // of fc1 or fc2
      else
        read();
    }
  });
  return result;
}

TEST_P(GpuAllocator, GivesTheBitsOfTheRuntimesOwn) {
  const auto &[stage, offload, graphs] = GetParam();
  LowerOptions options;
  options.mesh = std::string("dp=2");
  options.stage = stage;
  options.offload = offload;
  options.bucketBytes = 4096;
  library.hasUnits = stage == 3;
  open(options);
  auto expected = train(nullptr);
  CallersPool pool;
  zero_rt_allocator allocator = pool.getAllocator();
  EXPECT_EQ(train(&allocator), expected);
  EXPECT_GT(pool.given, 2 * 64 * 48); // a parameter at least
  EXPECT_EQ(pool.live, 0);
}

INSTANTIATE_TEST_SUITE_P(Layouts, GpuAllocator,
                         testing::Values(AllocatorCase(1, "none", false),
                                         AllocatorCase(1, "none", true),
                                         AllocatorCase(2, "optimizer", true),
                                         AllocatorCase(3, "none", false),
                                         AllocatorCase(3, "none", true)));

} // namespace
