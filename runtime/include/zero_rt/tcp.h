//===- tcp.h - Process groups over TCP --------------------------*- C -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For ranks started by torchrun, srun or mpiexec; no library of the launcher is
// needed.
//
// A job has a secret, and each pair of ranks proves to each other that both
// have it (HMAC-SHA256 over random numbers of both, the job, the ranks and the
// addresses and ports of both ends). Processes that do not have the secret
// cannot join or come between two ranks. They cannot make the ranks wait, with
// these exceptions: a flood of connections takes processor time; a process that
// listens at rank 0's port first prevents the job, or delays it by 2 s if it
// gives up the port; and one that takes all ports of the machine prevents it.
// Ranks connect directly: an address or a port that is mapped on the way (NAT)
// looks like a process in between, and is refused.
//
// Without a secret, all ranks must be on one machine: ranks listen and connect
// at 127.0.0.1 only, any process of this machine can join, and rank 0 writes a
// warning to stderr, once in a process. Messages between ranks are not
// encrypted, and not protected against changes on the way. Do not use this
// transport over networks where others can read or change packets.
//
// The id of a job keeps two jobs apart that use one port by mistake, and that
// have one secret: without it, ranks of both are ranks of one job to each
// other.
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
  int32_t listener; // from zero_rt_tcp_listen; 0 means none
  char job[64];     // the id of the job, the same on all ranks; may be empty
  /// The secret, the same on all ranks: at least 16 characters, best random
  /// ones. Empty means none.
  char secret[128];
  /// Since version 16. The network interface at which the other ranks connect
  /// to this rank, such as "ib0"; the ranks may have different ones. Empty
  /// means all addresses of the machine. Rank 0 is found at |host|. Ranks of
  /// one machine speak over loopback.
  char network_interface[16];
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
/// - Job: ZERO_RT_JOB, else TORCHELASTIC_RUN_ID, else SLURM_JOB_ID and
///   SLURM_STEP_ID, else PMIX_NAMESPACE, else empty.
/// - Secret: the file that ZERO_RT_SECRET_FILE names, without the end of the
///   line, else ZERO_RT_SECRET, else none. Other users must not be able to read
///   the file (mode 0600). It is text, without zero bytes.
/// - Network interface: ZERO_RT_INTERFACE, else all.
///
/// Errors: invalid_argument (the message names the variable that is missing or
/// wrong).
zero_rt_status zero_rt_tcp_environment(zero_rt_tcp_options *out_options);

/// Listens for rank 0 before the process group is created: at options->port, or
/// at a free port if that is 0. Stores the port and the listener in |options|.
/// The caller gives the port to the other ranks. So several process groups can
/// be created in one process. Ownership: zero_rt_tcp_group_create takes the
/// listener with these options, also if it fails. Errors: as for
/// zero_rt_tcp_group_create.
zero_rt_status zero_rt_tcp_listen(zero_rt_tcp_options *options);

/// Creates a process group; this process is rank options->rank. All ranks make
/// this call. Rank 0 listens at its port, and the other ranks connect to rank 0
/// and then to each other, at the addresses that each rank knows of its
/// machine. Pass options->rank to zero_rt_create. If the call fails on a rank,
/// it fails on all ranks that have reached rank 0. Errors: invalid_argument,
/// timeout (the message names the ranks that did not come), mismatch (this rank
/// and another one have different jobs, secrets or numbers of ranks, or do not
/// connect directly),
/// unsupported (there is a secret, and OpenSSL's libcrypto.so.3 cannot be
/// loaded), internal (with the error of the system).
zero_rt_status zero_rt_tcp_group_create(const zero_rt_tcp_options *options,
                                        zero_rt_group **out_group);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // ZERO_RT_TCP_H
