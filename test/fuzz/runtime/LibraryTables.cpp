//===- LibraryTables.cpp - Tables that nobody compiled --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input changes words of the tables of a valid library, ten bytes each: the
// table, the word, and its new value. If other bytes follow, the library is
// that of a pipeline stage. A step runs with what the check accepts. Strings
// and transition_handlers carry no length, so indices into them stay in range.
//
//===----------------------------------------------------------------------===//

#include "Input.h"

#include "core/library_index.h"
#include "core/numeric.h"
#include "core/structs.h"
#include "test/unit/runtime/LibraryBuilder.h"

#include <algorithm>
#include <cstring>

using namespace zero_rt;
using namespace zero_rt::fuzz;
using namespace zero_rt::test;

static zero_rt_status handle(zero_rt_step *step, const zero_rt_event *event) {
  if (event->event != ZERO_RT_EVENT_ARRIVE)
    return ZERO_RT_OK;
  auto *calls = *reinterpret_cast<const zero_rt_calls *const *>(step);
  return calls->pack(step, event, 0);
}

static int64_t sum; // of all words, so that they are read
static zero_rt_status makeCalls(zero_rt_step *step, const zero_rt_event *event,
                                const int64_t *words, int64_t count,
                                const int32_t *) {
  for (int64_t i = 0; i < count; ++i)
    sum ^= words[i];
  return handle(step, event);
}

static void runKernel(void *const *, const double *, int64_t, int64_t,
                      double *) {}

/// One rank, with two buckets of two parameters each.
static LibraryBuilder makeLibrary() {
  LibraryBuilder library(/*ranks=*/1);
  int64_t event = ZERO_RT_STREAM_COLLECTIVE;
  library.streamEvents = {{library.addText("event"), event}};
  library.eventLists = {0};
  library.addKernel(runKernel);
  int32_t slot = library.addSlot("slot");
  for (int64_t bucket = 0; bucket < 2; ++bucket) {
    int32_t gradient = library.addBuffer({"gradient", ZERO_RT_F32, 8});
    int32_t parameter = library.addBuffer({"parameter", ZERO_RT_BF16, 8});
    int32_t master = library.addBuffer({"master", ZERO_RT_F32, 8, true});
    library.buckets.push_back({library.addText("bucket"), 8, gradient,
                               parameter, master, 0, 0, -1, -1, -1, 0, 1, 0,
                               -1});
    for (int64_t offset : {0, 4})
      library.parameters.push_back({library.addText("weight"), ZERO_RT_BF16,
                                    ZERO_RT_F32, 3, bucket, offset, 4, 0, 1});
    library.addState("master", bucket, master);
    library.sequenceEntries.push_back({bucket, 0});
  }
  library.addState("steps", -1, slot);
  library.addTable({{0, 8, slot}, {8, 16, -1}});
  library.inputs = {{slot, 0, 0, ZERO_RT_INPUT_FINITE, library.addText("lr")}};
  library.results = {{library.addText("norm"), slot}};
  library.lossScale = slot;
  library.sequences = {{0, 2, 0, 0}};
  library.addProtocolState("idle");
  library.addProtocolState("in");
  library.addTransition(0, ZERO_RT_EVENT_BEGIN, 1, {handle, handle});
  library.addTransition(1, ZERO_RT_EVENT_APPLY, 0, {handle});
  library.addTransition(1, ZERO_RT_EVENT_ARRIVE, 1, {handle});
  library.transitions[2].sequence = 0;
  library.makeCalls = makeCalls;
  library.callWords.resize(library.handlers.size());
  for (size_t i = 0; i < library.handlers.size(); ++i)
    library.handlerCalls.push_back({int64_t(i), 1});
  return library;
}

namespace {
struct Words {
  int64_t *data;
  size_t count;
};
} // namespace

template <typename Row> static Words wordsOf(std::vector<Row> &rows) {
  static_assert(sizeof(Row) % sizeof(int64_t) == 0);
  return {reinterpret_cast<int64_t *>(rows.data()),
          rows.size() * (sizeof(Row) / sizeof(int64_t))};
}

static void change(LibraryBuilder &l, const uint8_t *edit) {
  const Words tables[] = {
      {&l.lossScale, 1},
      {&l.ranks, 1},
      wordsOf(l.axes),
      wordsOf(l.axisSets),
      wordsOf(l.axisSetStages),
      wordsOf(l.parameters),
      wordsOf(l.buckets),
      wordsOf(l.buffers),
      wordsOf(l.segments),
      wordsOf(l.tables),
      wordsOf(l.states),
      wordsOf(l.slots),
      wordsOf(l.inputs),
      wordsOf(l.results),
      wordsOf(l.protocolStates),
      wordsOf(l.transitions),
      wordsOf(l.transitionHandlers),
      wordsOf(l.sequences),
      wordsOf(l.sequenceEntries),
      wordsOf(l.streamEvents),
      wordsOf(l.eventLists),
      wordsOf(l.handlerCalls),
  };
  const Words &words = tables[edit[0] % std::size(tables)];
  if (words.count)
    std::memcpy(&words.data[edit[1] % words.count], edit + 2, sizeof(int64_t));
}

/// Keeps indices in range that the check cannot check.
static void limitIndices(LibraryBuilder &library) {
  auto limit = [&](int64_t &name) {
    name = std::min(name, int64_t(library.strings.size()));
  };
  auto limitNames = [&](auto &rows) {
    for (auto &row : rows)
      limit(row.name);
  };
  limitNames(library.axes);
  limitNames(library.parameters);
  limitNames(library.buckets);
  limitNames(library.buffers);
  limitNames(library.slots);
  limitNames(library.inputs);
  limitNames(library.results);
  limitNames(library.streamEvents);
  for (auto &row : library.states)
    limit(row.role);
  for (int64_t &name : library.protocolStates)
    limit(name);
  for (auto &row : library.transitions) {
    row.first = std::min<int64_t>(row.first, 3);
    row.count = std::min<int64_t>(row.count, 1);
  }
}

static bool isSmall(const LibraryBuilder &library) {
  return std::all_of(library.buffers.begin(), library.buffers.end(),
                     [](const auto &row) { return row.elements <= 4096; });
}

static zero_rt_runtime *makeRuntime() {
  zero_rt_group *group = nullptr;
  zero_rt_runtime *runtime = nullptr;
  require(!zero_rt_local_group_create(1, &group) &&
              !zero_rt_create(group, 0, nullptr, &runtime),
          "a runtime");
  return runtime;
}

template <typename T> static T sized() {
  T value = {};
  value.struct_size = sizeof(T);
  return value;
}

/// Passes gradients, and reads and writes the state. Any answer is right.
static void train(zero_rt_step *step, const zero_rt_library &library) {
  static double data[4096];
  double input = 1;
  for (bool measures : {false, true}) {
    zero_rt_step_begin_backward(step, ZERO_RT_HINT_UNKNOWN);
    for (int32_t p = 0; p < library.num_parameters; ++p) {
      auto info = sized<zero_rt_parameter_info>();
      require(!zero_rt_library_parameter(&library, p, &info), "a parameter");
      zero_rt_tensor tensor = {};
      tensor.dtype = info.gradient_dtype;
      tensor.data = data;
      tensor.elements = info.elements;
      zero_rt_step_gradient(step, p, &tensor, nullptr, nullptr);
    }
    if (measures)
      zero_rt_step_measure(step, &input, 1, nullptr);
    if (zero_rt_step_apply(step, &input, 1, nullptr))
      zero_rt_step_discard(step);
    int64_t count = 0;
    zero_rt_step_state_count(step, &count);
    for (int64_t e = 0; e < count; ++e) {
      auto entry = sized<zero_rt_state_entry>();
      require(!zero_rt_step_state_describe(step, e, &entry), "an entry");
      int64_t bytes = (entry.end - entry.begin) * elementSize(entry.dtype);
      require(bytes >= 0 && bytes <= int64_t(sizeof(data)), "its elements");
      zero_rt_step_state_read(step, e, data, bytes);
      zero_rt_step_state_write(step, e, data, bytes);
    }
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static zero_rt_runtime *runtime = makeRuntime();
  LibraryBuilder builder = makeLibrary();
  require(!checkLibrary(builder.get(), /*isStage=*/false), "a valid library");
  bool isStage = size % 10;
  for (size_t edit = 0; edit + 10 <= size; edit += 10)
    change(builder, data + edit);
  limitIndices(builder);
  const zero_rt_library &library = builder.get();
  if (zero_rt_status status = checkLibrary(library, isStage)) {
    require(status == ZERO_RT_INTERNAL, "internal");
    return 0;
  }
  LibraryIndex index(library);
  require(index.nearestParameter("wait"), "a parameter");
  for (int64_t sequence = 0; sequence < library.num_sequences; ++sequence)
    for (int64_t position : index.orderOf(sequence).position)
      require(position >= 0, "each bucket in a sequence");
  for (int32_t r = 0; r < library.num_results; ++r) {
    auto info = sized<zero_rt_result_info>();
    require(!zero_rt_library_result(&library, r, &info) &&
                info.name >= library.strings,
            "the name of a result");
  }
  zero_rt_step *step = nullptr;
  if (isStage || !isSmall(builder) ||
      zero_rt_step_create(runtime, &library, nullptr, &step))
    return 0;
  train(step, library);
  require(!zero_rt_step_destroy(step), "the end of a step");
  return 0;
}
