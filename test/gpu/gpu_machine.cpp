//===- gpu_machine.cpp - What a machine has for steps on GPUs -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Looks for the driver, a GPU and NCCL as the runtime does, with all functions
// that it calls. With --nccl it also does, as a group of one rank, what ranks
// that are processes do together. Exit status 77 where only NCCL is missing.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/cuda_device.h"
#include "device/cuda/nccl_fabric.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

using namespace zero_rt;

static constexpr int64_t elements = 100'003;

static zero_rt_status await(Fabric &fabric) {
  auto begin = std::chrono::steady_clock::now();
  for (bool isReady = false;;) {
    ZERO_RT_TRY(fabric.poll(isReady));
    if (isReady)
      return ZERO_RT_OK;
    if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(30))
      return fail(ZERO_RT_TIMEOUT, "NCCL is not ready after 30 s");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// A collective of one rank leaves in |to| what is in |from|.
template <typename Body>
static zero_rt_status tryCall(CudaDevice &device, Fabric &fabric,
                              const char *name, const std::vector<float> &sent,
                              void *from, void *to, Body &&body) {
  int64_t bytes = elements * int64_t(sizeof(float));
  ZERO_RT_TRY(device.copy(from, sent.data(), bytes));
  ZERO_RT_TRY(device.set(to, 0xFF, 1, bytes));
  ZERO_RT_TRY(fabric.beginCall());
  ZERO_RT_TRY(body());
  ZERO_RT_TRY(await(fabric));
  ZERO_RT_TRY(fabric.endCall());
  const void *seen = nullptr;
  ZERO_RT_TRY(device.look(to, bytes, &seen));
  if (std::memcmp(seen, sent.data(), size_t(bytes)) != 0)
    return fail(ZERO_RT_INTERNAL, "%s changed what one rank sent", name);
  std::printf("%-24s one rank gets what it sent\n", name);
  return ZERO_RT_OK;
}

static zero_rt_status tryFabric(CudaDevice &device, Fabric &fabric) {
  ZERO_RT_TRY(await(fabric));
  std::printf("%-24s one rank\n", "communicator");
  std::vector<float> sent(elements);
  for (size_t i = 0; i < sent.size(); ++i)
    sent[i] = float(i) / 3;
  int64_t bytes = elements * int64_t(sizeof(float));
  void *from = device.allocate(ZERO_RT_SPACE_DEVICE, bytes);
  void *to = device.allocate(ZERO_RT_SPACE_DEVICE, bytes);
  if (!from || !to)
    return fail(ZERO_RT_OUT_OF_MEMORY, "no memory for two arrays of %lld bytes",
                (long long)bytes);
  ZERO_RT_TRY(tryCall(device, fabric, "all-reduce", sent, from, to, [&] {
    return fabric.allReduce(ZERO_RT_F32, from, to, elements);
  }));
  ZERO_RT_TRY(tryCall(device, fabric, "reduce-scatter", sent, from, to, [&] {
    return fabric.reduceScatter(ZERO_RT_F32, from, to, elements);
  }));
  ZERO_RT_TRY(tryCall(device, fabric, "all-gather", sent, from, to,
                      [&] { return fabric.allGather(from, to, bytes); }));
  device.release(ZERO_RT_SPACE_DEVICE, from);
  device.release(ZERO_RT_SPACE_DEVICE, to);
  ZERO_RT_TRY(fabric.close());
  return await(fabric);
}

static zero_rt_status tryNccl(CudaDevice &device, Interconnect &interconnect) {
  FabricId id;
  ZERO_RT_TRY(interconnect.makeId(id));
  std::unique_ptr<Fabric> fabric;
  ZERO_RT_TRY(interconnect.connect(id, 0, 1, /*hasQueue=*/false, &fabric));
  return tryFabric(device, *fabric);
}

static zero_rt_status run(int32_t gpu, bool useNccl, bool &hasGpu) {
  const Driver *driver = nullptr;
  ZERO_RT_TRY(getDriver(&driver));
  int version = 0, count = 0;
  ZERO_RT_CUDA(*driver, DriverGetVersion, &version);
  ZERO_RT_CUDA(*driver, DeviceGetCount, &count);
  std::printf("%-24s %d.%d, with all functions that are called\n",
              "CUDA driver", version / 1000, version % 1000 / 10);
  std::unique_ptr<Device> device;
  ZERO_RT_TRY(CudaDevice::create(gpu, 1, /*graphs=*/false, {}, &device));
  auto &cuda = static_cast<CudaDevice &>(*device);
  std::printf("GPU %-20d of %d, %s\n", gpu, count, cuda.arch.c_str());
  hasGpu = true;
  Interconnect *interconnect = nullptr;
  ZERO_RT_TRY(device->getInterconnect(&interconnect));
  std::printf("%-24s with all functions that are called\n",
              interconnect->describe().c_str());
  if (!useNccl)
    return ZERO_RT_OK;
  return onDevice(*device, "nccl",
                  [&] { return tryNccl(cuda, *interconnect); });
}

int main(int count, char **arguments) {
  int32_t gpu = 0;
  bool useNccl = false;
  for (int i = 1; i < count; ++i) {
    if (!std::strcmp(arguments[i], "--nccl")) {
      useNccl = true;
    } else if (!std::strncmp(arguments[i], "--gpu=", 6)) {
      gpu = std::atoi(arguments[i] + 6);
    } else {
      std::fputs("usage: gpu_machine [--gpu=N] [--nccl]\n", stderr);
      return 2;
    }
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  bool hasGpu = false;
  zero_rt_status status = run(gpu, useNccl, hasGpu);
  if (!status)
    return 0;
  bool isSkipped = hasGpu && status == ZERO_RT_UNSUPPORTED;
  std::printf("%s: %s\n", isSkipped ? "skipped" : zero_rt_status_name(status),
              lastMessage());
  return isSkipped ? 77 : 1;
}
