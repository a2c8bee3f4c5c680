//===- library_check.cpp - Checks of the tables of a library --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime trusts the computation of a compiled step, but not its tables: a
// library of another version or a damaged library is an error, not a crash.
//
//===----------------------------------------------------------------------===//

#include "core/library_index.h"

#include "core/executables.h"
#include "core/numeric.h"
#include "core/shape_check.h"
#include "core/status.h"
#include "core/units.h"

#include <algorithm>

using namespace zero_rt;

/// More than any machine has. With this limit sums and byte sizes do not
/// overflow.
static constexpr int64_t maxElements = int64_t(1) << 48;

namespace {

/// Checks one library. |table| and |row| are the place, for the message.
class Checker {
public:
  Checker(const zero_rt_library &library, bool isStage)
      : library(library), isStage(isStage) {}
  zero_rt_status check();

private:
  zero_rt_status counts();
  zero_rt_status axes();
  zero_rt_status parameters();
  zero_rt_status buckets();
  zero_rt_status buffers();
  zero_rt_status segments();
  zero_rt_status slots();
  zero_rt_status states();
  zero_rt_status accumulators();
  zero_rt_status code();
  zero_rt_status activations();
  zero_rt_status protocol();

  zero_rt_status expect(bool holds, const char *what) const;
  bool isBufferOf(int64_t buffer, int64_t bucket) const;
  bool isLastingBufferOf(int64_t buffer, int64_t bucket) const;
  bool mayShare(const zero_rt_buffer_row &buffer) const;
  int64_t ranksOf(int64_t axes) const;

  const zero_rt_library &library;
  bool isStage;
  const char *table = "library";
  int64_t row = 0;
};

} // namespace

zero_rt_status Checker::expect(bool holds, const char *what) const {
  if (holds)
    return ZERO_RT_OK;
  return fail(ZERO_RT_INTERNAL, "library '%s' is corrupt: %s %lld: %s",
              library.name, table, (long long)row, what);
}

/// Whether |buffer| spans all of |bucket| and has the lifetime of the step.
bool Checker::isBufferOf(int64_t buffer, int64_t bucket) const {
  return inRange(buffer, library.num_buffers) &&
         library.buffers[buffer].elements == library.buckets[bucket].elements;
}

bool Checker::isLastingBufferOf(int64_t buffer, int64_t bucket) const {
  return isBufferOf(buffer, bucket) && !library.buffers[buffer].on_demand;
}

bool Checker::mayShare(const zero_rt_buffer_row &buffer) const {
  if (!inRange(buffer.shares, library.num_buffers))
    return false;
  const zero_rt_buffer_row &owner = library.buffers[buffer.shares];
  auto isWhole = [](const zero_rt_buffer_row &b) { return b.owners < 0; };
  return owner.shares == -1 && isDtype(owner.dtype) && !owner.on_demand &&
         isWhole(owner) && isWhole(buffer) && owner.space == buffer.space &&
         inRange(owner.elements, maxElements + 1) &&
         buffer.elements * elementSize(buffer.dtype) <=
             owner.elements * elementSize(owner.dtype);
}

zero_rt_status Checker::counts() {
  ZERO_RT_TRY(expect(library.strings, "no strings"));
  struct {
    int64_t count;
    const void *data;
    const char *name;
  } tables[] = {
      {library.num_axes, library.axes, "axes"},
      {library.num_axis_sets, library.axis_sets, "axis sets"},
      {library.num_parameters, library.parameters, "parameters"},
      {library.num_buckets, library.buckets, "buckets"},
      {library.num_buffers, library.buffers, "buffers"},
      {library.num_segments, library.segments, "segments"},
      {library.num_tables, library.tables, "tables"},
      {library.num_states, library.states, "states"},
      {library.num_slots, library.slots, "slots"},
      {library.num_inputs, library.inputs, "inputs"},
      {library.num_results, library.results, "results"},
      {library.num_kernels, library.kernels, "kernels"},
      {library.num_scalar_programs, library.scalar_programs, "scalar programs"},
      {library.num_handlers,
       library.make_calls ? (const void *)library.handler_calls
                          : (const void *)library.handlers,
       "handlers"},
      {library.num_call_words, library.call_words, "calls of handlers"},
      {library.num_protocol_states, library.protocol_states, "states"},
      {library.num_transitions, library.transitions, "transitions"},
      {library.num_sequences, library.sequences, "sequences"},
      {library.num_sequence_entries, library.sequence_entries, "sequences"},
      {library.num_activations, library.activations, "activations"},
  };
  for (const auto &entry : tables) {
    table = entry.name;
    ZERO_RT_TRY(expect(entry.count >= 0 && entry.count < INT32_MAX,
                       "count is out of range"));
    ZERO_RT_TRY(expect(entry.count == 0 || entry.data, "table is null"));
  }
  table = "library";
  return expect(library.num_protocol_states > 0, "no protocol state");
}

zero_rt_status Checker::axes() {
  table = "axis";
  ZERO_RT_TRY(expect(library.num_axes <= 62, "more than 62 axes"));
  int64_t ranks = 1;
  for (row = 0; row < library.num_axes; ++row) {
    int64_t size = library.axes[row].size;
    ZERO_RT_TRY(expect(library.axes[row].name >= 0, "bad name"));
    ZERO_RT_TRY(expect(size >= 1 && size <= library.ranks / ranks,
                       "size does not divide the number of ranks"));
    ranks *= size;
  }
  row = 0;
  ZERO_RT_TRY(expect(ranks == library.ranks,
                     "product of sizes is not the number of ranks"));
  table = "axis set";
  ZERO_RT_TRY(expect(library.num_axis_sets == 0 || library.axis_set_stages,
                     "no stages"));
  for (row = 0; row < library.num_axis_sets; ++row) {
    int64_t set = library.axis_sets[row];
    ZERO_RT_TRY(
        expect(set > 0 && set < int64_t(1) << library.num_axes, "bad axes"));
    ZERO_RT_TRY(
        expect(library.axis_set_stages[row] == 0 || isStage, "bad stages"));
  }
  return ZERO_RT_OK;
}

/// The number of ranks that differ over a set of axes.
int64_t Checker::ranksOf(int64_t axes) const {
  int64_t ranks = 1;
  for (int64_t a = 0; a < library.num_axes; ++a)
    ranks *= axes >> a & 1 ? library.axes[a].size : 1;
  return ranks;
}

zero_rt_status Checker::parameters() {
  table = "parameter";
  for (row = 0; row < library.num_parameters; ++row) {
    const zero_rt_parameter_row &p = library.parameters[row];
    ZERO_RT_TRY(expect(p.name >= 0, "bad name"));
    ZERO_RT_TRY(
        expect(isDtype(p.dtype) && isDtype(p.gradient_dtype), "bad dtype"));
    ZERO_RT_TRY(expect(inRange(p.uses, INT32_MAX), "bad number of uses"));
    if (p.bucket == -1 && isStage)
      continue;
    ZERO_RT_TRY(expect(inRange(p.bucket, library.num_buckets), "bad bucket"));
    ZERO_RT_TRY(expect(p.elements >= 0 && p.extent >= p.elements &&
                           p.extent <= maxElements,
                       "bad extent"));
    int64_t space = library.buckets[p.bucket].elements - p.extent;
    ZERO_RT_TRY(
        expect(p.offset >= 0 && p.offset <= space, "does not fit its bucket"));
    int64_t buffer = library.buckets[p.bucket].parameter_buffer;
    ZERO_RT_TRY(expect(library.buffers[buffer].dtype == p.dtype,
                       "dtype differs from its bucket's"));
  }
  return ZERO_RT_OK;
}

zero_rt_status Checker::buckets() {
  table = "bucket";
  for (row = 0; row < library.num_buckets; ++row) {
    const zero_rt_bucket_row &b = library.buckets[row];
    ZERO_RT_TRY(expect(b.name >= 0, "bad name"));
    ZERO_RT_TRY(
        expect(b.elements >= 0 && b.elements <= maxElements, "bad size"));
    ZERO_RT_TRY(expect(inRange(b.gradient_buffer, library.num_buffers),
                       "bad gradient buffer"));
    const zero_rt_buffer_row &gradient = library.buffers[b.gradient_buffer];
    ZERO_RT_TRY(expect(gradient.elements == b.elements && gradient.owners < 0,
                       "gradient buffer is not the full bucket"));
    ZERO_RT_TRY(expect(isLastingBufferOf(b.parameter_buffer, row) &&
                           (library.buffers[b.parameter_buffer].owners < 0 ||
                            isSharded(library, row)),
                       "bad parameter buffer"));
    ZERO_RT_TRY(
        expect(b.master_buffer == -1 || isLastingBufferOf(b.master_buffer, row),
               "bad master buffer"));
    ZERO_RT_TRY(expect(b.staging_buffer == -1 ||
                           (isLastingBufferOf(b.staging_buffer, row) &&
                            library.buffers[b.staging_buffer].dtype ==
                                library.buffers[b.parameter_buffer].dtype),
                       "bad staging buffer"));
    for (int64_t axes : {b.rows, b.replicated})
      ZERO_RT_TRY(expect(axes == -1 || inRange(axes, library.num_axis_sets),
                         "bad axes"));
    ZERO_RT_TRY(expect(inRange(b.store_kernel, library.num_kernels) &&
                           inRange(b.add_kernel, library.num_kernels),
                       "bad store or add kernel"));
  }
  return ZERO_RT_OK;
}

zero_rt_status Checker::buffers() {
  table = "buffer";
  for (row = 0; row < library.num_buffers; ++row) {
    const zero_rt_buffer_row &b = library.buffers[row];
    ZERO_RT_TRY(expect(b.name >= 0, "bad name"));
    ZERO_RT_TRY(expect(inRange(b.role, ZERO_RT_ROLE_COUNT), "bad role"));
    ZERO_RT_TRY(expect(inRange(b.space, 2), "bad space"));
    ZERO_RT_TRY(expect(isDtype(b.dtype), "bad dtype"));
    ZERO_RT_TRY(
        expect(b.elements >= 0 && b.elements <= maxElements, "bad size"));
    ZERO_RT_TRY(
        expect(b.owners == -1 || inRange(b.owners, library.num_axis_sets),
               "bad axes"));
    ZERO_RT_TRY(
        expect(b.owners == -1 ||
                   b.elements % ranksOf(library.axis_sets[b.owners]) == 0,
               "elements are not a multiple of the number of owners"));
    ZERO_RT_TRY(expect(b.shares == -1 || mayShare(b), "bad memory"));
  }
  return ZERO_RT_OK;
}

zero_rt_status Checker::segments() {
  table = "segment";
  for (row = 0; row < library.num_segments; ++row) {
    const zero_rt_segment_row &s = library.segments[row];
    ZERO_RT_TRY(expect(s.begin >= 0 && s.begin <= s.end, "bad interval"));
    ZERO_RT_TRY(expect(s.scalars == -1 || inRange(s.scalars, library.num_slots),
                       "bad scalar slot"));
  }
  table = "segment table";
  for (row = 0; row < library.num_tables; ++row) {
    const zero_rt_table_row &t = library.tables[row];
    ZERO_RT_TRY(expect(t.first >= 0 && t.count >= 0 &&
                           t.count <= library.num_segments &&
                           t.first <= library.num_segments - t.count,
                       "segments are out of range"));
  }
  return ZERO_RT_OK;
}

zero_rt_status Checker::slots() {
  table = "slot";
  for (row = 0; row < library.num_slots; ++row)
    ZERO_RT_TRY(expect(library.slots[row].name >= 0, "bad name"));
  table = "input";
  for (row = 0; row < library.num_inputs; ++row)
    ZERO_RT_TRY(
        expect(inRange(library.inputs[row].slot, library.num_slots) &&
                   (library.inputs[row].over == -1 ||
                    inRange(library.inputs[row].over, library.num_axis_sets)) &&
                   library.inputs[row].check >= ZERO_RT_INPUT_FREE &&
                   library.inputs[row].check <= ZERO_RT_INPUT_POSITIVE &&
                   library.inputs[row].name >= 0,
               "bad scalar slot, axes, check or name"));
  table = "input";
  for (row = 0; library.input_names && row < library.num_inputs; ++row)
    ZERO_RT_TRY(expect(library.input_names[row] >= 0, "bad name"));
  table = "update";
  row = 0;
  ZERO_RT_TRY(expect(library.num_input_sets >= 0 &&
                         library.num_input_sets < INT32_MAX &&
                         (library.num_input_sets == 0 ||
                          (library.input_sets && library.parameter_inputs)),
                     "bad sets of inputs"));
  for (; library.num_input_sets > 0 && row < library.num_parameters; ++row)
    ZERO_RT_TRY(
        expect(inRange(library.parameter_inputs[row], library.num_input_sets),
               "bad set of inputs"));
  table = "result";
  for (row = 0; row < library.num_results; ++row)
    ZERO_RT_TRY(expect(inRange(library.results[row].slot, library.num_slots) &&
                           library.results[row].name >= 0,
                       "bad scalar slot or name"));
  table = "loss scale";
  row = 0;
  return expect(library.loss_scale == -1 ||
                    inRange(library.loss_scale, library.num_slots),
                "bad scalar slot");
}

zero_rt_status Checker::accumulators() {
  table = "accumulator";
  auto areAxes = [&](int64_t set) {
    return set >= 0 && set >> library.num_axes == 0;
  };
  for (row = 0; library.accumulators && row < library.num_buckets; ++row) {
    const zero_rt_accumulator_row &a = library.accumulators[row];
    ZERO_RT_TRY(expect(isBufferOf(a.buffer, row), "bad buffer"));
    ZERO_RT_TRY(
        expect(library.buffers[a.buffer].shares == -1, "the buffer is shared"));
    ZERO_RT_TRY(expect(areAxes(a.partial) && areAxes(a.arrives) &&
                           !(a.partial & ~a.arrives),
                       "bad axes"));
    ZERO_RT_TRY(expect(a.numerator >= 0 && a.denominator >= 0 &&
                           (a.numerator == 0) == (a.denominator == 0),
                       "bad factor"));
  }
  return expect(library.batch_ranks >= 0 &&
                    library.batch_ranks <= library.ranks,
                "bad number of ranks with batches");
}

zero_rt_status Checker::states() {
  table = "state";
  for (row = 0; row < library.num_states; ++row) {
    const zero_rt_state_row &s = library.states[row];
    ZERO_RT_TRY(expect(s.role >= 0, "bad role"));
    if (s.bucket == -1) {
      ZERO_RT_TRY(
          expect(inRange(s.index, library.num_slots), "bad scalar slot"));
      continue;
    }
    ZERO_RT_TRY(expect(inRange(s.bucket, library.num_buckets), "bad bucket"));
    ZERO_RT_TRY(expect(isLastingBufferOf(s.index, s.bucket), "bad buffer"));
  }
  return ZERO_RT_OK;
}

zero_rt_status Checker::code() {
  table = "kernel";
  for (row = 0; row < library.num_kernels; ++row)
    ZERO_RT_TRY(expect(library.kernels[row], "is null"));
  table = "scalar program";
  for (row = 0; row < library.num_scalar_programs; ++row)
    ZERO_RT_TRY(expect(library.scalar_programs[row], "is null"));
  table = "handler";
  for (row = 0; row < library.num_handlers; ++row) {
    if (!library.make_calls) {
      ZERO_RT_TRY(expect(library.handlers[row], "is null"));
      continue;
    }
    const zero_rt_handler_row &h = library.handler_calls[row];
    ZERO_RT_TRY(expect(inRange(h.first, library.num_call_words + 1) &&
                           h.count >= 0 &&
                           h.count <= library.num_call_words - h.first,
                       "bad calls"));
  }
  return ZERO_RT_OK;
}

zero_rt_status Checker::protocol() {
  table = "protocol state";
  for (row = 0; row < library.num_protocol_states; ++row)
    ZERO_RT_TRY(expect(library.protocol_states[row] >= 0, "bad name"));
  table = "sequence";
  for (row = 0; row < library.num_sequences; ++row) {
    const zero_rt_sequence_row &s = library.sequences[row];
    ZERO_RT_TRY(expect(inRange(s.first, library.num_sequence_entries + 1) &&
                           s.count >= 0 &&
                           s.count <= library.num_sequence_entries - s.first,
                       "bad entries"));
    std::vector<bool> listed(size_t(library.num_buckets));
    for (int64_t i = s.first; i < s.first + s.count; ++i) {
      int64_t bucket = library.sequence_entries[i].bucket;
      ZERO_RT_TRY(expect(inRange(bucket, library.num_buckets) &&
                             !listed[size_t(bucket)],
                         "lists a bucket twice, or one that there is not"));
      listed[size_t(bucket)] = true;
    }
    ZERO_RT_TRY(expect(s.count == library.num_buckets, "leaves out a bucket"));
  }
  table = "sequence entry";
  for (row = 0; row < library.num_sequence_entries; ++row) {
    const zero_rt_sequence_entry &e = library.sequence_entries[row];
    ZERO_RT_TRY(expect(inRange(e.bucket, library.num_buckets), "bad bucket"));
    ZERO_RT_TRY(
        expect(inRange(e.handler, library.num_handlers), "bad handler"));
  }
  table = "transition";
  std::vector<bool> seen(
      size_t(library.num_protocol_states * ZERO_RT_EVENT_COUNT));
  for (row = 0; row < library.num_transitions; ++row) {
    const zero_rt_transition_row &t = library.transitions[row];
    ZERO_RT_TRY(expect(inRange(t.state, library.num_protocol_states) &&
                           inRange(t.next, library.num_protocol_states),
                       "bad state"));
    ZERO_RT_TRY(expect(inRange(t.event, ZERO_RT_EVENT_COUNT), "bad event"));
    ZERO_RT_TRY(expect(inRange(t.first, INT32_MAX) &&
                           inRange(t.count, INT32_MAX) &&
                           (t.count == 0 || library.transition_handlers),
                       "bad handlers"));
    for (int64_t i = 0; i < t.count; ++i)
      ZERO_RT_TRY(expect(inRange(library.transition_handlers[t.first + i],
                                 library.num_handlers),
                         "bad handler"));
    ZERO_RT_TRY(
        expect(t.sequence == -1 || inRange(t.sequence, library.num_sequences),
               "bad sequence"));
    size_t key = size_t(t.state * ZERO_RT_EVENT_COUNT + t.event);
    ZERO_RT_TRY(expect(!seen[key], "is listed twice"));
    seen[key] = true;
  }
  return ZERO_RT_OK;
}

zero_rt_status Checker::activations() {
  table = "activation";
  for (row = 0; row < library.num_activations; ++row) {
    const zero_rt_activation_row &a = library.activations[row];
    ZERO_RT_TRY(
        expect(a.name >= 0 && isActivationDtype(a.dtype), "bad name or dtype"));
    ZERO_RT_TRY(expect(inRange(a.axis, library.num_axes), "bad axis"));
    int64_t stages = library.axes[a.axis].size;
    ZERO_RT_TRY(expect(inRange(a.from, stages) && inRange(a.to, stages) &&
                           a.from != a.to,
                       "bad stages"));
    ZERO_RT_TRY(expect(inRange(a.num_dims, 9), "bad number of dimensions"));
    int64_t room = maxElements;
    for (int64_t d = 0; d < a.num_dims; ++d) {
      ZERO_RT_TRY(expect(a.dims[d] == -1 || inRange(a.dims[d], room + 1),
                         "bad extents"));
      room /= std::max<int64_t>(a.dims[d], 1);
    }
  }
  return ZERO_RT_OK;
}

zero_rt_status Checker::check() {
  ZERO_RT_TRY(counts());
  ZERO_RT_TRY(axes());
  ZERO_RT_TRY(buffers());
  ZERO_RT_TRY(checkUnits(library));
  ZERO_RT_TRY(buckets());
  ZERO_RT_TRY(parameters());
  ZERO_RT_TRY(segments());
  ZERO_RT_TRY(slots());
  ZERO_RT_TRY(states());
  ZERO_RT_TRY(accumulators());
  ZERO_RT_TRY(code());
  ZERO_RT_TRY(activations());
  ZERO_RT_TRY(checkSchedule(library));
  ZERO_RT_TRY(checkExecutables(library));
  ZERO_RT_TRY(checkShapes(library));
  return protocol();
}

zero_rt_status zero_rt::checkLibrary(const zero_rt_library &library,
                                     bool isStage) {
  return Checker(library, isStage).check();
}
