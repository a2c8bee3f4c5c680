//===- cuda_device.cpp - A GPU as a device --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/cuda_device.h"

#include "core/floating_point.h"
#include "core/pause.h"
#include "core/status.h"
#include "device/cuda/cuda_program.h"
#include "device/host/host_device.h"

#include <algorithm>
#include <cassert>
#include <utility>

using namespace zero_rt;

static CUdeviceptr addressOf(const void *data) {
  return CUdeviceptr(reinterpret_cast<uintptr_t>(data));
}

//===----------------------------------------------------------------------===//
// Beginning and end
//===----------------------------------------------------------------------===//

zero_rt_status CudaDevice::create(int32_t ordinal, int32_t threads, bool graphs,
                                  const LentNccl &lent,
                                  std::unique_ptr<Device> *out) {
  const Driver *driver = nullptr;
  ZERO_RT_TRY(getDriver(&driver));
  std::unique_ptr<CudaDevice> device(
      new CudaDevice(*driver, ordinal, threads, graphs));
  device->lent = lent;
  ZERO_RT_TRY(device->initialize());
  *out = std::move(device);
  return ZERO_RT_OK;
}

zero_rt_status CudaDevice::initialize() {
  int count = 0;
  ZERO_RT_CUDA(driver, DeviceGetCount, &count);
  if (ordinal < 0 || ordinal >= count)
    return fail(ZERO_RT_UNSUPPORTED,
                "there is no GPU %d: the CUDA driver has %d", ordinal, count);
  ZERO_RT_CUDA(driver, DeviceGet, &device, ordinal);
  int major = 0, minor = 0, hasPools = 0;
  ZERO_RT_CUDA(driver, DeviceGetAttribute, &major, attributeCapabilityMajor,
               device);
  ZERO_RT_CUDA(driver, DeviceGetAttribute, &minor, attributeCapabilityMinor,
               device);
  arch = "sm_" + std::to_string(major) + std::to_string(minor);
  if (major < 8)
    return fail(ZERO_RT_UNSUPPORTED,
                "GPU %d is %s, and kernels are for sm_80 and later", ordinal,
                arch.c_str());
  ZERO_RT_CUDA(driver, DeviceGetAttribute, &hasPools, attributeMemoryPools,
               device);
  if (!hasPools)
    return fail(ZERO_RT_UNSUPPORTED, "GPU %d has no memory pools", ordinal);
  ZERO_RT_CUDA(driver, DevicePrimaryCtxRetain, &context, device);
  isRetained = true;
  ZERO_RT_TRY(enter());
  zero_rt_status status = [&]() -> zero_rt_status {
    ZERO_RT_TRY(createPool());
    for (CUstream &each : streams)
      ZERO_RT_CUDA(driver, StreamCreate, &each, streamNonBlocking);
    stream = streams[0];
    ZERO_RT_TRY(create(&passing));
    for (CUevent &event : signals)
      ZERO_RT_TRY(create(&event));
    for (CUevent &event : milestones)
      ZERO_RT_TRY(create(&event));
    return ZERO_RT_OK;
  }();
  leave();
  return status;
}

/// A memory pool of this device. Others use the default pool.
zero_rt_status CudaDevice::createPool() {
  PoolProperties properties = {};
  properties.allocationType = poolAllocationPinned;
  properties.locationType = poolLocationDevice;
  properties.location = ordinal;
  ZERO_RT_CUDA(driver, MemPoolCreate, &memoryPool, &properties);
  // The pool keeps released memory for the next step, even if another thread
  // synchronizes.
  uint64_t threshold = UINT64_MAX;
  ZERO_RT_CUDA(driver, MemPoolSetAttribute, memoryPool, poolReleaseThreshold,
               &threshold);
  return ZERO_RT_OK;
}

/// Lets |other| access the memory of this device.
zero_rt_status CudaDevice::openTo(const CudaDevice &other) {
  int can = 0;
  ZERO_RT_CUDA(driver, DeviceCanAccessPeer, &can, other.device, device);
  if (!can)
    return fail(ZERO_RT_UNSUPPORTED,
                "GPU %d cannot use memory of GPU %d, as ranks that are threads "
                "do; let each be a process",
                other.ordinal, ordinal);
  PoolAccess access = {poolLocationDevice, other.ordinal, poolReadWrite};
  ZERO_RT_CUDA(driver, MemPoolSetAccess, memoryPool, &access, 1);
  return ZERO_RT_OK;
}

zero_rt_status CudaDevice::share(Device &other) {
  auto &peer = static_cast<CudaDevice &>(other);
  if (peer.ordinal == ordinal)
    return ZERO_RT_OK;
  ZERO_RT_TRY(openTo(peer));
  return peer.openTo(*this);
}

CudaDevice::~CudaDevice() {
  if (isRetained && !enter()) {
    for (const auto &[timepoint, event] : events)
      spare.push_back(event);
    spare.push_back(passing);
    spare.insert(spare.end(), std::begin(signals), std::end(signals));
    spare.insert(spare.end(), std::begin(milestones), std::end(milestones));
    for (CUevent event : spare)
      if (event)
        driver.EventDestroy(event);
    for (CUstream each : streams)
      if (each)
        driver.StreamDestroy(each);
    if (memoryPool)
      driver.MemPoolDestroy(memoryPool);
    leave();
  }
  if (isRetained)
    driver.DevicePrimaryCtxRelease(device);
}

zero_rt_status CudaDevice::enter() {
  entered.lock();
  CUresult result = driver.CtxPushCurrent(context);
  if (result)
    entered.unlock();
  return check(driver, result, "cuCtxPushCurrent");
}

bool CudaDevice::tryEnter() {
  if (!entered.try_lock())
    return false;
  // This thread may use events while other threads capture graphs.
  int mode = captureModeRelaxed;
  (void)driver.ThreadExchangeStreamCaptureMode(&mode);
  if (!driver.CtxPushCurrent(context))
    return true;
  entered.unlock();
  return false;
}

void CudaDevice::leave() {
  CUcontext popped = nullptr;
  (void)driver.CtxPopCurrent(&popped);
  entered.unlock();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void *CudaDevice::allocate(int32_t space, int64_t bytes) {
  size_t size = size_t(std::max<int64_t>(1, bytes));
  if (space == ZERO_RT_SPACE_HOST) {
    void *data = nullptr;
    if (driver.MemHostAlloc(&data, size, hostAllocPortable))
      return nullptr;
    hostMemory[reinterpret_cast<uintptr_t>(data)] = size;
    return data;
  }
  CUdeviceptr data = 0;
  if (driver.MemAllocFromPoolAsync(&data, size, memoryPool, stream))
    return nullptr;
  return reinterpret_cast<void *>(uintptr_t(data));
}

void CudaDevice::release(int32_t space, void *data) {
  if (space == ZERO_RT_SPACE_DEVICE) {
    (void)flush(); // if this fails, the next call fails, too
    (void)driver.MemFreeAsync(addressOf(data), stream);
    return;
  }
  hostMemory.erase(reinterpret_cast<uintptr_t>(data));
  (void)finish(); // queued work may use it
  (void)driver.MemFreeHost(data);
}

bool CudaDevice::isOnHost(const void *data) const {
  auto address = reinterpret_cast<uintptr_t>(data);
  auto after = hostMemory.upper_bound(address);
  if (after == hostMemory.begin())
    return false;
  --after;
  return address < after->first + after->second;
}

zero_rt_status CudaDevice::queue(std::function<void()> function) {
  struct Task {
    std::function<void()> function;
    std::atomic<bool> &hasFailed;
  };
  std::unique_ptr<Task> owned(new Task{std::move(function), hostHasFailed});
  auto run = [](void *data) {
    std::unique_ptr<Task> mine(static_cast<Task *>(data));
    FloatingPointMode mode; // of a thread of the driver
    try {
      mine->function();
    } catch (...) {
      mine->hasFailed = true;
    }
  };
  ZERO_RT_TRY(flushSelected());
  ZERO_RT_CUDA(driver, LaunchHostFunc, stream, run, owned.get());
  owned.release(); // |run| has it
  return ZERO_RT_OK;
}

/// Whether all work that the CPU did so far succeeded.
zero_rt_status CudaDevice::checkHost() const {
  return hostHasFailed ? fail(ZERO_RT_OUT_OF_MEMORY,
                              "the processor had no memory for its part of "
                              "a step on device '%s'",
                              name())
                       : ZERO_RT_OK;
}

zero_rt_status CudaDevice::copy(void *dst, const void *src, int64_t bytes) {
  if (bytes == 0)
    return ZERO_RT_OK;
  ZERO_RT_TRY(launchHeld());
  // The driver finds the space by the address.
  if (isForGraph())
    return graphs->addCopy(addressOf(dst), addressOf(src), size_t(bytes));
  ZERO_RT_CUDA(driver, MemcpyAsync, addressOf(dst), addressOf(src),
               size_t(bytes), stream);
  return ZERO_RT_OK;
}

zero_rt_status CudaDevice::copyNow(void *dst, const void *src, int64_t bytes) {
  CudaGraphs *kept = std::exchange(graphs, nullptr);
  zero_rt_status status = copy(dst, src, bytes);
  graphs = kept;
  return status;
}

zero_rt_status CudaDevice::set(void *data, uint64_t bits, int64_t size,
                               int64_t count) {
  if (count <= 0)
    return ZERO_RT_OK;
  if (isOnHost(data))
    return queue([=] { setOnHost(data, bits, size, count); });
  CUdeviceptr to = addressOf(data);
  auto low = unsigned(bits), high = unsigned(bits >> 32);
  auto elements = size_t(count);
  if (size < 8) {
    unsigned mask = size < 4 ? (1u << (8 * size)) - 1 : UINT32_MAX;
    return setOnDevice({to, 0, low & mask, unsigned(size), elements, 1});
  }
  if (low == high && count > 1)
    return setOnDevice({to, 0, low, 4, 2 * elements, 1});
  // Sets each half as a column of a matrix with two columns.
  ZERO_RT_TRY(setOnDevice({to, 8, low, 4, 1, elements}));
  return setOnDevice({to + 4, 8, high, 4, 1, elements});
}

zero_rt_status CudaDevice::setOnDevice(const MemsetNode &node) {
  if (isForGraph())
    return graphs->addMemset(node);
  const auto &[to, pitch, value, size, width, height] = node;
  if (height > 1)
    ZERO_RT_CUDA(driver, MemsetD2D32Async, to, pitch, value, width, height,
                 stream);
  else if (size == 1)
    ZERO_RT_CUDA(driver, MemsetD8Async, to, (unsigned char)(value), width,
                 stream);
  else if (size == 2)
    ZERO_RT_CUDA(driver, MemsetD16Async, to, (unsigned short)(value), width,
                 stream);
  else
    ZERO_RT_CUDA(driver, MemsetD32Async, to, value, width, stream);
  return ZERO_RT_OK;
}

zero_rt_status CudaDevice::launch(CUfunction function, unsigned blocks,
                                  unsigned threads, void **arguments) {
  ZERO_RT_TRY(launchHeld());
  if (isForGraph())
    return graphs->addKernel(
        {function, blocks, 1, 1, threads, 1, 1, 0, arguments, nullptr});
  ZERO_RT_TRY(keepShort());
  ZERO_RT_CUDA(driver, LaunchKernel, function, blocks, 1, 1, threads, 1, 1, 0,
               stream, arguments, nullptr);
  return ZERO_RT_OK;
}

zero_rt_status CudaDevice::flush() {
  if (held)
    ZERO_RT_TRY(held->launchHeld());
  return flushGraph();
}

zero_rt_status CudaDevice::flushGraph() {
  if (!graphs)
    return ZERO_RT_OK;
  bool wasOpen = graphs->isOpen();
  ZERO_RT_TRY(graphs->flush(streams[0]));
  return wasOpen ? keepShort() : ZERO_RT_OK;
}

/// Waits until all work on |which| is done, even if some of it failed.
zero_rt_status CudaDevice::drain(CUstream which) {
  zero_rt_status status = ZERO_RT_OK;
  for (Pause pause; watch && !status; pause()) {
    CUresult result = driver.StreamQuery(which);
    if (result != cudaErrorNotReady)
      break;
    status = watch->look();
  }
  // If the watch gave up, the device does not wait for other ranks.
  CUresult result = driver.StreamSynchronize(which);
  if (watch && !status)
    status = watch->look();
  return status ? status : check(driver, result, "cuStreamSynchronize");
}

zero_rt_status CudaDevice::finish() {
  zero_rt_status flushed = flush();
  // Collectives may be given up, so errors are ignored here.
  zero_rt_status status = drain(streams[size_t(Stream::Collective)]);
  for (CUstream each : streams)
    if (status)
      (void)driver.StreamSynchronize(each);
    else
      status = drain(each);
  status = status ? status : flushed;
  return status ? status : checkHost();
}

zero_rt_status CudaDevice::look(const void *data, int64_t bytes,
                                const void **out) {
  seen.resize(size_t(std::max<int64_t>(1, bytes)));
  // A copy to pageable memory blocks in the driver, where no error of another
  // rank is seen.
  ZERO_RT_TRY(finish());
  ZERO_RT_TRY(copyNow(seen.data(), data, bytes));
  ZERO_RT_TRY(finish());
  *out = seen.data();
  return ZERO_RT_OK;
}

//===----------------------------------------------------------------------===//
// What it has
//===----------------------------------------------------------------------===//

zero_rt_status CudaDevice::getInterconnect(Interconnect **out) {
  if (!interconnect) {
    const Nccl *nccl = nullptr;
    ZERO_RT_TRY(getNccl(&nccl));
    interconnect = std::make_unique<NcclInterconnect>(*this, *nccl, lent);
  }
  *out = interconnect.get();
  return ZERO_RT_OK;
}

zero_rt_status CudaDevice::load(const zero_rt_library &library, double *slots,
                                std::unique_ptr<Program> *out) {
  auto program = std::make_unique<CudaProgram>(*this, library, slots);
  ZERO_RT_TRY(program->load());
  *out = std::move(program);
  return ZERO_RT_OK;
}
