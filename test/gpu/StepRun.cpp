//===- StepRun.cpp - Runs a compiled step with random gradients -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepRun.h"

#include "zero_rt/step.h"
#include "zero_rt/tcp.h"

#include <csignal>
#include <cstring>
#include <random>
#include <thread>

using namespace zero::check;

static constexpr int kSteps = 4;
static constexpr int kBackwards = 2;

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

std::string StepLibrary::open(const std::string &path) {
  if (zero_rt_open(path.c_str(), &tables))
    return zero_rt_message();
  size_t slash = path.rfind('/');
  std::string file = path.substr(slash == std::string::npos ? 0 : slash + 1);
  const size_t around = std::strlen("lib") + std::strlen(".so");
  if (file.size() <= around)
    return "its name is not libNAME.so";
  name = file.substr(std::strlen("lib"), file.size() - around);
  if (tables->num_stages || tables->num_activations)
    return "steps with pipeline stages are not checked";
  for (int64_t b = 0; b < tables->num_buckets; ++b)
    if (tables->buckets[b].replicated >= 0)
      return "steps whose ranks promise the same gradients are not checked";
  return "";
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

namespace {
/// How an element type lies in memory.
struct Format {
  int64_t size;
  int mantissaBits;
  int bias;
};
} // namespace

static Format formatOf(int64_t dtype) {
  switch (dtype) {
  case ZERO_RT_F16:
    return {2, 10, 15};
  case ZERO_RT_BF16:
    return {2, 7, 127};
  case ZERO_RT_F32:
    return {4, 23, 127};
  default:
    return {8, 52, 1023};
  }
}

/// Numbers with all their bits random, of magnitudes from 2^-6 to 2^2: such as
/// do not sum exactly.
static std::vector<char> draw(int64_t dtype, int64_t elements, uint64_t seed) {
  Format format = formatOf(dtype);
  std::mt19937_64 random(seed);
  std::vector<char> data(static_cast<size_t>(elements * format.size));
  for (int64_t i = 0; i < elements; ++i) {
    uint64_t drawn = random();
    uint64_t mantissa = drawn & ((uint64_t(1) << format.mantissaBits) - 1);
    uint64_t exponent = uint64_t(format.bias - 6) + (drawn >> 56) % 8;
    uint64_t bits = mantissa | exponent << format.mantissaBits |
                    (drawn >> 55 & 1) << (8 * format.size - 1);
    std::memcpy(data.data() + i * format.size, &bits, size_t(format.size));
  }
  return data;
}

//===----------------------------------------------------------------------===//
// One rank
//===----------------------------------------------------------------------===//

namespace {

/// A rank; methods give false after an error.
class Rank {
public:
  Rank(const StepLibrary &library, RankState &state, int32_t rank)
      : library(library), state(state), rank(rank) {}
  ~Rank();

  bool create(zero_rt_group *group, const Place &place);
  bool bind();
  bool apply(int step);
  bool read();

private:
  /// Where gradients are in the steps.
  struct Pass {
    int step;
    int backward;
  };

  bool check(zero_rt_status status) {
    if (status && state.error.empty())
      state.error = "rank " + std::to_string(rank) + ": " +
                    zero_rt_status_name(status) + ": " + zero_rt_message();
    return status == ZERO_RT_OK;
  }
  /// |data| in the memory of the device, until the next release.
  bool upload(const std::vector<char> &data, int64_t dtype, int64_t elements,
              zero_rt_tensor &tensor);
  bool release();
  /// Frozen ones of units, too.
  int64_t numParameters() const {
    return library.tables->num_parameters + library.tables->num_frozen;
  }
  int32_t unitOf(int64_t parameter);
  /// Unshards a unit, and reads its parameters while |next| (-1: none) is
  /// gathered ahead.
  bool unshard(int32_t unit, int32_t next, const std::string &when);
  bool deliver(Pass pass, int64_t parameter);
  bool runForward(Pass pass);
  bool runBackward(Pass pass);

  const StepLibrary &library;
  RankState &state;
  int32_t rank;
  zero_rt_runtime *runtime = nullptr;
  zero_rt_step *step = nullptr;
  std::vector<void *> lent;
};

} // namespace

Rank::~Rank() {
  release();
  if (step)
    check(zero_rt_step_destroy(step));
  if (runtime)
    check(zero_rt_destroy(runtime));
}

bool Rank::create(zero_rt_group *group, const Place &place) {
  zero_rt_options options = {};
  options.struct_size = sizeof(options);
  options.device = place.device.c_str();
  options.ordinal = place.gpus[size_t(rank) % place.gpus.size()];
  options.graphs = place.graphs;
  options.poison = place.poison;
  // Long enough for ranks that begin late, and shorter than a process may take.
  options.timeout_ms = 30'000;
  return check(zero_rt_create(group, rank, &options, &runtime)) &&
         check(zero_rt_step_create(runtime, library.tables, nullptr, &step));
}

bool Rank::upload(const std::vector<char> &data, int64_t dtype,
                  int64_t elements, zero_rt_tensor &tensor) {
  tensor = {sizeof(tensor), int32_t(dtype), ZERO_RT_SPACE_DEVICE, 0,
            elements,       nullptr};
  if (!check(zero_rt_allocate(runtime, int64_t(data.size()), &tensor.data)))
    return false;
  lent.push_back(tensor.data);
  return check(
      zero_rt_copy(runtime, tensor.data, data.data(), int64_t(data.size())));
}

bool Rank::release() {
  bool ok = true;
  for (void *data : lent)
    ok &= check(zero_rt_release(runtime, data));
  lent.clear();
  return ok;
}

/// All ranks begin with the same parameters.
bool Rank::bind() {
  for (int64_t p = 0; p < numParameters(); ++p) {
    zero_rt_parameter_info info = {};
    info.struct_size = sizeof(info);
    zero_rt_tensor tensor;
    if (!check(zero_rt_library_parameter(library.tables, int32_t(p), &info)) ||
        !upload(draw(info.dtype, info.elements, uint64_t(p)), info.dtype,
                info.elements, tensor) ||
        !check(zero_rt_step_bind_parameter(step, int32_t(p), &tensor)))
      return false;
  }
  return release();
}

int32_t Rank::unitOf(int64_t parameter) {
  int32_t unit = -1;
  check(zero_rt_step_unit_of(step, int32_t(parameter), &unit));
  return unit;
}

bool Rank::unshard(int32_t unit, int32_t next, const std::string &when) {
  if (!check(zero_rt_step_unshard(step, unit, nullptr)) ||
      (next >= 0 && !check(zero_rt_step_prefetch(step, next))))
    return false;
  for (int64_t p = 0; p < numParameters(); ++p) {
    if (unitOf(p) != unit)
      continue;
    zero_rt_tensor view = {};
    view.struct_size = sizeof(view);
    if (!check(zero_rt_step_parameter(step, int32_t(p), &view)))
      return false;
    Piece &piece = state.pieces.emplace_back();
    piece.name = "parameter " + std::to_string(p) + " in " + when;
    piece.bytes.resize(size_t(view.elements * formatOf(view.dtype).size));
    if (!check(zero_rt_copy(runtime, piece.bytes.data(), view.data,
                            int64_t(piece.bytes.size()))))
      return false;
  }
  return true;
}

static std::string describe(const char *what, int step, int backward) {
  return std::string("the ") + what + " pass " + std::to_string(backward) +
         " of step " + std::to_string(step);
}

bool Rank::runForward(Pass pass) {
  auto count = int32_t(library.tables->num_units);
  std::string when = describe("forward", pass.step, pass.backward);
  for (int32_t unit = 0; unit < count; ++unit)
    if (!unshard(unit, unit + 1 < count ? unit + 1 : -1, when) ||
        !check(zero_rt_step_reshard(step, unit, nullptr)))
      return false;
  return true;
}

bool Rank::deliver(Pass pass, int64_t parameter) {
  const zero_rt_parameter_row &row = library.tables->parameters[parameter];
  for (int64_t use = 0; use < row.uses; ++use) {
    uint64_t seed =
        ((uint64_t(rank) * kSteps + pass.step) * kBackwards + pass.backward)
            << 32 |
        uint64_t(parameter) << 8 | uint64_t(use);
    zero_rt_tensor tensor;
    zero_rt_timepoint released = 0;
    if (!upload(draw(row.gradient_dtype, row.elements, seed),
                row.gradient_dtype, row.elements, tensor) ||
        !check(zero_rt_step_gradient(step, int32_t(parameter), &tensor, nullptr,
                                     &released)))
      return false;
  }
  return true;
}

/// The gradients of units, of the last unit first, and then those of no unit.
bool Rank::runBackward(Pass pass) {
  std::string when = describe("backward", pass.step, pass.backward);
  for (auto unit = int32_t(library.tables->num_units) - 1; unit >= -1; --unit) {
    if (unit >= 0 && !unshard(unit, unit - 1, when))
      return false;
    for (int64_t p = library.tables->num_parameters - 1; p >= 0; --p)
      if (unitOf(p) == unit && !deliver(pass, p))
        return false;
    if (unit >= 0 && !check(zero_rt_step_reshard(step, unit, nullptr)))
      return false;
  }
  return true;
}

bool Rank::apply(int number) {
  const zero_rt_library &tables = *library.tables;
  for (int backward = 0; backward < kBackwards; ++backward) {
    // In one step gradients are reduced early, which changes no bit. The last
    // two applies have the same to do.
    zero_rt_hint hint = number != 1                  ? ZERO_RT_HINT_UNKNOWN
                        : backward + 1 == kBackwards ? ZERO_RT_HINT_LAST
                                                     : ZERO_RT_HINT_MORE;
    Pass pass = {number, backward};
    if (!runForward(pass) || !check(zero_rt_step_begin_backward(step, hint)) ||
        !runBackward(pass) ||
        (backward + 1 < kBackwards && !check(zero_rt_step_accumulate(step))))
      return false;
  }
  std::vector<double> inputs;
  for (int64_t i = 0; i < tables.num_inputs; ++i)
    inputs.push_back(tables.inputs[i].tokens ? 7 + rank : 1e-3 * (number + 1));
  zero_rt_results results = {};
  results.struct_size = sizeof(results);
  if (!check(zero_rt_step_apply(step, inputs.data(), int32_t(inputs.size()),
                                nullptr)) ||
      !check(zero_rt_step_results(step, &results)))
    return false;
  // The outcome, the number of backward passes, and the values.
  std::vector<char> bytes;
  auto add = [&](const void *data, size_t size) {
    auto *begin = static_cast<const char *>(data);
    bytes.insert(bytes.end(), begin, begin + size);
  };
  add(&results.verdict, sizeof(results.verdict));
  add(&results.backwards, sizeof(results.backwards));
  add(results.values, size_t(results.num_values) * sizeof(double));
  state.pieces.push_back(
      {"results of step " + std::to_string(number), std::move(bytes)});
  return release();
}

bool Rank::read() {
  int64_t count = 0;
  if (!check(zero_rt_step_state_count(step, &count)))
    return false;
  for (int64_t i = 0; i < count; ++i) {
    zero_rt_state_entry entry = {};
    entry.struct_size = sizeof(entry);
    if (!check(zero_rt_step_state_describe(step, i, &entry)))
      return false;
    std::string name = entry.role;
    if (entry.parameter >= 0)
      name += " of " +
              std::string(library.tables->strings +
                          library.tables->parameters[entry.parameter].name);
    int64_t bytes = (entry.end - entry.begin) * formatOf(entry.dtype).size;
    Piece &piece = state.pieces.emplace_back();
    piece.name = name;
    piece.bytes.resize(static_cast<size_t>(bytes));
    if (!check(zero_rt_step_state_read(step, i, piece.bytes.data(), bytes)))
      return false;
  }
  return true;
}

/// All steps of |rank|.
static void runRank(const StepLibrary &library, zero_rt_group *group,
                    const Place &place, int32_t number, RankState &state) {
  Rank rank(library, state, number);
  bool ok = rank.create(group, place) && rank.bind();
  for (int step = 0; step < kSteps && ok; ++step) {
    if (step == place.dies)
      std::raise(SIGKILL);
    ok = rank.apply(step);
  }
  if (ok)
    rank.read();
}

/// The group of the process, and which rank of it that is.
static zero_rt_status joinProcesses(zero_rt_group **group, int32_t &rank,
                                    int32_t &count) {
  zero_rt_tcp_options options = {};
  options.struct_size = sizeof(options);
  if (zero_rt_status status = zero_rt_tcp_environment(&options))
    return status;
  options.timeout_ms = 30'000;
  rank = options.rank;
  count = options.ranks;
  return zero_rt_tcp_group_create(&options, group);
}

std::string StepRun::run(const StepLibrary &library, const Place &place) {
  auto numRanks = int32_t(library.tables->ranks);
  zero_rt_group *group = nullptr;
  if (place.processes) {
    int32_t count = 0;
    if (joinProcesses(&group, first, count))
      return zero_rt_message();
    ranks.assign(1, {});
    if (count == numRanks)
      runRank(library, group, place, first, ranks[0]);
    else
      ranks[0].error = "the step is for " + std::to_string(numRanks) +
                       " ranks, and there are " + std::to_string(count) +
                       " processes";
  } else {
    if (zero_rt_local_group_create(numRanks, &group))
      return zero_rt_message();
    ranks.assign(static_cast<size_t>(numRanks), {});
    std::vector<std::thread> threads;
    for (int32_t r = 0; r < numRanks; ++r)
      threads.emplace_back(
          [&, r] { runRank(library, group, place, r, ranks[size_t(r)]); });
    for (std::thread &thread : threads)
      thread.join();
  }
  zero_rt_group_destroy(group);
  for (const RankState &rank : ranks)
    if (!rank.error.empty())
      return rank.error;
  return "";
}
