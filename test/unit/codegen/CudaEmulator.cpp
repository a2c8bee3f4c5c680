//===- CudaEmulator.cpp - CUDA kernels on a CPU ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaEmulator.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/bit.h"

#include <condition_variable>
#include <dlfcn.h>
#include <mutex>
#include <thread>

using namespace mlir;
using namespace zero;
using namespace zero::test;

static constexpr int kWarpSize = 32;

//===----------------------------------------------------------------------===//
// The machine
//===----------------------------------------------------------------------===//

namespace {

/// The threads of a warp, of which each runs on a thread of this machine.
class Warp {
public:
  /// What a member of |mask| that calls it with its |lane| gets from the one
  /// whose lane differs by |distance|, as soon as all members have called.
  uint32_t exchange(uint32_t mask, int lane, uint32_t value, int distance) {
    std::unique_lock<std::mutex> lock(mutex);
    EXPECT_TRUE(mask >> lane & 1) << "lane " << lane << " is no member";
    EXPECT_TRUE(mask >> (lane ^ distance) & 1) << "nor is its partner";
    Team &team = teams[llvm::countr_zero(mask)];
    team.given[lane] = value;
    uint64_t now = team.turn;
    if (++team.arrived == llvm::popcount(mask)) {
      std::copy_n(team.given, kWarpSize, team.taken);
      team.arrived = 0;
      ++team.turn;
      changed.notify_all();
    }
    changed.wait(lock, [&] { return team.turn != now; });
    return team.taken[lane ^ distance];
  }

private:
  struct Team {
    uint32_t given[kWarpSize] = {};
    uint32_t taken[kWarpSize] = {};
    int arrived = 0;
    uint64_t turn = 0;
  };
  std::mutex mutex;
  std::condition_variable changed;
  Team teams[kWarpSize]; // by their first lane
};

struct Place {
  int32_t thread = 0;
  int32_t block = 0;
  Warp *warp = nullptr;
};

thread_local Place place;

int32_t getThread() { return place.thread; }
int32_t getBlock() { return place.block; }
int32_t exchange(int32_t mask, int32_t value, int32_t distance) {
  return int32_t(place.warp->exchange(uint32_t(mask), place.thread % kWarpSize,
                                      uint32_t(value), distance));
}

} // namespace

/// Runs |kernel| in each thread of |blocks| blocks, one after the other.
template <typename Kernel>
static void runAlone(int64_t blocks, const Kernel &kernel) {
  for (int64_t block = 0; block < blocks; ++block)
    for (int thread = 0; thread < kCudaThreads; ++thread) {
      place = {thread, int32_t(block), nullptr};
      kernel();
    }
}

/// The same with the threads of a warp at once, which can talk to each other.
template <typename Kernel>
static void runInWarps(int64_t blocks, const Kernel &kernel) {
  for (int64_t block = 0; block < blocks; ++block)
    for (int first = 0; first < kCudaThreads; first += kWarpSize) {
      Warp warp;
      std::vector<std::thread> threads;
      for (int lane = 0; lane < kWarpSize; ++lane)
        threads.emplace_back([&, lane] {
          place = {first + lane, int32_t(block), &warp};
          kernel();
        });
      for (std::thread &thread : threads)
        thread.join();
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
  for (StringRef name : {"get_thread", "get_block", "exchange"})
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
    op->replaceAllUsesWith(result);
    op->erase();
  };
  module.walk([&](Operation *op) {
    if (isa<NVVM::ThreadIdXOp>(op))
      call(op, "get_thread", {});
    else if (isa<NVVM::BlockIdXOp>(op))
      call(op, "get_block", {});
    else if (auto shuffle = dyn_cast<NVVM::ShflOp>(op))
      call(op, "exchange",
           {shuffle.getThreadMask(), shuffle.getVal(), shuffle.getOffset()});
  });
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    function->removeAttr(NVVM::NVVMDialect::getKernelFuncAttrName());
    function->removeAttr(NVVM::NVVMDialect::getMaxntidAttrName());
  }
}

CudaEmulator::CudaEmulator(const std::string &symbols) { compile(symbols); }

void CudaEmulator::compile(const std::string &symbols) {
  Source source;
  OwningOpRef<ModuleOp> parsed = source.parse(symbols);
  ASSERT_TRUE(parsed) << "the test's program does not parse";
  auto program = *parsed->getOps<zrt::ProgramOp>().begin();
  llvm::StringMap<int64_t> firstSlots;
  int64_t numSlots = 0;
  for (auto slots : program.getOps<zrt::SlotsOp>()) {
    firstSlots[slots.getSymName()] = numSlots;
    numSlots += slots.size();
  }
  FailureOr<OwningOpRef<ModuleOp>> module = emitCudaModule(
      program,
      [&](FlatSymbolRefAttr slots) {
        return firstSlots.lookup(slots.getValue());
      },
      code);
  ASSERT_TRUE(succeeded(module));
  replaceOps(**module);

  handle = loadCode(**module, directory, "x86-64-v3");
  ASSERT_NE(handle, nullptr);
  auto set = [&](const char *name, auto *function) {
    *static_cast<decltype(function) *>(find(name)) = function;
  };
  set("get_thread", getThread);
  set("get_block", getBlock);
  set("exchange", exchange);
}

CudaEmulator::~CudaEmulator() {
  if (handle)
    dlclose(handle);
}

void *CudaEmulator::find(const std::string &name) const {
  void *symbol = handle ? dlsym(handle, name.c_str()) : nullptr;
  EXPECT_NE(symbol, nullptr) << "no symbol " << name;
  return symbol;
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

/// Calls |function| with |arrays| and what every kernel has behind them.
template <typename... Arrays>
static void callKernel(void *function, const CudaLaunch &launch,
                       Arrays... arrays) {
  if constexpr (sizeof...(Arrays) <= 8) {
    if (sizeof...(Arrays) < launch.arrays.size())
      return callKernel(function, launch, arrays...,
                        launch.arrays[sizeof...(Arrays)]);
    using Kernel = void (*)(Arrays..., const double *,
                            const zero_rt_cuda_piece *, int64_t, double *);
    reinterpret_cast<Kernel>(function)(
        arrays..., launch.slots, launch.pieces.data(),
        int64_t(launch.pieces.size()), launch.partials);
  }
}

void CudaEmulator::launch(const std::string &name,
                          const CudaLaunch &launch) const {
  CudaFunction function =
      name == "sum" ? code.sum : code.functions.lookup(name);
  void *kernel = find(function.name);
  ASSERT_LE(launch.arrays.size(), 8u) << "callKernel knows no more";
  auto run = [&] { callKernel(kernel, launch); };
  int64_t pieces = int64_t(launch.pieces.size());
  if (!launch.partials)
    return runAlone(pieces, run);
  int64_t perBlock = function.piecesPerBlock;
  runInWarps((pieces + perBlock - 1) / perBlock, run);
}

void CudaEmulator::runScalars(const std::string &name, double *slots) const {
  auto *program = reinterpret_cast<zero_rt_scalar_fn>(
      find(code.functions.lookup(name).name));
  program(slots);
}
