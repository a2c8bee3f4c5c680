//===- step.h - One compiled step on one rank -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_STEP_H
#define ZERO_RT_CORE_STEP_H

#include "core/activation_lanes.h"
#include "core/activations.h"
#include "core/arrival_batch.h"
#include "core/backwards.h"
#include "core/library_index.h"
#include "core/library_versions.h"
#include "core/localize.h"
#include "core/memory.h"
#include "core/nonfinite.h"
#include "core/runtime.h"
#include "core/sequence.h"
#include "core/unit_order.h"
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

/// The state of a parameter that state_write and bind_parameter have written
/// since the last backward pass began.
struct WrittenState {
  bool parameter = false;
  bool master = false;
  /// Master weights were written, and other ranks have slices of them.
  bool isStale = false;
};

/// The process group of this rank over a set of axes.
struct RankGroup {
  std::vector<int32_t> members;
  int32_t rank = 0; // the index of this rank in |members|
  /// Null for the process group of all ranks, whose communicator the runtime
  /// has. Sets that differ only in axes of size 1 share one.
  std::shared_ptr<Communicator> end;

  int32_t size() const { return int32_t(members.size()); }
};

/// An event of the schedule, with its last record.
struct StreamEvent {
  Signal signal = nullptr;
  bool isRecorded = false;
  bool isMarked = false;  // a timepoint owns the signal
  uint32_t followers = 0; // a bit for each stream that waits for this record
};

/// The stream `caller` of the handlers that a call runs.
struct CallerStream {
  enum class Delivery : uint8_t {
    None,   // the call has no stream
    Now,    // the call has |stream|
    Earlier // the gradient has waited for its bucket; |delivered| is its record
  };
  Delivery delivery = Delivery::None;
  zero_rt_stream *stream = nullptr;
  Signal *delivered = nullptr; // of null: the event has passed
  bool isLent = false;         // a tensor is given back
  /// Of a handler of a unit: the events for which the caller's stream waits
  /// when it uses the unit. Else null.
  std::vector<int64_t> *unitWaits = nullptr;
  /// When the tensor is given back. 0: to |stream|.
  zero_rt_timepoint release = 0;
};

/// The results of the last measure or apply, for `results`.
struct Committed {
  bool begun = false;     // there was a measure or an apply
  bool committed = false; // and its handlers have run `commit`
  bool resolved = false;  // and `results` has found the reason of a refusal
  zero_rt_results results = {};
  std::vector<double> values; // of |results|
  zero_rt_status refusal = ZERO_RT_OK;
  std::string message;

  uint64_t turn = 0; // the number of commits so far
  int32_t verdictSlot = 0;
  zero_rt_timepoint timepoint = 0; // the step has ended, and |slots| is filled
  double *slots = nullptr;         // a copy on the host
};

struct PendingSave;

struct Step {
  Step(Runtime &runtime, std::unique_ptr<const KnownLibrary> known);
  ~Step();
  Step(const Step &) = delete;
  Step &operator=(const Step &) = delete;

  zero_rt_step *handle = nullptr; // null until create returns it
  Runtime *runtime;
  std::unique_ptr<const KnownLibrary> known;
  const zero_rt_library *whole;   // lists the libraries of all stages
  const zero_rt_library *library; // of this rank's pipeline stage
  uint64_t id = 0;                // the same on all ranks
  /// The error after which only destroy is allowed; empty without an error. The
  /// size is fixed, so that poisoning never allocates.
  char poisonedBy[512] = "";

  std::vector<RankGroup> groups; // as in library->axis_sets
  LibraryIndex index;
  std::vector<Block> buffers;      // as in library->buffers
  std::vector<StreamEvent> events; // as in library->stream_events
  CallerStream caller;             // of the handlers that run
  Signal slotsWritten = nullptr;
  Block slotBlock;
  std::vector<StateEntry> entries;
  std::vector<WrittenState> written; // by parameter; empty: nothing was written
  /// By parameter: whether state_write gave it other values than its master
  /// weights. Kept only if preconditions are checked.
  std::vector<bool> differs;

  int64_t state = 0;       // of the protocol
  bool isMeasured = false; // since `measure`, until apply or discard
  Window window;
  std::vector<UnitState> units;
  UnitOrder unitOrder;
  SequenceState sequence;
  ArrivalBatch batch;
  NamedBackwards backwards;
  ActivationState activations;
  ActivationLanes lanes{*this};
  /// By parameter: a digest of the gradients since the last apply; 0: none has
  /// arrived. Empty unless preconditions are checked.
  std::vector<uint64_t> gradientDigests;
  NonfiniteGradients nonfinite; // empty unless find_nonfinite is set
  std::vector<double> inputs;   // of the last measure or apply
  Committed last;

  std::unique_ptr<PendingSave> pendingSave; // between save_begin and save_end

  std::unique_ptr<Program> program;
  std::vector<void *> operands; // scratch of `launch`

  Device &device() const { return *runtime->device; }
  /// The slots in the memory of the device. Later work may read and write them.
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
  /// The slice that this rank owns of |elements| that are divided over |axes|.
  Range owned(int64_t elements, int64_t axes) const {
    const RankGroup &group = groups[size_t(axes)];
    return ownedSlice(elements, group.rank, group.size());
  }
  /// The part of a buffer that this rank holds, in bucket coordinates. The
  /// first element of this range is the first in memory.
  Range held(int64_t buffer) const {
    const zero_rt_buffer_row &row = library->buffers[buffer];
    if (row.owners < 0)
      return {0, row.elements};
    return owned(row.elements, row.owners);
  }
  /// The number of ranks that differ over an axis set.
  int32_t groupSize(int64_t axes) const { return groups[size_t(axes)].size(); }
  /// The address of element |element| (in bucket coordinates) of an allocated
  /// buffer. Only the address of an element that this rank holds may be
  /// accessed.
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
  /// Later work on |stream| starts after |event|.
  zero_rt_status wait(int64_t event, Stream stream);
  /// Gives the arriving tensor back to the caller, after |event|.
  zero_rt_status giveBack(int64_t event);
  /// Later work on the compute stream may write gradients of |bucket|.
  zero_rt_status waitWritable(int64_t bucket);
  /// Later work on |stream|, a stream of the caller, may read parameters of
  /// |bucket|.
  zero_rt_status lendParameters(int64_t bucket, zero_rt_stream *stream);
  /// Queues the slots that the host has set. Later work on |stream| starts
  /// after that.
  zero_rt_status writeSlotsBefore(Stream stream);
  /// Later work on the compute stream starts after all queued work.
  zero_rt_status waitForAll();

  zero_rt_status allocate(int64_t buffer);
  /// Fills |elements| elements with the signalling pattern of |dtype|.
  zero_rt_status poison(int64_t dtype, void *data, int64_t elements);
  /// Launches and counts.
  zero_rt_status launch(const Launch &launch);
};

/// Checks a parameter index of the caller.
zero_rt_status checkParameter(const Step &step, int32_t parameter);

/// The error that |subject| is on another pipeline stage, whose first rank is
/// |first|.
zero_rt_status failElsewhere(const Step &step, const std::string &subject,
                             int32_t first);

zero_rt_tensor makeTensor(int64_t dtype, int64_t space, int64_t elements,
                          void *data);

/// Checks a tensor that must have |elements| elements of |dtype|. |what| is,
/// for example, "gradient of".
zero_rt_status checkTensor(const zero_rt_tensor &tensor, const char *what,
                           const char *name, int64_t dtype, int64_t elements);

/// Reads a tensor of the caller, and checks it.
zero_rt_status readTensor(const zero_rt_tensor *tensor, const char *what,
                          const char *name, int64_t dtype, int64_t elements,
                          zero_rt_tensor &out);

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
