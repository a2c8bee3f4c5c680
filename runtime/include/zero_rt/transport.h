//===- transport.h - Process groups over any network ------------*- C -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A process group needs a transport, which moves bytes from one rank to
// another. The runtime has transports over TCP (tcp.h) and MPI (mpi.h, in
// libzero_rt_mpi.so); for another network, implement these functions. The
// runtime computes sums itself, in the order of the ranks. Therefore the
// results have the same bits as with ranks that are threads.
//
// Ranks on one machine read the addends in each other's memory, over any
// transport, and only tell each other when. The buffers of collectives are then
// in a file in memory (memfd_create), which the other ranks open in
// /proc/PID/fd. Both ranks need one user and one namespace of processes, and
// otherwise exchange messages. A process that a rank forks does not have these
// buffers. zero_rt_counters.shared_ranks says how many ranks are read. The
// environment variable ZERO_RT_SHARED_MEMORY=0 turns this off for a rank.
// ZERO_RT_ACTIVATION_LANES=1, on all ranks, sends activations from GPU to GPU.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_TRANSPORT_H
#define ZERO_RT_TRANSPORT_H

#include "zero_rt/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The maximum length of a message in bytes.
#define ZERO_RT_TRANSPORT_MOST_BYTES (INT64_C(1) << 28)

/// The transport of one rank. Messages of one channel from one rank to another
/// arrive in the order in which they were sent. Channels are independent of
/// each other. A receive has exactly the size of its message. One thread at a
/// time calls these functions: the thread that calls the runtime or, with
/// any_thread, any thread.
///
/// Errors: any status; `error` returns the text. ZERO_RT_TIMEOUT means that the
/// other rank is gone, and fails only the operations that need that rank. Every
/// other error makes the process group unusable.
typedef struct zero_rt_transport {
  uint32_t struct_size;
  int32_t rank;
  int32_t ranks;
  /// Non-zero: a thread of the runtime may call these functions, too. That
  /// thread detects failures of ranks with GPUs while their callers are not in
  /// a call of the runtime. Without it, a caller that waits for its GPU outside
  /// the runtime waits for ever if a rank does not come.
  int32_t any_thread;
  void *context; // the first argument of each function
  /// Begins to send, and never waits for the receiver. |data| stays unchanged
  /// until the request is done. Equivalent to: MPI_Isend.
  zero_rt_status (*send)(void *context, int32_t to, int32_t channel,
                         const void *data, int64_t bytes, void **out_request);
  /// Begins to receive. Equivalent to: MPI_Irecv.
  zero_rt_status (*receive)(void *context, int32_t from, int32_t channel,
                            void *data, int64_t bytes, void **out_request);
  /// Reports whether |request| is done. A request that is done is freed.
  /// Equivalent to: MPI_Test.
  zero_rt_status (*test)(void *context, void *request, int32_t *out_done);
  /// Cancels |request| and does not access its memory any more. A message that
  /// was being sent still arrives, or no later message arrives on that
  /// connection.
  void (*cancel)(void *context, void *request);
  /// The text of the last error, one sentence.
  const char *(*error)(void *context);
  /// Frees |context|. The runtime calls it when the process group is destroyed.
  void (*destroy)(void *context);
} zero_rt_transport;

/// Creates a process group over |transport|; this process is rank
/// transport->rank. Pass the same rank to zero_rt_create. The call copies
/// |transport|, and does not destroy it on an error. Errors: invalid_argument
/// (a rank out of range, a function missing).
zero_rt_status
zero_rt_transport_group_create(const zero_rt_transport *transport,
                               zero_rt_group **out_group);

/// For implementations of transports: stores |message| as the zero_rt_message
/// of this thread and returns |code|.
zero_rt_status zero_rt_fail(zero_rt_status code, const char *message);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // ZERO_RT_TRANSPORT_H
