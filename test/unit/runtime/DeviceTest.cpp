//===- DeviceTest.cpp - A device of the test, by name ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// "backward" is a second device, which uses nothing but device.h: it runs the
// last piece of a launch first, and has the CPU's kernels. So its results have
// the bits of the CPU, and what it counts shows that it did the work.
//
//===----------------------------------------------------------------------===//

#include "zero_rt/device.h"
#include "Ranks.h"
#include "TrainStep.h"
#include "zero_rt/step.h"
#include "zero_rt/transport.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace zero_rt::test;

//===----------------------------------------------------------------------===//
// The device
//===----------------------------------------------------------------------===//

namespace {
struct BackwardDevice {
  int32_t ordinal;
  int64_t blocks = 0; // of memory that are not released
};

/// A table of kernels of the device's own, which a library may have.
struct BackwardCode {
  const zero_rt_kernel_fn *kernels; // null: those of the CPU
};
constexpr const char *backwardFormat = "kernels-1";

std::atomic<int64_t> numPieces{0};
std::atomic<int64_t> numPrograms{0};
std::atomic<int64_t> numDevices{0};
std::atomic<bool> failsLaunches{false};

BackwardDevice &deviceAt(void *context) {
  return *static_cast<BackwardDevice *>(context);
}
} // namespace

static zero_rt_status createBackward(const zero_rt_options *options,
                                     void **outContext) {
  if (options->ordinal > 0)
    return zero_rt_fail(ZERO_RT_UNSUPPORTED, "there is one device 'backward'");
  *outContext = new BackwardDevice{options->ordinal};
  ++numDevices;
  return ZERO_RT_OK;
}

static void destroyBackward(void *context) {
  EXPECT_EQ(deviceAt(context).blocks, 0);
  delete &deviceAt(context);
  --numDevices;
}

static void *allocateBackward(void *context, int32_t, int64_t bytes) {
  ++deviceAt(context).blocks;
  return std::aligned_alloc(64, size_t(bytes / 64 + 1) * 64);
}

static void releaseBackward(void *context, int32_t, void *data) {
  --deviceAt(context).blocks;
  std::free(data);
}

static zero_rt_status copyBackward(void *, void *dst, const void *src,
                                   int64_t bytes) {
  if (bytes)
    std::memmove(dst, src, size_t(bytes));
  return ZERO_RT_OK;
}

static zero_rt_status setBackward(void *, void *data, uint64_t bits,
                                  int64_t size, int64_t count) {
  for (int64_t i = 0; i < count; ++i) // x86-64 is little-endian
    std::memcpy(static_cast<char *>(data) + i * size, &bits, size_t(size));
  return ZERO_RT_OK;
}

static zero_rt_status loadBackward(void *,
                                   const zero_rt_executable *executables,
                                   int64_t count, void **outCode) {
  const zero_rt_kernel_fn *kernels = nullptr;
  for (int64_t i = 0; i < count; ++i) {
    EXPECT_STREQ(executables[i].target, "backward");
    if (std::string(executables[i].format) == backwardFormat)
      kernels = static_cast<const zero_rt_kernel_fn *>(executables[i].data);
  }
  if (count > 0 && !kernels)
    return zero_rt_fail(ZERO_RT_UNSUPPORTED,
                        "device 'backward' knows no format but 'kernels-1'");
  *outCode = new BackwardCode{kernels};
  return ZERO_RT_OK;
}

static void unloadBackward(void *, void *code) {
  delete static_cast<BackwardCode *>(code);
}

static zero_rt_status launchBackward(void *code,
                                     const zero_rt_device_launch *launch) {
  if (failsLaunches)
    return zero_rt_fail(ZERO_RT_DEVICE_FAILED, "device 'backward' is broken");
  const auto *kernels = static_cast<BackwardCode *>(code)->kernels;
  zero_rt_kernel_fn kernel =
      kernels ? kernels[launch->kernel] : launch->host_kernel;
  for (int64_t i = launch->num_pieces; i-- > 0;) {
    const zero_rt_device_piece &piece = launch->pieces[i];
    kernel(launch->operands, piece.scalars, piece.begin, piece.end,
           launch->partials);
    ++numPieces;
  }
  return ZERO_RT_OK;
}

static zero_rt_status runScalarsBackward(void *, int32_t,
                                         zero_rt_scalar_fn hostProgram,
                                         double *slots) {
  hostProgram(slots);
  ++numPrograms;
  return ZERO_RT_OK;
}

static zero_rt_device_functions backwardFunctions() {
  auto functions = sized<zero_rt_device_functions>();
  functions.name = "backward";
  functions.create = createBackward;
  functions.destroy = destroyBackward;
  functions.allocate = allocateBackward;
  functions.release = releaseBackward;
  functions.copy = copyBackward;
  functions.set = setBackward;
  functions.load = loadBackward;
  functions.unload = unloadBackward;
  functions.launch = launchBackward;
  functions.run_scalars = runScalarsBackward;
  return functions;
}

//===----------------------------------------------------------------------===//
// The tests
//===----------------------------------------------------------------------===//

/// Registers the device, once in a process.
static Options onBackward() {
  static const zero_rt_status status = [] {
    zero_rt_device_functions functions = backwardFunctions();
    return zero_rt_device_register(&functions);
  }();
  expectOk(status);
  Options options;
  options.devices = {"backward"};
  options.poison = true;
  return options;
}

/// The parameters of each rank after three steps.
static std::vector<std::vector<uint16_t>> train(const Options &options) {
  constexpr int32_t ranks = 2;
  LibraryBuilder library = makeTrainStep(ranks);
  std::vector<std::vector<uint16_t>> bits(ranks);
  runSteps(
      library.get(),
      [&](int32_t rank, zero_rt_step *step) {
        for (int32_t p = 0; p < NumTrainParameters; ++p)
          bindParameter(step, p, 0.3f + float(p));
        for (int s = 0; s < 3; ++s) {
          expectOk(callsOf(step).begin_backward(step, 0));
          passAll(step, 0.1f + float(rank + s));
          expectOk(applyStep(step, 0.125));
          auto results = sized<zero_rt_results>();
          expectOk(callsOf(step).results(step, &results));
          EXPECT_EQ(results.verdict, ZERO_RT_APPLIED);
        }
        bits[size_t(rank)] = parameterBits(step);
      },
      options);
  return bits;
}

TEST(Device, HasTheBitsOfTheHost) {
  std::vector<std::vector<uint16_t>> host = train({});
  Options options = onBackward();
  numPieces = numPrograms = 0;
  EXPECT_EQ(train(options), host);
  // In each of 3 steps: on each of 2 ranks 5 gradients and a norm, and an
  // update of 1 segment on one rank and of 2 segments on the other.
  EXPECT_EQ(numPieces, 3 * (2 * (5 + 1) + (1 + 2)));
  EXPECT_EQ(numPrograms, 2 * 3 * 2);
  EXPECT_EQ(numDevices, 0);
}

//===----------------------------------------------------------------------===//
// Executables
//===----------------------------------------------------------------------===//

static std::atomic<int64_t> numOwn{0};

/// The kernel that stores a gradient, for the device.
static void storeOnBackward(void *const *operands, const double *,
                            int64_t begin, int64_t end, double *) {
  for (int64_t i = begin; i < end; ++i)
    static_cast<float *>(operands[1])[i] =
        static_cast<const float *>(operands[0])[i];
  ++numOwn;
}

TEST(Device, TakesTheExecutablesOfItsTarget) {
  LibraryBuilder library = makeTrainStep(1);
  std::vector<zero_rt_kernel_fn> kernels = library.kernels;
  kernels[0] = storeOnBackward;
  auto executable = sized<zero_rt_executable>();
  executable.target = "backward";
  executable.format = backwardFormat;
  executable.data = kernels.data();
  executable.bytes = int64_t(kernels.size() * sizeof(kernels[0]));
  zero_rt_executable other = executable;
  other.target = "forward";
  library.executables = {other, executable};
  numOwn = 0;
  runSteps(
      library.get(),
      [](int32_t, zero_rt_step *step) {
        expectOk(callsOf(step).begin_backward(step, 0));
        passAll(step);
        expectOk(applyStep(step));
      },
      onBackward());
  EXPECT_EQ(numOwn, 4); // a piece of one of the gradients is added
  // The CPU takes none of them.
  runSteps(library.get(), [](int32_t, zero_rt_step *) {});

  auto info = sized<zero_rt_library_info>();
  expectOk(zero_rt_library_describe(&library.get(), &info));
  EXPECT_EQ(info.num_executables, 2);
  auto described = sized<zero_rt_executable>();
  expectOk(zero_rt_library_executable(&library.get(), 1, &described));
  EXPECT_STREQ(described.target, "backward");
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_library_executable(&library.get(), 2, &described),
               "executable 2 is out of range, 'train' has 2");
}

TEST(Device, RefusesExecutablesThatItDoesNotKnow) {
  LibraryBuilder library = makeTrainStep(1);
  auto executable = sized<zero_rt_executable>();
  executable.target = "backward";
  executable.format = "kernels-2";
  executable.data = &executable;
  executable.bytes = 1;
  library.executables = {executable};
  runRanks(
      1,
      [&](int32_t, zero_rt_runtime *runtime) {
        expectRefused(runtime, library.get(), ZERO_RT_UNSUPPORTED,
                      "device 'backward' knows no format but 'kernels-1'");
      },
      onBackward());
  library.executables[0].data = nullptr;
  expectRefused(library.get(), ZERO_RT_INTERNAL,
                "library 'train' is corrupt: executable 0: no data");
  library.executables[0].format = nullptr;
  expectRefused(library.get(), ZERO_RT_INTERNAL,
                "executable 0: no target or no format");
}

TEST(Device, RanksMayHaveDevicesOfTwoKinds) {
  onBackward();
  std::vector<std::vector<uint16_t>> host = train({});
  Options options;
  options.devices = {"host", "backward"};
  numPieces = 0;
  EXPECT_EQ(train(options), host);
  EXPECT_GT(numPieces, 0);
}

TEST(Device, AnErrorOfALaunchStopsTheStep) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(
      library.get(),
      [](int32_t, zero_rt_step *step) {
        expectOk(callsOf(step).begin_backward(step, 0));
        failsLaunches = true;
        expectStatus(ZERO_RT_DEVICE_FAILED, passGradient(step, Weight),
                     "device 'backward' is broken");
        failsLaunches = false;
        expectStatus(ZERO_RT_POISONED, passGradient(step, Weight),
                     "device 'backward' is broken");
      },
      onBackward());
}

TEST(Device, IsNamedInErrors) {
  onBackward();
  zero_rt_group *group = nullptr;
  zero_rt_runtime *runtime = nullptr;
  expectOk(zero_rt_local_group_create(1, &group));
  auto options = sized<zero_rt_options>();
  options.device = "forward";
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_create(group, 0, &options, &runtime),
               "options->device is 'forward', expected 'host', 'cuda', "
               "'backward'");
  options.device = "backward";
  options.ordinal = 1;
  expectStatus(ZERO_RT_UNSUPPORTED,
               zero_rt_create(group, 0, &options, &runtime),
               "there is one device 'backward'");
  expectOk(zero_rt_group_destroy(group));
}

TEST(Device, IsRegisteredOnceWithAllFunctions) {
  onBackward();
  zero_rt_device_functions functions = backwardFunctions();
  expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_device_register(&functions),
               "there is a device 'backward' already; choose another name");
  functions.name = "host";
  expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_device_register(&functions),
               "there is a device 'host' already");
  functions.name = "other";
  functions.launch = nullptr;
  expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_device_register(&functions),
               "functions lacks a name or a function");
  expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_device_register(nullptr),
               "functions is null");
}
