//===- mpi_meeting.h - The ranks of a communicator meet ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_MPI_MPI_MEETING_H
#define ZERO_RT_COMM_MPI_MPI_MEETING_H

#include "zero_rt/status.h"

#include <mpi.h>

#include <cstdint>
#include <string>

namespace zero_rt {

/// Duplicates |comm| as soon as all its ranks make this call, and waits for
/// them at most |timeoutMs|. |mine| is what the preparations of this rank came
/// to, and zero_rt_message() says why they failed.
///
/// Errors: the first failure of a rank, on all ranks; timeout (the message
/// names the ranks that did not come); out_of_memory, internal (with the error
/// of MPI).
zero_rt_status meet(MPI_Comm comm, int64_t timeoutMs, zero_rt_status mine,
                    MPI_Comm &duplicate);

/// The error of |call|, which returned |code|.
std::string describeMpiError(const char *call, int code);

} // namespace zero_rt

#endif // ZERO_RT_COMM_MPI_MPI_MEETING_H
