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
/// The ranks wait for each other at most |timeout_ms|; 0 means 60 000. After a
/// timeout, |comm| has collectives that are not done, among them the creation
/// of a communicator: do not use it any more, and create no others in this
/// process. MPI_Finalize waits for ever for a rank that is gone; call MPI_Abort
/// or exit.
///
/// If a rank has no memory for its process group, the call fails on all ranks.
/// A rank that comes when others have given up may get a process group, whose
/// first use fails. A rank whose arguments are wrong, or that has no memory to
/// wait for the others, returns alone, and does not come for them. Errors:
/// invalid_argument, timeout (the message names the ranks that did not come),
/// out_of_memory, internal (with the error of MPI). Since version 16.
zero_rt_status zero_rt_mpi_group_create_within(MPI_Comm comm,
                                               int64_t timeout_ms,
                                               zero_rt_group **out_group);

/// The same with a timeout of 60 000 ms.
zero_rt_status zero_rt_mpi_group_create(MPI_Comm comm,
                                        zero_rt_group **out_group);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // ZERO_RT_MPI_H
