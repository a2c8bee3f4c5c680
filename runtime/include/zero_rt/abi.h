//===- abi.h - The C ABI between a user, a step and the runtime -*- C -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A user creates a process group and one runtime per rank, and creates steps of
// the runtime (step.h). A runtime and a step carry a table of calls
// (calls.def). Therefore a compiled step has no undefined symbol.
//
// A process group, a runtime and a step are handles. A call returns
// invalid_argument for the handle of a destroyed object and for the handle of
// another kind of object. A second destroy returns invalid_argument, too. A
// forked process cannot use the handles of its parent: every call with one of
// them, destroy included, returns invalid_argument.
//
// One thread at a time uses a runtime and its steps. Different threads may take
// turns. A call while another thread is in a call of the same rank returns
// protocol and does nothing. Any thread may create a runtime of a process
// group.
//
// Calls round to nearest and keep subnormal numbers. The floating-point mode of
// the calling thread has no influence (x86-64), and is the same after the call.
//
// Structs that a caller passes begin with `struct_size`. The caller sets
// struct_size to the size of the struct that it was compiled with. Such a
// struct grows at its end. A field that one side does not know is 0 for the
// other side:
//
// - Fields that the caller does not have are read as 0, and are not written.
// - Fields that the runtime does not have must be 0, or the call returns
//   unsupported. Calls set such fields of results to 0.
//
// In an array of structs, all elements have the struct_size of the first one,
// which is also the distance between two elements. All other structs never
// change. docs/versions.md says how the interface moves on.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_ABI_H
#define ZERO_RT_ABI_H

#include "zero_rt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The version of these headers. The first addition after a release increases
/// it.
#define ZERO_RT_ABI_VERSION 16
/// The oldest version of which a runtime of this version accepts callers and
/// compiled steps.
#define ZERO_RT_OLDEST_ABI_VERSION 15

/// The ABI version of the runtime, since version 16. A program that was
/// compiled with headers of version N works with a runtime of version N or
/// later, until ZERO_RT_OLDEST_ABI_VERSION of the runtime exceeds N. With an
/// earlier runtime the program works as long as it uses no later call or field;
/// it may ask before it does:
///
///   if (zero_rt_version() < 16) ... // this runtime lacks a field of 16
uint32_t zero_rt_version(void);

typedef struct zero_rt_group zero_rt_group;     // ranks that communicate
typedef struct zero_rt_runtime zero_rt_runtime; // one rank: device and streams
typedef struct zero_rt_step zero_rt_step;       // one compiled step on one rank
typedef struct zero_rt_calls zero_rt_calls;     // the table, see library.h
typedef struct zero_rt_library
    zero_rt_library; // a compiled step, see library.h

/// Element types. The numbers are part of the ABI and of the plan.
typedef enum zero_rt_dtype {
  ZERO_RT_F16 = 0,
  ZERO_RT_BF16 = 1,
  ZERO_RT_F32 = 2,
  ZERO_RT_F64 = 3,
  // For activations only.
  ZERO_RT_I8 = 4,
  ZERO_RT_I32 = 5,
  ZERO_RT_I64 = 6
} zero_rt_dtype;

/// Memory spaces. The host device has both spaces, each with its own counters.
/// Therefore offload can be observed on a machine without a GPU.
typedef enum zero_rt_space {
  ZERO_RT_SPACE_DEVICE = 0,
  ZERO_RT_SPACE_HOST = 1
} zero_rt_space;

/// The purpose of a buffer. Counters and the plan report bytes by role and
/// space.
typedef enum zero_rt_role {
  ZERO_RT_ROLE_PARAMETER = 0,
  ZERO_RT_ROLE_GRADIENT = 1, // written by one backward pass, and its reduction
  ZERO_RT_ROLE_ACCUMULATOR = 2, // outlives the backward pass that wrote it
  ZERO_RT_ROLE_STATE = 3,       // optimizer state, the master weights included
  ZERO_RT_ROLE_SCALAR = 4,
  ZERO_RT_ROLE_STAGING = 5,
  ZERO_RT_ROLE_COUNT = 6
} zero_rt_role;

/// Whether the backward pass that begins is the last one before apply. In the
/// last backward pass, buckets that would otherwise wait for apply are reduced
/// as soon as they are complete. A hint serves overlap only.
///
/// If another backward pass follows a LAST hint, the buckets are reduced a
/// second time, and the sums are rounded differently. Ranks may give different
/// hints, with two exceptions:
///
/// - If preconditions are checked, all ranks give the same hints.
/// - If another backward pass or discard follows a LAST hint, all ranks gave
///   that hint. Otherwise ranks make different numbers of collectives. The
///   result is a mismatch, or a timeout if some ranks are in the collectives of
///   another process group by then.
typedef enum zero_rt_hint {
  ZERO_RT_HINT_UNKNOWN = 0,
  ZERO_RT_HINT_LAST = 1,
  ZERO_RT_HINT_MORE = 2
} zero_rt_hint;

/// The number of uses of a parameter whose gradient arrives in any number of
/// pieces, at least one.
#define ZERO_RT_USES_ANY 0

/// A stream of the caller on which an argument is produced or consumed. Null is
/// the default stream of the device. On the host device every stream is
/// synchronous with the calling thread.
typedef struct zero_rt_stream zero_rt_stream;

/// A point on the timeline of a stream. Timepoint 0 has always passed.
typedef uint64_t zero_rt_timepoint;

/// A contiguous array of the caller. The runtime does not use |data| after the
/// release timepoint of the call that took the array.
typedef struct zero_rt_tensor {
  uint32_t struct_size;
  int32_t dtype; // zero_rt_dtype
  int32_t space; // zero_rt_space
  int32_t reserved;
  int64_t elements;
  void *data; // may be null only when elements is 0
} zero_rt_tensor;

/// Memory of the caller, for the buffers of steps. So a framework counts them
/// with its own memory, and may keep a view of a parameter when the step is
/// gone. The functions are called in calls of the rank, and may not call the
/// runtime. Since version 16.
typedef struct zero_rt_allocator {
  uint32_t struct_size;
  uint32_t reserved;
  void *context;
  /// Returns |bytes| of memory in |space|, aligned to 64 bytes, with
  /// unspecified contents; or null: the runtime allocates the buffer itself.
  /// |role| and |name| are those of the buffer. On a GPU, work on |stream| and
  /// behind it uses the memory, and |space| is always device: the runtime
  /// allocates pinned memory itself. Ranks that are threads, and have several
  /// GPUs, read each other's memory, so all of them need access to it.
  void *(*allocate)(void *context, int32_t space, int32_t role, int64_t bytes,
                    const char *name, zero_rt_stream *stream);
  /// Takes back what `allocate` has returned. Earlier work on |stream| is the
  /// last that uses the memory.
  void (*release)(void *context, void *data, zero_rt_stream *stream);
} zero_rt_allocator;

typedef struct zero_rt_options {
  uint32_t struct_size;
  /// The number of threads that run a kernel on this rank, the caller's thread
  /// included. 0 means 1.
  int32_t threads;
  /// The time that a collective waits for the other ranks. 0 means 60 000.
  int64_t timeout_ms;
  /// Non-zero: fills on-demand buffers with a signalling pattern when they are
  /// allocated, so that a read before the first write becomes visible.
  int32_t poison;
  /// Non-zero: checks the preconditions that a plan lists, as far as the
  /// runtime can see them:
  ///
  /// - Each apply and each discard compares which of the two calls the ranks
  ///   make.
  /// - apply also compares its inputs, the state of which every rank has all
  ///   elements, and the gradients that several ranks must deliver alike.
  /// - A gradient that waits for its bucket must stay unchanged.
  /// - The first begin_backward of a step compares the parameters with the
  ///   master weights of this rank: a write to a view must have been declared
  ///   (zero_rt_step_parameters_changed). Only a rank that finds a difference
  ///   returns the error, and may then make that call and begin again.
  ///
  /// A violation returns mismatch or protocol, and the message names it. The
  /// checks read that state and exchange a message in each step; on a GPU they
  /// wait for the GPU. All ranks must have the same value of this option, and
  /// must give the same hints.
  int32_t check_promises;
  /// Non-zero: checks each gradient on arrival. If a gradient that is not
  /// finite makes the ranks skip or refuse the step, zero_rt_message() after
  /// results names the parameter, the rank and the backward pass. The check
  /// reads every gradient; on a GPU it waits for the GPU. All ranks must have
  /// the same value of this option.
  int32_t find_nonfinite;
  /// The number of the device for a caller of version 15. A later caller leaves
  /// it 0, and sets |device|.
  int32_t device_number;
  int32_t ordinal; // which device of its kind, such as the GPU in the driver
  /// Non-zero: on a GPU, apply launches its kernels and copies as graphs.
  /// Work of other ranks or of the CPU divides them into several graphs. The
  /// results have the same bits. Ranks may have different values of this
  /// option.
  int32_t graphs;
  /// Null, or a communicator that the caller lends until zero_rt_destroy. The
  /// collectives of all ranks then use it instead of a communicator of the
  /// runtime:
  ///
  /// - The communicator is ready.
  /// - It has the ranks of the process group, which are processes, with the
  ///   same numbers and devices.
  /// - All ranks lend a communicator, or none does.
  /// - All ranks make the calls of steps and the caller's own operations on the
  ///   communicator in one order.
  ///
  /// If the communicator is blocking, calls of steps may block.
  void *communicator;
  /// The runtime calls this function at most once, on any thread, if the
  /// communicator must be given up because a rank failed or did not come. The
  /// function must end all operations in progress on |communicator|; otherwise
  /// devices wait for ever. Null: the runtime ends the communicator, which
  /// destroys it.
  void (*give_up)(void *communicator);
  /// Since version 16. The name of the device that holds the memory of this
  /// rank and runs its kernels. Null: "host", the CPU. For the others see
  /// runtime/device/README.md; device.h registers more. A step must have code
  /// for the device (zero-compile --target). Calls may queue their work, and
  /// the device does it in the order of the calls.
  const char *device;
  /// Since version 16. The kind of |communicator|, a name that the device
  /// knows. Null: the only kind that the device knows.
  const char *communicator_name;
  /// Since version 16. A folder in which this rank writes a trace of all calls,
  /// rank-N.json, in the format of Chrome's tracing, which Perfetto reads.
  /// Null: no trace, at no cost. The folder is created if its parent exists.
  /// zero_rt_destroy writes the end of the file, and returns invalid_argument
  /// if not all of it could be written.
  const char *trace;
  /// Since version 16. Non-zero: each call is a range of NVTX, with the name of
  /// its buffer or parameter, which Nsight Systems shows. Needs
  /// libnvtx3interop.so.1 (CUDA 13) or libnvToolsExt.so.1 (older ones); without
  /// both zero_rt_create returns unsupported. On a GPU the ranges are those of
  /// the calls, and the profiler finds the kernels that were launched in them.
  int32_t nvtx;
  int32_t reserved;
  /// Since version 16. Null, or where buffers of steps are allocated first. The
  /// struct is copied, and |context| lives until zero_rt_destroy. Processes of
  /// one machine send what is in such memory as messages, because they cannot
  /// read it.
  const zero_rt_allocator *allocator;
} zero_rt_options;

/// The allocations, launches and traffic of this rank since its creation. The
/// numbers are counted in the allocator and in the copy loops, and never
/// derived from a plan.
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
  /// Bytes that this rank sent to others, counted as the traffic of a ring:
  /// (D-1)/D of the buffer for a reduce-scatter or an all-gather, and twice
  /// that for an all-reduce (rounded down once per call).
  int64_t bytes_sent;
  int64_t bytes_copied_between_spaces;
  int64_t activations_sent; // and gradients of activations
  int64_t activation_headers_sent;
  int64_t activation_bytes_sent; // without headers
  /// Since version 16. The number of ranks that are other processes, and whose
  /// memory this rank reads in collectives in place of messages. Known once a
  /// step exists. See transport.h.
  int64_t shared_ranks;
} zero_rt_counters;

//===----------------------------------------------------------------------===//
// Process groups and runtimes
//===----------------------------------------------------------------------===//

/// Creates a process group of |ranks| threads of this process. Each of these
/// threads calls zero_rt_create with its own rank. Errors: invalid_argument
/// (ranks < 1 or > 4096). Ownership: the caller destroys the process group
/// after all its runtimes. Equivalent to: MPI_Comm_split_type, ncclCommInitAll.
zero_rt_status zero_rt_local_group_create(int32_t ranks,
                                          zero_rt_group **out_group);
zero_rt_status zero_rt_group_destroy(zero_rt_group *group);

/// Creates the runtime of |rank| in |group|. |options| may be null. The call is
/// not collective. Errors: invalid_argument (rank out of range or already
/// taken). Ownership: the caller destroys the runtime after its steps.
zero_rt_status zero_rt_create(zero_rt_group *group, int32_t rank,
                              const zero_rt_options *options,
                              zero_rt_runtime **out_runtime);
zero_rt_status zero_rt_destroy(zero_rt_runtime *runtime);

/// Copies the counters of |runtime|. Set out_counters->struct_size first.
zero_rt_status zero_rt_read_counters(zero_rt_runtime *runtime,
                                     zero_rt_counters *out_counters);

/// Blocks the calling thread until |timepoint| has passed.
zero_rt_status zero_rt_wait(zero_rt_runtime *runtime,
                            zero_rt_timepoint timepoint);

/// Asks whether |timepoint| has passed: |out_passed| gets 1 or 0. Waits for
/// nothing. The release of a gradient whose bucket is not open yet has not
/// passed. Since version 16.
zero_rt_status zero_rt_has_passed(zero_rt_runtime *runtime,
                                  zero_rt_timepoint timepoint,
                                  int32_t *out_passed);

/// Makes later work on |stream| wait until |timepoint| has passed. The calling
/// thread does not wait. Equivalent to: cuStreamWaitEvent.
zero_rt_status zero_rt_stream_wait(zero_rt_runtime *runtime,
                                   zero_rt_stream *stream,
                                   zero_rt_timepoint timepoint);

/// Allocates and releases memory of the device of |runtime|, for callers
/// without an allocator of their own. The memory is aligned to 64 bytes, its
/// contents are unspecified, and counters do not count it. Errors:
/// out_of_memory; for zero_rt_release invalid_argument (|data| is not from
/// zero_rt_allocate of |runtime|, or was released before). Ownership: the
/// caller releases the memory before it destroys the runtime, and after the
/// work of its own streams on the memory. Queued work of steps may still use
/// the memory. Equivalent to: cudaMalloc, cudaFree.
zero_rt_status zero_rt_allocate(zero_rt_runtime *runtime, int64_t bytes,
                                void **out_data);
zero_rt_status zero_rt_release(zero_rt_runtime *runtime, void *data);

/// Copies between memory of the device and of the host, in any combination, and
/// waits until the copy is done. The copy follows the work of all earlier calls
/// of the runtime and the work on the default stream.
zero_rt_status zero_rt_copy(zero_rt_runtime *runtime, void *dst,
                            const void *src, int64_t bytes);

//===----------------------------------------------------------------------===//
// Results and state of a step
//===----------------------------------------------------------------------===//

/// The outcome of the last apply: applied, skipped or refused, and the reason.
typedef enum zero_rt_verdict {
  ZERO_RT_APPLIED = 0,
  ZERO_RT_SKIPPED_NONFINITE = 1,
  ZERO_RT_REFUSED_MISSING_GRADIENT = 2,
  ZERO_RT_REFUSED_UNEQUAL_BACKWARDS = 3,
  ZERO_RT_REFUSED_NONFINITE = 4,
  ZERO_RT_REFUSED_NO_TOKENS = 5, // gradients would be divided by 0
  /// An input of apply that updates depend on, such as a learning rate, is nan
  /// or infinite on some rank, or is not the same on all ranks. An input that
  /// is only reported may be nan or infinite. If gradients are missing or the
  /// numbers of backward passes are unequal as well, the outcome is that one,
  /// and the message names both causes.
  ZERO_RT_REFUSED_INPUT = 6
} zero_rt_verdict;

/// The results of the last measure or apply. |values| are the operands of
/// zero.return, in order. Generated headers name their indices. A skipped or
/// refused step has them, too: the norm of gradients that are not finite is not
/// finite. Of a step that is refused for its number of tokens, values are
/// divided by this number all the same, a norm after its root was taken: it is
/// 0 if the number is infinite, infinite or nan if the number is 0, and it may
/// be negative if the number is. Of a step that is refused for another input,
/// values that depend on this input say nothing. The norm of no elements is 0.
/// Ownership: |values| belong to the step, and are valid until its next measure
/// or apply, or its destruction.
typedef struct zero_rt_results {
  uint32_t struct_size;
  int32_t verdict;   // zero_rt_verdict, the outcome; the same on all ranks
  int64_t backwards; // backward passes since the previous apply
  int32_t num_values;
  int32_t reserved;
  const double *values; // num_values of them
} zero_rt_results;

/// One piece of state on this rank. It is a scalar of the optimizer (parameter
/// -1), or, for one role, elements [begin, end) of the part of a parameter that
/// this rank holds, in row-major order.
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
