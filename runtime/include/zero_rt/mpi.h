//===- mpi.h - Groups whose ranks are those of MPI --------------*- C -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In libzero_rt_mpi.so, which is built where MPI is installed and used beside
// libzero_rt.so. It runs with the MPI it was built with.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_MPI_H
#define ZERO_RT_MPI_H

#include "zero_rt/abi.h"

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Creates a group of the ranks of |comm|, of which this process is one; pass
/// its rank there to zero_rt_create. Collective over |comm|, which is
/// duplicated, so that no message of the caller's is taken; the duplicate
/// lives until MPI_Finalize. MPI must be initialized, with
/// MPI_THREAD_SERIALIZED if not only the main thread calls the runtime (with
/// MPI_THREAD_MULTIPLE ranks on GPUs are looked after while nobody calls it),
/// and be finalized after the group is destroyed. Errors: invalid_argument,
/// internal (what MPI says).
zero_rt_status zero_rt_mpi_group_create(MPI_Comm comm,
                                        zero_rt_group **out_group);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // ZERO_RT_MPI_H
