//===- LibraryBuilder.h - A compiled step, written by hand ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Owns the tables of a zero_rt_library, so that a test can say what it needs
// and break what it wants.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_RUNTIME_LIBRARYBUILDER_H
#define ZERO_TEST_UNIT_RUNTIME_LIBRARYBUILDER_H

#include "zero_rt/library.h"

#include <cstring>
#include <string>
#include <vector>

namespace zero_rt::test {

inline int64_t bitsOf(double value) {
  int64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// A buffer of a library; most tests need the first few fields only.
struct BufferSpec {
  const char *name;
  int32_t dtype;
  int64_t elements;
  bool sharded = false;
  int32_t role = ZERO_RT_ROLE_GRADIENT;
  int32_t space = ZERO_RT_SPACE_DEVICE;
  bool onDemand = false;
  double fill = 0;
};

class LibraryBuilder {
public:
  explicit LibraryBuilder(int64_t ranks) : ranks(ranks) {
    axes.push_back({addText("dp"), ranks});
  }

  /// The add functions return the index of the new row.
  int32_t addBuffer(const BufferSpec &spec);
  int32_t addSlot(const char *name, double initial = 0);
  int32_t addKernel(zero_rt_kernel_fn kernel);
  int32_t addTable(const std::vector<zero_rt_segment_row> &rows);
  int32_t addState(const char *role, int64_t bucket, int64_t index);
  int32_t addProtocolState(const char *name);
  void addTransition(int64_t state, int64_t event, int64_t next,
                     const std::vector<zero_rt_handler_fn> &run = {});
  int64_t addText(const char *text);

  /// A view of the tables, valid until the builder changes.
  const zero_rt_library &get();

  // Open to tests that change single fields.
  int64_t ranks;
  uint64_t planHash = 0x1234;
  const char *cpuFeatures = "";
  const char *name = "train";
  std::string strings;
  /// One axis of all ranks, as the only set, until a test says otherwise.
  std::vector<zero_rt_axis_row> axes;
  std::vector<int64_t> axisSets{1};
  std::vector<int64_t> axisSetStages; // as many zeros as are missing
  std::vector<zero_rt_parameter_row> parameters;
  std::vector<zero_rt_bucket_row> buckets;
  std::vector<zero_rt_buffer_row> buffers;
  std::vector<zero_rt_segment_row> segments;
  std::vector<zero_rt_table_row> tables;
  std::vector<zero_rt_state_row> states;
  std::vector<zero_rt_slot_row> slots;
  int64_t lossScale = -1;
  std::vector<zero_rt_input_row> inputs;
  std::vector<zero_rt_result_row> results;
  std::vector<zero_rt_kernel_fn> kernels;
  std::vector<zero_rt_scalar_fn> scalarPrograms;
  std::vector<zero_rt_handler_fn> handlers;
  zero_rt_make_calls_fn makeCalls = nullptr; // handlers are functions
  std::vector<zero_rt_handler_row> handlerCalls;
  std::vector<int64_t> callWords;
  std::vector<int64_t> protocolStates;
  std::vector<zero_rt_transition_row> transitions;
  std::vector<zero_rt_sequence_row> sequences;
  std::vector<zero_rt_sequence_entry> sequenceEntries;
  std::vector<zero_rt_stream_event_row> streamEvents;
  std::vector<int64_t> eventLists;
  std::vector<int64_t> transitionHandlers;
  std::vector<zero_rt_activation_row> activations;
  std::vector<zero_rt_executable> executables;
  std::vector<zero_rt_dimension_row> dimensions; // none: no shapes
  std::vector<int64_t> dimensionEnds;
  std::vector<zero_rt_accumulator_row> accumulators; // none: null
  int64_t batchRanks = 0;                            // 0: not known
  int64_t stageAxes = 0;
  std::vector<const zero_rt_library *> stages;

private:
  zero_rt_library library = {};
};

} // namespace zero_rt::test

#endif // ZERO_TEST_UNIT_RUNTIME_LIBRARYBUILDER_H
