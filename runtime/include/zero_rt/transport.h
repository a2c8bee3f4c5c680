//===- transport.h - Groups whose ranks are processes -----------*- C -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A group of processes needs one thing only: to move bytes from one rank to
// another. libzero_rt_mpi.so has that over MPI (mpi.h beside this file);
// whoever has another network fills in these functions. Sums are taken here, in
// the order of the ranks, and so have the bits of a group of threads.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_TRANSPORT_H
#define ZERO_RT_TRANSPORT_H

#include "zero_rt/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/// No message is longer.
#define ZERO_RT_TRANSPORT_MOST_BYTES (INT64_C(1) << 28)

/// How one rank moves bytes. Messages of one channel from one rank to another
/// arrive in the order in which they were sent; channels are independent of
/// each other. A receive has exactly the size of the message. Called by one
/// thread at a time: that which calls the runtime, or any (see any_thread).
/// Errors: any status, with a
/// text from `error`; timeout says that the other rank is
/// gone, which concerns only what needs it, and after any other the group is of
/// no use.
typedef struct zero_rt_transport {
  uint32_t struct_size;
  int32_t rank;
  int32_t ranks;
  /// Non-zero: also a thread of the runtime may call. It looks after ranks with
  /// GPUs while their callers are elsewhere; without it a caller that waits for
  /// its GPU by itself waits for ever if a rank does not come.
  int32_t any_thread;
  void *context; // what the functions get
  /// Begins to send; |data| must stay as it is until the request is done. Never
  /// waits for the receiver. Equivalent to: MPI_Isend.
  zero_rt_status (*send)(void *context, int32_t to, int32_t channel,
                         const void *data, int64_t bytes, void **out_request);
  /// Begins to receive. Equivalent to: MPI_Irecv.
  zero_rt_status (*receive)(void *context, int32_t from, int32_t channel,
                            void *data, int64_t bytes, void **out_request);
  /// Whether |request| is done; then it is gone. Equivalent to: MPI_Test.
  zero_rt_status (*test)(void *context, void *request, int32_t *out_done);
  /// Gives |request| up: its memory is not touched any more. What was to be
  /// sent arrives all the same, or nothing more does on that connection.
  void (*cancel)(void *context, void *request);
  /// What the last error was, one sentence.
  const char *(*error)(void *context);
  /// Frees |context|, with the group.
  void (*destroy)(void *context);
} zero_rt_transport;

/// Creates this process's end of a group over |transport|, which is copied; on
/// an error it is not destroyed. zero_rt_create takes its rank only. Errors:
/// invalid_argument (a rank out of range, a function missing).
zero_rt_status
zero_rt_transport_group_create(const zero_rt_transport *transport,
                               zero_rt_group **out_group);

/// For those who make groups: returns |code|, and zero_rt_message on this
/// thread tells |message|.
zero_rt_status zero_rt_fail(zero_rt_status code, const char *message);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // ZERO_RT_TRANSPORT_H
