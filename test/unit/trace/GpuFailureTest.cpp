//===- GpuFailureTest.cpp - What may go wrong with a GPU ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuRank.h"
#include "zero_rt/cuda_code.h"
#include "zero_rt/step.h"

#include "llvm/ADT/StringRef.h"

#include <array>
#include <cmath>
#include <thread>
#include <utility>

using namespace zero;
using namespace zero::test;

namespace {

constexpr int kOutOfMemory = 2;
constexpr int kInvalidPtx = 218;
constexpr int kLaunchFailed = 719;

class GpuFailure : public GpuTest {
protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped())
      ASSERT_EQ(zero_rt_local_group_create(1, &group), ZERO_RT_OK);
  }
  void openOn(const std::string &mesh) {
    LowerOptions options;
    options.mesh = mesh;
    open(options);
  }
  /// Creates a runtime on GPU |ordinal|, which must fail.
  void expectNoRuntime(zero_rt_status expected, const std::string &text,
                       int32_t ordinal = 0) {
    zero_rt_options options = {};
    options.struct_size = sizeof(options);
    options.device = "cuda";
    options.ordinal = ordinal;
    zero_rt_runtime *runtime = nullptr;
    EXPECT_EQ(zero_rt_create(group, 0, &options, &runtime), expected);
    EXPECT_EQ(runtime, nullptr);
    expectMessage(text);
  }
  void expectMessage(const std::string &text) {
    EXPECT_NE(std::string(zero_rt_message()).find(text), std::string::npos)
        << zero_rt_message();
  }
};

TEST_F(GpuFailure, NoSuchGpu) {
  expectNoRuntime(ZERO_RT_UNSUPPORTED,
                  "there is no GPU 1: the CUDA driver has 1", 1);
  expectNoRuntime(ZERO_RT_UNSUPPORTED, "there is no GPU -1", -1);
  fake::setGpus(0, 9, 0);
  expectNoRuntime(ZERO_RT_UNSUPPORTED,
                  "no GPU can be used: cuInit failed: CUDA_ERROR_NO_DEVICE");
}

TEST_F(GpuFailure, ADriverThatIsTooOld) {
  fake::setVersion(11010);
  expectNoRuntime(ZERO_RT_UNSUPPORTED,
                  "the CUDA driver is of version 11.1, expected at least 11.2");
}

TEST_F(GpuFailure, AGpuThatIsTooOld) {
  fake::setGpus(1, 7, 5);
  expectNoRuntime(ZERO_RT_UNSUPPORTED,
                  "GPU 0 is sm_75, and kernels are for sm_80 and later");
}

TEST_F(GpuFailure, ThreadsOnGpusThatAreNoPeers) {
  zero_rt_group *two = nullptr;
  ASSERT_EQ(zero_rt_local_group_create(2, &two), ZERO_RT_OK);
  fake::setGpus(2, 9, 0);
  zero_rt_options options = {};
  options.struct_size = sizeof(options);
  options.device = "cuda";
  zero_rt_runtime *first = nullptr, *second = nullptr;
  EXPECT_EQ(zero_rt_create(two, 0, &options, &first), ZERO_RT_OK);
  options.ordinal = 1;
  fake::setPeers(false);
  EXPECT_EQ(zero_rt_create(two, 1, &options, &second), ZERO_RT_UNSUPPORTED);
  expectMessage("GPU 0 cannot use memory of GPU 1, as ranks that are threads "
                "do; let each be a process");
  // Who could not join is not in the way.
  fake::setPeers(true);
  EXPECT_EQ(zero_rt_create(two, 1, &options, &second), ZERO_RT_OK);
  EXPECT_EQ(zero_rt_destroy(first), ZERO_RT_OK);
  EXPECT_EQ(zero_rt_destroy(second), ZERO_RT_OK);
  EXPECT_EQ(zero_rt_group_destroy(two), ZERO_RT_OK);
}

TEST_F(GpuFailure, ACallOfTheDriverFails) {
  fake::failCall("cuStreamCreate", kOutOfMemory);
  expectNoRuntime(ZERO_RT_OUT_OF_MEMORY,
                  "cuStreamCreate failed: CUDA_ERROR_OUT_OF_MEMORY (2");
  fake::failCall("cuDevicePrimaryCtxRetain", 46);
  expectNoRuntime(ZERO_RT_DEVICE_FAILED,
                  "cuDevicePrimaryCtxRetain failed: unknown error (46");
}

TEST_F(GpuFailure, AnUnknownDevice) {
  zero_rt_options options = {};
  options.struct_size = sizeof(options);
  options.device = "tpu";
  zero_rt_runtime *runtime = nullptr;
  EXPECT_EQ(zero_rt_create(group, 0, &options, &runtime),
            ZERO_RT_INVALID_ARGUMENT);
  expectMessage("options->device is 'tpu', expected 'host', 'cuda'");
  // As callers of version 15 name it.
  options.device = nullptr;
  options.device_number = 2;
  EXPECT_EQ(zero_rt_create(group, 0, &options, &runtime),
            ZERO_RT_INVALID_ARGUMENT);
  expectMessage("options->device is 2, expected 'host', 'cuda'");
  options.device_number = 1;
  options.struct_size = 56;
  EXPECT_EQ(zero_rt_create(group, 0, &options, &runtime), ZERO_RT_OK)
      << zero_rt_message();
  EXPECT_EQ(zero_rt_destroy(runtime), ZERO_RT_OK);
}

TEST_F(GpuFailure, ALibraryWithoutCudaCode) {
  LowerOptions options;
  options.mesh = "dp=1";
  ASSERT_EQ(library.open(options), "");
  GpuRank rank(library, group, 0);
  EXPECT_EQ(rank.create(), ZERO_RT_UNSUPPORTED);
  expectMessage("'train' has no code for a GPU; compile it with --target=cuda");
}

const zero_rt_library *numbered; // the handlers of which are numbers

/// Handler |index| of |numbered|, as a function.
template <size_t index>
zero_rt_status handle(zero_rt_step *step, const zero_rt_event *event) {
  const zero_rt_handler_row &row = numbered->handler_calls[index];
  return numbered->make_calls(step, event, numbered->call_words + row.first,
                              row.count, numbered->call_lists);
}

constexpr size_t kMostHandlers = 64;
template <size_t... index>
constexpr std::array<zero_rt_handler_fn, kMostHandlers>
makeHandlers(std::index_sequence<index...>) {
  return {handle<index>...};
}

// A library of version 15 has its code in a field of its own, and handlers that
// are functions.
TEST_F(GpuFailure, ALibraryOfVersion15) {
  openOn("dp=1");
  zero_rt_library old = library.getLibrary();
  numbered = &library.getLibrary();
  constexpr auto handlers =
      makeHandlers(std::make_index_sequence<kMostHandlers>());
  ASSERT_LE(size_t(old.num_handlers), kMostHandlers);
  old.handlers = handlers.data();
  ASSERT_EQ(old.num_executables, 1);
  old.device_code = old.executables->data;
  old.executables = nullptr;
  old.num_executables = 77; // not of the library
  old.abi_version = 15;
  old.struct_size = 440;
  GpuRank rank(library, group, 0);
  rank.check(zero_rt_step_create(rank.runtime, &old, nullptr, &rank.step));
}

TEST_F(GpuFailure, CodeOfAnotherFormat) {
  openOn("dp=1");
  zero_rt_executable executable = *library.getLibrary().executables;
  executable.format = "cuda-functions-3";
  zero_rt_library later = library.getLibrary();
  later.executables = &executable;
  GpuRank rank(library, group, 0);
  EXPECT_EQ(zero_rt_step_create(rank.runtime, &later, nullptr, &rank.step),
            ZERO_RT_UNSUPPORTED);
  expectMessage("'train' has code for a GPU in format 'cuda-functions-3', "
                "expected 'cuda-functions-2'; compile it with the "
                "zero-compile of this runtime");
}

TEST_F(GpuFailure, CodeOfTheFormatBefore) {
  openOn("dp=1");
  zero_rt_executable executable = *library.getLibrary().executables;
  zero_rt_cuda_code code =
      static_cast<const zero_rt_cuda_code_2 *>(executable.data)->code;
  executable.format = "cuda-functions-1";
  executable.data = &code;
  zero_rt_library earlier = library.getLibrary();
  earlier.executables = &executable;
  GpuRank rank(library, group, 0);
  rank.check(zero_rt_step_create(rank.runtime, &earlier, nullptr, &rank.step));
  rank.check(rank.calls().begin_backward(rank.step, ZERO_RT_HINT_UNKNOWN));
  std::vector<int32_t> parameters = {rank.find("fc1.bias"),
                                     rank.find("fc2.bias")};
  std::vector<zero_rt_tensor> tensors;
  for (const char *name : {"fc1.bias", "fc2.bias"})
    tensors.push_back(rank.makeTensor(kGpuElements.at(name), 1));
  (void)fake::takeCalls();
  rank.check(rank.calls().gradients(rank.step, parameters.data(),
                                    tensors.data(), 2, nullptr, nullptr));
  int launches = 0;
  for (const fake::Call &call : fake::takeCalls())
    launches += call.function == "cuLaunchKernel";
  EXPECT_EQ(launches, 2);
}

TEST_F(GpuFailure, PtxThatTheDriverRefuses) {
  openOn("dp=1");
  GpuRank rank(library, group, 0);
  fake::setLog("ptxas application ptx input, line 5; fatal");
  fake::failCall("cuModuleLoadDataEx", kInvalidPtx);
  EXPECT_EQ(rank.create(), ZERO_RT_DEVICE_FAILED);
  expectMessage("cuModuleLoadDataEx failed");
  expectMessage("ptxas application ptx input, line 5; fatal");
}

TEST_F(GpuFailure, NoMemoryForAStep) {
  openOn("dp=1");
  GpuRank rank(library, group, 0);
  fake::failCall("cuMemAllocFromPoolAsync", kOutOfMemory, /*count=*/4);
  EXPECT_EQ(rank.create(), ZERO_RT_OUT_OF_MEMORY);
  expectMessage("bytes in space 'device'");
  EXPECT_EQ(rank.create(), ZERO_RT_OK) << zero_rt_message();
}

// A step with a launch that failed is only good for being destroyed.
TEST_F(GpuFailure, ALaunchFails) {
  openOn("dp=1");
  GpuRank rank(library, group, 0);
  ASSERT_EQ(rank.create(), ZERO_RT_OK) << zero_rt_message();
  rank.check(rank.calls().begin_backward(rank.step, ZERO_RT_HINT_UNKNOWN));
  zero_rt_tensor tensor = rank.makeTensor(64, 1);
  fake::failCall("cuLaunchKernel", kLaunchFailed);
  EXPECT_EQ(rank.calls().gradient(rank.step, rank.find("fc1.bias"), &tensor,
                                  nullptr, nullptr),
            ZERO_RT_DEVICE_FAILED);
  expectMessage("cuLaunchKernel failed: CUDA_ERROR_LAUNCH_FAILED (719, "
                "unspecified launch failure)");
  double rate = 1;
  EXPECT_EQ(rank.calls().apply(rank.step, &rate, 1, nullptr), ZERO_RT_POISONED);
  expectMessage("cuLaunchKernel failed");
}

/// A function of the driver; which of its calls fails, counted from 1; the ZeRO
/// stage; and whether tensors are lent.
using BatchCase = std::tuple<const char *, int, int, bool>;

class GpuBatchFailure : public GpuFailure,
                        public testing::WithParamInterface<BatchCase> {};

// Whichever call fails, `gradients` fails or nothing is missing. If it fails,
// the step is only good for being destroyed, or a gradient that could not wait
// for its bucket was not taken. The caller gets all tensors back.
TEST_P(GpuBatchFailure, LosesNoGradient) {
  const auto &[function, count, stage, isLent] = GetParam();
  LowerOptions options;
  options.mesh = std::string("dp=1");
  options.stage = stage;
  options.bucketBytes = 1024;
  open(options);
  GpuRank rank(library, group, 0);
  ASSERT_EQ(rank.create(), ZERO_RT_OK) << zero_rt_message();
  rank.check(rank.calls().begin_backward(rank.step, ZERO_RT_HINT_LAST));
  std::vector<int32_t> parameters;
  std::vector<zero_rt_tensor> tensors;
  double squares = 0;
  for (const auto &[name, elements] : kGpuElements) {
    int uses = name == "fc1.weight" ? 2 : 1;
    parameters.insert(parameters.end(), uses, rank.find(name));
    tensors.insert(tensors.end(), uses, rank.makeTensor(elements, 0.5));
    squares += double(elements) * 0.25 * uses * uses;
  }
  std::vector<zero_rt_timepoint> releases(tensors.size());
  fake::failCall(function, kOutOfMemory, count);
  zero_rt_status status = rank.calls().gradients(
      rank.step, parameters.data(), tensors.data(), int64_t(tensors.size()),
      nullptr, isLent ? releases.data() : nullptr);
  std::string message = zero_rt_message();
  fake::failCall(function, 0, 0);
  double rate = 1;
  zero_rt_status applied = rank.calls().apply(rank.step, &rate, 1, nullptr);
  if (!status) {
    rank.check(applied);
    EXPECT_FLOAT_EQ(float(rank.getResults().values[0]),
                    float(std::sqrt(squares)));
  } else if (applied != ZERO_RT_POISONED) {
    rank.check(applied);
    zero_rt_results results = {};
    results.struct_size = sizeof(results);
    EXPECT_EQ(rank.calls().results(rank.step, &results),
              ZERO_RT_MISSING_GRADIENT);
    EXPECT_EQ(results.verdict, ZERO_RT_REFUSED_MISSING_GRADIENT);
  }
  if (status)
    EXPECT_NE(llvm::StringRef(message).lower().find("memory"),
              std::string::npos)
        << message;
  rank.destroyStep(); // which gives back what waited
  for (zero_rt_timepoint release : releases)
    rank.check(zero_rt_wait(rank.runtime, release));
}

INSTANTIATE_TEST_SUITE_P(
    Calls, GpuBatchFailure,
    testing::Combine(testing::Values("cuLaunchKernel", "cuMemcpyAsync",
                                     "cuMemAllocFromPoolAsync", "cuEventRecord",
                                     "cuStreamWaitEvent"),
                     testing::Range(1, 9), testing::Values(0, 2),
                     testing::Bool()));

// What fails in a collective fails on all ranks, and nobody waits for ever.
class GpuCollectiveFailure : public GpuFailure,
                             public testing::WithParamInterface<int> {};

TEST_P(GpuCollectiveFailure, FreesAllRanks) {
  openOn("dp=2");
  EXPECT_EQ(zero_rt_group_destroy(group), ZERO_RT_OK);
  ASSERT_EQ(zero_rt_local_group_create(2, &group), ZERO_RT_OK);
  zero_rt_status statuses[2] = {};
  std::string messages[2];
  std::thread threads[2];
  for (int r = 0; r < 2; ++r)
    threads[r] = std::thread([&, r] {
      GpuRank rank(library, group, r);
      ASSERT_EQ(rank.create(), ZERO_RT_OK) << zero_rt_message();
      rank.check(rank.calls().begin_backward(rank.step, ZERO_RT_HINT_UNKNOWN));
      if (r == 1)
        // Streams wait for each other in collectives, and for the caller's in
        // apply.
        fake::failCall("cuStreamWaitEvent", kLaunchFailed, GetParam());
      double rate = 1;
      statuses[r] = rank.calls().apply(rank.step, &rate, 1, nullptr);
      messages[r] = zero_rt_message();
    });
  for (std::thread &thread : threads)
    thread.join();
  // In the last phase of a collective the others have done their part, and miss
  // the rank that failed in the next one.
  int numTold = 0;
  for (int r = 0; r < 2; ++r) {
    EXPECT_TRUE(statuses[r] == ZERO_RT_DEVICE_FAILED ||
                statuses[r] == ZERO_RT_TIMEOUT)
        << messages[r];
    numTold +=
        messages[r].find("cuStreamWaitEvent failed") != std::string::npos;
  }
  EXPECT_GE(numTold, 1) << messages[0] << "; " << messages[1];
}

// In the first phase of the all-reduce, and in those behind it.
INSTANTIATE_TEST_SUITE_P(Counts, GpuCollectiveFailure, testing::Range(3, 12));

// Ranks that are threads read each other's memory.
TEST_F(GpuFailure, RanksOnDifferentDevices) {
  openOn("dp=2");
  EXPECT_EQ(zero_rt_group_destroy(group), ZERO_RT_OK);
  ASSERT_EQ(zero_rt_local_group_create(2, &group), ZERO_RT_OK);
  GpuRank rank(library, group, 0);
  zero_rt_runtime *other = nullptr;
  EXPECT_EQ(zero_rt_create(group, 1, nullptr, &other), ZERO_RT_UNSUPPORTED);
  expectMessage("rank 1 is on device 'host' and rank 0 on 'cuda:0'; ranks that "
                "are threads must all be on GPUs, or none");
}

} // namespace
