//===- LibraryBuilder.cpp - A compiled step, written by hand --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LibraryBuilder.h"

using namespace zero_rt::test;

int64_t LibraryBuilder::addText(const char *text) {
  int64_t offset = int64_t(strings.size());
  strings += text;
  strings += '\0';
  return offset;
}

int32_t LibraryBuilder::addBuffer(const BufferSpec &spec) {
  buffers.push_back({addText(spec.name), spec.role, spec.space, spec.dtype,
                     spec.elements, spec.sharded ? 0 : -1, spec.onDemand,
                     bitsOf(spec.fill), /*shares=*/-1});
  return int32_t(buffers.size() - 1);
}

int32_t LibraryBuilder::addSlot(const char *name, double initial) {
  slots.push_back({addText(name), bitsOf(initial)});
  return int32_t(slots.size() - 1);
}

int32_t LibraryBuilder::addKernel(zero_rt_kernel_fn kernel) {
  kernels.push_back(kernel);
  return int32_t(kernels.size() - 1);
}

int32_t LibraryBuilder::addTable(const std::vector<zero_rt_segment_row> &rows) {
  tables.push_back({int64_t(segments.size()), int64_t(rows.size())});
  segments.insert(segments.end(), rows.begin(), rows.end());
  return int32_t(tables.size() - 1);
}

int32_t LibraryBuilder::addState(const char *role, int64_t bucket,
                                 int64_t index) {
  states.push_back({addText(role), bucket, index});
  return int32_t(states.size() - 1);
}

int32_t LibraryBuilder::addProtocolState(const char *name) {
  protocolStates.push_back(addText(name));
  return int32_t(protocolStates.size() - 1);
}

void LibraryBuilder::addTransition(int64_t state, int64_t event, int64_t next,
                                   const std::vector<zero_rt_handler_fn> &run) {
  transitions.push_back({state, event, next, int64_t(transitionHandlers.size()),
                         int64_t(run.size()), /*sequence=*/-1});
  for (zero_rt_handler_fn handler : run) {
    transitionHandlers.push_back(int64_t(handlers.size()));
    handlers.push_back(handler);
  }
}

const zero_rt_library &LibraryBuilder::get() {
  library.struct_size = sizeof(library);
  library.abi_version = ZERO_RT_ABI_VERSION;
  library.plan_hash = planHash;
  library.ranks = ranks;
  library.cpu_features = cpuFeatures;
  library.name = name;
  library.strings = strings.c_str();
#define SET_TABLE(COUNT, FIELD, TABLE)                                         \
  library.COUNT = int64_t(TABLE.size());                                       \
  library.FIELD = TABLE.data();
  SET_TABLE(num_axes, axes, axes);
  SET_TABLE(num_axis_sets, axis_sets, axisSets);
  axisSetStages.resize(axisSets.size());
  library.axis_set_stages = axisSetStages.data();
  SET_TABLE(num_parameters, parameters, parameters)
  SET_TABLE(num_buckets, buckets, buckets)
  SET_TABLE(num_buffers, buffers, buffers)
  SET_TABLE(num_segments, segments, segments)
  SET_TABLE(num_tables, tables, tables)
  SET_TABLE(num_states, states, states)
  SET_TABLE(num_slots, slots, slots)
  SET_TABLE(num_inputs, inputs, inputs)
  SET_TABLE(num_results, results, results)
  SET_TABLE(num_kernels, kernels, kernels)
  SET_TABLE(num_scalar_programs, scalar_programs, scalarPrograms)
  SET_TABLE(num_handlers, handlers, handlers)
  SET_TABLE(num_protocol_states, protocol_states, protocolStates)
  SET_TABLE(num_transitions, transitions, transitions)
  SET_TABLE(num_sequences, sequences, sequences)
  SET_TABLE(num_sequence_entries, sequence_entries, sequenceEntries)
  SET_TABLE(num_stream_events, stream_events, streamEvents)
  SET_TABLE(num_event_lists, event_lists, eventLists)
  SET_TABLE(num_activations, activations, activations)
  SET_TABLE(num_stages, stages, stages)
  SET_TABLE(num_executables, executables, executables)
  SET_TABLE(num_dimensions, dimensions, dimensions)
  SET_TABLE(num_call_words, call_words, callWords)
#undef SET_TABLE
  library.dimension_ends = dimensionEnds.data();
  library.accumulators = accumulators.empty() ? nullptr : accumulators.data();
  library.batch_ranks = batchRanks;
  library.make_calls = makeCalls;
  library.handler_calls = handlerCalls.empty() ? nullptr : handlerCalls.data();
  library.stage_axes = stageAxes;
  library.loss_scale = lossScale;
  library.transition_handlers = transitionHandlers.data();
  return library;
}
