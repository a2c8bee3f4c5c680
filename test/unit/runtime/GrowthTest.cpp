//===- GrowthTest.cpp - Structs and tables of other versions --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A caller of another version has structs of another size. Here a struct of
// the test grows by one field, and a caller has structs with one field more
// than those of this runtime.
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TrainStep.h"
#include "core/structs.h"

using namespace zero_rt;
using namespace zero_rt::test;

namespace {
/// A struct with a field that the first version of it lacked.
struct Grown {
  uint32_t struct_size;
  int32_t first;
  int64_t later;
};

/// A struct T as it is in a later version.
template <typename T> struct Next {
  T known = {};
  int64_t later = 0;
  explicit Next(T from = {}) : known(from) {
    known.struct_size = sizeof(Next<T>);
  }
};
} // namespace

template <> inline constexpr size_t zero_rt::oldestSize<Grown> = 8;

TEST(Growth, WhatAnOlderCallerLacksIsZero) {
  Grown memory = {8, 3, /*not of the struct=*/77};
  Grown read = {};
  expectOk(readStruct(&memory, "grown", read));
  EXPECT_EQ(read.struct_size, sizeof(Grown));
  EXPECT_EQ(read.first, 3);
  EXPECT_EQ(read.later, 0);
  memory.struct_size = sizeof(Grown);
  expectOk(readStruct(&memory, "grown", read));
  EXPECT_EQ(read.later, 77);
}

TEST(Growth, WhatAnOlderCallerLacksIsNotWritten) {
  Grown memory = {8, 3, /*not of the struct=*/77};
  writeStruct(Grown{0, 5, 6}, &memory);
  EXPECT_EQ(memory.struct_size, 8u);
  EXPECT_EQ(memory.first, 5);
  EXPECT_EQ(memory.later, 77);
  memory.struct_size = sizeof(Grown);
  writeStruct(Grown{0, 5, 6}, &memory);
  EXPECT_EQ(memory.later, 6);
}

TEST(Growth, ElementsHaveTheDistanceOfTheCaller) {
  int32_t array[] = {8, 10, 8, 20, 8, 30};
  auto *grown = reinterpret_cast<const Grown *>(array);
  Grown read = {};
  for (int32_t i : {0, 1, 2}) {
    expectOk(readElement(grown, i, "array", read));
    EXPECT_EQ(read.first, 10 * (i + 1));
    EXPECT_EQ(read.later, 0);
  }
  array[2] = 16;
  expectStatus(ZERO_RT_INVALID_ARGUMENT, readElement(grown, 1, "array", read),
               "array[1].struct_size is 16, expected 8 as in array[0]");
  array[0] = 0;
  expectStatus(ZERO_RT_INVALID_ARGUMENT, readElement(grown, 1, "array", read),
               "array->struct_size is 0, expected at least 8");
}

TEST(Growth, RefusesASizeThatNoVersionHas) {
  Grown memory = {7, 3, 0};
  Grown read = {};
  expectStatus(ZERO_RT_INVALID_ARGUMENT, readStruct(&memory, "grown", read),
               "grown->struct_size is 7, expected at least 8");
  memory.struct_size = 0x7fffffff;
  expectStatus(ZERO_RT_INVALID_ARGUMENT, readStruct(&memory, "grown", read),
               "at most 4096");
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               readStruct<Grown>(nullptr, "grown", read), "grown is null");
}

TEST(Growth, ALaterCallerMayNotUseWhatIsUnknown) {
  zero_rt_group *group = nullptr;
  zero_rt_runtime *runtime = nullptr;
  expectOk(zero_rt_local_group_create(1, &group));
  Next<zero_rt_options> options;
  expectOk(zero_rt_create(group, 0, &options.known, &runtime));
  expectOk(zero_rt_destroy(runtime));
  options.later = 1;
  std::string known = std::to_string(sizeof(zero_rt_options));
  std::string version = std::to_string(ZERO_RT_ABI_VERSION);
  expectStatus(ZERO_RT_UNSUPPORTED,
               zero_rt_create(group, 0, &options.known, &runtime),
               ("options uses a field at byte " + known +
                ", and this runtime, of abi version " + version +
                ", knows the first " + known + " bytes; use a later runtime")
                   .c_str());
  expectOk(zero_rt_group_destroy(group));
}

TEST(Growth, ALaterCallerTrains) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    std::vector<std::vector<float>> values;
    std::vector<int32_t> numbers;
    std::vector<Next<zero_rt_tensor>> tensors;
    for (int32_t p : {0, 1, 2, 2, 3}) {
      numbers.push_back(p);
      values.push_back(trainGradient(p, 1));
    }
    for (std::vector<float> &gradient : values)
      tensors.emplace_back(tensorOf(ZERO_RT_F32, gradient));
    auto deliver = [&] {
      return calls.gradients(step, numbers.data(), &tensors[0].known,
                             int64_t(tensors.size()), nullptr, nullptr);
    };
    expectOk(calls.begin_backward(step, ZERO_RT_HINT_LAST));
    tensors[2].later = 1;
    expectStatus(ZERO_RT_UNSUPPORTED, deliver(), "tensors uses a field");
    tensors[2].later = 0;
    tensors[3].known.struct_size = sizeof(zero_rt_tensor);
    expectStatus(ZERO_RT_INVALID_ARGUMENT, deliver(),
                 "tensors[3].struct_size is 32, expected 40 as in tensors[0]");
    tensors[3].known.struct_size = sizeof(tensors[3]);
    expectOk(deliver());
    expectOk(applyStep(step, 0.5));
    Next<zero_rt_results> results;
    results.later = 77;
    expectOk(calls.results(step, &results.known));
    EXPECT_EQ(results.known.struct_size, sizeof(results));
    EXPECT_EQ(results.known.verdict, ZERO_RT_APPLIED);
    EXPECT_EQ(results.later, 0);
    Next<zero_rt_tensor> view;
    view.later = 77;
    expectOk(calls.parameter(step, 1, &view.known));
    EXPECT_EQ(view.known.elements, 3);
    EXPECT_EQ(view.later, 0);
  });
}

TEST(Growth, ALibraryMayNotUseWhatIsUnknown) {
  LibraryBuilder builder = makeTrainStep(1);
  Next<zero_rt_library> library(builder.get());
  runSteps(library.known, [](int32_t, zero_rt_step *) {});
  library.later = 1;
  expectRefused(library.known, ZERO_RT_UNSUPPORTED, "library uses a field");
}

TEST(Growth, TheRuntimeSaysItsVersion) {
  EXPECT_EQ(zero_rt_version(), uint32_t(ZERO_RT_ABI_VERSION));
}
