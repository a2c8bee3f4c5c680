//===- CompiledEngine.cpp - Runs compiled code on rank threads ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/host/Tables.h"
#include "tools/zero-run/Arrivals.h"
#include "tools/zero-run/Floats.h"
#include "tools/zero-run/LibraryCache.h"
#include "tools/zero-run/Units.h"
#include "zero_rt/step.h"

#include "llvm/ADT/MapVector.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

using namespace mlir;
using namespace zero;

namespace {
/// One rank: its runtime, its step, and the message of its last failure.
struct Rank {
  zero_rt_runtime *runtime = nullptr;
  zero_rt_step *step = nullptr;
  std::string message;
  int64_t copiedByBinding = 0;  // bytes between spaces
  int64_t gathersToRead = 0;    // of units, to compare parameters
  int64_t sentToRead = 0;       // bytes of these
  int64_t copiedToRead = 0;     // between spaces
  std::mt19937_64 random;       // of the order of arrivals
  std::vector<void *> lent;     // gradients in the memory of a GPU
  std::vector<double> measured; // results of measure, and the outcome
  Units units;
  int32_t readUnit = -1; // unsharded to read its parameters
};

class CompiledEngine : public Engine {
public:
  ~CompiledEngine() override;

  LogicalResult open(ModuleOp scheduled, int64_t numRanks,
                     ArrayRef<ParameterInfo> all,
                     const CompiledOptions &options, std::string &message);
  LogicalResult bind(const ParameterInfo &parameter,
                     ArrayRef<double> values) override;
  FailureOr<StepResult> apply(ArrayRef<RankInputs> inputs) override;
  double getLossScale() override;
  FailureOr<std::vector<Number>>
  getParameter(int64_t rank, const ParameterInfo &parameter) override;
  FailureOr<std::vector<Number>>
  getState(StringRef role, const ParameterInfo &parameter) override;
  std::optional<zero_rt_counters> getCounters(int64_t rank) override;
  LogicalResult save(StringRef folder, int64_t number) override;
  FailureOr<int64_t> load(StringRef folder) override;

private:
  /// Runs |work| on a thread per rank; false results leave a message.
  bool onEveryRank(llvm::function_ref<bool(int64_t, Rank &)> work);
  /// Unshards |unit| on all ranks of its pipeline stage, and reshards the unit
  /// that they read before. If |unit| is -1, all ranks reshard theirs. Counters
  /// of a step leave out what this sends.
  bool openToRead(int32_t unit);
  /// Checks that ranks read the values of frozen parameters in their units.
  LogicalResult checkAllFrozen();
  /// Whether |status| is ok; keeps the message if not.
  bool check(Rank &rank, zero_rt_status status);
  bool deliver(Rank &rank, const RankInputs &inputs);
  bool upload(Rank &rank, std::vector<Arrival> &arrivals);
  void releaseLent(Rank &rank);
  bool readMeasured(Rank &rank);
  bool isAsMeasured(Rank &rank, const zero_rt_results &results);
  bool deliverInOrder(Rank &rank, const RankInputs &inputs,
                      std::vector<Arrival> &order);
  bool deliverInterleaved(Rank &rank, const RankInputs &inputs,
                          std::vector<Arrival> &order);
  std::string joinMessages();

  MLIRContext *context = nullptr;      // for diagnostics
  std::vector<zero_rt_group *> groups; // one, or that of each rank
  std::vector<Rank> ranks;
  std::vector<ParameterInfo> parameters;
  std::vector<ParameterInfo> frozen; // of units that are sharded
  llvm::StringSet<> traveling;       // trained parameters of such units
  Arrivals arrivals = Arrivals::backward;
  bool isOnGpu = false;
};
} // namespace

bool CompiledEngine::check(Rank &rank, zero_rt_status status) {
  if (status == ZERO_RT_OK)
    return true;
  rank.message =
      std::string(zero_rt_status_name(status)) + ": " + zero_rt_message();
  return false;
}

bool CompiledEngine::onEveryRank(
    llvm::function_ref<bool(int64_t, Rank &)> work) {
  std::vector<std::thread> threads;
  std::vector<char> ok(ranks.size(), 0);
  for (size_t r = 0; r < ranks.size(); ++r)
    threads.emplace_back([&, r] { ok[r] = work(r, ranks[r]); });
  for (std::thread &thread : threads)
    thread.join();
  return llvm::all_of(ok, [](char one) { return one != 0; });
}

std::string CompiledEngine::joinMessages() {
  // What several ranks say is said once.
  llvm::MapVector<StringRef, std::string> byMessage;
  for (auto [r, rank] : llvm::enumerate(ranks))
    if (!rank.message.empty()) {
      std::string &names = byMessage[rank.message];
      names += (names.empty() ? "rank " : ", ") + std::to_string(r);
    }
  std::string text;
  for (const auto &[message, names] : byMessage)
    text += (text.empty() ? "" : "; ") + names + ": " + message.str();
  return text;
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// Opens the library |path|, which must be that of |scheduled|.
static LogicalResult openLibrary(const std::string &path, ModuleOp scheduled,
                                 const zero_rt_library **library,
                                 std::string &message) {
  if (zero_rt_open(path.c_str(), library) != ZERO_RT_OK) {
    message =
        std::string("cannot open the compiled step: ") + zero_rt_message();
    return failure();
  }
  FailureOr<Tables> tables =
      buildTables(*scheduled.getOps<zrt::ProgramOp>().begin());
  if (failed(tables))
    return failure(); // diagnosed
  zero_rt_library_info info = {};
  info.struct_size = sizeof(info);
  if (zero_rt_library_describe(*library, &info) == ZERO_RT_OK &&
      info.plan_hash == tables->planHash)
    return success();
  message = "'" + path +
            "' has another plan than the step with these options; compile the "
            "same step with the same --mesh, --stage and other options of "
            "lowering, or leave out --library";
  return failure();
}

LogicalResult CompiledEngine::open(ModuleOp scheduled, int64_t numRanks,
                                   ArrayRef<ParameterInfo> all,
                                   const CompiledOptions &options,
                                   std::string &message) {
  context = scheduled.getContext();
  isOnGpu = !options.gpus.empty();
  CompileOptions compileOptions;
  compileOptions.name = "step"; // the step may have a name that no file has
  compileOptions.target.cpu = options.cpu;
  if (isOnGpu)
    compileOptions.cuda.emplace();
  LibraryCache own; // once a library is open, its file may go
  std::string path =
      !options.library.empty() ? options.library
      : options.libraries
          ? options.libraries->find(scheduled, compileOptions, message)
          : own.add(scheduled, compileOptions, message);
  const zero_rt_library *library = nullptr;
  if (path.empty() || failed(openLibrary(path, scheduled, &library, message)))
    return failure();
  parameters.assign(all.begin(), all.end());
  ranks.resize(numRanks);
  arrivals = options.arrivals;
  for (auto [r, rank] : llvm::enumerate(ranks))
    rank.random.seed(r);
  if (options.connect) {
    groups = options.connect(numRanks);
  } else {
    groups.resize(1);
    zero_rt_local_group_create(numRanks, &groups[0]);
  }
  zero_rt_options runtimeOptions = {};
  runtimeOptions.struct_size = sizeof(runtimeOptions);
  runtimeOptions.threads = options.threads;
  runtimeOptions.timeout_ms = options.timeoutMs;
  runtimeOptions.device = isOnGpu ? "cuda" : "host";
  // A read before the first write must show, and a promise not kept.
  runtimeOptions.poison = 1;
  runtimeOptions.check_promises = options.checks;
  runtimeOptions.find_nonfinite = options.checks;
  runtimeOptions.graphs = options.graphs;
  runtimeOptions.trace =
      options.trace.empty() ? nullptr : options.trace.c_str();
  bool ok = onEveryRank([&](int64_t r, Rank &rank) {
    bool hasOwn = options.connect != nullptr;
    zero_rt_options mine = runtimeOptions;
    if (isOnGpu)
      mine.ordinal = options.gpus[size_t(r) % options.gpus.size()];
    return check(rank, zero_rt_create(groups[hasOwn ? r : 0], r, &mine,
                                      &rank.runtime)) &&
           check(rank, zero_rt_step_create(rank.runtime, library, nullptr,
                                           &rank.step));
  });
  traveling = findTraveling(scheduled);
  for (ParameterInfo &info : readFrozen(scheduled))
    frozen.push_back(std::move(info));
  for (auto [r, rank] : llvm::enumerate(ranks))
    if (ok)
      ok = check(rank, rank.units.read(scheduled, r, rank.step,
                                       parameters.size() + frozen.size(),
                                       options.unitUses));
  message = joinMessages();
  if (!ok)
    return failure();
  for (const ParameterInfo &info : frozen)
    if (failed(bind(info, getFrozenValues(info))))
      return failure();
  return success();
}

CompiledEngine::~CompiledEngine() {
  onEveryRank([&](int64_t, Rank &rank) {
    releaseLent(rank);
    if (rank.step)
      zero_rt_step_destroy(rank.step);
    // Its trace may be incomplete.
    if (rank.runtime && zero_rt_destroy(rank.runtime))
      llvm::errs() << std::string("warning: ") + zero_rt_message() + "\n";
    return true;
  });
  for (zero_rt_group *group : groups)
    zero_rt_group_destroy(group);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

LogicalResult CompiledEngine::bind(const ParameterInfo &parameter,
                                   ArrayRef<double> values) {
  bool ok = onEveryRank([&](int64_t r, Rank &rank) {
    if (!parameter.holders[r])
      return true;
    int32_t id = -1;
    std::vector<double> part = parameter.take(values.vec(), r);
    Bytes bytes = pack(part, parameter.storageType);
    zero_rt_tensor tensor =
        makeTensor(bytes, parameter.storageType, part.size());
    return check(rank, zero_rt_step_find_parameter(
                           rank.step, parameter.name.c_str(), &id)) &&
           check(rank, zero_rt_step_bind_parameter(rank.step, id, &tensor));
  });
  for (auto [r, rank] : llvm::enumerate(ranks)) {
    rank.copiedByBinding = 0;
    if (std::optional<zero_rt_counters> counters = getCounters(r))
      rank.copiedByBinding = counters->bytes_copied_between_spaces;
  }
  if (!ok)
    return emitError(UnknownLoc::get(context))
           << "@" << parameter.name << ": " << joinMessages();
  return success();
}

bool CompiledEngine::deliverInOrder(Rank &rank, const RankInputs &inputs,
                                    std::vector<Arrival> &order) {
  auto next = order.begin();
  int64_t numBackwards = inputs.backwards.size();
  for (int64_t k = 0; k < numBackwards; ++k) {
    int32_t hint =
        inputs.begunAsLast.count(k) ? ZERO_RT_HINT_LAST : ZERO_RT_HINT_UNKNOWN;
    if (!check(rank, rank.units.runForward(rank.step)) ||
        !check(rank, zero_rt_step_begin_backward(rank.step, hint)))
      return false;
    auto end = std::find_if(next, order.end(), [&](const Arrival &arrival) {
      return arrival.backward != k;
    });
    auto take = [&](Arrival &arrival) {
      zero_rt_timepoint release = 0;
      return zero_rt_step_gradient(rank.step, arrival.parameter,
                                   &arrival.tensor, nullptr, &release);
    };
    if (!check(rank, rank.units.runBackward(
                         rank.step, {&*next, size_t(end - next)}, take)))
      return false;
    next = end;
    // The last one may be left to apply.
    if ((k + 1 < numBackwards || inputs.closesLast) &&
        !check(rank, zero_rt_step_accumulate(rank.step)))
      return false;
  }
  return true;
}

bool CompiledEngine::deliverInterleaved(Rank &rank, const RankInputs &inputs,
                                        std::vector<Arrival> &order) {
  int64_t numBackwards = inputs.backwards.size();
  std::vector<int64_t> left(numBackwards, 0);
  for (const Arrival &arrival : order)
    ++left[arrival.backward];
  for (int64_t k = 0; k < numBackwards; ++k)
    if (left[k] == 0 && !check(rank, zero_rt_step_end_backward(rank.step, k)))
      return false;
  for (Arrival &arrival : order) {
    // With a release, so that nothing is copied.
    zero_rt_timepoint release = 0;
    if (!check(rank, zero_rt_step_gradient_of(
                         rank.step, arrival.backward, arrival.parameter,
                         &arrival.tensor, nullptr, &release)))
      return false;
    if (--left[arrival.backward] == 0 &&
        !check(rank, zero_rt_step_end_backward(rank.step, arrival.backward)))
      return false;
  }
  return numBackwards == 0 || !inputs.closesLast ||
         check(rank, zero_rt_step_accumulate(rank.step));
}

/// Copies gradients to where kernels can read them.
bool CompiledEngine::upload(Rank &rank, std::vector<Arrival> &all) {
  releaseLent(rank);
  for (Arrival &arrival : all) {
    void *data = nullptr;
    int64_t bytes = arrival.bytes.size();
    if (!check(rank, zero_rt_allocate(rank.runtime, bytes, &data)))
      return false;
    rank.lent.push_back(data);
    if (!check(rank,
               zero_rt_copy(rank.runtime, data, arrival.bytes.data(), bytes)))
      return false;
    arrival.tensor.data = data;
  }
  return true;
}

void CompiledEngine::releaseLent(Rank &rank) {
  for (void *data : rank.lent)
    zero_rt_release(rank.runtime, data);
  rank.lent.clear();
}

bool CompiledEngine::deliver(Rank &rank, const RankInputs &inputs) {
  // Tensors live until apply, those on a GPU until the next step.
  std::vector<Arrival> order =
      listArrivals(parameters, inputs, arrivals, rank.random);
  if (isOnGpu && !upload(rank, order))
    return false;
  bool isDelivered = arrivals == Arrivals::interleaved
                         ? deliverInterleaved(rank, inputs, order)
                         : deliverInOrder(rank, inputs, order);
  if (!isDelivered)
    return false;
  const double *values = inputs.inputs.data();
  int32_t count = inputs.inputs.size();
  if (!inputs.measures)
    return check(rank, zero_rt_step_apply(rank.step, values, count, nullptr));
  return check(rank, zero_rt_step_measure(rank.step, values, count, nullptr)) &&
         readMeasured(rank) &&
         check(rank, zero_rt_step_apply(rank.step, nullptr, 0, nullptr));
}

/// Keeps the results of measure.
bool CompiledEngine::readMeasured(Rank &rank) {
  zero_rt_results results = {};
  results.struct_size = sizeof(results);
  // A refused step is an error with an outcome.
  zero_rt_status status = zero_rt_step_results(rank.step, &results);
  if (results.verdict == ZERO_RT_APPLIED && !check(rank, status))
    return false;
  rank.measured.assign(results.values, results.values + results.num_values);
  rank.measured.push_back(results.verdict);
  return true;
}

/// Whether apply reports what measure has reported, bit by bit.
bool CompiledEngine::isAsMeasured(Rank &rank, const zero_rt_results &results) {
  std::vector<double> applied(results.values,
                              results.values + results.num_values);
  applied.push_back(results.verdict);
  if (rank.measured.size() == applied.size() &&
      std::memcmp(rank.measured.data(), applied.data(),
                  applied.size() * sizeof(double)) == 0)
    return true;
  rank.message = "apply reports other results than measure";
  return false;
}

double CompiledEngine::getLossScale() {
  double scale = 0;
  for (auto [r, rank] : llvm::enumerate(ranks)) {
    double own = 0;
    if (zero_rt_step_loss_scale(rank.step, &own) != ZERO_RT_OK ||
        (r > 0 && own != scale))
      return 0;
    scale = own;
  }
  return scale;
}

FailureOr<StepResult> CompiledEngine::apply(ArrayRef<RankInputs> inputs) {
  if (!openToRead(-1))
    return emitError(UnknownLoc::get(context)) << joinMessages();
  std::vector<zero_rt_results> results(ranks.size());
  std::string notFinite;
  bool ok = onEveryRank([&](int64_t r, Rank &rank) {
    rank.message.clear();
    if (!deliver(rank, inputs[r]))
      return false;
    results[r].struct_size = sizeof(zero_rt_results);
    // A refused step is an error with a outcome: here the outcome counts.
    bool known = check(rank, zero_rt_step_results(rank.step, &results[r])) ||
                 results[r].verdict != ZERO_RT_APPLIED;
    if (known && inputs[r].measures && !isAsMeasured(rank, results[r]))
      return false;
    // All ranks say the same.
    if (r == 0 && (results[r].verdict == ZERO_RT_SKIPPED_NONFINITE ||
                   results[r].verdict == ZERO_RT_REFUSED_NONFINITE))
      notFinite = zero_rt_message();
    return known;
  });
  StepResult result;
  result.message = joinMessages();
  if (!ok)
    return emitError(UnknownLoc::get(context)) << result.message;
  if (failed(checkAllFrozen()))
    return failure();
  result.outcome = Outcome(results[0].verdict);
  if (!notFinite.empty())
    result.message = notFinite;
  result.backwards = results[0].backwards;
  result.values.assign(results[0].values,
                       results[0].values + results[0].num_values);
  return result;
}

bool CompiledEngine::openToRead(int32_t unit) {
  auto isOpen = [&](const Rank &rank) {
    return rank.readUnit == unit || (unit >= 0 && !rank.units.has(unit));
  };
  if (llvm::all_of(ranks, isOpen))
    return true;
  return onEveryRank([&](int64_t r, Rank &rank) {
    if (isOpen(rank))
      return true;
    int32_t last = std::exchange(rank.readUnit, -1);
    if (last >= 0 &&
        !check(rank, zero_rt_step_reshard(rank.step, last, nullptr)))
      return false;
    std::optional<zero_rt_counters> before = getCounters(r);
    if (!before)
      return false;
    for (int32_t one : rank.units.getWay(last, unit))
      if (!check(rank, zero_rt_step_unshard(rank.step, one, nullptr)) ||
          (one != unit &&
           !check(rank, zero_rt_step_reshard(rank.step, one, nullptr))))
        return false;
    std::optional<zero_rt_counters> after = getCounters(r);
    if (!after)
      return false;
    rank.gathersToRead += after->all_gathers - before->all_gathers;
    rank.sentToRead += after->bytes_sent - before->bytes_sent;
    rank.copiedToRead += after->bytes_copied_between_spaces -
                         before->bytes_copied_between_spaces;
    rank.readUnit = unit;
    return true;
  });
}

FailureOr<std::vector<Number>>
CompiledEngine::getParameter(int64_t r, const ParameterInfo &parameter) {
  Rank &rank = ranks[r];
  int32_t id = -1;
  zero_rt_tensor view = {};
  view.struct_size = sizeof(view);
  if (!check(rank, zero_rt_step_find_parameter(rank.step,
                                               parameter.name.c_str(), &id)) ||
      !openToRead(rank.units.of(id)) ||
      !check(rank, zero_rt_step_parameter(rank.step, id, &view)))
    return failure();
  Bytes bytes(view.elements * getWidth(parameter.storageType));
  if (!check(rank,
             zero_rt_copy(rank.runtime, bytes.data(), view.data, bytes.size())))
    return failure();
  auto read = unpack(bytes.data(), view.elements, parameter.storageType);
  if (!traveling.contains(parameter.name) || !parameter.gatherType ||
      parameter.gatherType == parameter.storageType)
    return read;
  // The caller reads rounded numbers; slices are compared with the reference.
  auto whole = getState("parameter", parameter);
  if (failed(whole))
    return failure();
  std::string wrong = checkTravel(parameter, r, read, *whole);
  if (wrong.empty())
    return read;
  return emitError(UnknownLoc::get(context)) << wrong;
}

LogicalResult CompiledEngine::checkAllFrozen() {
  for (const ParameterInfo &info : frozen) {
    for (size_t r = 0; r < ranks.size(); ++r) {
      if (!info.holders[r])
        continue;
      auto read = getParameter(r, info);
      if (failed(read))
        return emitError(UnknownLoc::get(context)) << joinMessages();
      if (std::string wrong = checkFrozen(info, r, *read); !wrong.empty())
        return emitError(UnknownLoc::get(context)) << wrong;
    }
  }
  return success();
}

FailureOr<std::vector<Number>>
CompiledEngine::getState(StringRef role, const ParameterInfo &parameter) {
  std::vector<Number> whole;
  for (auto [r, rank] : llvm::enumerate(ranks)) {
    int64_t count = 0;
    int32_t id = -1;
    if (!parameter.holders[r])
      continue;
    if (!check(rank, zero_rt_step_find_parameter(
                         rank.step, parameter.name.c_str(), &id)) ||
        !check(rank, zero_rt_step_state_count(rank.step, &count)))
      return failure();
    for (int64_t i = 0; i < count; ++i) {
      zero_rt_state_entry entry = {};
      entry.struct_size = sizeof(entry);
      if (!check(rank, zero_rt_step_state_describe(rank.step, i, &entry)))
        return failure();
      if (entry.parameter != id || role != entry.role)
        continue;
      Type type = getType(entry.dtype, parameter.storageType.getContext());
      Bytes bytes((entry.end - entry.begin) * getWidth(type));
      if (!check(rank, zero_rt_step_state_read(rank.step, i, bytes.data(),
                                               bytes.size())))
        return failure();
      whole.resize(parameter.elements);
      std::vector<Number> part =
          unpack(bytes.data(), entry.end - entry.begin, type);
      for (auto [e, number] : llvm::enumerate(part)) {
        int64_t position = entry.begin + e;
        whole[parameter.held.empty() ? position : parameter.held[r][position]] =
            number;
      }
    }
  }
  return whole;
}

std::optional<zero_rt_counters> CompiledEngine::getCounters(int64_t rank) {
  zero_rt_counters counters = {};
  counters.struct_size = sizeof(counters);
  if (!check(ranks[rank],
             zero_rt_read_counters(ranks[rank].runtime, &counters)))
    return std::nullopt;
  counters.bytes_copied_between_spaces -= ranks[rank].copiedByBinding;
  counters.all_gathers -= ranks[rank].gathersToRead;
  counters.bytes_sent -= ranks[rank].sentToRead;
  counters.bytes_copied_between_spaces -= ranks[rank].copiedToRead;
  return counters;
}

//===----------------------------------------------------------------------===//
// Checkpoints
//===----------------------------------------------------------------------===//

LogicalResult CompiledEngine::save(StringRef folder, int64_t number) {
  std::string path = folder.str();
  if (openToRead(-1) && onEveryRank([&](int64_t, Rank &rank) {
        return check(rank, zero_rt_step_save(rank.step, path.c_str(), number));
      }))
    return success();
  return emitError(UnknownLoc::get(context)) << joinMessages();
}

FailureOr<int64_t> CompiledEngine::load(StringRef folder) {
  std::string path = folder.str();
  std::vector<int64_t> numbers(ranks.size());
  if (openToRead(-1) && onEveryRank([&](int64_t r, Rank &rank) {
        return check(rank,
                     zero_rt_step_load(rank.step, path.c_str(), &numbers[r]));
      }))
    return numbers[0];
  return emitError(UnknownLoc::get(context)) << joinMessages();
}

std::unique_ptr<Engine> zero::createCompiledEngine(
    ModuleOp scheduled, int64_t ranks, ArrayRef<ParameterInfo> all,
    const CompiledOptions &options, std::string &message) {
  auto engine = std::make_unique<CompiledEngine>();
  if (failed(engine->open(scheduled, ranks, all, options, message)))
    return nullptr;
  return engine;
}
