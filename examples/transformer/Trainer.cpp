//===- Trainer.cpp - Training on several ranks with a compiled step -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Trainer.h"

#include "examples/transformer/Check.h"
#include "examples/transformer/Groups.h"
#include "examples/transformer/Model.h"
#include "examples/transformer/Resume.h"
#include "examples/transformer/Shared.h"
#include "examples/transformer/StepText.h"
#include "examples/transformer/Transfers.h"
#include "examples/transformer/Units.h"

#include <algorithm>
#include <cmath>
#include <thread>

namespace transformer {

namespace {

/// One rank: a runtime, a step and a model that reads the step's parameters. A
/// model holds the activations of one micro-batch, so a pipeline stage has one
/// for each that is under way.
class Rank {
public:
  Rank(Shared &shared, zero_rt_group *group, int rank);
  void run();

private:
  void bind();
  void look(size_t parameter);
  void keepUnits();
  double runStep(int64_t step);
  double forward(int64_t step, int64_t microBatch);
  void backward(int64_t microBatch);
  void receive(int32_t activation, int64_t microBatch,
               std::vector<float> &values);
  void send(int32_t activation, int64_t microBatch,
            const std::vector<float> &values, const int64_t *shape);
  Model<float> &modelOf(int64_t microBatch) {
    return models[size_t(microBatch) % models.size()];
  }
  void finishStep(int64_t step);
  void save(int64_t steps);
  void handOver(int32_t parameter, const float *gradient);
  zero_rt_counters readCounters();
  void destroy();

  Shared &shared;
  const Options &options;
  const zero_rt_library &library;
  int rank;
  int64_t stage, copy;
  zero_rt_runtime *runtime = nullptr;
  zero_rt_step *step = nullptr;
  zero_rt_counters atStart = {};
  int64_t first = 0; // steps that were made before
  std::vector<Model<float>> models;
  std::vector<const float *> views; // the parameters that the models read
  std::vector<size_t> wholes;       // those that are of no unit
  std::unique_ptr<Transfers> transfers;
  std::unique_ptr<Units> units;
  std::vector<std::vector<float>> kept; // the parameters of units, at the end
  std::vector<int32_t> ids; // of parameters in the step, in the model's order
  int32_t before = -1;      // the activation that comes from the stage before
  int32_t behind = -1;      // the one that goes to the next
  double scale = 1;         // what gradients are multiplied by
  Rounded rounded;
};

} // namespace

static zero_rt_dtype dtypeOf(Precision precision) {
  switch (precision) {
  case Precision::bf16:
    return ZERO_RT_BF16;
  case Precision::fp16:
    return ZERO_RT_F16;
  case Precision::f32:
    break;
  }
  return ZERO_RT_F32;
}

static constexpr char kOtherModel[] = "; give --library the --mesh, --text, "
                                      "--precision and sizes of the model that "
                                      "--emit-step had";

/// Linear warm-up over a tenth, then half a cosine down to a tenth.
static double learningRate(const Options &options, int64_t step) {
  double warmUp = std::max(1.0, double(options.steps) / 10);
  if (double(step) < warmUp)
    return options.rate * double(step + 1) / (std::floor(warmUp) + 1);
  double share =
      (double(step) - warmUp) / std::max(1.0, double(options.steps) - warmUp);
  return options.rate * (0.1 + 0.45 * (1 + std::cos(share * M_PI)));
}

Rank::Rank(Shared &shared, zero_rt_group *group, int rank)
    : shared(shared), options(shared.options), library(shared.library),
      rank(rank), stage(options.mesh.stageOf(rank)),
      copy(options.mesh.copyOf(rank)) {
  for (int64_t m = stage; m < options.mesh.stages; ++m)
    models.emplace_back(options.shape, options.batch, stage,
                        options.mesh.stages);
  zero_rt_options settings = {};
  settings.struct_size = sizeof(settings);
  int64_t cores = std::thread::hardware_concurrency();
  settings.threads = static_cast<int32_t>(
      options.threads ? options.threads
                      : std::max<int64_t>(1, cores / options.mesh.ranks()));
  settings.check_promises = options.checkPreconditions;
  settings.device = options.gpus ? "cuda" : "host";
  if (options.gpus)
    settings.ordinal =
        int32_t((shared.firstGpu + rank - shared.ranks.front()) % options.gpus);
  check(zero_rt_create(group, rank, &settings, &runtime), "zero_rt_create",
        rank);
  check(zero_rt_step_create(runtime, &library, nullptr, &step),
        "zero_rt_step_create", rank);
  transfers = std::make_unique<Transfers>(runtime, options.gpus > 0, rank);
  bind();
  if (options.resume) {
    first = resume(step, options.save, ids, shared.reference.get(), rank);
    if (shared.isFirst(rank)) {
      shared.result.first = first;
      if (shared.reports)
        shared.progress.begin(first);
    }
  }
  atStart = readCounters();
}

/// Makes the values of now visible to the models.
void Rank::look(size_t parameter) {
  zero_rt_tensor view = {};
  view.struct_size = sizeof(view);
  check(zero_rt_step_parameter(step, ids[parameter], &view),
        "zero_rt_step_parameter", rank);
  views[parameter] = transfers->read(parameter, view);
  shared.views[copy][parameter] = views[parameter];
}

void Rank::bind() {
  views.resize(shared.parameters.size());
  std::vector<int32_t> layers; // their units
  for (size_t i = 0; i < shared.parameters.size(); ++i) {
    const Parameter &parameter = shared.parameters[i];
    ids.push_back(-1);
    if (parameter.stage != stage)
      continue;
    int32_t &id = ids.back();
    check(zero_rt_step_find_parameter(step, parameter.name.c_str(), &id),
          "zero_rt_step_find_parameter", rank, kOtherModel);
    // Refuses another size or dtype, so a step of another model is found out.
    zero_rt_tensor value = transfers->give(ZERO_RT_F32, parameter.elements(),
                                           shared.initial[i].data());
    check(zero_rt_step_bind_parameter(step, id, &value),
          "zero_rt_step_bind_parameter", rank, kOtherModel);
    int32_t unit = -1;
    check(zero_rt_step_unit_of(step, id, &unit), "zero_rt_step_unit_of", rank);
    if (unit < 0)
      wholes.push_back(i);
    else if (layers.empty() || layers.back() != unit)
      layers.push_back(unit);
  }
  Part part = partOf(options.shape, stage, options.mesh.stages);
  units = std::make_unique<Units>(step, std::move(layers), part.begin, rank,
                                  [this](size_t i) { look(i); });
  for (size_t i : wholes)
    look(i);
  units->visit([](size_t) {});
  // A parameter has one address for the models, whenever its unit is unsharded.
  for (Model<float> &model : models) {
    model.setParameters(views);
    if (!units->empty())
      model.setLayerHook(
          [this](int64_t layer, Use use) { units->use(layer, use); });
  }
  auto findActivation = [&](int64_t from, int32_t &out) {
    if (from >= 0 && from + 1 < options.mesh.stages)
      check(zero_rt_step_find_activation(step, activationName(from).c_str(),
                                         &out),
            "zero_rt_step_find_activation", rank);
  };
  findActivation(stage - 1, before);
  findActivation(stage, behind);
}

void Rank::handOver(int32_t parameter, const float *gradient) {
  int64_t elements = shared.parameters[parameter].elements();
  rounded.assign(options.precision, gradient, elements);
  zero_rt_tensor tensor = transfers->give(dtypeOf(options.precision), elements,
                                          rounded.bytes.data());
  // Without a release: the next gradient overwrites the tensor.
  check(zero_rt_step_gradient(step, ids[parameter], &tensor, nullptr, nullptr),
        "zero_rt_step_gradient", rank, kOtherModel);
  const double divisor = options.imported ? double(options.backwards) : 1;
  if (shared.reference)
    shared.reference->addGradient(copy, parameter, rounded.values,
                                  scale * divisor);
}

void Rank::receive(int32_t activation, int64_t microBatch,
                   std::vector<float> &values) {
  zero_rt_tensor tensor =
      transfers->makeRoom(ZERO_RT_F32, int64_t(values.size()), values.data());
  check(zero_rt_step_receive(step, activation, microBatch, &tensor, nullptr),
        "zero_rt_step_receive", rank);
  transfers->fetch(tensor, values.data());
}

void Rank::send(int32_t activation, int64_t microBatch,
                const std::vector<float> &values, const int64_t *shape) {
  zero_rt_tensor tensor =
      transfers->give(ZERO_RT_F32, int64_t(values.size()), values.data());
  check(
      zero_rt_step_send(step, activation, microBatch, &tensor, shape, nullptr),
      "zero_rt_step_send", rank);
}

/// The loss of a micro-batch, or 0 on a stage that does not know it.
double Rank::forward(int64_t number, int64_t microBatch) {
  Model<float> &model = modelOf(microBatch);
  if (before >= 0)
    receive(before, microBatch, model.residuals());
  // All stages know the text: the first reads inputs, the last targets.
  std::vector<int32_t> inputs, targets;
  int64_t turn =
      (number * options.backwards + microBatch) * options.mesh.copies + copy;
  shared.text.sample(uint64_t(options.seed), uint64_t(turn * options.batch),
                     options.batch, options.shape.context, inputs, targets);
  double loss = model.forward(inputs.data(), targets.data());
  const int64_t shape[] = {options.batch, options.shape.context,
                           options.shape.width};
  if (behind >= 0)
    send(behind, microBatch, model.residuals(), shape);
  return loss;
}

void Rank::backward(int64_t microBatch) {
  Model<float> &model = modelOf(microBatch);
  if (behind >= 0)
    receive(behind, microBatch, model.residualGradients());
  bool last = microBatch + 1 == options.backwards;
  check(zero_rt_step_begin_backward(step, last ? ZERO_RT_HINT_LAST
                                               : ZERO_RT_HINT_MORE),
        "zero_rt_step_begin_backward", rank);
  // The step of this model says prescaled(accumulation : -1): the mean over
  // backward passes is the caller's part.
  const double weight = options.imported ? 1 : 1 / double(options.backwards);
  model.backward(scale * weight, [&](int32_t parameter, const float *gradient) {
    handOver(parameter, gradient);
  });
  if (before >= 0)
    send(before, microBatch, model.residualGradients(), nullptr);
  if (!last)
    check(zero_rt_step_accumulate(step), "zero_rt_step_accumulate", rank);
}

/// All micro-batches of one step, up to apply. Returns the mean loss. 1F1B: a
/// stage is ahead by as many forwards as there are stages behind it; the last
/// one, and a model that is whole, makes each backward pass right after its
/// forward.
double Rank::runStep(int64_t number) {
  for (size_t i : wholes)
    look(i);
  check(zero_rt_step_loss_scale(step, &scale), "zero_rt_step_loss_scale", rank);
  double loss = 0;
  int64_t forwards = 0, backwards = 0, ahead = int64_t(models.size()) - 1;
  while (backwards < options.backwards) {
    if (forwards < options.backwards && forwards <= backwards + ahead)
      loss += forward(number, forwards++);
    else
      backward(backwards++);
  }
  return loss / double(options.backwards);
}

void Rank::save(int64_t steps) {
  if (!options.save.empty() &&
      (steps % options.saveEvery == 0 || steps == options.steps))
    check(zero_rt_step_save(step, options.save.c_str(), steps),
          "zero_rt_step_save", rank);
}

void Rank::finishStep(int64_t number) {
  double rate = learningRate(options, number);
  check(zero_rt_step_apply(step, &rate, options.imported ? 0 : 1, nullptr),
        "zero_rt_step_apply", rank,
        "; --imported is for the step of a configuration, and for no other");
  zero_rt_results results = {};
  results.struct_size = sizeof(results);
  check(zero_rt_step_results(step, &results), "zero_rt_step_results", rank);
  if (options.imported) { // it is a result of the step
    if (results.num_values < 2)
      fail("the step reports no learning rate: give its configuration a "
           "scheduler");
    rate = results.values[1];
  }
  // With a loss scale that is how it finds its size.
  bool isSkipped = results.verdict == ZERO_RT_SKIPPED_NONFINITE &&
                   hasLossScale(options.precision);
  if (results.verdict != ZERO_RT_APPLIED && !isSkipped)
    fail("step " + std::to_string(number + 1) +
         " was not applied: a gradient is not finite; try a smaller --rate");

  // The losses and the reference's sums of all ranks are complete behind the
  // first barrier; nobody adds to them before the second.
  shared.wait();
  if (shared.isFirst(rank))
    shared.finishStep(number, rate, results.values[0], isSkipped);
  shared.wait();
}

/// Keeps the parameters of units, for the comparison of all ranks.
void Rank::keepUnits() {
  kept.resize(shared.parameters.size());
  units->visit([&](size_t i) {
    const float *values = shared.views[copy][i];
    kept[i].assign(values, values + shared.parameters[i].elements());
    shared.views[copy][i] = kept[i].data();
  });
}

void Rank::run() {
  for (int64_t number = first; number < options.steps; ++number) {
    double loss = runStep(number);
    if (stage + 1 == options.mesh.stages)
      shared.losses[copy] = loss;
    finishStep(number);
    save(number + 1);
  }
  // The plan tells what steps do, and nothing of what was before and is after.
  zero_rt_counters counters = readCounters();
  counters.bytes_copied_between_spaces -= atStart.bytes_copied_between_spaces;
  counters.bytes_sent -= atStart.bytes_sent;
  counters.all_gathers -= atStart.all_gathers;
  if (shared.reference)
    keepUnits();
  for (size_t i : wholes)
    look(i);
  shared.wait();
  if (shared.isFirst(rank)) {
    shared.result.seconds = shared.progress.seconds();
    check(zero_rt_step_loss_scale(step, &shared.result.lossScale),
          "zero_rt_step_loss_scale", rank);
    if (shared.reference)
      shared.compareRanks();
    shared.result.counters.resize(options.mesh.ranks());
  }
  shared.wait();
  shared.result.counters[rank] = counters;
  shared.wait();
  destroy();
}

zero_rt_counters Rank::readCounters() {
  zero_rt_counters counters = {};
  counters.struct_size = sizeof(counters);
  check(zero_rt_read_counters(runtime, &counters), "zero_rt_read_counters",
        rank);
  return counters;
}

void Rank::destroy() {
  transfers.reset();
  check(zero_rt_step_destroy(step), "zero_rt_step_destroy", rank);
  check(zero_rt_destroy(runtime), "zero_rt_destroy", rank);
}

TrainResult train(const Options &options, const Text &text,
                  const zero_rt_library &library, const Launch *launch) {
  Shared shared(options, text, library, launch);
  Groups groups(options.mesh.ranks(), options.tcp, launch);
  std::vector<std::thread> threads;
  for (int rank : shared.ranks)
    threads.emplace_back([&, rank] {
      Rank(shared, groups.connect(rank), rank).run();
      groups.leave(rank);
    });
  for (std::thread &thread : threads)
    thread.join();
  return std::move(shared.result);
}

} // namespace transformer
