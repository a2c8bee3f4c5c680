//===- CreateTest.cpp - Groups, runtimes, and the creation of steps -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TrainStep.h"
#include "core/step.h"

#include <functional>
#include <thread>

using namespace zero_rt::test;

namespace {

/// Creates a step that must fail, and checks that nothing stays allocated.
TEST(Create, RefusesBadGroups) {
  zero_rt_group *group = nullptr;
  expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_local_group_create(0, &group),
               "ranks is 0, expected 1 to 4096");
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_local_group_create(INT32_MAX, &group),
               "ranks is 2147483647, expected 1 to 4096");
  expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_local_group_create(1, nullptr),
               "out_group is null");
  expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_group_destroy(nullptr),
               "process group is null");
}

TEST(Create, RefusesBadRuntimes) {
  zero_rt_group *group = nullptr;
  expectOk(zero_rt_local_group_create(2, &group));
  zero_rt_runtime *first = nullptr;
  zero_rt_runtime *second = nullptr;
  expectOk(zero_rt_create(group, 1, nullptr, &first));
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_create(group, 1, nullptr, &second), "already taken");
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_create(group, 2, nullptr, &second),
               "rank 2 is out of range for a process group of 2");
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_create(nullptr, 0, nullptr, &second),
               "process group is null");
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_create(group, 0, nullptr, nullptr), "out_runtime");
  zero_rt_options options = {};
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_create(group, 0, &options, &second), "struct_size is 0");
  options = sized<zero_rt_options>();
  options.threads = -1;
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_create(group, 0, &options, &second), "threads is -1");
  expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_group_destroy(group),
               "still has 1 runtime; destroy it first");
  zero_rt_counters counters = {};
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_read_counters(first, &counters), "struct_size");
  expectOk(zero_rt_wait(first, 0));
  expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_wait(first, 7), "timepoint 7");
  expectOk(zero_rt_destroy(first));
  // A rank that left may come again.
  expectOk(zero_rt_create(group, 1, nullptr, &first));
  expectOk(zero_rt_destroy(first));
  expectOk(zero_rt_group_destroy(group));
}

TEST(Create, StatusNames) {
  EXPECT_STREQ(zero_rt_status_name(ZERO_RT_MISSING_GRADIENT),
               "missing_gradient");
  EXPECT_STREQ(zero_rt_status_name(99), "unknown");
}

TEST(Create, RefusesNulls) {
  LibraryBuilder library = makeTrainStep(1);
  runRanks(1, [&](int32_t, zero_rt_runtime *runtime) {
    const zero_rt_calls &calls = callsOf(runtime);
    EXPECT_EQ(calls.struct_size, sizeof(zero_rt_calls));
    zero_rt_step *step = nullptr;
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.step_create(nullptr, &library.get(), nullptr, &step),
                 "step_create: runtime is null");
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.step_create(runtime, nullptr, nullptr, &step),
                 "library is null");
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.step_create(runtime, &library.get(), nullptr, nullptr),
                 "out_step is null");
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.step_create(runtime, &library.get(), &step, &step),
                 "options are reserved");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, calls.step_destroy(nullptr),
                 "step_destroy: step is null");
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.apply(nullptr, nullptr, 0, nullptr),
                 "apply: step is null");
  });
}

TEST(Create, RuntimeOutlivesItsSteps) {
  LibraryBuilder library = makeTrainStep(1);
  runRanks(1, [&](int32_t, zero_rt_runtime *runtime) {
    StepHandle step = createStep(runtime, library.get());
    expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_destroy(runtime),
                 "still has 1 step; destroy it first");
  });
}

// Some ranks are at the next runtime while others destroy the one before.
TEST(Create, RuntimesOfAGroupMayFollowEachOther) {
  LibraryBuilder library = makeTrainStep(3);
  const zero_rt_library &tables = library.get();
  std::vector<zero_rt_group *> groups = createGroups(3);
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      for (int round = 0; round < 20; ++round) {
        zero_rt_runtime *runtime = nullptr;
        expectOk(zero_rt_create(groups[size_t(rank)], rank, nullptr, &runtime));
        if (StepHandle step = createStep(runtime, tables)) {
          for (int32_t parameter = 0; parameter < 4; ++parameter)
            bindParameter(step.get(), parameter, float(parameter));
          expectOk(callsOf(step.get()).begin_backward(step.get(), 0));
          passAll(step.get());
          expectOk(applyStep(step.get()));
        }
        expectOk(zero_rt_destroy(runtime));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  destroyGroups(groups);
}

// Rank 0 has joined once more than rank 1, and still does not wait for it.
TEST(Create, ARankThatHasLeftIsMissedAtOnce) {
  LibraryBuilder library = makeTrainStep(2);
  const zero_rt_library &tables = library.get();
  std::vector<zero_rt_group *> groups = createGroups(2);
  zero_rt_runtime *first = nullptr;
  expectOk(zero_rt_create(groups[0], 0, nullptr, &first));
  expectOk(zero_rt_destroy(first));
  zero_rt_runtime *runtimes[2] = {};
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < 2; ++rank)
    expectOk(
        zero_rt_create(groups[size_t(rank)], rank, nullptr, &runtimes[rank]));
  for (int32_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      zero_rt_runtime *runtime = runtimes[rank];
      createStep(runtime, tables).reset();
      if (rank == 0)
        expectRefused(runtime, tables, ZERO_RT_TIMEOUT,
                      "rank 1 destroyed its runtime and will not come");
      expectOk(zero_rt_destroy(runtime));
    });
  for (std::thread &thread : threads)
    thread.join();
  destroyGroups(groups);
}

// A runtime is no step, and a step no runtime.
TEST(Create, RefusesSwappedHandles) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    auto *asStep = reinterpret_cast<zero_rt_step *>(runtimeOf(step));
    auto *asRuntime = reinterpret_cast<zero_rt_runtime *>(step);
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 callsOf(step).begin_backward(asStep, 0),
                 "begin_backward: this is no step");
    zero_rt_step *out = nullptr;
    expectStatus(
        ZERO_RT_INVALID_ARGUMENT,
        callsOf(step).step_create(asRuntime, &library.get(), nullptr, &out),
        "step_create: this is no runtime");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_destroy(asRuntime),
                 "this is no runtime");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_wait(asRuntime, 0),
                 "this is no runtime");
  });
}

TEST(Create, RefusesAnotherNumberOfRanks) {
  LibraryBuilder library = makeTrainStep(4);
  const zero_rt_library &tables = library.get();
  runRanks(2, [&](int32_t, zero_rt_runtime *runtime) {
    expectRefused(
        runtime, tables, ZERO_RT_INVALID_ARGUMENT,
        "library 'train' was compiled for 4 ranks and this process group has "
        "2; recompile with --mesh");
  });
}

TEST(Create, RefusesAnotherAbi) {
  LibraryBuilder library = makeTrainStep(1);
  zero_rt_library tables = library.get();
  tables.abi_version = ZERO_RT_ABI_VERSION + 1;
  expectRefused(tables, ZERO_RT_UNSUPPORTED, "use a runtime of version");
  tables.abi_version = ZERO_RT_OLDEST_ABI_VERSION - 1;
  expectRefused(tables, ZERO_RT_UNSUPPORTED, "compile the step again");
  tables = library.get();
  tables.struct_size = 432; // less than in the oldest version
  expectRefused(tables, ZERO_RT_UNSUPPORTED,
                "library has size 432, expected at least 440; compile the step "
                "again");
  tables = library.get();
  tables.abi_version = ZERO_RT_OLDEST_ABI_VERSION;
  tables.struct_size = 440;
  runSteps(tables, [](int32_t, zero_rt_step *) {});
}

TEST(Create, RefusesMissingCpuFeatures) {
  LibraryBuilder library = makeTrainStep(1);
  library.cpuFeatures = "sse2,quantum";
  expectRefused(library.get(), ZERO_RT_UNSUPPORTED, "cpu feature 'quantum'");
#if defined(__x86_64__)
  library.cpuFeatures = "sse2";
  runSteps(library.get(), [](int32_t, zero_rt_step *) {});
#endif
}

TEST(Create, ComparesPlans) {
  LibraryBuilder one = makeTrainStep(3);
  LibraryBuilder other = makeTrainStep(3);
  other.planHash = 0xabc;
  other.name = "eval";
  const zero_rt_library *libraries[] = {&one.get(), &one.get(), &other.get()};
  runRanks(3, [&](int32_t rank, zero_rt_runtime *runtime) {
    expectRefused(runtime, *libraries[rank], ZERO_RT_MISMATCH,
                  "rank 2 has plan 0000000000000abc of 'eval', rank 0 has plan "
                  "0000000000001234 of 'train'");
    // The group is as good as before.
    EXPECT_NE(createStep(runtime, *libraries[0]), nullptr);
  });
}

// The others are told at once, and why.
TEST(Create, OneRankThatFailsStopsAll) {
  LibraryBuilder good = makeTrainStep(2);
  LibraryBuilder bad = makeTrainStep(2);
  bad.cpuFeatures = "quantum";
  const zero_rt_library *libraries[] = {&good.get(), &bad.get()};
  runRanks(2, [&](int32_t rank, zero_rt_runtime *runtime) {
    expectRefused(runtime, *libraries[rank], ZERO_RT_UNSUPPORTED,
                  rank == 1 ? "library 'train' needs the cpu feature 'quantum'"
                            : "rank 1 could not create its step: library "
                              "'train' needs");
  });
}

// One table after the other, each with one field out of range.
TEST(Create, RefusesCorruptTables) {
  auto refuses = [](const char *text,
                    const std::function<void(LibraryBuilder &)> &damage) {
    LibraryBuilder library = makeTrainStep(2);
    damage(library);
    expectRefused(library.get(), ZERO_RT_INTERNAL, text);
  };
  using L = LibraryBuilder;
  refuses("parameter 1: bad bucket", [](L &l) { l.parameters[1].bucket = 1; });
  refuses("parameter 0: bad dtype", [](L &l) { l.parameters[0].dtype = 4; });
  refuses("parameter 3: does not fit its bucket",
          [](L &l) { l.parameters[3].offset = 19; });
  refuses("parameter 2: bad extent", [](L &l) { l.parameters[2].extent = 3; });
  refuses("parameter 2: bad number of uses",
          [](L &l) { l.parameters[2].uses = -1; });
  refuses("parameter 2: bad number of uses",
          [](L &l) { l.parameters[2].uses = INT64_MAX; });
  refuses("parameter 0: dtype differs",
          [](L &l) { l.parameters[0].dtype = ZERO_RT_F32; });
  refuses("axis 0: size does not divide the number of ranks",
          [](L &l) { l.axes[0].size = 3; });
  refuses("axis 0: product of sizes is not the number of ranks",
          [](L &l) { l.axes[0].size = 1; });
  refuses("axis set 0: bad axes", [](L &l) { l.axisSets[0] = 0; });
  refuses("axis set 0: bad axes", [](L &l) { l.axisSets[0] = 2; });
  refuses("bucket 0: gradient buffer is not the full bucket",
          [](L &l) { l.buckets[0].elements = 23; });
  refuses("bucket 0: bad axes", [](L &l) { l.buckets[0].rows = 1; });
  refuses("buffer 3: elements are not a multiple",
          [](L &l) { l.buffers[ShardBuffer].elements = 23; });
  refuses("buffer 3: bad axes",
          [](L &l) { l.buffers[ShardBuffer].owners = 1; });
  refuses("bucket 0: bad gradient buffer",
          [](L &l) { l.buckets[0].gradient_buffer = -1; });
  refuses("bucket 0: gradient buffer is not the full bucket",
          [](L &l) { l.buckets[0].gradient_buffer = ShardBuffer; });
  refuses("bucket 0: bad parameter buffer",
          [](L &l) { l.buckets[0].parameter_buffer = GradientBuffer; });
  refuses("bucket 0: bad master buffer",
          [](L &l) { l.buckets[0].master_buffer = 4; });
  refuses("bucket 0: bad staging buffer",
          [](L &l) { l.buckets[0].staging_buffer = MasterBuffer; });
  refuses("bucket 0: bad store or add kernel",
          [](L &l) { l.buckets[0].add_kernel = 4; });
  refuses("buffer 1: bad role",
          [](L &l) { l.buffers[1].role = ZERO_RT_ROLE_COUNT; });
  refuses("buffer 1: bad space", [](L &l) { l.buffers[1].space = 2; });
  refuses("buffer 1: bad size", [](L &l) { l.buffers[1].elements = -2; });
  refuses("buffer 1: bad size",
          [](L &l) { l.buffers[1].elements = INT64_MAX; });
  refuses("segment 0: bad interval", [](L &l) { l.segments[0].begin = 25; });
  refuses("segment 1: bad scalar slot",
          [](L &l) { l.segments[1].scalars = 16; });
  refuses("segment table 1: segments are out of range",
          [](L &l) { l.tables[1].count = 3; });
  const char *input = "input 0: bad scalar slot, axes, check or name";
  refuses(input, [](L &l) { l.inputs[0].slot = 15; });
  refuses(input, [](L &l) { l.inputs[0].over = 99; });
  refuses(input, [](L &l) { l.inputs[0].name = -1; });
  refuses("loss scale 0: bad scalar slot", [](L &l) { l.lossScale = 15; });
  refuses("result 0: bad scalar slot or name",
          [](L &l) { l.results[0].slot = -1; });
  refuses("result 0: bad scalar slot or name",
          [](L &l) { l.results[0].name = -1; });
  refuses("state 1: bad buffer", [](L &l) { l.states[1].index = 4; });
  refuses("state 1: bad buffer",
          [](L &l) { l.states[1].index = GradientBuffer; });
  refuses("state 2: bad scalar slot", [](L &l) { l.states[2].index = 15; });
  refuses("kernel 0: is null", [](L &l) { l.kernels[0] = nullptr; });
  refuses("scalar program 1: is null",
          [](L &l) { l.scalarPrograms[1] = nullptr; });
  refuses("handler 0: is null", [](L &l) { l.handlers[0] = nullptr; });
  auto numbered = [](L &l, zero_rt_handler_row row) {
    l.makeCalls = [](zero_rt_step *, const zero_rt_event *, const int64_t *,
                     int64_t,
                     const int32_t *) -> zero_rt_status { return ZERO_RT_OK; };
    l.callWords.resize(3);
    l.handlerCalls.assign(l.handlers.size(), {0, 3});
    l.handlerCalls[1] = row;
  };
  const char *calls = "handler 1: bad calls";
  refuses(calls, [&](L &l) { numbered(l, {-1, 2}); });
  refuses(calls, [&](L &l) { numbered(l, {0, 4}); });
  refuses(calls, [&](L &l) { numbered(l, {3, 1}); });
  refuses(calls, [&](L &l) { numbered(l, {4, 0}); });
  refuses(calls, [&](L &l) { numbered(l, {1, -1}); });
  refuses(calls, [&](L &l) { numbered(l, {1, INT64_MAX}); });
  refuses("handlers 0: table is null", [&](L &l) {
    numbered(l, {0, 3});
    l.handlerCalls.clear();
  });
  refuses("transition 0: bad state", [](L &l) { l.transitions[0].next = 5; });
  refuses("transition 0: bad event",
          [](L &l) { l.transitions[0].event = ZERO_RT_EVENT_COUNT; });
  refuses("transition 0: bad handler",
          [](L &l) { l.transitionHandlers[0] = 99; });
  refuses("transition 1: is listed twice",
          [](L &l) { l.transitions[1] = l.transitions[0]; });
}

TEST(Create, FindsParametersByName) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    int32_t parameter = -2;
    expectOk(calls.find_parameter(step, "tied", &parameter));
    EXPECT_EQ(parameter, Tied);
    expectStatus(
        ZERO_RT_INVALID_ARGUMENT,
        calls.find_parameter(step, "fc1.bais", &parameter),
        "no parameter 'fc1.bais' in 'train'; did you mean 'fc1.bias'?");
    EXPECT_EQ(parameter, -1);
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.find_parameter(step, nullptr, &parameter),
                 "name is null");
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.find_parameter(step, "tied", nullptr), "out_parameter");
  });
}

} // namespace
