//===- runtime.cpp - One rank ---------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/runtime.h"

#include "core/calls.h"
#include "core/structs.h"
#include "core/timeout.h"
#include "device/registry.h"

#include <system_error>
#include <utility>

using namespace zero_rt;

static constexpr int32_t maxThreads = 4096;

Runtime::Runtime(Group &group, int32_t rank, std::unique_ptr<Device> device,
                 const zero_rt_options &options)
    : rank(rank), ranks(group.size()), poison(options.poison != 0),
      checkPreconditions(options.check_promises != 0),
      findNonfinite(options.find_nonfinite != 0), device(std::move(device)) {}

Runtime::~Runtime() {
  if (handle)
    handle->object = nullptr;
}

ZERO_RT_EXPORT zero_rt_status zero_rt_group_destroy(zero_rt_group *group) {
  ZERO_RT_TRY(checkHandle("zero_rt_group_destroy", group, HandleKind::Group));
  if (int32_t members = group->get()->members())
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "process group still has %d runtime%s; destroy %s first",
                members, plural(members), members == 1 ? "it" : "them");
  delete static_cast<Group *>(group->object.exchange(nullptr));
  return ZERO_RT_OK;
}

static zero_rt_status makeDevice(const zero_rt_options &options,
                                 const DeviceKind &kind,
                                 std::unique_ptr<Device> &out) {
  int32_t threads = options.threads ? options.threads : 1;
  try {
    return kind.create({options, threads}, out);
  } catch (const std::system_error &) {
    return fail(ZERO_RT_OUT_OF_MEMORY, "could not start %d thread%s",
                threads - 1, plural(threads - 1));
  }
}

/// Checks that |kind| can use the communicator that the caller lends.
static zero_rt_status checkLent(const zero_rt_options &options,
                                const DeviceKind &kind, const Group &group) {
  if (kind.communicator.empty())
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "device '%s' takes no communicator; leave "
                "options->communicator null",
                kind.name.c_str());
  if (options.communicator_name &&
      kind.communicator != options.communicator_name)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->communicator_name is '%s', expected '%s' for device "
                "'%s'",
                options.communicator_name, kind.communicator.c_str(),
                kind.name.c_str());
  if (!group.usesInterconnect())
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->communicator is for ranks that are processes");
  return ZERO_RT_OK;
}

/// Copies the allocator of the caller to |out|.
static zero_rt_status readAllocator(const zero_rt_options &options,
                                    zero_rt_allocator &out) {
  if (!options.allocator)
    return ZERO_RT_OK;
  ZERO_RT_TRY(readStruct(options.allocator, "options->allocator", out));
  if (!out.allocate || !out.release)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->allocator has no function '%s'",
                out.allocate ? "release" : "allocate");
  return ZERO_RT_OK;
}

static zero_rt_status checkOptions(const zero_rt_options &options,
                                   const DeviceKind &kind, const Group &group) {
  if (options.threads < 0 || options.threads > maxThreads)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->threads is %d, expected 0 to %d", options.threads,
                maxThreads);
  if (options.timeout_ms < 0)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->timeout_ms is %lld, expected at least 0",
                (long long)options.timeout_ms);
  return options.communicator ? checkLent(options, kind, group) : ZERO_RT_OK;
}

ZERO_RT_EXPORT zero_rt_status zero_rt_create(zero_rt_group *group, int32_t rank,
                                             const zero_rt_options *options,
                                             zero_rt_runtime **out_runtime) {
  if (!out_runtime)
    return fail(ZERO_RT_INVALID_ARGUMENT, "out_runtime is null");
  *out_runtime = nullptr;
  ZERO_RT_TRY(checkHandle("zero_rt_create", group, HandleKind::Group));
  Group &ranks = *group->get();
  if (rank < 0 || rank >= ranks.size())
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "rank %d is out of range for a process group of %d", rank,
                ranks.size());
  zero_rt_options given = {};
  if (options)
    ZERO_RT_TRY(readStruct(options, "options", given));
  return guarded("zero_rt_create", [&]() -> zero_rt_status {
    const DeviceKind *kind = nullptr;
    ZERO_RT_TRY(findDevice(given, &kind));
    ZERO_RT_TRY(checkOptions(given, *kind, ranks));
    zero_rt_allocator allocator = {};
    ZERO_RT_TRY(readAllocator(given, allocator));

    std::unique_ptr<Nvtx> nvtx;
    if (given.nvtx)
      ZERO_RT_TRY(Nvtx::open(nvtx));
    // Other ranks see a rank that has joined, and break if it leaves.
    if (given.trace)
      ZERO_RT_TRY(Trace::prepare(given.trace, rank));
    std::unique_ptr<Device> device;
    ZERO_RT_TRY(makeDevice(given, *kind, device));
    auto handle = std::make_unique<zero_rt_runtime>();
    auto runtime =
        std::make_unique<Runtime>(ranks, rank, std::move(device), given);
    runtime->timeoutMs = getTimeoutMs(given.timeout_ms);
    ZERO_RT_TRY(ranks.join(rank, runtime->timeoutMs, *runtime->device,
                           runtime->communicator, runtime->messenger));
    // The file of a rank that has joined already stays as it is.
    if (given.trace)
      ZERO_RT_TRY(
          Trace::create(given.trace, rank, ranks.size(), runtime->trace));
    runtime->nvtx = std::move(nvtx);
    runtime->memory.use(runtime->communicator->segment());
    runtime->memory.use(allocator);
    runtime->handle = giveOut(std::move(handle), runtime.get());
    *out_runtime = runtime.release()->handle;
    return ZERO_RT_OK;
  });
}

/// Runs |body| with the runtime of |handle|. Calls that may use its device use
/// `onRuntime` instead.
template <typename Body>
static zero_rt_status withRuntime(const char *call, zero_rt_runtime *handle,
                                  Body &&body) {
  RankCall rankCall;
  ZERO_RT_TRY(rankCall.begin(call, handle, HandleKind::Runtime));
  return body(*handle->get());
}

/// Runs |body| with the runtime of |handle|, on its device.
template <typename Body>
static zero_rt_status onRuntime(const char *call, zero_rt_runtime *handle,
                                Body &&body) {
  return withRuntime(call, handle, [&](Runtime &runtime) {
    return onDevice(*runtime.device, call, [&] { return body(runtime); });
  });
}

ZERO_RT_EXPORT zero_rt_status zero_rt_destroy(zero_rt_runtime *runtime) {
  auto destroy = [](Runtime &runtime) {
    if (runtime.steps)
      return fail(ZERO_RT_INVALID_ARGUMENT,
                  "runtime of rank %d still has %lld step%s; destroy %s first",
                  runtime.rank, (long long)runtime.steps, plural(runtime.steps),
                  runtime.steps == 1 ? "it" : "them");
    zero_rt_status status =
        runtime.trace ? runtime.trace->finish() : zero_rt_status(ZERO_RT_OK);
    delete &runtime;
    return status;
  };
  return withRuntime("zero_rt_destroy", runtime, destroy);
}

ZERO_RT_EXPORT zero_rt_status zero_rt_read_counters(
    zero_rt_runtime *runtime, zero_rt_counters *out_counters) {
  auto read = [&](Runtime &runtime) -> zero_rt_status {
    ZERO_RT_TRY(checkStruct(out_counters, "out_counters"));
    zero_rt_counters counters = runtime.counters;
    counters.shared_ranks = runtime.communicator->sharedRanks();
    writeStruct(counters, out_counters);
    return ZERO_RT_OK;
  };
  return withRuntime("zero_rt_read_counters", runtime, read);
}

static zero_rt_status checkGivenOut(const Runtime &runtime,
                                    zero_rt_timepoint timepoint) {
  if (timepoint > runtime.timepoints)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "timepoint %llu was never given out by this runtime",
                (unsigned long long)timepoint);
  return ZERO_RT_OK;
}

/// Checks that |timepoint| passes without a further call of the caller.
static zero_rt_status checkTimepoint(const Runtime &runtime,
                                     zero_rt_timepoint timepoint) {
  ZERO_RT_TRY(checkGivenOut(runtime, timepoint));
  if (runtime.unreleased.count(timepoint))
    return fail(ZERO_RT_PROTOCOL,
                "timepoint %llu is the release of a gradient whose bucket is "
                "not open yet; deliver the gradients before it, or close the "
                "backward pass, and then wait",
                (unsigned long long)timepoint);
  return ZERO_RT_OK;
}

ZERO_RT_EXPORT zero_rt_status zero_rt_wait(zero_rt_runtime *runtime,
                                           zero_rt_timepoint timepoint) {
  auto wait = [&](Runtime &runtime) -> zero_rt_status {
    ZERO_RT_TRY(checkTimepoint(runtime, timepoint));
    return runtime.device->wait(timepoint);
  };
  return onRuntime("zero_rt_wait", runtime, wait);
}

ZERO_RT_EXPORT zero_rt_status zero_rt_has_passed(zero_rt_runtime *runtime,
                                                 zero_rt_timepoint timepoint,
                                                 int32_t *out_passed) {
  auto ask = [&](Runtime &runtime) -> zero_rt_status {
    if (!out_passed)
      return fail(ZERO_RT_INVALID_ARGUMENT, "out_passed is null");
    *out_passed = 0;
    ZERO_RT_TRY(checkGivenOut(runtime, timepoint));
    ZERO_RT_TRY(runtime.communicator->check());
    bool hasPassed = false;
    if (!runtime.unreleased.count(timepoint))
      ZERO_RT_TRY(runtime.device->hasPassed(timepoint, hasPassed));
    *out_passed = hasPassed;
    return ZERO_RT_OK;
  };
  return onRuntime("zero_rt_has_passed", runtime, ask);
}

ZERO_RT_EXPORT zero_rt_status zero_rt_stream_wait(zero_rt_runtime *runtime,
                                                  zero_rt_stream *stream,
                                                  zero_rt_timepoint timepoint) {
  auto wait = [&](Runtime &runtime) -> zero_rt_status {
    ZERO_RT_TRY(checkTimepoint(runtime, timepoint));
    ZERO_RT_TRY(runtime.communicator->check());
    return runtime.device->precede(stream, timepoint);
  };
  return onRuntime("zero_rt_stream_wait", runtime, wait);
}

ZERO_RT_EXPORT zero_rt_status zero_rt_allocate(zero_rt_runtime *runtime,
                                               int64_t bytes, void **out_data) {
  auto allocate = [&](Runtime &runtime) -> zero_rt_status {
    if (bytes < 0 || !out_data)
      return fail(ZERO_RT_INVALID_ARGUMENT, "%s",
                  out_data ? "bytes is negative" : "out_data is null");
    Device &device = *runtime.device;
    // Makes the place in the list first, because nothing may throw after the
    // allocation.
    auto place = runtime.lent.extract(runtime.lent.insert(nullptr).first);
    place.value() = device.allocate(ZERO_RT_SPACE_DEVICE, bytes);
    *out_data = place.value();
    if (!*out_data)
      return fail(ZERO_RT_OUT_OF_MEMORY,
                  "no memory for %lld bytes on device '%s'", (long long)bytes,
                  device.name());
    runtime.lent.insert(std::move(place));
    return device
        .finish(); // streams of the caller do not wait for the allocation
  };
  return onRuntime("zero_rt_allocate", runtime, allocate);
}

ZERO_RT_EXPORT zero_rt_status zero_rt_release(zero_rt_runtime *runtime,
                                              void *data) {
  auto release = [&](Runtime &runtime) -> zero_rt_status {
    if (!data)
      return ZERO_RT_OK;
    if (!runtime.lent.erase(data))
      return fail(ZERO_RT_INVALID_ARGUMENT,
                  "data is not from zero_rt_allocate of this runtime, or was "
                  "released before");
    runtime.device->release(ZERO_RT_SPACE_DEVICE, data);
    return ZERO_RT_OK;
  };
  return onRuntime("zero_rt_release", runtime, release);
}

ZERO_RT_EXPORT zero_rt_status zero_rt_copy(zero_rt_runtime *runtime, void *dst,
                                           const void *src, int64_t bytes) {
  auto copy = [&](Runtime &runtime) -> zero_rt_status {
    if (bytes < 0 || (bytes && (!dst || !src)))
      return fail(ZERO_RT_INVALID_ARGUMENT, "%s",
                  bytes < 0 ? "bytes is negative"
                  : dst     ? "src is null"
                            : "dst is null");
    ZERO_RT_TRY(runtime.device->follow(/*stream=*/nullptr));
    // A copy to host memory may block in the driver, where no failure of other
    // ranks is detected.
    ZERO_RT_TRY(runtime.device->finish());
    ZERO_RT_TRY(runtime.device->copy(dst, src, bytes));
    return runtime.device->finish();
  };
  return onRuntime("zero_rt_copy", runtime, copy);
}
