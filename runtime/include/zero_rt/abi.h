//===- abi.h - The C ABI between a user, a step and the runtime -*- C -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A user creates a group, one runtime per rank, and hands the runtime to the
// generated NAME_create. The runtime carries a table of calls (calls.def), so a
// compiled step has no undefined symbol: no rpath and no link order.
//
// A group, a runtime and a step are handles. A call with the handle of a
// destroyed object, or of another kind of object, is invalid_argument, and so
// is a second destroy. A process that is forked off has no use of its parent's
// handles: calls with them are invalid_argument, destroy included.
//
// One thread at a time uses a runtime and its steps; different threads may take
// turns. A call while another thread is in one of the same rank is an error
// (protocol), and does nothing. Any thread may create a runtime of a group.
//
// Calls round to nearest and keep subnormal numbers, whatever floating-point
// mode the calling thread has (x86-64), and leave the mode as it was.
//
// Structs that may grow begin with `struct_size`, which the caller sets to
// sizeof of the struct it was compiled with.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_ABI_H
#define ZERO_RT_ABI_H

#include "zero_rt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Raised whenever calls.def, library.h or a struct below changes meaning.
#define ZERO_RT_ABI_VERSION 13

typedef struct zero_rt_group zero_rt_group;     // ranks that communicate
typedef struct zero_rt_runtime zero_rt_runtime; // one rank: device and streams
typedef struct zero_rt_step zero_rt_step;       // one compiled step on one rank
typedef struct zero_rt_calls zero_rt_calls;     // the table, see library.h
typedef struct zero_rt_library
    zero_rt_library; // a compiled step, see library.h

/// Element types. Numbers are part of the ABI and of the plan.
typedef enum zero_rt_dtype {
  ZERO_RT_F16 = 0,
  ZERO_RT_BF16 = 1,
  ZERO_RT_F32 = 2,
  ZERO_RT_F64 = 3,
  // Of activations only.
  ZERO_RT_I8 = 4,
  ZERO_RT_I32 = 5,
  ZERO_RT_I64 = 6
} zero_rt_dtype;

/// Memory spaces. The host device has both, each with its own allocator and
/// counters, so that offload is real on a machine without a GPU.
typedef enum zero_rt_space {
  ZERO_RT_SPACE_DEVICE = 0,
  ZERO_RT_SPACE_HOST = 1
} zero_rt_space;

/// What a buffer is for; counters and the plan report bytes by role and space.
typedef enum zero_rt_role {
  ZERO_RT_ROLE_PARAMETER = 0,
  ZERO_RT_ROLE_GRADIENT = 1, // what one backward pass writes, and its reduction
  ZERO_RT_ROLE_ACCUMULATOR = 2, // what outlives the backward pass that wrote it
  ZERO_RT_ROLE_STATE = 3,       // optimizer state, the master weights included
  ZERO_RT_ROLE_SCALAR = 4,
  ZERO_RT_ROLE_STAGING = 5,
  ZERO_RT_ROLE_COUNT = 6
} zero_rt_role;

/// What the caller knows about the backward pass that begins: that it is the
/// last before apply, or that more follow. In the last one buckets are reduced
/// as they are complete, where they would wait for apply otherwise. A hint only
/// ever buys overlap: if another backward pass follows all the same, what was
/// reduced is so once more, and rounded otherwise. Ranks need not say the same,
/// unless preconditions are checked; but where LAST is wrong, or discard
/// follows it, it is so on all ranks: the numbers of collectives are else not
/// the same on all of them, which is a mismatch, or a timeout where some are in
/// other groups by then.
typedef enum zero_rt_hint {
  ZERO_RT_HINT_UNKNOWN = 0,
  ZERO_RT_HINT_LAST = 1,
  ZERO_RT_HINT_MORE = 2
} zero_rt_hint;

/// A stream of the caller's on which an argument is produced or consumed; null
/// is the device's default stream. On the host device every stream is
/// synchronous with the calling thread.
typedef struct zero_rt_stream zero_rt_stream;

/// A point on a stream's timeline. Zero is always in the past.
typedef uint64_t zero_rt_timepoint;

/// A contiguous array of the caller's. The runtime never keeps |data| past the
/// release timepoint of the call that took it.
typedef struct zero_rt_tensor {
  uint32_t struct_size;
  int32_t dtype; // zero_rt_dtype
  int32_t space; // zero_rt_space
  int32_t reserved;
  int64_t elements;
  void *data; // may be null only when elements is 0
} zero_rt_tensor;

/// What a runtime keeps its memory on and runs its kernels on.
typedef enum zero_rt_device {
  ZERO_RT_DEVICE_HOST = 0,
  /// A GPU of this machine, through the driver that is installed. Steps must be
  /// compiled with --target=cuda. What a call does to memory is done later, in
  /// the order of calls; streams are the caller's CUstream (or cudaStream_t).
  /// Ranks that are threads share one, or are on several that can use each
  /// other's memory; those that are processes have one each and need NCCL.
  ZERO_RT_DEVICE_CUDA = 1
} zero_rt_device;

typedef struct zero_rt_options {
  uint32_t struct_size;
  /// Threads a kernel is spread over on this rank, the caller's included. 0
  /// means 1.
  int32_t threads;
  /// How long a collective waits for the other ranks. 0 means 60 000.
  int64_t timeout_ms;
  /// Non-zero: fresh on-demand buffers are filled with a signalling pattern, so
  /// that a read before the first write shows.
  int32_t poison;
  /// Non-zero: checks what callers promise and a plan lists, as far as a
  /// runtime sees it. At each apply and discard the ranks compare which of both
  /// they call; at apply also its inputs, and all state that each of them has
  /// whole, and gradients that ranks promise to deliver alike. A gradient that
  /// waits must stay as it came. What is not kept is an error (mismatch,
  /// protocol) that names it. Costs a read of that state and
  /// an exchange per step, for which a GPU is waited for; it, and what hints
  /// say, must be the same on all ranks.
  int32_t check_promises;
  /// Non-zero: looks at each gradient as it arrives. Where a step is skipped or
  /// refused because one is not finite, zero_rt_message() tells after results
  /// which, of which rank and backward pass. Costs a read of every gradient,
  /// for which a GPU is waited for; must be the same on all ranks.
  int32_t find_nonfinite;
  int32_t device;  // zero_rt_device
  int32_t ordinal; // which GPU, as the driver numbers them
  /// Non-zero: on a GPU apply starts its kernels and copies together, as CUDA
  /// graphs, as far as no other rank and no processor stands between. Changes
  /// no bit; need not be the same on all ranks.
  int32_t graphs;
  /// An ncclComm_t that is lent until zero_rt_destroy, for what all ranks do
  /// together instead of one of the runtime's; or null. It is ready, and has
  /// the ranks of the group, which are processes, with their numbers and GPUs;
  /// all of them lend one, or none. What the caller does with it comes in one
  /// order on all ranks, calls of steps included. One that blocks may block
  /// them, too.
  void *nccl;
  /// Called at most once, by any thread, where |nccl| must be given up, since a
  /// rank has failed or did not come: ends what is under way on it, or GPUs
  /// wait for ever. Null: ncclCommAbort, and |nccl| is gone.
  void (*give_up_nccl)(void *nccl);
} zero_rt_options;

/// What was really allocated, launched and sent on this rank since it was
/// created. Counted in the allocator and in the copy loops, never from a plan.
typedef struct zero_rt_counters {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t bytes_now[2][ZERO_RT_ROLE_COUNT]; // [space][role]
  int64_t bytes_peak[2][ZERO_RT_ROLE_COUNT];
  int64_t allocations[2][ZERO_RT_ROLE_COUNT];
  int64_t launches;
  int64_t all_reduces; // of buffers
  int64_t scalar_all_reduces;
  int64_t reduce_scatters;
  int64_t all_gathers;
  /// Bytes this rank sent to others, by the traffic a ring needs: (D-1)/D of
  /// the buffer for a reduce-scatter or an all-gather, twice that for an
  /// all-reduce (rounded down once per call).
  int64_t bytes_sent;
  int64_t bytes_copied_between_spaces;
  int64_t activations_sent; // and gradients of activations
  int64_t activation_headers_sent;
  int64_t activation_bytes_sent; // without headers
} zero_rt_counters;

//===----------------------------------------------------------------------===//
// Groups and runtimes
//===----------------------------------------------------------------------===//

/// Creates a group of |ranks| threads of this process. Each rank thread calls
/// zero_rt_create with its own rank. Errors: invalid_argument (ranks < 1
/// or > 4096).
/// Ownership: the caller destroys the group after all its runtimes.
/// Equivalent to: MPI_Comm_split_type, ncclCommInitAll.
zero_rt_status zero_rt_local_group_create(int32_t ranks,
                                          zero_rt_group **out_group);
zero_rt_status zero_rt_group_destroy(zero_rt_group *group);

/// Creates the runtime of |rank| in |group|. |options| may be null. Not
/// collective. Errors: invalid_argument (rank out of range or already taken).
/// Ownership: the caller destroys the runtime after its steps.
zero_rt_status zero_rt_create(zero_rt_group *group, int32_t rank,
                              const zero_rt_options *options,
                              zero_rt_runtime **out_runtime);
zero_rt_status zero_rt_destroy(zero_rt_runtime *runtime);

/// Copies the counters of |runtime|; set out_counters->struct_size first.
zero_rt_status zero_rt_read_counters(zero_rt_runtime *runtime,
                                     zero_rt_counters *out_counters);

/// Blocks the calling thread until |timepoint| has passed.
zero_rt_status zero_rt_wait(zero_rt_runtime *runtime,
                            zero_rt_timepoint timepoint);

/// Makes what comes to |stream| from now on wait until |timepoint| has passed,
/// without waiting for it. Equivalent to: cuStreamWaitEvent.
zero_rt_status zero_rt_stream_wait(zero_rt_runtime *runtime,
                                   zero_rt_stream *stream,
                                   zero_rt_timepoint timepoint);

/// Memory of |runtime|'s device, for callers who have no other means to get
/// some; aligned to 64 bytes, contents unspecified. Not counted. Errors:
/// out_of_memory; for zero_rt_release invalid_argument (|data| is not from
/// zero_rt_allocate of |runtime|, or was released before). Ownership: the
/// caller gives it back, before the runtime and after what streams of its own
/// do with it; calls of steps may still use it. Equivalent to: cudaMalloc,
/// cudaFree.
zero_rt_status zero_rt_allocate(zero_rt_runtime *runtime, int64_t bytes,
                                void **out_data);
zero_rt_status zero_rt_release(zero_rt_runtime *runtime, void *data);

/// Copies between memory of the device, or of the host, after all that the
/// runtime was called for before and what is on the default stream, and waits
/// until that is done.
zero_rt_status zero_rt_copy(zero_rt_runtime *runtime, void *dst,
                            const void *src, int64_t bytes);

//===----------------------------------------------------------------------===//
// What a step tells about itself and its last apply
//===----------------------------------------------------------------------===//

/// Why the last apply did or did not change anything.
typedef enum zero_rt_verdict {
  ZERO_RT_APPLIED = 0,
  ZERO_RT_SKIPPED_NONFINITE = 1,
  ZERO_RT_REFUSED_MISSING_GRADIENT = 2,
  ZERO_RT_REFUSED_UNEQUAL_BACKWARDS = 3,
  ZERO_RT_REFUSED_NONFINITE = 4,
  ZERO_RT_REFUSED_NO_TOKENS = 5, // gradients would be divided by nothing
  /// An input of apply that updates depend on, such as a learning rate, is nan
  /// or infinite on some rank. Inputs that are only reported may be. Where
  /// gradients are missing or backward passes unequal as well, the verdict is
  /// that one, and the message names both.
  ZERO_RT_REFUSED_INPUT = 6
} zero_rt_verdict;

/// The results of the last apply. |values| are the operands of zero.return, in
/// order; generated headers give them names. Ownership: |values| belong to the
/// step, and hold until its next apply or its destruction.
typedef struct zero_rt_results {
  uint32_t struct_size;
  int32_t verdict;   // zero_rt_verdict, the same on all ranks
  int64_t backwards; // since the apply before
  int32_t num_values;
  int32_t reserved;
  const double *values; // num_values of them
} zero_rt_results;

/// One piece of state on this rank: elements [begin, end) of what it holds of a
/// parameter, in row-major order, for one role; or a scalar of the optimizer
/// (parameter -1).
typedef struct zero_rt_state_entry {
  uint32_t struct_size;
  int32_t parameter;
  const char *role; // "parameter", "master", "m", ...; owned by the step
  int32_t dtype;
  int32_t reserved;
  int64_t begin;
  int64_t end;
} zero_rt_state_entry;

#ifdef __cplusplus
} // extern "C"
#endif

#endif // ZERO_RT_ABI_H
