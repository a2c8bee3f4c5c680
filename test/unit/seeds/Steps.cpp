//===- Steps.cpp - Steps that run one way or another ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Steps.h"

#include "EmulatedProgram.h"
#include "FakeDriver.h"
#include "FakeNccl.h"

#include "../runtime/ThreadTransport.h"

#include "codegen/cpu/EmitObject.h"
#include "codegen/kernels/Lower.h"
#include "dialect/zero/ZeroDialect.h"
#include "tools/driver/Driver.h"
#include "tools/zero-run/LibraryCache.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using namespace mlir;
using namespace zero;
using namespace zero::test;

std::string zero::test::nameOf(const testing::TestParamInfo<Way> &info) {
  static const char *const names[] = {"logical", "scheduled", "compiled"};
  static const char *const hints[] = {"", "last", "each"};
  std::string name = llvm::formatv("{0}_stage{1}_{2}{3}",
                                   names[static_cast<int>(info.param.how)],
                                   info.param.stage, info.param.pipeline,
                                   hints[static_cast<int>(info.param.hinted)]);
  for (char &c : name)
    c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return StringRef(name).rtrim('_').str();
}

/// Whether what is compiled runs on the fake GPU.
static bool isOnGpu() {
  const char *device = std::getenv("ZERO_TEST_DEVICE");
  return device && StringRef(device) == "cuda";
}

static constexpr char kApart[] = "accumulate=apart";

std::vector<Way> zero::test::getWays() {
  std::vector<Way> ways;
  std::vector<How> hows = {How::scheduled, How::compiled};
  if (isOnGpu())
    hows = {How::compiled};
  else
    ways.push_back({How::logical});
  for (How how : hows)
    for (const char *pipeline : {"", "offload=optimizer"})
      for (int stage : {0, 1, 2})
        ways.push_back({how, stage, pipeline});
  for (How how : hows)
    ways.push_back({how, 3});
  // The last of each is right.
  for (How how : hows)
    for (int stage : {0, 1}) {
      ways.push_back({how, stage});
      ways.back().hinted = Hinted::each;
    }
  ways.push_back({How::compiled, 1});
  ways.back().hinted = Hinted::last;
  for (How how : hows) {
    ways.push_back({how, 1, kApart});
    if (how == How::scheduled)
      ways.back().hinted = Hinted::each;
  }
  return ways;
}

/// Ranks that pose as processes.
static std::vector<zero_rt_group *> connectInside(int64_t ranks) {
  using zero_rt::test::Network;
  auto network = std::make_shared<Network>();
  std::vector<zero_rt_group *> groups(ranks);
  for (int64_t r = 0; r < ranks; ++r) {
    zero_rt_transport transport = Network::connect(network, r, ranks);
    EXPECT_EQ(zero_rt_transport_group_create(&transport, &groups[r]),
              ZERO_RT_OK);
  }
  return groups;
}

/// How ranks without GPUs exchange data, by ZERO_TEST_GROUP.
static GroupKind getGroupKind() {
  const char *value = std::getenv("ZERO_TEST_GROUP");
  llvm::StringRef kind = value ? value : "threads";
  return kind == "shared" ? GroupKind::shared
         : kind == "tcp"  ? GroupKind::tcp
                          : GroupKind::threads;
}

/// That live.
static int stepsOnGpu = 0;

/// The argument of setProcesses, and the number of steps that ran on it.
static const Processes *processes = nullptr;
static int64_t stepsOnProcesses = 0;

void zero::test::setProcesses(const Processes *ranks) { processes = ranks; }

int64_t zero::test::getNumStepsOnProcesses() { return stepsOnProcesses; }

struct Step::Context {
  Context() : mlir(makeRegistry()) {}
  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerDriverDialects(registry);
    registerCodegenDialects(registry);
    return registry;
  }
  MLIRContext mlir;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<EmulatedProgram> kernels;
};

/// Puts parameters into units of two, if all ranks hold each of them. Returns
/// whether there are any.
static bool addUnits(ModuleOp module) {
  SmallVector<Attribute> members;
  for (auto op : module.getOps<ParameterOp>()) {
    if (!op.getValueType().getPresent().empty())
      return false;
    if (!op.getFrozen())
      members.push_back(FlatSymbolRefAttr::get(op));
  }
  auto builder = OpBuilder::atBlockEnd(module.getBody());
  for (size_t i = 0; i < members.size(); i += 2)
    builder.create<UnitOp>(
        module.getLoc(), ("unit." + llvm::Twine(i)).str(),
        builder.getArrayAttr(ArrayRef(members).slice(i).take_front(
            std::min<size_t>(2, members.size() - i))),
        /*gather_dtype=*/TypeAttr());
  return !members.empty();
}

/// Whether the gradients of |module| are narrower than their sums, arrive in
/// one piece, and are summed over ranks.
static bool mayAccumulateApart(ModuleOp module) {
  MeshOp mesh = *module.getOps<MeshOp>().begin();
  bool may = true;
  for (auto op : module.getOps<ParameterOp>())
    may &= op.getFrozen() || op.getUses() == 1;
  module.walk([&](BackwardOp op) {
    auto loop = op->getParentOfType<MicroBatchesOp>();
    for (Type type : op.getResultTypes()) {
      auto value = cast<ValueType>(type);
      may &= value.getElementType() != loop.getAccumulatorType() &&
             llvm::any_of(
                 value.getAxes(PlacementKind::Partial), [&](StringAttr axis) {
                   return axis != kMicroAxis && mesh.getAxisSize(axis) > 1;
                 });
    }
  });
  return may;
}

Step::Step(const std::string &source, const Way &way, Mutation mutate)
    : context(std::make_unique<Context>()), hinted(way.hinted) {
  context->module = parseSourceString<ModuleOp>(source, &context->mlir);
  if (!context->module)
    llvm::report_fatal_error(
        llvm::Twine("the step does not parse:\n" + source));
  MeshOp mesh = *context->module->getOps<MeshOp>().begin();
  ranks = mesh.getNumRanks();
  parameters = readParameters(*context->module, mesh);
  if (way.how != How::logical) {
    int stage = way.stage;
    if (stage == 3 && !addUnits(*context->module))
      stage = 2;
    bool isApart =
        way.pipeline != kApart || mayAccumulateApart(*context->module);
    std::unique_ptr<LowerOptions> options = LowerOptions::createFromString(
        llvm::formatv("stage={0} bucket-bytes={1} {2}", stage, way.bucketBytes,
                      isApart ? way.pipeline : "")
            .str());
    if (!options || failed(lower(*context->module, *options)))
      llvm::report_fatal_error(llvm::Twine("the step cannot be lowered"));
  }
  if (mutate)
    mutate(*context->module);
  std::string message = "the step cannot be interpreted";
  CompiledOptions compiled;
  if (way.how == How::compiled && isOnGpu()) {
    if (stepsOnGpu++ == 0) {
      fake::reset(/*seed=*/ranks);
      fake::resetNccl();
      fake::setGpus(/*count=*/64, 9, 0);
    }
    context->kernels = std::make_unique<EmulatedProgram>(*context->module);
    compiled.gpus = {0, 1};
    if (std::getenv("ZERO_TEST_GROUP")) {
      compiled.gpus.resize(ranks);
      std::iota(compiled.gpus.begin(), compiled.gpus.end(), 0);
      compiled.connect = connectInside;
    }
    compiled.checks = !std::getenv("ZERO_TEST_UNCHECKED");
    static int made = 0;
    compiled.graphs = ++made % 2 == 0;
  }
  if (way.how == How::compiled && !isOnGpu())
    compiled.group = getGroupKind();
  if (way.how == How::compiled && processes &&
      processes->getNumRanks() == ranks) {
    compiled.processes = processes;
    ++stepsOnProcesses;
  }
  // Ways that differ in hints alone compile the same.
  static LibraryCache libraries;
  compiled.libraries = &libraries;
  if (way.how == How::compiled)
    engine = createCompiledEngine(*context->module, ranks, parameters, compiled,
                                  message);
  else
    engine = createInterpreterEngine(*context->module, way.how == How::logical
                                                           ? Arithmetic::F64
                                                           : Arithmetic::Typed);
  if (!engine)
    llvm::report_fatal_error(llvm::Twine(message));
  for (const ParameterInfo &info : parameters)
    bind(info.name, std::vector<double>(info.elements, 0.0));
}

Step::~Step() {
  engine.reset();
  if (!context->kernels)
    return;
  for (const std::string &error : fake::takeErrors())
    ADD_FAILURE() << error;
  if (--stepsOnGpu == 0)
    EXPECT_EQ(fake::describeLeaks(), "");
}

MLIRContext *Step::getContext() { return &context->mlir; }

const ParameterInfo &Step::find(const std::string &name) const {
  return *llvm::find_if(
      parameters, [&](const ParameterInfo &info) { return info.name == name; });
}

FailureOr<StepResult> Step::apply(double rate, const Window &window,
                                  const std::vector<double> &tokens) {
  std::vector<RankInputs> inputs;
  // Every second step is measured first, which changes nothing.
  bool measures = (numApplied++ % 2 == 0) == (hinted != Hinted::none);
  bool isEqual = llvm::all_of(window, [&](const auto &backwards) {
    return backwards.size() == window[0].size();
  });
  for (auto [rank, backwards] : llvm::enumerate(window)) {
    inputs.emplace_back();
    inputs.back().backwards = backwards;
    inputs.back().inputs = {rate};
    inputs.back().measures = measures;
    int64_t last = int64_t(backwards.size()) - 1;
    for (int64_t b = 0; b <= last; ++b)
      if ((hinted == Hinted::each && isEqual) ||
          (hinted != Hinted::none && b == last))
        inputs.back().begunAsLast.insert(b);
    if (!tokens.empty())
      inputs.back().inputs.push_back(tokens[rank]);
  }
  return engine->apply(inputs);
}

void Step::bind(const std::string &name, std::vector<double> values) {
  if (failed(engine->bind(find(name), values)))
    llvm::report_fatal_error(llvm::Twine("cannot bind " + name));
}

static std::vector<double> toDoubles(const std::vector<Number> &numbers) {
  std::vector<double> values;
  for (const Number &number : numbers)
    values.push_back(number.value);
  return values;
}

static std::vector<Number> check(FailureOr<std::vector<Number>> numbers) {
  if (failed(numbers))
    llvm::report_fatal_error(llvm::Twine("cannot read"));
  return std::move(*numbers);
}

std::vector<double> Step::getOn(int64_t rank, const std::string &name) {
  return toDoubles(check(engine->getParameter(rank, find(name))));
}

std::vector<Number> Step::getNumbers(const std::string &name) {
  const ParameterInfo &info = find(name);
  int64_t holder = info.getHolder();
  std::vector<Number> first = check(engine->getParameter(holder, info));
  for (int64_t r = holder; r < ranks; ++r)
    if (info.holders[r])
      EXPECT_EQ(toDoubles(first), getOn(r, name))
          << "rank " << r << " holds other values than rank " << holder;
  return first;
}

std::vector<double> Step::get(const std::string &name) {
  return toDoubles(getNumbers(name));
}

std::vector<double> Step::getState(const std::string &role,
                                   const std::string &name) {
  return toDoubles(check(engine->getState(role, find(name))));
}
