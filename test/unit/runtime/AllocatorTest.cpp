//===- AllocatorTest.cpp - Buffers in the memory of the caller ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TrainStep.h"
#include "zero_rt/step.h"

#include <cstdlib>
#include <map>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

/// Gives memory for parameters, and keeps what was given back.
struct Caller {
  struct Given {
    std::string name;
    int64_t bytes;
    bool isReleased = false;
  };
  std::map<void *, Given> given;
  int64_t offset = 0; // of what is given, from an aligned address
  bool givesAll = false;
  bool givesNothing = false;

  ~Caller() {
    for (auto &[data, one] : given)
      std::free(static_cast<char *>(data) - offset);
  }

  zero_rt_allocator getAllocator() {
    auto allocator = sized<zero_rt_allocator>();
    allocator.context = this;
    allocator.allocate = [](void *context, int32_t, int32_t role, int64_t bytes,
                            const char *name, zero_rt_stream *) -> void * {
      auto &self = *static_cast<Caller *>(context);
      if (self.givesNothing ||
          (!self.givesAll && role != ZERO_RT_ROLE_PARAMETER))
        return nullptr;
      size_t rounded = size_t(bytes + self.offset + 63) / 64 * 64;
      void *data = static_cast<char *>(std::aligned_alloc(64, rounded + 64)) +
                   self.offset;
      self.given[data] = {name, bytes};
      return data;
    };
    allocator.release = [](void *context, void *data, zero_rt_stream *) {
      auto &self = *static_cast<Caller *>(context);
      auto found = self.given.find(data);
      ASSERT_NE(found, self.given.end());
      EXPECT_FALSE(found->second.isReleased) << found->second.name;
      found->second.isReleased = true;
    };
    return allocator;
  }
};

class Allocator : public testing::Test {
protected:
  void SetUp() override {
    expectOk(zero_rt_local_group_create(1, &group));
    options.allocator = &allocator;
  }
  void TearDown() override { expectOk(zero_rt_group_destroy(group)); }

  /// Makes the runtime and the step; |body| gets both.
  template <typename Body> void run(Body &&body) {
    zero_rt_runtime *runtime = nullptr;
    ASSERT_EQ(zero_rt_create(group, 0, &options, &runtime), ZERO_RT_OK)
        << zero_rt_message();
    {
      StepHandle step = createStep(runtime, library.get());
      body(runtime, step.get());
    }
    expectOk(zero_rt_destroy(runtime));
  }

  LibraryBuilder library = makeTrainStep(1);
  Caller caller;
  zero_rt_allocator allocator = caller.getAllocator();
  zero_rt_options options = sized<zero_rt_options>();
  zero_rt_group *group = nullptr;
};

// The view of a parameter lies in memory of the caller. The caller may read the
// parameter there after the step was destroyed. All other buffers are the
// runtime's.
TEST_F(Allocator, GivesParametersTheirMemory) {
  zero_rt_tensor view = sized<zero_rt_tensor>();
  auto values = trainParameter(Bias, 3);
  run([&](zero_rt_runtime *runtime, zero_rt_step *step) {
    zero_rt_tensor tensor = tensorOf(ZERO_RT_BF16, values);
    expectOk(zero_rt_step_bind_parameter(step, Bias, &tensor));
    expectOk(zero_rt_step_parameter(step, Bias, &view));
    ASSERT_EQ(caller.given.size(), 1u);
    auto &[data, given] = *caller.given.begin();
    EXPECT_EQ(given.name, "params");
    EXPECT_EQ(given.bytes, trainElements * 2);
    EXPECT_FALSE(given.isReleased);
    EXPECT_EQ(view.data, static_cast<uint16_t *>(data) + trainOffsets[Bias]);
    // It counts as memory of the step.
    EXPECT_EQ(countersOf(runtime).bytes_now[0][ZERO_RT_ROLE_PARAMETER],
              trainElements * 2);
  });
  EXPECT_TRUE(caller.given.begin()->second.isReleased);
  EXPECT_EQ(std::memcmp(view.data, values.data(), values.size() * 2), 0);
}

TEST_F(Allocator, IsAskedForBuffersOnDemand) {
  caller.givesAll = true;
  run([&](zero_rt_runtime *, zero_rt_step *step) {
    size_t before = caller.given.size();
    expectOk(zero_rt_step_begin_backward(step, ZERO_RT_HINT_UNKNOWN));
    EXPECT_GT(caller.given.size(), before);
    expectOk(zero_rt_step_discard(step));
  });
  for (const auto &[data, given] : caller.given)
    EXPECT_TRUE(given.isReleased) << given.name;
}

TEST_F(Allocator, MayGiveNothing) {
  caller.givesNothing = true;
  run([](zero_rt_runtime *, zero_rt_step *) {});
  EXPECT_TRUE(caller.given.empty());
}

// The struct is copied.
TEST_F(Allocator, MayGo) {
  zero_rt_runtime *runtime = nullptr;
  expectOk(zero_rt_create(group, 0, &options, &runtime));
  allocator = {};
  createStep(runtime, library.get());
  EXPECT_EQ(caller.given.size(), 1u);
  expectOk(zero_rt_destroy(runtime));
}

TEST_F(Allocator, MemoryMustBeAligned) {
  caller.offset = 8;
  zero_rt_runtime *runtime = nullptr;
  expectOk(zero_rt_create(group, 0, &options, &runtime));
  expectRefused(runtime, library.get(), ZERO_RT_INVALID_ARGUMENT,
                "options->allocator gave 'params' memory at");
  EXPECT_TRUE(caller.given.begin()->second.isReleased);
  expectOk(zero_rt_destroy(runtime));
}

TEST_F(Allocator, MustBeWhole) {
  zero_rt_runtime *runtime = nullptr;
  auto refuses = [&](const char *text) {
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 zero_rt_create(group, 0, &options, &runtime), text);
  };
  allocator.release = nullptr;
  refuses("options->allocator has no function 'release'");
  allocator.allocate = nullptr;
  refuses("options->allocator has no function 'allocate'");
  allocator.struct_size = 8;
  refuses("options->allocator->struct_size is 8");
}

} // namespace
