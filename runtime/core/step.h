//===- step.h - One compiled step on one rank -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_STEP_H
#define ZERO_RT_CORE_STEP_H

#include "core/activations.h"
#include "core/backwards.h"
#include "core/library_index.h"
#include "core/localize.h"
#include "core/memory.h"
#include "core/nonfinite.h"
#include "core/runtime.h"
#include "core/sequence.h"
#include "core/window.h"

#include <string>
#include <vector>

namespace zero_rt {

/// Elements [begin, end) of a parameter in |buffer|; or slot |buffer| if the
/// parameter is -1.
struct StateEntry {
  const char *role;
  int32_t parameter;
  int32_t buffer;
  int64_t begin;
  int64_t end;
};

/// What state_write and bind_parameter wrote of a parameter since the last
/// backward began.
struct WrittenState {
  bool parameter = false;
  bool master = false;
  /// The master weights was written, and other ranks have slices of it.
  bool isStale = false;
};

/// The ranks that this one meets over a set of axes.
struct RankGroup {
  std::vector<int32_t> members;
  int32_t rank = 0; // of this one among them
  /// Null for the group of all ranks, whose end the runtime has. Sets that
  /// differ in axes of one rank only share theirs.
  std::shared_ptr<Communicator> end;

  int32_t size() const { return int32_t(members.size()); }
};

/// An event of the schedule, as it was recorded last.
struct StreamEvent {
  Signal signal = nullptr;
  bool isRecorded = false;
  uint32_t followers = 0; // streams that were told to wait for it, a bit each
};

/// What the last apply left for `results`.
struct Committed {
  bool applied = false;   // there was an apply
  bool committed = false; // and it closed its books
  bool resolved = false;  // and what follows is known
  zero_rt_results results = {};
  std::vector<double> values; // of the results
  zero_rt_status refusal = ZERO_RT_OK;
  std::string message;

  uint64_t turn = 0; // how often a step was committed
  int32_t verdictSlot = 0;
  zero_rt_timepoint timepoint = 0; // when |slots| are there
  double *slots = nullptr;         // a copy on the host
};

struct Step {
  /// |library| is that of this rank's stage, and part of |whole|.
  Step(Runtime &runtime, const zero_rt_library &whole,
       const zero_rt_library &library);
  ~Step();
  Step(const Step &) = delete;
  Step &operator=(const Step &) = delete;

  zero_rt_step *handle = nullptr; // null until it is given out
  Runtime *runtime;
  const zero_rt_library *library;
  const zero_rt_library *whole; // lists those of other stages
  uint64_t id = 0;              // the same on all ranks
  /// Why only destroy is left; empty while all is well. Fixed, so that
  /// poisoning never allocates.
  char poisonedBy[512] = "";

  std::vector<RankGroup> groups; // as in library->axis_sets
  LibraryIndex index;
  std::vector<Block> buffers;      // as in library->buffers
  std::vector<StreamEvent> events; // as in library->stream_events
  Signal slotsWritten = nullptr;
  Block slotBlock;
  std::vector<StateEntry> entries;
  std::vector<WrittenState> written; // by parameter; empty: nothing was

  int64_t state = 0; // of the protocol
  Window window;
  SequenceState sequence;
  NamedBackwards backwards;
  ActivationState activations;
  /// Of what arrived since the last apply, by parameter; 0: nothing did. Empty
  /// unless preconditions are checked.
  std::vector<uint64_t> gradientDigests;
  NonfiniteGradients nonfinite; // none unless they are looked for
  std::vector<double> inputs;   // of the last apply
  Committed last;

  std::unique_ptr<Program> program;
  std::vector<void *> operands; // scratch of `launch`

  Device &device() const { return *runtime->device; }
  /// Where slots are in the memory of the device. What is queued from now on
  /// may read and write them.
  zero_rt_status getSlots(double **out);
  const char *text(int64_t name) const { return library->strings + name; }
  const char *parameterName(int64_t parameter) const {
    return text(library->parameters[parameter].name);
  }
  const char *bufferName(int64_t buffer) const {
    return text(library->buffers[buffer].name);
  }
  const char *stateName() const {
    return text(library->protocol_states[state]);
  }
  /// What this rank owns of |elements| that are divided over |axes|.
  Range owned(int64_t elements, int64_t axes) const {
    const RankGroup &group = groups[size_t(axes)];
    return ownedSlice(elements, group.rank, group.size());
  }
  /// What this rank holds of a buffer, in bucket coordinates. The first element
  /// of this range is the first in memory.
  Range held(int64_t buffer) const {
    const zero_rt_buffer_row &row = library->buffers[buffer];
    if (row.owners < 0)
      return {0, row.elements};
    return owned(row.elements, row.owners);
  }
  /// How many ranks differ over an axis set.
  int32_t groupSize(int64_t axes) const { return groups[size_t(axes)].size(); }
  /// The address of element |element| (in bucket coordinates) of an allocated
  /// buffer; it need not be held, as long as nobody goes there.
  void *address(int64_t buffer, int64_t element) const;

  /// Runs |body|, which queues to |stream|.
  template <typename Body>
  zero_rt_status on(int32_t stream, const char *call, Body &&body) {
    ZERO_RT_TRY(checkStream(stream, call));
    device().select(Stream(stream));
    zero_rt_status status = guarded(call, body);
    device().select(Stream::Compute);
    return status;
  }
  zero_rt_status checkStream(int32_t stream, const char *call) const;
  /// What is queued to |stream| from now on comes after |event|.
  zero_rt_status wait(int64_t event, Stream stream);
  /// What is queued to the compute stream from now on may write gradients of
  /// |bucket|.
  zero_rt_status waitWritable(int64_t bucket);
  /// What comes to |stream|, of the caller, from now on may read parameters of
  /// |bucket|.
  zero_rt_status lendParameters(int64_t bucket, zero_rt_stream *stream);
  /// Writes what the host has for slots; |stream| comes after that.
  zero_rt_status writeSlotsBefore(Stream stream);
  /// What is queued to the compute stream from now on comes after everything.
  zero_rt_status waitForAll();

  zero_rt_status allocate(int64_t buffer);
  /// Fills |elements| elements with the signalling pattern of |dtype|.
  zero_rt_status poison(int64_t dtype, void *data, int64_t elements);
  /// Runs and counts.
  zero_rt_status launch(const Launch &launch);
};

/// Checks a parameter index of the caller's.
zero_rt_status checkParameter(const Step &step, int32_t parameter);

/// Checks a tensor that stands for |elements| elements of |dtype|. |what| is
/// "gradient of 'w'".
zero_rt_status checkTensor(const zero_rt_tensor *tensor, const char *what,
                           const char *name, int64_t dtype, int64_t elements);

/// Checks a buffer index that generated code passed to |call|, and that the
/// buffer is allocated.
zero_rt_status checkBuffer(const Step &step, const char *call, int32_t buffer);

/// Checks an axis set that generated code passed to |call|.
zero_rt_status checkAxes(const Step &step, const char *call, int32_t axes);

/// Checks scalar slots [first, first + count) that generated code passed.
zero_rt_status checkSlots(const Step &step, const char *call, int64_t first,
                          int64_t count);

} // namespace zero_rt

#endif // ZERO_RT_CORE_STEP_H
