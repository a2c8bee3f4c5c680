//===- FakeDriver.cpp - A CUDA driver without a GPU -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCalls.h"

#include <cstdio>

using namespace zero::test;
using namespace zero::test::fake;

int fake::getCurrentGpu() { return contexts.empty() ? 0 : currentGpu(); }

/// For tests of whole programs.
static void tellContext(const char *what) {
  if (std::getenv("ZERO_FAKE_DRIVER_CONTEXTS"))
    std::fprintf(stderr, "fake driver: a context is %s\n", what);
}

extern "C" {

CUresult cuGetErrorName(CUresult error, const char **name) {
  switch (error) {
  case 2:
    *name = "CUDA_ERROR_OUT_OF_MEMORY";
    return 0;
  case kNoDevice:
    *name = "CUDA_ERROR_NO_DEVICE";
    return 0;
  case kInvalidContext:
    *name = "CUDA_ERROR_INVALID_CONTEXT";
    return 0;
  case 719:
    *name = "CUDA_ERROR_LAUNCH_FAILED";
    return 0;
  default:
    return kInvalidValue;
  }
}
CUresult cuGetErrorString(CUresult error, const char **text) {
  if (error != 719)
    return kInvalidValue;
  *text = "unspecified launch failure";
  return 0;
}
CUresult cuInit(unsigned) {
  Entry entry("cuInit");
  return entry.error ? entry.error : gpu().gpus ? 0 : kNoDevice;
}
CUresult cuDriverGetVersion(int *version) {
  *version = gpu().version;
  return 0;
}
CUresult cuDeviceGetCount(int *count) {
  *count = gpu().gpus;
  return Entry("cuDeviceGetCount").error;
}
CUresult cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return 0;
}
CUresult cuDeviceGetAttribute(int *value, int attribute, int) {
  *value = attribute == 75 ? gpu().major : attribute == 76 ? gpu().minor : 1;
  return 0;
}
CUresult cuDeviceCanAccessPeer(int *can, int, int) {
  *can = gpu().arePeers;
  return Entry("cuDeviceCanAccessPeer").error;
}
CUresult cuMemPoolCreate(void **pool, const int *properties) {
  Entry entry("cuMemPoolCreate");
  CHECK(entry);
  *pool = &gpu().pools.emplace_back();
  gpu().pools.back().users->insert(properties[3]);
  // Memory that stays, on a device.
  return properties[0] == 1 && properties[2] == 1 ? 0 : kInvalidValue;
}
CUresult cuMemPoolDestroy(void *pool) {
  Entry entry("cuMemPoolDestroy");
  CHECK(entry);
  gpu().pools.remove_if([&](const Pool &other) { return &other == pool; });
  return 0;
}
CUresult cuMemPoolSetAccess(void *pool, const int *access, size_t count) {
  Entry entry("cuMemPoolSetAccess");
  if (entry.error)
    return entry.error;
  // One GPU, to read and write.
  if (count != 1 || access[0] != 1 || access[2] != 3 || !gpu().arePeers)
    return kInvalidValue;
  static_cast<Pool *>(pool)->users->insert(access[1]);
  return 0;
}
CUresult cuMemPoolSetAttribute(void *, int, void *) { return 0; }
CUresult cuDevicePrimaryCtxRetain(void **context, int device) {
  Entry entry("cuDevicePrimaryCtxRetain");
  *context = contextOf(device);
  if (!entry.error && gpu().contexts++ == 0)
    tellContext("made");
  return entry.error;
}
CUresult cuDevicePrimaryCtxRelease_v2(int) {
  Entry entry("cuDevicePrimaryCtxRelease");
  if (--gpu().contexts == 0)
    tellContext("destroyed");
  return 0;
}
CUresult cuCtxPushCurrent_v2(void *context) {
  contexts.push_back(context);
  return 0;
}
CUresult cuCtxPopCurrent_v2(void **) {
  contexts.pop_back();
  return 0;
}

CUresult cuMemAllocFromPoolAsync(Address *out, size_t bytes, void *pool,
                                 Stream *stream) {
  Entry entry("cuMemAllocFromPoolAsync", stream, bytes);
  CHECK(entry);
  *out =
      gpu().allocate(bytes, *static_cast<Pool *>(pool), gpu().streamOf(stream));
  return 0;
}
CUresult cuMemFreeAsync(Address address, Stream *stream) {
  Entry entry("cuMemFreeAsync", stream);
  CHECK(entry);
  return gpu().release(address, gpu().streamOf(stream)) ? 0 : kInvalidValue;
}
CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned) {
  Entry entry("cuMemHostAlloc", nullptr, bytes);
  CHECK(entry);
  *out = gpu().allocateHost(bytes);
  return 0;
}
CUresult cuMemFreeHost(void *data) {
  Entry entry("cuMemFreeHost");
  CHECK(entry);
  return gpu().releaseHost(data) ? 0 : kInvalidValue;
}

CUresult cuMemcpyAsync(Address dst, Address src, size_t bytes, Stream *stream) {
  Entry entry("cuMemcpyAsync", stream, bytes);
  CHECK(entry);
  auto isPageable = [](Address address) {
    return !gpu().isFar(address) && !gpu().isPinned(address);
  };
  // Memory that the driver does not know is the caller's.
  auto near = [=](Address address) {
    return isPageable(address) ? reinterpret_cast<void *>(uintptr_t(address))
                               : gpu().toNear(address, bytes, "a copy");
  };
  Stream &queue = gpu().streamOf(stream);
  if (isPageable(src) && !isPageable(dst)) {
    // Taken at once.
    auto *data = reinterpret_cast<const char *>(uintptr_t(src));
    std::vector<char> taken(data, data + bytes);
    gpu().queue(queue, {[=, taken = std::move(taken)] {
                  if (void *to = near(dst))
                    std::memcpy(to, taken.data(), bytes);
                }});
    return 0;
  }
  gpu().queue(queue, {[=] {
                const void *from = near(src);
                void *to = near(dst);
                if (from && to)
                  std::memmove(to, from, bytes);
              }});
  if (!isPageable(dst))
    return 0;
  // Returns when it is done.
  entry.call.isWait = true;
  gpu().runUntil([&] { return queue.queue.empty(); });
  return 0;
}

/// Sets |rows| rows of |width| elements, |pitch| bytes from one to the next.
static CUresult setAll(const char *function, Address dst, size_t pitch,
                       unsigned value, size_t size, size_t width, size_t rows,
                       Stream *stream) {
  Entry entry(function, stream, size * width * rows);
  CHECK(entry);
  if (width == 0 || rows == 0)
    return kInvalidValue;
  Stream &where = gpu().streamOf(stream);
  gpu().queue(where,
              {makeSet(dst, pitch, value, size, width, rows, userOf(where))});
  return 0;
}
CUresult cuMemsetD8Async(Address dst, unsigned char value, size_t count,
                         Stream *stream) {
  return setAll("cuMemsetD8Async", dst, 0, value, 1, count, 1, stream);
}
CUresult cuMemsetD16Async(Address dst, unsigned short value, size_t count,
                          Stream *stream) {
  return setAll("cuMemsetD16Async", dst, 0, value, 2, count, 1, stream);
}
CUresult cuMemsetD32Async(Address dst, unsigned value, size_t count,
                          Stream *stream) {
  return setAll("cuMemsetD32Async", dst, 0, value, 4, count, 1, stream);
}
CUresult cuMemsetD2D32Async(Address dst, size_t pitch, unsigned value,
                            size_t width, size_t rows, Stream *stream) {
  return setAll("cuMemsetD2D32Async", dst, pitch, value, 4, width, rows,
                stream);
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
  *mode = 0;
  return 0;
}
CUresult cuStreamCreate(Stream **out, unsigned) {
  Entry entry("cuStreamCreate");
  CHECK(entry);
  *out = gpu().createStream(currentGpu());
  return 0;
}
CUresult cuStreamDestroy_v2(Stream *stream) {
  Entry entry("cuStreamDestroy", stream);
  CHECK(entry);
  gpu().destroyStream(stream);
  return 0;
}
CUresult cuStreamQuery(Stream *stream) {
  Entry entry("cuStreamQuery", stream);
  CHECK(entry);
  gpu().runSome(kPatience);
  return gpu().streamOf(stream).queue.empty() ? 0 : kNotReady;
}
CUresult cuStreamSynchronize(Stream *stream) {
  Entry entry("cuStreamSynchronize", stream, 0, /*isWait=*/true);
  CHECK(entry);
  Stream &queue = gpu().streamOf(stream);
  gpu().runUntil([&] { return queue.queue.empty(); });
  return 0;
}
CUresult cuStreamWaitEvent(Stream *stream, Event *event, unsigned) {
  Entry entry("cuStreamWaitEvent", stream);
  entry.call.event = event;
  CHECK(entry);
  if (event->recorded)
    gpu().queue(gpu().streamOf(stream), {{}, nullptr, event, event->recorded});
  return 0;
}
CUresult cuEventCreate(Event **out, unsigned) {
  Entry entry("cuEventCreate");
  CHECK(entry);
  *out = gpu().createEvent(currentGpu());
  return 0;
}
CUresult cuEventDestroy_v2(Event *event) {
  Entry entry("cuEventDestroy");
  CHECK(entry);
  gpu().destroyEvent(event);
  return 0;
}
CUresult cuEventRecord(Event *event, Stream *stream) {
  Entry entry("cuEventRecord", stream);
  entry.call.event = event;
  CHECK(entry);
  if (!fits(event->gpu, gpu().streamOf(stream)))
    return kInvalidHandle;
  gpu().queue(gpu().streamOf(stream), {{}, event, nullptr, ++event->recorded});
  return 0;
}
CUresult cuEventQuery(Event *event) {
  Entry entry("cuEventQuery");
  CHECK(entry);
  gpu().runSome(kPatience);
  return event->hasPassed(event->recorded) ? 0 : kNotReady;
}
CUresult cuEventSynchronize(Event *event) {
  Entry entry("cuEventSynchronize", nullptr, 0, /*isWait=*/true);
  CHECK(entry);
  uint64_t turn = event->recorded;
  gpu().runUntil([&] { return event->hasPassed(turn); });
  return 0;
}

CUresult cuModuleLoadDataEx(void **out, const void *image, unsigned numOptions,
                            int *options, void **values) {
  Entry entry("cuModuleLoadDataEx");
  if (entry.error) {
    char *log = nullptr;
    for (unsigned i = 0; i < numOptions; ++i)
      if (options[i] == 5)
        log = static_cast<char *>(values[i]);
    for (unsigned i = 0; i < numOptions; ++i)
      if (options[i] == 6 && log)
        std::strncpy(log, gpu().log.c_str(),
                     reinterpret_cast<size_t>(values[i]));
  }
  CHECK(entry);
  std::string text = static_cast<const char *>(image);
  if (text.find(".version") == std::string::npos)
    return kInvalidImage;
  Gpu::Module &module = gpu().modules.emplace_back();
  const std::string mark = ".entry ";
  for (size_t at = text.find(mark); at != std::string::npos;
       at = text.find(mark, at)) {
    at += mark.size();
    std::string name = text.substr(at, text.find('(', at) - at);
    module.functions[name] = {currentGpu(), name, gpu().kernels[name]};
  }
  *out = &module;
  return 0;
}
CUresult cuModuleUnload(void *module) {
  Entry entry("cuModuleUnload");
  CHECK(entry);
  gpu().modules.remove_if(
      [&](const Gpu::Module &other) { return &other == module; });
  return 0;
}
CUresult cuModuleGetFunction(void **out, void *module, const char *name) {
  Entry entry("cuModuleGetFunction");
  CHECK(entry);
  auto &functions = static_cast<Gpu::Module *>(module)->functions;
  auto found = functions.find(name);
  if (found == functions.end())
    return kNotFound;
  *out = &found->second;
  return 0;
}

CUresult cuLaunchHostFunc(Stream *stream, void (*function)(void *),
                          void *data) {
  Entry entry("cuLaunchHostFunc", stream);
  CHECK(entry);
  // It runs on a thread of the driver's, whose floating-point mode is any.
  auto run = [=] {
    Rounding rounding(FE_UPWARD);
    function(data);
  };
  gpu().queue(gpu().streamOf(stream), {run});
  return 0;
}

CUresult cuLaunchKernel(void *function, unsigned blocks, unsigned y, unsigned z,
                        unsigned threads, unsigned, unsigned, unsigned,
                        Stream *stream, void **parameters, void **) {
  Entry entry("cuLaunchKernel", stream);
  CHECK(entry);
  const auto &kernel = *static_cast<Gpu::Function *>(function);
  entry.call.kernel = kernel.name;
  Stream &where = gpu().streamOf(stream);
  if (!fits(kernel.gpu, where))
    return kInvalidHandle;
  if (y != 1 || z != 1)
    return kInvalidValue;
  std::function<void()> run =
      makeLaunch(kernel, blocks, threads, parameters, userOf(where));
  if (!run)
    return kInvalidValue;
  gpu().queue(where, {std::move(run)});
  return 0;
}

} // extern "C"
