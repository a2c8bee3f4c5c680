//===- LibraryTables.cpp - Tables that nobody compiled --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input changes words of the tables of a valid library, ten bytes each: the
// table, the word, and its new value. If other bytes follow, the library is
// that of a pipeline stage. What the check accepts is used. Strings and
// transition_handlers carry no length, so indices into them stay in range.
//
//===----------------------------------------------------------------------===//

#include "Input.h"

#include "core/library_index.h"
#include "test/unit/runtime/LibraryBuilder.h"

#include <algorithm>
#include <cstring>

using namespace zero_rt;
using namespace zero_rt::fuzz;
using namespace zero_rt::test;

static zero_rt_status handle(zero_rt_step *, const zero_rt_event *) {
  return ZERO_RT_OK;
}
static void runKernel(void *const *, const double *, int64_t, int64_t,
                      double *) {}

/// Two ranks, with two buckets of two parameters each.
static LibraryBuilder makeLibrary() {
  LibraryBuilder library(/*ranks=*/2);
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
  library.activations = {
      {library.addText("h"), ZERO_RT_F32, 0, 0, 1, 2, {-1, 4}}};
  library.sequences = {{0, 2, 0, 0}};
  library.addProtocolState("idle");
  library.addProtocolState("in");
  library.addTransition(0, ZERO_RT_EVENT_BEGIN, 1, {handle, handle});
  library.addTransition(1, ZERO_RT_EVENT_APPLY, 0, {handle});
  library.transitions[0].sequence = 0;
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
  const Words tables[] = {{&l.lossScale, 1},
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
                          wordsOf(l.activations)};
  const Words &words = tables[edit[0] % std::size(tables)];
  if (words.count)
    std::memcpy(&words.data[edit[1] % words.count], edit + 2, sizeof(int64_t));
}

/// Keeps indices in range that the check cannot check.
static void limitIndices(LibraryBuilder &library) {
  auto most = int64_t(library.strings.size());
  for (auto &row : library.parameters)
    row.name = std::min(row.name, most);
  for (auto &row : library.transitions) {
    row.first = std::min<int64_t>(row.first, 2);
    row.count = std::min<int64_t>(row.count, 1);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
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
  require(index.findParameter("weight") < library.num_parameters,
          "a parameter");
  index.nearestParameter("wait");
  for (int64_t state = 0; state < library.num_protocol_states; ++state)
    for (int32_t event = 0; event < ZERO_RT_EVENT_COUNT; ++event)
      index.transition(state, event);
  size_t listed = 0;
  for (int64_t bucket = 0; bucket < library.num_buckets; ++bucket)
    listed += index.parametersOf(bucket).size();
  require(isStage ? listed <= 4 : listed == 4, "each parameter in a bucket");
  for (int64_t sequence = 0; sequence < library.num_sequences; ++sequence)
    for (int64_t position : index.orderOf(sequence).position)
      require(position >= 0, "each bucket in a sequence");
  return 0;
}
