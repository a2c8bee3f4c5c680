//===- tcp.h - Groups whose ranks are processes, over TCP -------*- C -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For ranks that torchrun, srun or mpiexec has started, without any library of
// theirs. Nothing is encrypted, and whoever reaches the port while ranks look
// for each other can take part: use it on a network you trust.
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
  int32_t port;       // where rank 0 listens
  char host[256];     // of rank 0, a name or an address
  int64_t timeout_ms; // for all to find each other; 0 means 60 000
  /// Which of the ranks of its node this is. The group does not need it: it
  /// says which GPU to take (zero_rt_options.ordinal).
  int32_t local_rank;
  int32_t reserved;
} zero_rt_tcp_options;

/// Fills |out_options| from the environment; set out_options->struct_size
/// first. Rank and number of ranks: RANK and WORLD_SIZE (torchrun),
/// SLURM_PROCID and SLURM_NTASKS, or OMPI_COMM_WORLD_RANK and
/// OMPI_COMM_WORLD_SIZE. Rank on its node: LOCAL_RANK, SLURM_LOCALID or
/// OMPI_COMM_WORLD_LOCAL_RANK, of the same launcher, else 0. Host: MASTER_ADDR,
/// else the first of SLURM_JOB_NODELIST, else 127.0.0.1. Port: ZERO_RT_PORT,
/// else the one behind MASTER_PORT, where torchrun has a server of its own,
/// else 29501. Errors: invalid_argument, with the variable that is missing or
/// wrong.
zero_rt_status zero_rt_tcp_environment(zero_rt_tcp_options *out_options);

/// Creates this process's end of a group. All ranks call it; rank 0 listens at
/// its port, the others connect to it and then to each other. Errors:
/// invalid_argument, timeout (with the ranks that did not come), internal (what
/// the system says). Pass options->rank to zero_rt_create.
zero_rt_status zero_rt_tcp_group_create(const zero_rt_tcp_options *options,
                                        zero_rt_group **out_group);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // ZERO_RT_TCP_H
