//===- tcp.h - Process groups over TCP --------------------------*- C -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For ranks started by torchrun, srun or mpiexec; no library of the launcher is
// needed. Nothing is encrypted, and any process that reaches the port while the
// ranks connect can join. Use this transport on a trusted network only.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_TCP_H
#define ZERO_RT_TCP_H

#include "zero_rt/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct zero_rt_tcp_options {
  uint32_t struct_size;
  int32_t rank;
  int32_t ranks;
  int32_t port;       // of rank 0
  char host[256];     // of rank 0, a name or an address
  int64_t timeout_ms; // for all ranks to connect; 0 means 60 000
  /// The number of this rank on its node. It selects the GPU
  /// (zero_rt_options.ordinal); the process group does not need it.
  int32_t local_rank;
  int32_t reserved;
} zero_rt_tcp_options;

/// Fills |out_options| from the environment. Set out_options->struct_size
/// first.
///
/// - Rank and number of ranks: RANK and WORLD_SIZE (torchrun), SLURM_PROCID and
///   SLURM_NTASKS, or OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE.
/// - Local rank: LOCAL_RANK, SLURM_LOCALID or OMPI_COMM_WORLD_LOCAL_RANK of the
///   same launcher, else 0.
/// - Host: MASTER_ADDR, else the first host of SLURM_JOB_NODELIST, else
///   127.0.0.1.
/// - Port: ZERO_RT_PORT, else MASTER_PORT + 1, else 29501. At MASTER_PORT
///   torchrun has a server of its own.
///
/// Errors: invalid_argument (the message names the variable that is missing or
/// wrong).
zero_rt_status zero_rt_tcp_environment(zero_rt_tcp_options *out_options);

/// Creates a process group; this process is rank options->rank. All ranks make
/// this call. Rank 0 listens at its port, and the other ranks connect to rank 0
/// and then to each other. Pass options->rank to zero_rt_create. Errors:
/// invalid_argument, timeout (the message names the ranks that did not come),
/// internal (with the error of the system).
zero_rt_status zero_rt_tcp_group_create(const zero_rt_tcp_options *options,
                                        zero_rt_group **out_group);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // ZERO_RT_TCP_H
