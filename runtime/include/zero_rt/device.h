//===- device.h - Devices of a client ---------------------------*- C -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device holds the memory of a rank and runs its kernels. A client registers
// a kind of device under a name, and zero_rt_options.device takes that name.
// The CPU can access the memory of such a device, and a function returns when
// its work is done. So the runtime sums over ranks itself, and streams have no
// meaning.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_DEVICE_H
#define ZERO_RT_DEVICE_H

#include "zero_rt/abi.h"
#include "zero_rt/code.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A part of a launch: elements [begin, end) of its operands, with the scalars
/// of a zero_rt_kernel_fn. Never changes.
typedef struct zero_rt_device_piece {
  int64_t begin;
  int64_t end;
  const double *scalars;
} zero_rt_device_piece;

/// A launch of a kernel. Pieces do not overlap, and may run in any order.
typedef struct zero_rt_device_launch {
  uint32_t struct_size;
  int32_t kernel;                // its number in the step
  zero_rt_kernel_fn host_kernel; // the same kernel for the CPU
  void *const *operands;
  int64_t num_operands;
  const zero_rt_device_piece *pieces;
  int64_t num_pieces;
  /// Where a reducing kernel writes its sums, one for each started block of
  /// 4096 elements; null for other kernels.
  double *partials;
} zero_rt_device_launch;

/// A kind of device. |context| is the device of one rank, and |code| is a step
/// on it. One thread at a time uses a device.
typedef struct zero_rt_device_functions {
  uint32_t struct_size;
  uint32_t reserved;
  const char *name;
  /// Creates the device of one rank. |options| are those of zero_rt_create.
  zero_rt_status (*create)(const zero_rt_options *options, void **out_context);
  void (*destroy)(void *context);
  /// Memory in |space| (zero_rt_space), aligned to 64 bytes, with unspecified
  /// contents; null if there is none.
  void *(*allocate)(void *context, int32_t space, int64_t bytes);
  void (*release)(void *context, int32_t space, void *data);
  /// Copies between memory of any space, or of the caller.
  zero_rt_status (*copy)(void *context, void *dst, const void *src,
                         int64_t bytes);
  /// Sets |count| elements of |size| bytes (1, 2, 4 or 8) to |bits|.
  zero_rt_status (*set)(void *context, void *data, uint64_t bits, int64_t size,
                        int64_t count);
  /// Loads the code of a step. |executables| are those whose target is the name
  /// of the device. They live until unload. Errors: unsupported (the device
  /// needs an executable, and there is none whose format it knows).
  zero_rt_status (*load)(void *context, const zero_rt_executable *executables,
                         int64_t num_executables, void **out_code);
  void (*unload)(void *context, void *code);
  zero_rt_status (*launch)(void *code, const zero_rt_device_launch *launch);
  /// Runs the scalar program of number |program| in the step. |host_program| is
  /// the same program for the CPU.
  zero_rt_status (*run_scalars)(void *code, int32_t program,
                                zero_rt_scalar_fn host_program, double *slots);
} zero_rt_device_functions;

/// Registers a kind of device for all later runtimes of this process. The call
/// copies |functions|. Any thread may call this. Functions that fail call
/// zero_rt_fail (transport.h). Errors: invalid_argument (a function is missing,
/// or there is a device of this name).
zero_rt_status
zero_rt_device_register(const zero_rt_device_functions *functions);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // ZERO_RT_DEVICE_H
