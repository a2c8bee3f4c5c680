//===- preconditions.cpp - Checks of what callers must do -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// There are at most two exchanges. The first one has few words, and all ranks
// draw the same conclusion from it. The second one has a digest of each piece
// of state, and takes place only if the first one shows that the state differs.
//
//===----------------------------------------------------------------------===//

#include "core/preconditions.h"

#include "core/numeric.h"
#include "core/stages.h"
#include "core/state_entries.h"
#include "core/status.h"
#include "core/step.h"

#include <algorithm>
#include <string_view>

using namespace zero_rt;

static uint64_t digest(const void *data, int64_t bytes) {
  return std::hash<std::string_view>()(
      {static_cast<const char *>(data), size_t(bytes)});
}

/// The digest of |bytes| at |data| on the device.
static zero_rt_status digestAt(const Step &step, const void *data,
                               int64_t bytes, uint64_t *out) {
  ZERO_RT_TRY(step.device().look(data, bytes, &data));
  *out = digest(data, bytes);
  return ZERO_RT_OK;
}

/// Gathers a row of words from each rank, in order of ranks.
static zero_rt_status exchange(Step &step, const std::vector<uint64_t> &mine,
                               std::vector<uint64_t> &all) {
  all.resize(mine.size() * size_t(step.runtime->ranks));
  Tag tag = {"check_promises", nullptr,     int64_t(mine.size()),
             ZERO_RT_F64,      ZERO_RT_F64, step.id};
  return step.runtime->communicator->exchange(
      tag, mine.data(), all.data(), int64_t(mine.size() * sizeof(uint64_t)));
}

namespace {
/// A word that differs between |rank| and |first|.
struct Difference {
  int32_t rank = 0; // equal to |first|: no difference
  int32_t first = 0;
  size_t word = 0;
};
} // namespace

/// All axes but those of |set|.
static int64_t allAxesBut(const zero_rt_library &library, int64_t set) {
  int64_t all = (int64_t(1) << library.num_axes) - 1;
  return set < 0 ? all : all & ~library.axis_sets[set];
}

/// Compares the words of all ranks. Each word is compared over the ranks that
/// differ only over the axes that |axesOf| returns for the word.
template <typename Function>
static Difference findDifference(const Step &step,
                                 const std::vector<uint64_t> &all,
                                 Function axesOf) {
  size_t width = all.size() / size_t(step.runtime->ranks);
  for (size_t word = 0; word < width; ++word)
    for (int32_t rank = 1; rank < step.runtime->ranks; ++rank) {
      int32_t first = groupOf(*step.library, axesOf(word), rank).front();
      if (all[size_t(rank) * width + word] != all[size_t(first) * width + word])
        return {rank, first, word};
    }
  return {};
}

/// The axes over which ranks hold different rows of the bucket of |entry|.
static int64_t rowsOf(const Step &step, const StateEntry &entry) {
  if (entry.parameter < 0)
    return -1;
  int64_t bucket = step.library->parameters[entry.parameter].bucket;
  return step.library->buckets[bucket].rows;
}

/// The axes over which ranks must deliver the same gradient of |parameter|; 0
/// for none.
static int64_t replicatedOver(const Step &step, int64_t parameter) {
  // All ranks draw the same conclusion, including the ranks of other pipeline
  // stages.
  const zero_rt_library *library = step.library;
  if (library->parameters[parameter].bucket < 0)
    library =
        &stageOf(*step.whole, firstHolder(*step.whole, int32_t(parameter)));
  int64_t bucket = library->parameters[parameter].bucket;
  int64_t set = library->buckets[bucket].replicated;
  return set < 0 ? 0 : library->axis_sets[set];
}

/// Whether every rank has the whole row of |entry|, and not a slice.
static bool isWhole(const Step &step, const StateEntry &entry) {
  return entry.parameter < 0 || step.library->buffers[entry.buffer].owners < 0;
}

/// Makes a digest of each piece of state that ranks have whole. |entries| are
/// these pieces.
static zero_rt_status digestState(Step &step,
                                  std::vector<const StateEntry *> &entries,
                                  std::vector<uint64_t> &digests) {
  for (const StateEntry &entry : step.entries)
    if (isWhole(step, entry)) {
      entries.push_back(&entry);
      void *data = nullptr;
      ZERO_RT_TRY(dataOf(step, entry, &data));
      ZERO_RT_TRY(
          digestAt(step, data, bytesOf(step, entry), &digests.emplace_back()));
    }
  return ZERO_RT_OK;
}

static const char *nameOf(uint64_t event) {
  return event == ZERO_RT_EVENT_APPLY     ? "apply"
         : event == ZERO_RT_EVENT_MEASURE ? "measure"
                                          : "discard";
}

/// Names the gradient that differs between ranks that must deliver the same. A
/// gradient that is missing on some rank is not an error here; the outcome
/// reports it.
static zero_rt_status compareGradients(Step &step) {
  std::vector<uint64_t> all;
  ZERO_RT_TRY(exchange(step, step.gradientDigests, all));
  size_t width = step.gradientDigests.size();
  for (size_t p = 0; p < width; ++p)
    for (int32_t rank = 1; rank < step.runtime->ranks; ++rank) {
      int32_t first =
          groupOf(*step.library, replicatedOver(step, int64_t(p)), rank)
              .front();
      uint64_t theirs = all[size_t(rank) * width + p];
      uint64_t expected = all[size_t(first) * width + p];
      if (theirs && expected && theirs != expected)
        return fail(ZERO_RT_MISMATCH,
                    "gradient of '%s' differs between rank %d and rank %d, "
                    "which must deliver the same",
                    step.parameterName(int64_t(p)), rank, first);
    }
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::checkPreconditions(Step &step, int32_t event) {
  if (!step.runtime->checkPreconditions || step.runtime->ranks == 1)
    return ZERO_RT_OK;
  // A rank that discards may repair its state later, so its state is not
  // compared. Its row of words has the same width.
  std::vector<const StateEntry *> entries;
  std::vector<uint64_t> state;
  bool isDiscard = event == ZERO_RT_EVENT_DISCARD;
  if (!isDiscard)
    ZERO_RT_TRY(digestState(step, entries, state));
  // One word for the state of all rows over the same axes, and one for all
  // gradients that are replicated over the same axes.
  size_t firstDigest = 1 + size_t(step.library->num_inputs);
  std::vector<uint64_t> mine(firstDigest);
  mine[0] = uint64_t(event);
  for (size_t i = 0; !isDiscard && i < step.inputs.size(); ++i)
    mine[1 + i] = bitCast<uint64_t>(step.inputs[i]);
  const zero_rt_library &library = *step.library;
  std::vector<int64_t> axes(firstDigest, allAxesBut(library, -1));
  for (int64_t i = 0; i < library.num_inputs; ++i)
    axes[size_t(1 + i)] = allAxesBut(library, library.inputs[i].over);
  auto addWord = [&](int64_t over, const std::vector<uint64_t> &digests) {
    axes.push_back(over);
    mine.push_back(
        digest(digests.data(), int64_t(digests.size() * sizeof(uint64_t))));
  };
  for (int64_t set = -1; set < library.num_axis_sets; ++set) {
    std::vector<uint64_t> digests;
    for (size_t i = 0; i < entries.size(); ++i)
      if (rowsOf(step, *entries[i]) == set)
        digests.push_back(state[i]);
    addWord(allAxesBut(library, set), digests);
  }
  size_t firstGradient = mine.size();
  for (int64_t set = 0; set < library.num_axis_sets; ++set) {
    std::vector<uint64_t> digests;
    for (int64_t p = 0; p < library.num_parameters; ++p)
      if (replicatedOver(step, p) == library.axis_sets[set])
        digests.push_back(step.gradientDigests[size_t(p)]);
    addWord(library.axis_sets[set], digests);
  }

  std::vector<uint64_t> all;
  ZERO_RT_TRY(exchange(step, mine, all));
  Difference found =
      ::findDifference(step, all, [&](size_t word) { return axes[word]; });
  if (found.rank == found.first)
    return ZERO_RT_OK;
  auto wordOf = [&](int32_t rank) {
    return all[size_t(rank) * mine.size() + found.word];
  };
  if (found.word == 0)
    return fail(ZERO_RT_MISMATCH,
                "rank %d calls %s, rank 0 calls %s: all ranks must call "
                "them in one order",
                found.rank, nameOf(wordOf(found.rank)), nameOf(wordOf(0)));
  if (found.word < firstDigest)
    return fail(ZERO_RT_MISMATCH,
                "input %zu of %s is %.17g on rank %d, and %.17g on rank %d: "
                "they must pass the same",
                found.word - 1, nameOf(uint64_t(event)),
                bitCast<double>(wordOf(found.rank)), found.rank,
                bitCast<double>(wordOf(found.first)), found.first);

  if (found.word >= firstGradient)
    return isDiscard ? ZERO_RT_OK : compareGradients(step);
  if (step.whole->num_stages > 0)
    return fail(ZERO_RT_MISMATCH,
                "state differs between rank %d and rank %d: all ranks must "
                "bind the same values, and write the same between steps",
                found.rank, found.first);
  ZERO_RT_TRY(exchange(step, state, all));
  found = ::findDifference(step, all, [&](size_t word) {
    return allAxesBut(library, rowsOf(step, *entries[word]));
  });
  const StateEntry &entry = *entries[found.word];
  bool isScalar = entry.parameter < 0;
  return fail(ZERO_RT_MISMATCH,
              "'%s'%s%s differs between rank %d and rank %d: all ranks must "
              "bind the same values, and write the same between steps",
              entry.role, isScalar ? "" : " of ",
              isScalar ? "" : step.parameterName(entry.parameter), found.rank,
              found.first);
}

zero_rt_status zero_rt::noteGradient(Step &step, int32_t parameter,
                                     const void *data, int64_t bytes) {
  if (!step.runtime->checkPreconditions || !replicatedOver(step, parameter))
    return ZERO_RT_OK;
  uint64_t &known = step.gradientDigests[size_t(parameter)];
  uint64_t words[] = {known, 0};
  ZERO_RT_TRY(digestAt(step, data, bytes, &words[1]));
  known = digest(words, int64_t(sizeof(words))) | 1; // never 0
  return ZERO_RT_OK;
}

void zero_rt::forgetGradients(Step &step) {
  std::fill(step.gradientDigests.begin(), step.gradientDigests.end(), 0);
}

zero_rt_status zero_rt::digestOf(const Step &step, const zero_rt_tensor &tensor,
                                 uint64_t *out) {
  return digestAt(step, tensor.data,
                  tensor.elements * elementSize(tensor.dtype), out);
}

zero_rt_status zero_rt::checkUntouched(const Step &step,
                                       const WaitingGradient &gradient) {
  if (!step.runtime->checkPreconditions || !gradient.release)
    return ZERO_RT_OK;
  uint64_t now = 0;
  ZERO_RT_TRY(digestOf(step, gradient.tensor, &now));
  if (now == gradient.digest)
    return ZERO_RT_OK;
  return fail(
      ZERO_RT_PROTOCOL,
      "gradient of '%s' was written before it was taken: leave it unchanged "
      "until timepoint %llu",
      step.parameterName(gradient.parameter),
      (unsigned long long)gradient.release);
}
