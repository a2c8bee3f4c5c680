//===- KernelLibrary.h - Compiles the kernels of a test ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_CUDA_KERNELLIBRARY_H
#define ZERO_TEST_UNIT_CUDA_KERNELLIBRARY_H

#include "codegen/cpu/EmitKernel.h"
#include "codegen/cpu/EmitObject.h"
#include "codegen/kernels/EmitScalars.h"
#include "zero_rt/library.h"

#include "gtest/gtest.h"

#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace zero::test {

/// One way to compile kernels. All give the same bits.
struct Target {
  std::string cpu;
  int64_t vectorElements;
};

/// Those that this machine can run.
std::vector<Target> getTargets();

inline std::string printTarget(const testing::TestParamInfo<Target> &info) {
  std::string name =
      info.param.cpu + "_" + std::to_string(info.param.vectorElements);
  for (char &c : name)
    c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

/// A context, and modules around the symbols of a program.
class Source {
public:
  Source();
  /// Null if |symbols| do not parse.
  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &symbols);

  mlir::MLIRContext context;
};

/// A temporary directory.
class Directory {
public:
  Directory();
  ~Directory();
  std::string file(const std::string &name) const { return path + "/" + name; }

private:
  std::string path;
};

/// Compiles |code| for |target|, links it in |directory| and loads it; null
/// after an error. Equal code is compiled once, and stays loaded.
void *loadCode(mlir::ModuleOp code, const Directory &directory,
               const zero::CpuTargetOptions &target);

/// Compiles, links and loads all kernels and scalar programs among |symbols|.
/// Slots are numbered in the order of zrt.slots.
class KernelLibrary {
public:
  explicit KernelLibrary(const std::string &symbols, const Target &target);

  zero_rt_kernel_fn kernel(const char *name) const {
    return reinterpret_cast<zero_rt_kernel_fn>(find(name));
  }
  zero_rt_scalar_fn scalars(const char *name) const {
    return reinterpret_cast<zero_rt_scalar_fn>(find(name));
  }
  const Directory &getDirectory() const { return directory; }

private:
  void compile(const std::string &symbols, const Target &target);
  void *find(const char *name) const;

  Directory directory;
  void *handle = nullptr;
};

/// An array with only its elements' alignment and guards on both sides.
template <typename T> class Array {
public:
  explicit Array(int64_t size) : all(size + 2 * kGuard) {
    std::memset(all.data(), 0xa5, all.size() * sizeof(T));
  }
  T *data() { return all.data() + kGuard; }
  T &operator[](int64_t i) { return data()[i]; }
  int64_t size() const { return all.size() - 2 * kGuard; }
  /// The first element, guards included, whose bits differ; or -1.
  int64_t findDifference(const Array &other) const {
    for (size_t i = 0; i < all.size(); ++i)
      if (std::memcmp(&all[i], &other.all[i], sizeof(T)) != 0)
        return i;
    return -1;
  }

private:
  static constexpr int64_t kGuard = 37;
  std::vector<T> all;
};

template <typename T> void expectSame(const Array<T> &a, const Array<T> &b) {
  EXPECT_EQ(a.findDifference(b), -1);
}

/// Sizes around the edges of iterations and blocks.
constexpr int64_t kSizes[] = {0,  1,    2,    31,   32,   33,
                              95, 4095, 4096, 4097, 8191, 10000};

} // namespace zero::test

#endif // ZERO_TEST_UNIT_CUDA_KERNELLIBRARY_H
