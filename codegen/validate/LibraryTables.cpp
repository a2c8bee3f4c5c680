//===- LibraryTables.cpp - A compiled library in lines of text ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/validate/LibraryTables.h"

#include "codegen/host/AbiNumbers.h"
#include "codegen/validate/LibraryCalls.h"

#include "llvm/ADT/StringExtras.h"

using namespace zero;

namespace {
class Reader {
public:
  explicit Reader(const zero_rt_library &library)
      : library(library), names(library) {}

  std::vector<std::string> read();

private:
  void add(const std::string &row, const Fields &fields) {
    lines.push_back(rowText(row, fields));
  }
  std::string getTargets() const;
  void addPlan();
  void addParameters();
  void addBuckets();
  void addShapes();
  void addUnits();
  void addFrozen();
  void addBuffers();
  void addScalars();
  void addAccumulators();
  void addActivations();
  void addProtocol();
  void addHandlers();

  const zero_rt_library &library;
  LibraryNames names;
  std::vector<std::string> lines;
};
} // namespace

/// The targets of the executables. They are of this version.
std::string Reader::getTargets() const {
  std::vector<std::string> targets;
  for (int64_t i = 0; i < library.num_executables; ++i)
    targets.push_back(library.executables[i].target);
  return llvm::join(targets, ", ");
}

void Reader::addPlan() {
  add("step " + std::string(library.name),
      {{"ABI", number(library.abi_version)},
       {"bytes", number(library.struct_size)},
       {"ranks", number(library.ranks)},
       {"CPU", library.cpu_features},
       {"kernels", number(library.num_kernels)},
       {"scalar programs", number(library.num_scalar_programs)},
       {"handlers", number(library.num_handlers)},
       {"executables", getTargets()}});
  for (int64_t i = 0; i < library.num_axes; ++i)
    add("axis " + names.text(library.axes[i].name),
        {{"size", number(library.axes[i].size)}});
}

void Reader::addParameters() {
  for (int64_t i = 0; i < library.num_parameters; ++i) {
    const zero_rt_parameter_row &row = library.parameters[i];
    Fields fields = {{"dtype", getDtypeName(row.dtype).str()},
                     {"bucket", names.bucket(row.bucket)},
                     {"optional", number(row.optional)},
                     {"uses", number(row.uses)}};
    if (row.bucket >= 0) {
      fields.emplace_back("gradients", getDtypeName(row.gradient_dtype).str());
      fields.emplace_back("elements", number(row.elements));
      fields.emplace_back("offset", number(row.offset));
      fields.emplace_back("extent", number(row.extent));
    }
    add("parameter " + names.text(row.name), fields);
  }
}

void Reader::addBuckets() {
  for (int64_t i = 0; i < library.num_buckets; ++i) {
    const zero_rt_bucket_row &row = library.buckets[i];
    add("bucket " + names.text(row.name),
        {{"elements", number(row.elements)},
         {"gradients", names.buffer(row.gradient_buffer)},
         {"parameters", names.buffer(row.parameter_buffer)},
         {"master", names.buffer(row.master_buffer)},
         {"staging", names.buffer(row.staging_buffer)},
         {"store kernel", number(row.store_kernel)},
         {"add kernel", number(row.add_kernel)},
         {"rows over", names.axes(row.rows)},
         {"replicated over", names.axes(row.replicated)},
         {"writable after", names.events(row.first_writable, row.num_writable)},
         {"readable after",
          row.num_readable < 0
              ? "its stream"
              : names.events(row.first_readable, row.num_readable)}});
  }
}

void Reader::addAccumulators() {
  for (int64_t b = 0; library.accumulators && b < library.num_buckets; ++b) {
    const zero_rt_accumulator_row &row = library.accumulators[b];
    add("accumulator of " + names.text(library.buckets[b].name),
        {{"in", names.buffer(row.buffer)},
         {"addends over", names.axesOf(row.partial)},
         {"gradients over", names.axesOf(row.arrives)},
         {"prescaled by", number(row.numerator) + " / " +
                              number(row.denominator) + ", passes^" +
                              number(row.passes_power) + ", tokens^" +
                              number(row.tokens_power)}});
  }
  add("batches", {{"on ranks", number(library.batch_ranks)}});
}

void Reader::addShapes() {
  int64_t next = 0;
  for (int64_t p = 0; library.num_dimensions > 0 && p < library.num_parameters;
       ++p) {
    std::string shape;
    for (; next < library.dimension_ends[p]; ++next) {
      const zero_rt_dimension_row &row = library.dimensions[next];
      shape += (shape.empty() ? "" : " x ") + number(row.extent) + " over " +
               names.axes(row.axes);
    }
    add("parameter " + names.parameter(p), {{"shape", shape}});
  }
}

void Reader::addUnits() {
  for (int64_t i = 0; i < library.num_units; ++i) {
    const zero_rt_unit_row &row = library.units[i];
    add("unit " + names.text(row.name), {{"unshard by", number(row.unshard)},
                                         {"reshard by", number(row.reshard)}});
  }
  for (int64_t i = 0; i < library.num_unit_orders; ++i) {
    std::vector<std::string> units;
    for (int64_t u = 0; u < library.num_units; ++u) {
      int64_t unit = library.unit_orders[i * library.num_units + u];
      bool isThere = unit >= 0 && unit < library.num_units;
      units.push_back(isThere ? names.text(library.units[unit].name) : "none");
    }
    add("unit order", {{"units", llvm::join(units, ", ")},
                       {"ahead", number(library.unit_prefetches[i])}});
  }
  for (int64_t i = 0; library.num_units > 0 && i < library.num_buckets; ++i) {
    const zero_rt_bucket_unit_row &row = library.bucket_units[i];
    bool isOfUnit = row.unit >= 0 && row.unit < library.num_units;
    add("bucket " + names.bucket(i),
        {{"unit", isOfUnit ? names.text(library.units[row.unit].name) : "none"},
         {"unsharded in", names.buffer(row.unsharded_buffer)}});
  }
}

void Reader::addFrozen() {
  for (int64_t i = 0; i < library.num_frozen; ++i) {
    const zero_rt_frozen_row &row = library.frozen[i];
    bool isOfUnit = row.unit >= 0 && row.unit < library.num_units;
    add("frozen parameter " + names.text(row.name),
        {{"dtype", getDtypeName(row.dtype).str()},
         {"elements", number(row.elements)},
         {"unit", isOfUnit ? names.text(library.units[row.unit].name) : "none"},
         {"parameters", names.buffer(row.parameter_buffer)},
         {"unsharded in", names.buffer(row.unsharded_buffer)},
         {"offset", number(row.offset)}});
  }
}

void Reader::addBuffers() {
  for (int64_t i = 0; i < library.num_buffers; ++i) {
    const zero_rt_buffer_row &row = library.buffers[i];
    add("buffer " + names.text(row.name),
        {{"role", number(row.role)},
         {"space", number(row.space)},
         {"dtype", getDtypeName(row.dtype).str()},
         {"elements", number(row.elements)},
         {"over", names.axes(row.owners)},
         {"on demand", number(row.on_demand)},
         {"fill", number(row.fill)},
         {"shares", names.buffer(row.shares)}});
  }
}

void Reader::addScalars() {
  for (int64_t i = 0; i < library.num_states; ++i) {
    const zero_rt_state_row &row = library.states[i];
    add("state " + names.text(row.role),
        {{"bucket", names.bucket(row.bucket)},
         {"in",
          row.bucket >= 0 ? names.buffer(row.index) : names.slot(row.index)}});
  }
  for (int64_t i = 0; i < library.num_slots; ++i)
    add("slot " + names.slot(i),
        {{"initial", number(library.slots[i].initial)}});
  for (int64_t i = 0; i < library.num_inputs; ++i) {
    const zero_rt_input_row &row = library.inputs[i];
    add("input " + names.slot(row.slot),
        {{"over", names.axes(row.over)},
         {"tokens", number(row.tokens)},
         {"check", number(row.check)},
         {"hyper", names.text(row.name)},
         {"name", names.text(library.input_names[i])}});
  }
  for (int64_t p = 0; library.num_input_sets > 0 && p < library.num_parameters;
       ++p)
    add("update of " + names.parameter(p),
        {{"inputs", names.inputs(library.parameter_inputs[p])}});
  for (int64_t i = 0; i < library.num_results; ++i)
    add("result " + names.text(library.results[i].name) + " " +
            names.slot(library.results[i].slot),
        {});
  add("loss scale", {{"slot", names.slot(library.loss_scale)}});
}

void Reader::addActivations() {
  for (int64_t i = 0; i < library.num_activations; ++i) {
    const zero_rt_activation_row &row = library.activations[i];
    std::string dims;
    for (int64_t d = 0; d < 8; ++d)
      dims += number(row.dims[d]) + " ";
    bool isAxis = row.axis >= 0 && row.axis < library.num_axes;
    add("activation " + names.text(row.name),
        {{"dtype", getDtypeName(row.dtype).str()},
         {"over", isAxis ? names.text(library.axes[row.axis].name) : "none"},
         {"from", number(row.from)},
         {"to", number(row.to)},
         {"dimensions", number(row.num_dims)},
         {"extents", dims}});
  }
}

void Reader::addProtocol() {
  for (int64_t i = 0; i < library.num_stream_events; ++i)
    add("event " + names.event(i), {});
  for (int64_t i = 0; i < library.num_sequences; ++i) {
    const zero_rt_sequence_row &row = library.sequences[i];
    std::string entries;
    for (int64_t e = row.first; e < row.first + row.count; ++e) {
      const zero_rt_sequence_entry &entry = library.sequence_entries[e];
      entries +=
          names.bucket(entry.bucket) + " by " + number(entry.handler) + " ";
    }
    add("sequence " + number(i),
        {{"buckets", entries}, {"scratch", number(row.scratch)}});
  }
  add("initial state", {{"is", names.state(0)}});
  for (int64_t i = 0; i < library.num_transitions; ++i) {
    const zero_rt_transition_row &row = library.transitions[i];
    std::string handlers;
    for (int64_t h = row.first; h < row.first + row.count; ++h)
      handlers += number(library.transition_handlers[h]) + " ";
    add("transition from " + names.state(row.state),
        {{"event", number(row.event)},
         {"to", names.state(row.next)},
         {"handlers", handlers},
         {"sequence", number(row.sequence)}});
  }
}

/// A call that fails must end its handler, with its status.
static std::string describeFailure(const zero_rt_library &library,
                                   int64_t handler, int64_t failing) {
  HandlerRun run = recordHandler(library, handler, failing);
  return number(run.calls.size()) + " calls and status " + number(run.status);
}

void Reader::addHandlers() {
  for (int64_t i = 0; i < library.num_handlers; ++i) {
    HandlerRun run = recordHandler(library, i);
    std::string row = "handler " + number(i);
    for (const std::string &call : run.calls)
      lines.push_back(row + ": " + call);
    add(row, {{"ends with status", number(run.status)}});
    int64_t count = run.calls.size();
    for (int64_t failing : {int64_t(0), count / 2, count - 1})
      if (failing >= 0 && failing < count)
        add(row, {{"where a call fails, makes",
                   describeFailure(library, i, failing)}});
  }
}

std::vector<std::string> Reader::read() {
  addPlan();
  addParameters();
  addBuckets();
  addShapes();
  addUnits();
  addFrozen();
  addBuffers();
  addScalars();
  addAccumulators();
  addActivations();
  addProtocol();
  addHandlers();
  return std::move(lines);
}

std::vector<std::string> zero::describeLibrary(const zero_rt_library &library) {
  return Reader(library).read();
}
