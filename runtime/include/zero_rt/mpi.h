//===- mpi.h - Process groups over MPI --------------------------*- C -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// These functions are in libzero_rt_mpi.so. That library is built if MPI is
// installed, is used together with libzero_rt.so, and needs the MPI that it was
// built with.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_MPI_H
#define ZERO_RT_MPI_H

#include "zero_rt/abi.h"

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Creates a process group of the ranks of |comm|. Pass the rank of this
/// process in |comm| to zero_rt_create. The call is collective over |comm|. It
/// duplicates |comm|, so that messages of the runtime and of the caller do not
/// mix. The duplicate lives until MPI_Finalize.
///
/// MPI must be initialized before this call, and finalized after the process
/// group is destroyed. If threads other than the main thread call the runtime,
/// MPI needs MPI_THREAD_SERIALIZED. With MPI_THREAD_MULTIPLE, a thread of the
/// runtime detects failures of ranks with GPUs while no call of the runtime is
/// in progress.
///
/// If a rank has no memory, the call fails on all ranks. A rank whose arguments
/// are wrong, or for which MPI_Comm_dup fails, returns alone, as from a
/// collective of MPI. Like these, the call has no timeout: it waits for ever
/// for a rank that does not come. Errors: invalid_argument, out_of_memory,
/// internal (with the error of MPI).
zero_rt_status zero_rt_mpi_group_create(MPI_Comm comm,
                                        zero_rt_group **out_group);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // ZERO_RT_MPI_H
