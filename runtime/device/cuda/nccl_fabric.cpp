//===- nccl_fabric.cpp - GPUs of processes, over NCCL ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/nccl_fabric.h"

#include "core/status.h"
#include "device/cuda/cuda_device.h"

#include <chrono>
#include <thread>
#include <tuple>
#include <utility>

using namespace zero_rt;

/// Leaves the enclosing function if a call of NCCL failed.
#define ZERO_RT_NCCL(NAME, ...)                                                \
  ZERO_RT_TRY(checkCall(nccl.NAME(__VA_ARGS__), "nccl" #NAME))

/// The message of a failed call. |comm| may be null.
static zero_rt_status failWith(const Nccl &nccl, NcclComm comm,
                               NcclResult result, const char *call) {
  const char *text = nccl.GetErrorString(result);
  const char *more = nccl.GetLastError(comm);
  return fail(ZERO_RT_DEVICE_FAILED, "%s failed: %s (%d)%s%s", call,
              text ? text : "no description", result, more && *more ? ": " : "",
              more ? more : "");
}

//===----------------------------------------------------------------------===//
// Beginning and end
//===----------------------------------------------------------------------===//

NcclFabric::NcclFabric(CudaDevice &device, const Nccl &nccl)
    : device(device), driver(device.driver), nccl(nccl) {}

CUstream NcclFabric::queue() const { return own ? own : device.stream; }

/// Operations in progress may still fail. `poll` reports that.
zero_rt_status NcclFabric::checkCall(NcclResult result,
                                     const char *call) const {
  if (result == ncclSuccess || result == ncclInProgress)
    return ZERO_RT_OK;
  return failWith(nccl, comm, result, call);
}

zero_rt_status NcclFabric::initialize(const FabricId &id, int32_t rank,
                                      int32_t ranks, bool hasQueue) {
  if (hasQueue)
    ZERO_RT_CUDA(driver, StreamCreate, &own, streamNonBlocking);
  NcclConfig config;
  ZERO_RT_NCCL(CommInitRankConfig, &comm, ranks, id, rank, &config);
  return ZERO_RT_OK;
}

NcclFabric::~NcclFabric() {
  if (device.enter())
    return;
  // Kernels of the communicator may be running. Those of a stream of its own
  // are done, or were given up.
  if (!own)
    (void)device.finish();
  // The thread that ends the communicator sends the rest.
  bool isReady = false;
  if (!isClosed || poll(isReady))
    abort();
  else if (!lent)
    end(nccl.CommDestroy);
  awaitEnd();
  for (const Call &call : calls)
    spare.insert(spare.end(), {call.begin, call.end});
  for (CUevent event : spare)
    if (event)
      (void)driver.EventDestroy(event);
  if (own)
    (void)driver.StreamDestroy(own);
  device.leave();
}

zero_rt_status NcclFabric::close() {
  isClosed = true;
  if (!lent)
    ZERO_RT_NCCL(CommFinalize, comm);
  return ZERO_RT_OK;
}

void NcclFabric::abort() {
  if (lent)
    lent->comm = nullptr;
  if (lent && lent->giveUp)
    end(lent->giveUp);
  else
    end(nccl.CommAbort);
}

/// Calls |function|, which destroys or gives up the communicator. The call may
/// wait for ranks of this machine that never come, so it runs on a thread of
/// its own.
void NcclFabric::end(std::function<void(NcclComm)> function) {
  if (!comm)
    return;
  NcclComm given = std::exchange(comm, nullptr);
  try {
    std::packaged_task<void()> task([=] { function(given); });
    std::future<void> future = task.get_future();
    std::thread(std::move(task)).detach();
    ended = std::move(future);
  } catch (...) {
    function(given); // without a thread
  }
}

void NcclFabric::awaitEnd() {
  if (ended.valid())
    (void)ended.wait_for(std::chrono::seconds(1));
}

zero_rt_status NcclFabric::poll(bool &isReady) {
  isReady = false;
  if (!comm)
    return fail(ZERO_RT_POISONED, "the communicator of NCCL was given up");
  NcclResult state = ncclSuccess;
  ZERO_RT_NCCL(CommGetAsyncError, comm, &state);
  isReady = state != ncclInProgress;
  return checkCall(state, "an asynchronous part of NCCL");
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

static int ncclType(int32_t dtype) {
  return dtype == ZERO_RT_F64 ? ncclFloat64 : ncclFloat32;
}

bool NcclFabric::canSum(int32_t dtype) const {
  // NCCL rounds narrower types at every addition.
  return dtype == ZERO_RT_F32 || dtype == ZERO_RT_F64;
}

zero_rt_status NcclFabric::allReduce(int32_t dtype, const void *src, void *dst,
                                     int64_t elements) {
  ZERO_RT_NCCL(AllReduce, src, dst, size_t(elements), ncclType(dtype), ncclSum,
               comm, queue());
  return ZERO_RT_OK;
}

zero_rt_status NcclFabric::reduceScatter(int32_t dtype, const void *src,
                                         void *dst, int64_t elements) {
  ZERO_RT_NCCL(ReduceScatter, src, dst, size_t(elements), ncclType(dtype),
               ncclSum, comm, queue());
  return ZERO_RT_OK;
}

zero_rt_status NcclFabric::allGather(const void *src, void *dst,
                                     int64_t bytes) {
  ZERO_RT_NCCL(AllGather, src, dst, size_t(bytes), ncclInt8, comm, queue());
  return ZERO_RT_OK;
}

zero_rt_status NcclFabric::trade(const std::vector<Trade> &trades) {
  ZERO_RT_NCCL(GroupStart);
  zero_rt_status status = [&]() -> zero_rt_status {
    for (const Trade &trade : trades) {
      if (trade.sentBytes > 0)
        ZERO_RT_NCCL(Send, trade.sent, size_t(trade.sentBytes), ncclInt8,
                     trade.rank, comm, queue());
      if (trade.receivedBytes > 0)
        ZERO_RT_NCCL(Recv, trade.received, size_t(trade.receivedBytes),
                     ncclInt8, trade.rank, comm, queue());
    }
    return ZERO_RT_OK;
  }();
  // A group that was begun must be ended. Otherwise the next call of this
  // thread is part of it.
  NcclResult result = nccl.GroupEnd();
  return status ? status : checkCall(result, "ncclGroupEnd");
}

//===----------------------------------------------------------------------===//
// Progress
//===----------------------------------------------------------------------===//

zero_rt_status NcclFabric::takeEvent(CUevent &out) {
  if (spare.empty()) {
    ZERO_RT_CUDA(driver, EventCreate, &out, eventDisableTiming);
  } else {
    out = spare.back();
    spare.pop_back();
  }
  return ZERO_RT_OK;
}

zero_rt_status NcclFabric::beginCall() {
  uint64_t ignored = 0;
  bool isRunning = false;
  ZERO_RT_TRY(getProgress(ignored, isRunning)); // releases events
  CUevent begin = nullptr;
  ZERO_RT_TRY(takeEvent(begin));
  calls.push_back({begin, nullptr});
  ZERO_RT_CUDA(driver, EventRecord, begin, queue());
  return ZERO_RT_OK;
}

zero_rt_status NcclFabric::endCall() {
  Call &call = calls.back();
  ZERO_RT_TRY(takeEvent(call.end));
  ZERO_RT_CUDA(driver, EventRecord, call.end, queue());
  return ZERO_RT_OK;
}

/// Whether |event| has passed.
static zero_rt_status query(const Driver &driver, CUevent event, bool &out) {
  CUresult result = driver.EventQuery(event);
  out = result == cudaSuccess;
  return result == cudaErrorNotReady ? zero_rt_status(ZERO_RT_OK)
                                     : check(driver, result, "cuEventQuery");
}

zero_rt_status NcclFabric::getProgress(uint64_t &count, bool &isRunning) {
  isRunning = false;
  while (!calls.empty() && calls.front().end) {
    bool isDone = false;
    ZERO_RT_TRY(query(driver, calls.front().end, isDone));
    if (!isDone)
      break;
    spare.insert(spare.end(), {calls.front().begin, calls.front().end});
    calls.pop_front();
    ++done;
  }
  count = done;
  if (calls.empty())
    return ZERO_RT_OK;
  return query(driver, calls.front().begin, isRunning);
}

//===----------------------------------------------------------------------===//
// The interconnect
//===----------------------------------------------------------------------===//

zero_rt_status NcclInterconnect::makeId(FabricId &out) {
  NcclResult result = nccl.GetUniqueId(&out);
  return result == ncclSuccess
             ? zero_rt_status(ZERO_RT_OK)
             : failWith(nccl, nullptr, result, "ncclGetUniqueId");
}

zero_rt_status NcclInterconnect::connect(const FabricId &id, int32_t rank,
                                         int32_t ranks, bool hasQueue,
                                         std::unique_ptr<Fabric> *out) {
  auto fabric = std::make_unique<NcclFabric>(device, nccl);
  ZERO_RT_TRY(fabric->initialize(id, rank, ranks, hasQueue));
  *out = std::move(fabric);
  return ZERO_RT_OK;
}

zero_rt_status NcclInterconnect::checkLent(int32_t rank, int32_t ranks) {
  int count = 0, number = 0, gpu = 0;
  for (auto [function, out, call] :
       {std::tuple(nccl.CommCount, &count, "ncclCommCount"),
        std::tuple(nccl.CommUserRank, &number, "ncclCommUserRank"),
        std::tuple(nccl.CommCuDevice, &gpu, "ncclCommCuDevice")})
    if (NcclResult result = function(lent.comm, out))
      return failWith(nccl, nullptr, result, call);
  if (count != ranks || number != rank || gpu != device.getOrdinal())
    return fail(
        ZERO_RT_INVALID_ARGUMENT,
        "options->communicator is rank %d of %d on GPU %d, expected rank %d of "
        "%d on GPU %d",
        number, count, gpu, rank, ranks, device.getOrdinal());
  return ZERO_RT_OK;
}

zero_rt_status NcclInterconnect::borrow(std::unique_ptr<Fabric> *out) {
  auto fabric = std::make_unique<NcclFabric>(device, nccl);
  fabric->borrow(lent);
  *out = std::move(fabric);
  return ZERO_RT_OK;
}

void NcclInterconnect::setWatch(Watch *watch) { device.setWatch(watch); }
