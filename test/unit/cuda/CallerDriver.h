//===- CallerDriver.h - The driver as a caller uses it ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions of the CUDA driver that callers of the runtime call for themselves,
// with the runtime's name for a stream.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_CUDA_CALLERDRIVER_H
#define ZERO_TEST_UNIT_CUDA_CALLERDRIVER_H

#include "zero_rt/abi.h"

#include <cstddef>

extern "C" {
int cuCtxPushCurrent_v2(void *);
int cuCtxPopCurrent_v2(void **);
int cuStreamCreate(zero_rt_stream **, unsigned);
int cuStreamDestroy_v2(zero_rt_stream *);
int cuStreamQuery(zero_rt_stream *);
int cuStreamSynchronize(zero_rt_stream *);
int cuMemPoolCreate(void **, const int *);
int cuMemPoolDestroy(void *);
int cuMemAllocFromPoolAsync(unsigned long long *, size_t, void *,
                            zero_rt_stream *);
int cuMemFreeAsync(unsigned long long, zero_rt_stream *);
int cuMemsetD16Async(unsigned long long, unsigned short, size_t,
                     zero_rt_stream *);
int cuMemsetD32Async(unsigned long long, unsigned, size_t, zero_rt_stream *);
int cuMemcpyAsync(unsigned long long, unsigned long long, size_t,
                  zero_rt_stream *);
}

#endif // ZERO_TEST_UNIT_CUDA_CALLERDRIVER_H
