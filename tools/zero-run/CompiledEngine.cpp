//===- CompiledEngine.cpp - Runs compiled code on rank threads ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/CompiledEngine.h"

#include "codegen/host/Tables.h"
#include "tools/zero-run/Floats.h"
#include "tools/zero-run/LibraryCache.h"
#include "zero_rt/step.h"

#include "llvm/ADT/MapVector.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

using namespace mlir;
using namespace zero;

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
    if (isHere(r))
      threads.emplace_back([&, r] { ok[r] = work(r, ranks[r]); });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t r = 0; processes && r < ranks.size(); ++r) {
    std::vector<char> said(ranks[r].message.begin(), ranks[r].message.end());
    said.push_back(ok[r]);
    share(r, said);
    ok[r] = said.back();
    ranks[r].message.assign(said.begin(), said.end() - 1);
  }
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
  zero_rt_library_info info = {};
  info.struct_size = sizeof(info);
  if (zero_rt_library_describe(*library, &info) == ZERO_RT_OK &&
      info.plan_hash == hashPlan(scheduled))
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
  processes = options.processes;
  if (processes) {
    groups = {processes->createGroup()};
    if (!groups[0]) {
      groups.clear();
      message = zero_rt_message();
    }
  } else if (options.connect) {
    groups = options.connect(numRanks);
  } else {
    groups = createGroups(options.group, numRanks, message);
  }
  if (groups.empty())
    return failure();
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
  runtimeOptions.nvtx = options.nvtx;
  bool ok = onEveryRank([&](int64_t r, Rank &rank) {
    zero_rt_options mine = runtimeOptions;
    if (isOnGpu)
      mine.ordinal = options.gpus[size_t(r) % options.gpus.size()];
    zero_rt_group *group = groups[groups.size() > 1 ? r : 0];
    return check(rank, zero_rt_create(group, r, &mine, &rank.runtime)) &&
           check(rank, zero_rt_step_create(rank.runtime, library, nullptr,
                                           &rank.step));
  });
  traveling = findTraveling(scheduled);
  for (ParameterInfo &info : readFrozen(scheduled))
    frozen.push_back(std::move(info));
  ok = ok && onEveryRank([&](int64_t r, Rank &rank) {
         return check(rank, rank.units.read(scheduled, r, rank.step,
                                            parameters.size() + frozen.size(),
                                            options.unitUses));
       });
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
  ok = ok && onEveryRank([&](int64_t, Rank &rank) {
         rank.copiedByBinding = 0;
         std::optional<zero_rt_counters> counters = readCounters(rank);
         if (counters)
           rank.copiedByBinding = counters->bytes_copied_between_spaces;
         return counters.has_value();
       });
  if (!ok)
    return emitError(UnknownLoc::get(context))
           << "@" << parameter.name << ": " << joinMessages();
  return success();
}

zero_rt_status CompiledEngine::deliverEach(Rank &rank,
                                           ArrayRef<Arrival *> list) {
  zero_rt_status status = ZERO_RT_OK;
  for (Arrival *arrival : list) {
    zero_rt_timepoint release = 0;
    if (!status)
      status = zero_rt_step_gradient(rank.step, arrival->parameter,
                                     &arrival->tensor, nullptr, &release);
  }
  return status;
}

/// Delivers several gradients in a call, as many as this rank draws.
zero_rt_status CompiledEngine::deliverInBatches(Rank &rank,
                                                ArrayRef<Arrival *> list) {
  zero_rt_status status = ZERO_RT_OK;
  while (!list.empty() && !status) {
    size_t count = 1 + rank.random() % list.size();
    SmallVector<int32_t> numbers;
    SmallVector<zero_rt_tensor> tensors;
    for (Arrival *arrival : list.take_front(count)) {
      numbers.push_back(arrival->parameter);
      tensors.push_back(arrival->tensor);
    }
    SmallVector<zero_rt_timepoint> releases(count);
    status = zero_rt_step_gradients(rank.step, numbers.data(), tensors.data(),
                                    int64_t(count), nullptr, releases.data());
    list = list.drop_front(count);
  }
  return status;
}

bool CompiledEngine::deliverInOrder(Rank &rank, const RankInputs &inputs,
                                    std::vector<Arrival> &order) {
  auto next = order.begin();
  int64_t numBackwards = inputs.backwards.size();
  for (int64_t k = loadedBackwards; k < numBackwards; ++k) {
    int32_t hint =
        inputs.begunAsLast.count(k) ? ZERO_RT_HINT_LAST : ZERO_RT_HINT_UNKNOWN;
    if (!check(rank, rank.units.runForward(rank.step)) ||
        !check(rank, zero_rt_step_begin_backward(rank.step, hint)))
      return false;
    auto end = std::find_if(next, order.end(), [&](const Arrival &arrival) {
      return arrival.backward != k;
    });
    auto take = [&](ArrayRef<Arrival *> list) {
      return arrivals == Arrivals::shuffled ? deliverInBatches(rank, list)
                                            : deliverEach(rank, list);
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
  for (int64_t k = loadedBackwards; k < numBackwards; ++k)
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
  return numBackwards == loadedBackwards || !inputs.closesLast ||
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

/// Delivers all gradients. |order| has them, and lives until apply or discard;
/// those on a GPU live until the next step.
bool CompiledEngine::deliver(Rank &rank, const RankInputs &inputs,
                             std::vector<Arrival> &order) {
  order = listArrivals(parameters, inputs, arrivals, rank.random);
  llvm::erase_if(order, [&](const Arrival &arrival) {
    return arrival.backward < loadedBackwards;
  });
  if (isOnGpu && !upload(rank, order))
    return false;
  return arrivals == Arrivals::interleaved
             ? deliverInterleaved(rank, inputs, order)
             : deliverInOrder(rank, inputs, order);
}

/// Delivers all gradients and applies.
bool CompiledEngine::finish(Rank &rank, const RankInputs &inputs) {
  std::vector<Arrival> order;
  if (!deliver(rank, inputs, order))
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
  std::vector<double> scales;
  for (auto [r, rank] : llvm::enumerate(ranks)) {
    std::vector<double> scale{0};
    if (isHere(r))
      zero_rt_step_loss_scale(rank.step, scale.data()); // 0 on an error
    share(r, scale);
    scales.push_back(scale[0]);
  }
  return llvm::all_equal(scales) ? scales[0] : 0;
}

FailureOr<StepResult> CompiledEngine::apply(ArrayRef<RankInputs> inputs) {
  if (!openToRead(-1))
    return emitError(UnknownLoc::get(context)) << joinMessages();
  if (int64_t(inputs[0].backwards.size()) < loadedBackwards)
    return emitError(UnknownLoc::get(context))
           << "the checkpoint has the gradients of " << loadedBackwards
           << " backward passes, and the step has "
           << inputs[0].backwards.size();
  std::vector<zero_rt_results> results(ranks.size());
  std::string notFinite;
  bool ok = onEveryRank([&](int64_t r, Rank &rank) {
    rank.message.clear();
    if (!finish(rank, inputs[r]))
      return false;
    results[r].struct_size = sizeof(zero_rt_results);
    // A refused step is an error with a outcome: here the outcome counts.
    bool known = check(rank, zero_rt_step_results(rank.step, &results[r])) ||
                 results[r].verdict != ZERO_RT_APPLIED;
    if (known && inputs[r].measures && !isAsMeasured(rank, results[r]))
      return false;
    // All ranks say the same.
    if (r == getFirstHere() &&
        (results[r].verdict == ZERO_RT_SKIPPED_NONFINITE ||
         results[r].verdict == ZERO_RT_REFUSED_NONFINITE))
      notFinite = zero_rt_message();
    return known;
  });
  loadedBackwards = 0;
  StepResult result;
  result.message = joinMessages();
  if (!ok)
    return emitError(UnknownLoc::get(context)) << result.message;
  if (failed(checkAllFrozen()))
    return failure();
  const zero_rt_results &first = results[getFirstHere()];
  result.outcome = Outcome(first.verdict);
  if (!notFinite.empty())
    result.message = notFinite;
  result.backwards = first.backwards;
  result.values.assign(first.values, first.values + first.num_values);
  return result;
}

std::unique_ptr<Engine> zero::createCompiledEngine(
    ModuleOp scheduled, int64_t ranks, ArrayRef<ParameterInfo> all,
    const CompiledOptions &options, std::string &message) {
  auto engine = std::make_unique<CompiledEngine>();
  if (failed(engine->open(scheduled, ranks, all, options, message)))
    return nullptr;
  return engine;
}
