//===- MemoryTest.cpp - Bytes by space and role, and what is in them ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LibraryBuilder.h"
#include "Ranks.h"
#include "core/numeric.h"
#include "core/step.h"

using namespace zero_rt;
using namespace zero_rt::test;

// Sanitizers end the program when an allocation cannot succeed, unless told
// that this is what a test is about.
extern "C" const char *__asan_default_options() {
  return "allocator_may_return_null=1";
}
extern "C" const char *__tsan_default_options() {
  return "allocator_may_return_null=1";
}

namespace {

enum { Gradient, Staging, Twin, Short };

/// A device buffer of 24 bytes and two on demand, of 12 and 24, in host space.
LibraryBuilder makeBuffers() {
  LibraryBuilder library(2);
  library.addProtocolState("idle");
  library.addBuffer({"gradient", ZERO_RT_F32, 6, false, ZERO_RT_ROLE_GRADIENT,
                     ZERO_RT_SPACE_DEVICE, false, 1.5});
  library.addBuffer({"staging", ZERO_RT_F32, 6, true, ZERO_RT_ROLE_STAGING,
                     ZERO_RT_SPACE_HOST, true, 3});
  library.addBuffer({"twin", ZERO_RT_F32, 6, false, ZERO_RT_ROLE_STAGING,
                     ZERO_RT_SPACE_HOST, true});
  library.addBuffer({"short", ZERO_RT_F32, 4, false, ZERO_RT_ROLE_STAGING,
                     ZERO_RT_SPACE_HOST, true});
  library.addSlot("s");
  return library;
}

void expectCount(const zero_rt_counters &counters, int space, int role,
                 int64_t now, int64_t peak, int64_t allocations) {
  EXPECT_EQ(counters.bytes_now[space][role], now);
  EXPECT_EQ(counters.bytes_peak[space][role], peak);
  EXPECT_EQ(counters.allocations[space][role], allocations);
}

TEST(Memory, CountsAllocationsOnDemand) {
  LibraryBuilder library = makeBuffers();
  const int host = ZERO_RT_SPACE_HOST;
  const int role = ZERO_RT_ROLE_STAGING;
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    zero_rt_runtime *runtime = runtimeOf(step);
    expectCount(countersOf(runtime), 0, ZERO_RT_ROLE_GRADIENT, 24, 24, 1);
    expectCount(countersOf(runtime), 0, ZERO_RT_ROLE_SCALAR, 8, 8, 1);
    expectCount(countersOf(runtime), host, role, 0, 0, 0);
    for (int turn = 1; turn <= 3; ++turn) {
      expectOk(calls.allocate(step, Staging));
      expectCount(countersOf(runtime), host, role, 12, 12, turn);
      expectOk(calls.release(step, Staging));
      expectCount(countersOf(runtime), host, role, 0, 12, turn);
    }
    expectOk(calls.allocate(step, Twin));
    expectOk(calls.allocate(step, Staging));
    expectCount(countersOf(runtime), host, role, 36, 36, 5);
  });
}

TEST(Memory, RefusesWrongAllocations) {
  LibraryBuilder library = makeBuffers();
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectStatus(ZERO_RT_INTERNAL, calls.allocate(step, Gradient),
                 "allocate: buffer 'gradient' lives with the step");
    expectStatus(ZERO_RT_INTERNAL, calls.release(step, Gradient),
                 "release: buffer 'gradient' lives with the step");
    expectStatus(ZERO_RT_INTERNAL, calls.release(step, Staging),
                 "release: buffer 'staging' is not allocated");
    expectOk(calls.allocate(step, Staging));
    expectStatus(ZERO_RT_INTERNAL, calls.allocate(step, Staging),
                 "allocate: buffer 'staging' is allocated already");
    expectStatus(ZERO_RT_INTERNAL, calls.allocate(step, 4), "out of range");
    expectStatus(ZERO_RT_INTERNAL, calls.set_role(step, Gradient, 6),
                 "set_role: role 6 of 'gradient' is out of range");
  });
}

TEST(Memory, SetRoleMovesTheCount) {
  LibraryBuilder library = makeBuffers();
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    void *before = step->get()->buffers[Gradient].data;
    expectOk(calls.set_role(step, Gradient, ZERO_RT_ROLE_ACCUMULATOR));
    EXPECT_EQ(step->get()->buffers[Gradient].data, before);
    zero_rt_counters counters = countersOf(runtimeOf(step));
    expectCount(counters, 0, ZERO_RT_ROLE_GRADIENT, 0, 24, 1);
    expectCount(counters, 0, ZERO_RT_ROLE_ACCUMULATOR, 24, 24, 0);
    // A buffer that is allocated again counts as what it was declared.
    expectOk(calls.allocate(step, Staging));
    expectOk(calls.set_role(step, Staging, ZERO_RT_ROLE_ACCUMULATOR));
    expectOk(calls.release(step, Staging));
    expectOk(calls.allocate(step, Staging));
    counters = countersOf(runtimeOf(step));
    expectCount(counters, 1, ZERO_RT_ROLE_STAGING, 12, 12, 2);
    expectCount(counters, 1, ZERO_RT_ROLE_ACCUMULATOR, 0, 12, 0);
  });
}

TEST(Memory, FillsAndPoisons) {
  LibraryBuilder library = makeBuffers();
  Options options;
  options.poison = true;
  runSteps(
      library.get(),
      [](int32_t, zero_rt_step *step) {
        auto *gradient =
            static_cast<float *>(step->get()->buffers[Gradient].data);
        EXPECT_EQ(std::vector<float>(gradient, gradient + 6),
                  std::vector<float>(6, 1.5f));
        expectOk(callsOf(step).allocate(step, Staging));
        auto *words =
            static_cast<uint32_t *>(step->get()->buffers[Staging].data);
        EXPECT_EQ(std::vector<uint32_t>(words, words + 3),
                  std::vector<uint32_t>(3, F32::poison));
      },
      options);
}

TEST(Memory, IsAligned) {
  LibraryBuilder library = makeBuffers();
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    expectOk(callsOf(step).allocate(step, Staging));
    for (int buffer : {Gradient, Staging})
      EXPECT_EQ(reinterpret_cast<uintptr_t>(step->get()->buffers[buffer].data) %
                    64,
                0u);
  });
}

TEST(Memory, CopiesBetweenSpacesAreCounted) {
  LibraryBuilder library = makeBuffers();
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(calls.allocate(step, Twin));
    expectOk(calls.copy(step, Gradient, Twin, ZERO_RT_STREAM_COMPUTE));
    EXPECT_EQ(static_cast<float *>(step->get()->buffers[Twin].data)[5], 1.5f);
    EXPECT_EQ(countersOf(runtimeOf(step)).bytes_copied_between_spaces, 24);
    expectOk(calls.copy(step, Twin, Twin, ZERO_RT_STREAM_COMPUTE));
    EXPECT_EQ(countersOf(runtimeOf(step)).bytes_copied_between_spaces, 24);
    expectOk(calls.allocate(step, Staging));
    // Of a full buffer the slice that the other one holds.
    expectOk(calls.copy(step, Gradient, Staging, ZERO_RT_STREAM_COMPUTE));
    EXPECT_EQ(static_cast<float *>(step->get()->buffers[Staging].data)[2],
              1.5f);
    EXPECT_EQ(countersOf(runtimeOf(step)).bytes_copied_between_spaces, 36);
    expectOk(calls.allocate(step, Short));
    expectStatus(ZERO_RT_INTERNAL,
                 calls.copy(step, Gradient, Short, ZERO_RT_STREAM_COMPUTE),
                 "copy: 'gradient' and 'short' differ in type or size");
  });
}

// And of a slice only its place in the full one is written.
TEST(Memory, CopiesASliceToItsPlace) {
  LibraryBuilder library = makeBuffers();
  runSteps(library.get(), [](int32_t rank, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(calls.allocate(step, Staging));
    auto *slice = static_cast<float *>(step->get()->buffers[Staging].data);
    for (int i = 0; i < 3; ++i)
      slice[i] = float(10 * rank + i);
    expectOk(calls.copy(step, Staging, Gradient, ZERO_RT_STREAM_COMPUTE));
    auto *full = static_cast<float *>(step->get()->buffers[Gradient].data);
    for (int i = 0; i < 6; ++i)
      EXPECT_EQ(full[i], i / 3 == rank ? float(10 * rank + i % 3) : 1.5f);
  });
}

// More than any machine has: an error with the name, and nothing stays.
TEST(Memory, OutOfMemoryIsAnError) {
  LibraryBuilder library = makeBuffers();
  library.addBuffer({"huge", ZERO_RT_F64, int64_t(1) << 47});
  const zero_rt_library &tables = library.get();
  runRanks(2, [&](int32_t, zero_rt_runtime *runtime) {
    zero_rt_step *step = nullptr;
    expectStatus(ZERO_RT_OUT_OF_MEMORY,
                 callsOf(runtime).step_create(runtime, &tables, nullptr, &step),
                 "no memory for 'huge'");
    expectCount(countersOf(runtime), 0, ZERO_RT_ROLE_GRADIENT, 0, 24, 1);
  });
}

} // namespace
