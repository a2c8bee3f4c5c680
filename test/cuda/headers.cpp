//===- headers.cpp - Our tables of CUDA and NCCL against the headers ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime declares what it calls of the CUDA driver and of NCCL by itself.
// Where the real headers are, headers.py compiles this with them. It prints
// each difference: number, kinds and sizes of arguments and results, values of
// constants, and offsets and sizes of fields.
//
// headers [LIBRARY...] prints also which functions none of these libraries has:
// the toolkit's stub of the driver, and NCCL.
//
//===----------------------------------------------------------------------===//

// Declares the functions by their symbols, older versions included.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#if __has_include(<nccl.h>)
#define HAS_NCCL
#include <nccl.h>
#endif

#include "device/cuda/nccl.h"

#include <cstdio>
#include <dlfcn.h>
#include <string>
#include <vector>

static int compared = 0;
static int differences = 0;

static void compare(const std::string &what, const std::string &ours,
                    const std::string &theirs) {
  ++compared;
  if (ours == theirs)
    return;
  ++differences;
  std::printf("%s: ours is %s, the header's %s\n", what.c_str(), ours.c_str(),
              theirs.c_str());
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

template <typename T, typename = void> struct IsComplete : std::false_type {};
template <typename T>
struct IsComplete<T, std::void_t<decltype(sizeof(T))>> : std::true_type {};

/// "a pointer to an integer of 4 bytes". Enumerations are integers, and nothing
/// is known of what is declared only.
template <typename T> std::string describe() {
  if constexpr (std::is_pointer_v<T>) {
    using Pointee = std::remove_cv_t<std::remove_pointer_t<T>>;
    if constexpr (std::is_void_v<Pointee> || std::is_function_v<Pointee> ||
                  !IsComplete<Pointee>::value)
      return "a pointer";
    else
      return "a pointer to " + describe<Pointee>();
  } else {
    const char *kind = std::is_floating_point_v<T> ? "a floating-point number"
                       : std::is_class_v<T>        ? "a struct"
                                                   : "an integer";
    return std::string(kind) + " of " + std::to_string(sizeof(T)) + " bytes";
  }
}

#ifdef HAS_NCCL
/// Ours is the beginning of the header's: see compareNcclConfig.
template <> std::string describe<zero_rt::NcclConfig>() {
  return describe<ncclConfig_t>();
}
#endif

template <typename T> struct Signature;
template <typename Result, typename... Arguments>
struct Signature<Result (*)(Arguments...)> {
  static std::vector<std::string> get() {
    return {describe<Result>(), describe<Arguments>()...};
  }
};

template <typename Ours, typename Theirs>
static void compareFunctions(const std::string &name) {
  std::vector<std::string> ours = Signature<Ours>::get();
  std::vector<std::string> theirs = Signature<Theirs>::get();
  compare("arguments of " + name, std::to_string(ours.size() - 1),
          std::to_string(theirs.size() - 1));
  for (size_t i = 0; i < ours.size() && i < theirs.size(); ++i)
    compare((i ? "argument " + std::to_string(i) : "the result") + " of " +
                name,
            ours[i], theirs[i]);
}

namespace zero_rt {
static void compareAllFunctions() {
#define FUNCTION(NAME, SYMBOL, ARGUMENTS)                                      \
  compareFunctions<CUresult(*) ARGUMENTS, decltype(&::SYMBOL)>(#SYMBOL);
#include "device/cuda/driver.def"
#define FUNCTION(NAME, RESULT, ARGUMENTS)                                      \
  compareFunctions<RESULT(*) ARGUMENTS, decltype(&::nccl##NAME)>("ncc"         \
                                                                 "l" #NAME);
#include "device/cuda/nccl.def"
}
} // namespace zero_rt

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// Ours and the header's; headers.py sees that none of ours is missing here.
#define VALUE(OURS, THEIRS)                                                    \
  compare(#OURS, std::to_string(static_cast<long long>(zero_rt::OURS)),        \
          std::to_string(static_cast<long long>(THEIRS)))

static void compareValues() {
  VALUE(cudaSuccess, CUDA_SUCCESS);
  VALUE(cudaErrorOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
  VALUE(cudaErrorNotReady, CUDA_ERROR_NOT_READY);
  VALUE(streamNonBlocking, CU_STREAM_NON_BLOCKING);
  VALUE(captureModeRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
  VALUE(eventDisableTiming, CU_EVENT_DISABLE_TIMING);
  VALUE(hostAllocPortable, CU_MEMHOSTALLOC_PORTABLE);
  VALUE(attributeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  VALUE(attributeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  VALUE(attributeMemoryPools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
  VALUE(poolReleaseThreshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
  VALUE(jitErrorLogBuffer, CU_JIT_ERROR_LOG_BUFFER);
  VALUE(jitErrorLogBufferBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  VALUE(poolAllocationPinned, CU_MEM_ALLOCATION_TYPE_PINNED);
  VALUE(poolLocationDevice, CU_MEM_LOCATION_TYPE_DEVICE);
  VALUE(poolReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  VALUE(memoryTypeUnified, CU_MEMORYTYPE_UNIFIED);
#ifdef HAS_NCCL
  VALUE(ncclSuccess, ::ncclSuccess);
  VALUE(ncclInProgress, ::ncclInProgress);
  VALUE(ncclInt8, ::ncclInt8);
  VALUE(ncclFloat32, ::ncclFloat32);
  VALUE(ncclFloat64, ::ncclFloat64);
  VALUE(ncclSum, ::ncclSum);
#endif
}

//===----------------------------------------------------------------------===//
// Structs
//===----------------------------------------------------------------------===//

#define FIELD(OURS, THEIRS)                                                    \
  compare("offset of " #OURS, std::to_string(offsetof(Ours, OURS)),            \
          std::to_string(offsetof(Theirs, THEIRS)));                           \
  compare("kind of " #OURS, describe<decltype(Ours::OURS)>(),                  \
          describe<decltype(Theirs::THEIRS)>())
/// A field of a field.
#define INNER(OURS, THEIRS)                                                    \
  compare("offset of " #OURS, std::to_string(offsetof(Ours, OURS)),            \
          std::to_string(offsetof(Theirs, THEIRS)));                           \
  compare("size of " #OURS,                                                    \
          std::to_string(sizeof(static_cast<Ours *>(nullptr)->OURS)),          \
          std::to_string(sizeof(static_cast<Theirs *>(nullptr)->THEIRS)))

template <typename Ours, typename Theirs>
static void compareSizes(const char *name) {
  compare(std::string("size of ") + name, std::to_string(sizeof(Ours)),
          std::to_string(sizeof(Theirs)));
}

static void comparePool() {
  using Ours = zero_rt::PoolProperties;
  using Theirs = CUmemPoolProps;
  compareSizes<Ours, Theirs>("PoolProperties");
  FIELD(allocationType, allocType);
  FIELD(handleTypes, handleTypes);
  INNER(locationType, location.type);
  INNER(location, location.id);
  FIELD(securityAttributes, win32SecurityAttributes);
}

static void compareAccess() {
  using Ours = zero_rt::PoolAccess;
  using Theirs = CUmemAccessDesc;
  compareSizes<Ours, Theirs>("PoolAccess");
  INNER(locationType, location.type);
  INNER(location, location.id);
  FIELD(flags, flags);
}

static void compareKernelNode() {
  using Ours = zero_rt::KernelNode;
#if CUDA_VERSION >= 12000
  using Theirs = CUDA_KERNEL_NODE_PARAMS_v1;
#else
  using Theirs = CUDA_KERNEL_NODE_PARAMS;
#endif
  compareSizes<Ours, Theirs>("KernelNode");
  FIELD(function, func);
  FIELD(gridX, gridDimX);
  FIELD(gridY, gridDimY);
  FIELD(gridZ, gridDimZ);
  FIELD(blockX, blockDimX);
  FIELD(blockY, blockDimY);
  FIELD(blockZ, blockDimZ);
  FIELD(sharedBytes, sharedMemBytes);
  FIELD(arguments, kernelParams);
  FIELD(extra, extra);
}

static void compareMemsetNode() {
  using Ours = zero_rt::MemsetNode;
  using Theirs = CUDA_MEMSET_NODE_PARAMS;
  compareSizes<Ours, Theirs>("MemsetNode");
  FIELD(dst, dst);
  FIELD(pitch, pitch);
  FIELD(value, value);
  FIELD(elementSize, elementSize);
  FIELD(width, width);
  FIELD(height, height);
}

static void compareCopyNode() {
  using Ours = zero_rt::CopyNode;
  using Theirs = CUDA_MEMCPY3D;
  compareSizes<Ours, Theirs>("CopyNode");
#define SIDE(OURS, THEIRS)                                                     \
  INNER(OURS.x, THEIRS##XInBytes);                                             \
  INNER(OURS.y, THEIRS##Y);                                                    \
  INNER(OURS.z, THEIRS##Z);                                                    \
  INNER(OURS.level, THEIRS##LOD);                                              \
  INNER(OURS.memoryType, THEIRS##MemoryType);                                  \
  INNER(OURS.host, THEIRS##Host);                                              \
  INNER(OURS.device, THEIRS##Device);                                          \
  INNER(OURS.array, THEIRS##Array);                                            \
  INNER(OURS.pitch, THEIRS##Pitch);                                            \
  INNER(OURS.height, THEIRS##Height)
  SIDE(src, src);
  SIDE(dst, dst);
  FIELD(widthInBytes, WidthInBytes);
  FIELD(height, Height);
  FIELD(depth, Depth);
}

#ifdef HAS_NCCL
/// Ours is the beginning of the header's, and its `size` says so to NCCL.
static void compareNcclConfig() {
  using Ours = zero_rt::NcclConfig;
  using Theirs = ncclConfig_t;
  FIELD(size, size);
  FIELD(magic, magic);
  FIELD(version, version);
  FIELD(blocking, blocking);
  Theirs theirs = NCCL_CONFIG_INITIALIZER;
  compare("magic", std::to_string(Ours().magic), std::to_string(theirs.magic));
}
#endif

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

static void findSymbols(int count, char **paths) {
  std::vector<void *> libraries;
  for (int i = 0; i < count; ++i) {
    libraries.push_back(dlopen(paths[i], RTLD_LAZY | RTLD_LOCAL));
    if (!libraries.back()) {
      ++differences;
      std::printf("%s\n", dlerror());
      return;
    }
  }
  auto find = [&](const char *symbol) {
    bool isThere = false;
    for (void *library : libraries)
      isThere |= dlsym(library, symbol) != nullptr;
    compare(symbol, "called", isThere ? "called" : "in no library");
  };
#define FUNCTION(NAME, SYMBOL, ARGUMENTS) find(#SYMBOL);
#include "device/cuda/driver.def"
#ifdef HAS_NCCL
#define FUNCTION(NAME, RESULT, ARGUMENTS) find("nccl" #NAME);
#include "device/cuda/nccl.def"
#endif
}

int main(int count, char **arguments) {
  zero_rt::compareAllFunctions();
  compareValues();
  comparePool();
  compareAccess();
  compareKernelNode();
  compareMemsetNode();
  compareCopyNode();
#ifdef HAS_NCCL
  compareNcclConfig();
  std::printf("NCCL %d.%d.%d\n", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
#else
  std::puts("not compared: there is no nccl.h");
#endif
  if (count > 1)
    findSymbols(count - 1, arguments + 1);
  std::printf("CUDA %d.%d: %d compared, %d differences\n", CUDA_VERSION / 1000,
              CUDA_VERSION % 1000 / 10, compared, differences);
  return differences != 0;
}
