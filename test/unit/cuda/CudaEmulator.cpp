//===- CudaEmulator.cpp - CUDA kernels on a CPU ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaEmulator.h"

#include "EmulatedWarp.h"
#include "codegen/cuda/EmitScalarKernel.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/bit.h"

#include <algorithm>
#include <dlfcn.h>
#include <numeric>
#include <random>

using namespace mlir;
using namespace zero;
using namespace zero::test;

//===----------------------------------------------------------------------===//
// The machine
//===----------------------------------------------------------------------===//

namespace {

struct Place {
  int32_t thread = 0;
  int32_t block = 0;
};

thread_local Place place;
thread_local EmulatedWarp *warp = nullptr;

int32_t getThread() { return place.thread; }
int32_t getBlock() { return place.block; }
int32_t exchange(int32_t site, int32_t mask, int32_t value, int32_t which,
                 int32_t isLane) {
  int lane = place.thread % kWarpSize;
  return int32_t(warp->exchange(site, uint32_t(mask), uint32_t(value),
                                isLane ? which : lane ^ which));
}
int32_t letOthersGo() {
  warp->pause();
  return 0;
}

} // namespace

/// Runs |kernel| in each thread of |blocks| blocks, one after the other.
template <typename Kernel>
static void runAlone(int64_t blocks, int threads, const Kernel &kernel) {
  for (int64_t block = 0; block < blocks; ++block)
    for (int thread = 0; thread < threads; ++thread) {
      place = {thread, int32_t(block)};
      kernel();
    }
}

/// The same with the threads of a warp at once, which can talk to each other;
/// the warps in any order, and some of them at once.
template <typename Kernel>
static void runInWarps(int64_t blocks, const Kernel &kernel) {
  constexpr int kWarps = kCudaThreads / kWarpSize;
  constexpr int kAtOnce = 3;
  static thread_local std::mt19937 random(17);
  static thread_local EmulatedWarp warps[kAtOnce];
  std::vector<int64_t> waiting(size_t(blocks * kWarps));
  std::iota(waiting.begin(), waiting.end(), int64_t(0));
  std::shuffle(waiting.begin(), waiting.end(), random);
  auto start = [&](EmulatedWarp &next) {
    int64_t i = waiting.back();
    waiting.pop_back();
    auto enter = [i](int lane) {
      place = {int32_t(i % kWarps) * kWarpSize + lane, int32_t(i / kWarps)};
    };
    next.start(enter, kernel);
  };
  std::vector<EmulatedWarp *> going;
  for (EmulatedWarp &each : warps)
    if (!waiting.empty()) {
      start(each);
      going.push_back(&each);
    }
  // One for a while, so that others stay where they are.
  for (size_t drawn = 0; !going.empty();) {
    if (random() % 16 == 0 || drawn >= going.size())
      drawn = random() % going.size();
    warp = going[drawn];
    EmulatedWarp::Progress progress = warp->advance(random);
    ASSERT_NE(progress, EmulatedWarp::Progress::Stuck)
        << "threads of a warp wait for each other";
    if (progress == EmulatedWarp::Progress::Going)
      continue;
    if (waiting.empty())
      going.erase(going.begin() + int64_t(drawn));
    else
      start(*warp);
  }
}

//===----------------------------------------------------------------------===//
// Compiling for it
//===----------------------------------------------------------------------===//

/// Makes calls of what a CPU does not have, through pointers that are exported.
static void replaceOps(ModuleOp module) {
  OpBuilder builder(module.getBodyRegion());
  Location loc = module.getLoc();
  Type pointer = LLVM::LLVMPointerType::get(module.getContext());
  for (StringRef name :
       {"get_thread", "get_block", "exchange", "let_others_go"})
    builder
        .create<LLVM::GlobalOp>(loc, pointer, /*isConstant=*/false,
                                LLVM::Linkage::External, name, Attribute())
        .getInitializerRegion();
  for (auto global : module.getOps<LLVM::GlobalOp>()) {
    OpBuilder body(module.getContext());
    body.setInsertionPointToEnd(&global.getInitializerRegion().emplaceBlock());
    body.create<LLVM::ReturnOp>(loc, body.create<LLVM::ZeroOp>(loc, pointer));
  }
  auto call = [&](Operation *op, StringRef name, ValueRange operands) {
    OpBuilder at(op);
    Type i32 = at.getI32Type();
    Value address = at.create<LLVM::AddressOfOp>(loc, pointer, name);
    SmallVector<Value> all{at.create<LLVM::LoadOp>(loc, pointer, address)};
    llvm::append_range(all, operands);
    auto type = LLVM::LLVMFunctionType::get(
        i32, SmallVector<Type>(operands.size(), i32));
    auto result = at.create<LLVM::CallOp>(loc, type, all);
    if (op->getNumResults())
      op->replaceAllUsesWith(result);
    op->erase();
  };
  auto i32 = [&](Operation *op, int32_t value) -> Value {
    OpBuilder at(op);
    return at.create<LLVM::ConstantOp>(loc, at.getI32Type(),
                                       at.getI32IntegerAttr(value));
  };
  int site = 0;
  module.walk([&](Operation *op) {
    if (isa<NVVM::ThreadIdXOp>(op))
      call(op, "get_thread", {});
    else if (isa<NVVM::BlockIdXOp>(op))
      call(op, "get_block", {});
    else if (auto shuffle = dyn_cast<NVVM::ShflOp>(op))
      call(op, "exchange",
           {i32(op, ++site), shuffle.getThreadMask(), shuffle.getVal(),
            shuffle.getOffset(),
            i32(op, shuffle.getKind() == NVVM::ShflKind::idx)});
    else if (auto meet = dyn_cast<NVVM::SyncWarpOp>(op))
      call(op, "exchange",
           {i32(op, ++site), meet.getMask(), i32(op, 0), i32(op, 0),
            i32(op, 0)});
    else if (auto fence = dyn_cast<LLVM::CallIntrinsicOp>(op)) {
      EXPECT_EQ(fence.getIntrin(), "llvm.nvvm.membar.gl");
      call(op, "let_others_go", {});
    }
  });
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    function->removeAttr(NVVM::NVVMDialect::getKernelFuncAttrName());
    function->removeAttr(NVVM::NVVMDialect::getMaxntidAttrName());
    function->removeAttr(NVVM::NVVMDialect::getMinctasmAttrName());
  }
}

CudaEmulator::CudaEmulator(const std::string &symbols) {
  Source source;
  OwningOpRef<ModuleOp> parsed = source.parse(symbols);
  if (!parsed) {
    ADD_FAILURE() << "the test's program does not parse";
    return;
  }
  auto program = *parsed->getOps<zrt::ProgramOp>().begin();
  llvm::StringMap<int64_t> firstSlots;
  int64_t numSlots = 0;
  for (auto slots : program.getOps<zrt::SlotsOp>()) {
    firstSlots[slots.getSymName()] = numSlots;
    numSlots += slots.size();
  }
  compile(program, [&](FlatSymbolRefAttr slots) {
    return firstSlots.lookup(slots.getValue());
  });
}

CudaEmulator::CudaEmulator(
    zrt::ProgramOp program,
    llvm::function_ref<int64_t(FlatSymbolRefAttr)> getFirstSlot) {
  compile(program, getFirstSlot);
}

void CudaEmulator::compile(
    zrt::ProgramOp program,
    llvm::function_ref<int64_t(FlatSymbolRefAttr)> getFirstSlot) {
  FailureOr<OwningOpRef<ModuleOp>> module =
      emitCudaModule(program, getFirstSlot, code);
  ASSERT_TRUE(succeeded(module));
  replaceOps(**module);

  zero::CpuTargetOptions target;
  target.optimize = false; // a kernel runs a few times, on few elements
  handle = loadCode(**module, directory, target);
  ASSERT_NE(handle, nullptr);
  auto set = [&](const char *name, auto *function) {
    *static_cast<decltype(function) *>(find(name)) = function;
  };
  set("get_thread", getThread);
  set("get_block", getBlock);
  set("exchange", exchange);
  set("let_others_go", letOthersGo);
}

void *CudaEmulator::find(const std::string &name) const {
  void *symbol = handle ? dlsym(handle, name.c_str()) : nullptr;
  EXPECT_NE(symbol, nullptr) << "no symbol " << name;
  return symbol;
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

/// Calls |function| with |arguments|, of which each fits a register.
template <typename... Passed>
static void call(void *function, const std::vector<uint64_t> &arguments,
                 Passed... passed) {
  if constexpr (sizeof...(Passed) < 24) {
    if (sizeof...(Passed) < arguments.size())
      return call(function, arguments, passed..., arguments[sizeof...(Passed)]);
  }
  reinterpret_cast<void (*)(Passed...)>(function)(passed...);
}

void CudaEmulator::run(const std::string &name, int64_t blocks, int threads,
                       const std::vector<uint64_t> &arguments) const {
  void *kernel = find(name);
  ASSERT_LE(arguments.size(), 24u) << "call knows no more";
  auto once = [&] { call(kernel, arguments); };
  // Threads of a kernel that sums talk to each other.
  bool sums = false;
  for (const auto &function : code.functions)
    sums |= function.second.name == name && function.second.piecesPerBlock > 1;
  if (sums)
    runInWarps(blocks, once);
  else
    runAlone(blocks, threads, once);
}

static uint64_t addressOf(const void *data) {
  return uint64_t(reinterpret_cast<uintptr_t>(data));
}

void CudaEmulator::launch(const std::string &name,
                          const CudaLaunch &launch) const {
  CudaFunction function = code.functions.lookup(name);
  std::vector<uint64_t> arguments;
  for (void *array : launch.arrays)
    arguments.push_back(addressOf(array));
  arguments.push_back(addressOf(launch.slots));
  arguments.push_back(addressOf(launch.pieces.data()));
  arguments.push_back(launch.pieces.size());
  if (function.piecesPerBlock > 1)
    for (const void *memory : {static_cast<const void *>(launch.partials),
                               static_cast<const void *>(launch.arrivals),
                               static_cast<const void *>(launch.sum)})
      arguments.push_back(addressOf(memory));
  int64_t perBlock = function.piecesPerBlock;
  run(function.name, (int64_t(launch.pieces.size()) + perBlock - 1) / perBlock,
      kCudaThreads, arguments);
}

void CudaEmulator::runScalars(
    const std::string &name, double *slots,
    const std::vector<std::pair<int64_t, double>> &given) const {
  std::vector<uint64_t> arguments{addressOf(slots), given.size()};
  for (const auto &[slot, value] : given) {
    arguments.push_back(uint64_t(slot));
    arguments.push_back(llvm::bit_cast<uint64_t>(value));
  }
  // What is not given is not looked at.
  arguments.resize(2 + 2 * kMaxGivenSlots, uint64_t(1) << 60);
  CudaFunction function =
      name.empty() ? code.giveSlots : code.functions.lookup(name);
  run(function.name, 1, 1, arguments);
}
